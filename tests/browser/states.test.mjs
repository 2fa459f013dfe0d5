// SPDX-License-Identifier: MIT
//
// Random states of every lab: the call that a figure shows gives the bytes that it draws, the page's link leads back to
// the same picture, and all that figures show and say is what references/ computes once more, in float64 and from
// formulas. Heat maps have the same colours as the service draws.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { figureShown } from "./_drawn.mjs";
import { figureAgrees } from "./_expected.mjs";
import { inFigure, figureNames, labs, pageTest, ready, siteOpen, top, words } from "./_page.mjs";
import { askFrom, colourOf, colours, npyNumbers, pngPixels } from "./_reference.mjs";
import { randomFrom, randomState } from "./_states.mjs";

const STATES = 10;
const seed = Number(process.env.SEED ?? 1);
const site = await siteOpen();
const folder = mkdtempSync(join(tmpdir(), "posenc-states-"));
after(() => rmSync(folder, { recursive: true }));
const ask = askFrom(site.origin);

// ---- References ---------------------------------------------------------------------------------------------------

const files = readdirSync(join(top, "tests", "browser", "references"));

/** What a reference exports: `reference`, and states, `corners`, to which few random ones come. */
const moduleOf = async (name) => (files.includes(`${name}.mjs`) ? import(`./references/${name}.mjs`) : { reference: {} });

const modules = Object.fromEntries(await Promise.all(labs.map(async ({ name }) => [name, await moduleOf(name)])));

/** { LAB: { FIGURE: async (s, ask, words) => expected } } */
const references = Object.fromEntries(labs.map(({ name }) => [name, modules[name].reference]));

for (const { name, figures } of labs) {
  test(`${name}: every figure has a reference`, () =>
    assert.deepEqual(Object.keys(references[name]).sort(), Object.keys(figures).sort(), `tests/browser/references/${name}.mjs`));
}

test("references have nothing of the pages' code", () => {
  for (const file of files) {
    const text = readFileSync(join(top, "tests", "browser", "references", file), "utf8");
    const from = [...text.matchAll(/\b(?:from|import|require)\b\s*\(?\s*(["'`])(.*?)\1/g)].map(([, , name]) => name);
    assert.deepEqual(from.filter((name) => name !== "./_maths.mjs"), [], `${file} imports`);
    assert.ok(!/server\/www|\bimport\s*\(|\brequire\b/.test(text), `${file} names the pages' folder, or imports at run time`);
  }
});

// ---- What is on the page ------------------------------------------------------------------------------------------

/** All that is drawn: pixels of canvases and the text of drawings, as one hash. */
const picture = (page) =>
  page.evaluate(async () => {
    const parts = [...document.querySelectorAll("figure .stage canvas")].map(pixelsOf);
    const svgs = [...document.querySelectorAll("figure .stage svg, figure .stage table")].map((svg) => svg.outerHTML).join("\n")
      .replace(/<!--.*?-->|\bclass="[^"]*\blit\b[^"]*"/gs, ""); // lit-html's marks, and what lights up under the pointer
    const hash = await crypto.subtle.digest("SHA-256", await new Blob([...parts, svgs]).arrayBuffer());
    return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  });

/** Opens all drawers and reads the commands of every figure: { name: [line] }. */
const commands = (page) =>
  page.$$eval("figure[data-figure]", (all) =>
    Object.fromEntries(all.map((figure) => {
      const drawer = figure.querySelector(".below > .drawer");
      if (drawer.hidden) {
        figure.querySelector(".below > .tools button[aria-expanded]").click();
      }
      return [figure.dataset.figure, drawer.querySelector("code").textContent.trim().split("\n")];
    })));

const addressIn = (line) => new URL(line.match(/'(http[^']*)'/)[1]);

const done = new Map(); // commands that were run, as figures share calls

/** Runs what the page shows, as a reader would; the bytes of its file. */
function shell(line) {
  if (!done.has(line)) {
    execFileSync("sh", ["-c", line], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    done.set(line, readFileSync(join(folder, line.match(/-o (\S+)$/)[1])));
  }
  return done.get(line);
}

/** The bytes that a figure has got, call by call; of JSON, which it keeps as values, their text. */
const replies = (page, name) =>
  inFigure(page, name, ({ replies }) =>
    Promise.all(replies.map(async (reply) => {
      if (!reply.bytes) {
        return { json: JSON.stringify(reply) };
      }
      const url = new FileReader();
      url.readAsDataURL(new Blob([reply.bytes]));
      await new Promise((resolve) => { url.onload = resolve; });
      return { base64: url.result.split(",")[1] };
    })));

async function bytesAgree(page, name, lines) {
  const got = await replies(page, name);
  assert.equal(got.length, lines.length, `${name}: a command for each reply`);
  lines.forEach((line, i) => {
    const bytes = shell(line);
    if (got[i].json) {
      assert.deepEqual(JSON.parse(bytes), JSON.parse(got[i].json), `${name}: ${line}`);
    } else {
      assert.ok(bytes.equals(Buffer.from(got[i].base64, "base64")), `${name}: other bytes than are drawn: ${line}`);
    }
  });
}

// ---- Heat maps that are a reply ----------------------------------------------------------------------------------

/** A heat map that shows a reply shows its numbers. */
function numbersAgree(name, { data: shown }, line) {
  const { shape, data } = npyNumbers(shell(line));
  const [columns = 1, rows = 1] = shape.slice().reverse();
  assert.deepEqual([shown.rows, shown.columns], [rows, columns], name);
  assert.deepEqual(shown.values, data, `${name}: other numbers than came`);
}

/** The service's picture of the same call has the same colours, all of them. */
async function pictureAgrees(name, { data: shown, theme }, line) {
  const url = addressIn(line);
  for (const [field, value] of Object.entries({ format: "png", "png.cell": 1, "png.domain": shown.domain, "png.theme": theme })) {
    url.searchParams.set(field, value);
  }
  const response = await fetch(url);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, 200, `${url}: ${bytes}`);
  const { width, height, pixels } = pngPixels(bytes);
  assert.deepEqual([height, width], [shown.rows, shown.columns], String(url));
  const map = colours(theme);
  const wrong = pixels.findIndex((pixel, i) => pixel !== map[colourOf(shown.values[i], shown.domain)]);
  assert.equal(wrong, -1, `${name}: cell ${wrong} of ${url} is ${pixels[wrong]}`);
}

// ---- The tests ----------------------------------------------------------------------------------------------------

/** The query of the page without what only the page knows, and that of a call without its format, in one order. */
const own = (query) => {
  const params = new URLSearchParams(query);
  [...params.keys()].filter((name) => name.startsWith("v.") || name === "format").forEach((name) => params.delete(name));
  params.sort();
  return params.toString();
};

/** Brings the page into a state, its words last, as a choice may bring others; its link, which the address followed. */
async function enter(page, name, state) {
  const link = await inFigure(page, name, ({ page }, state) => {
    page.set(state);
    page.set(Object.fromEntries(Object.entries(state).filter(([, value]) => Array.isArray(value))));
    return page.link();
  }, state);
  await ready(page);
  await page.waitForFunction((link) => location.href === link, link);
  return link;
}

/** Of one figure: the bytes, the numbers, what is drawn of them and what is said. */
async function figureRight(page, lab, name, lines) {
  await bytesAgree(page, name, lines);
  const shown = await figureShown(page, name);
  const texts = words.labs[lab].figures[name];
  const expected = await references[lab][name]?.(shown.state, ask, texts);
  if (expected) {
    figureAgrees(shown, expected, texts, name);
  }
  if (shown.still) {
    numbersAgree(name, shown, lines[0]);
    await pictureAgrees(name, shown, lines[0]);
  }
  return Boolean(expected);
}

async function tryState(page, { lab, names, about }, state, seen) {
  const link = await enter(page, names[0], state);
  assert.equal(await page.locator(".failed").count(), 0, "a figure could not be drawn");
  const lines = await commands(page);
  assert.equal(own(addressIn(lines[about][0]).search), own(new URL(link).search), `the page's query is that of ${about}'s first call`);
  for (const name of names) {
    seen.figures += await figureRight(page, lab, name, lines[name]);
  }
  const before = await picture(page);
  await page.reload();
  await ready(page);
  assert.equal(await picture(page), before, "another picture after the link was opened");
  assert.ok(await page.locator("#notes").isHidden(), await page.locator("#notes").textContent());
}

for (const [k, { name: lab, fields, about }] of labs.entries()) {
  const random = randomFrom(1000 * seed + k);
  for (const theme of ["light", "dark"]) {
    pageTest(site, `${lab}, ${theme}: ${STATES / 2} random states, seed ${seed}`, `/labs/${lab}`, { theme }, async (page, t) => {
      const names = await figureNames(page);
      const seen = { figures: 0 };
      const some = Array.from({ length: STATES / 2 }, () => randomState(fields, random));
      const states = [...some, ...(theme === "light" ? modules[lab].corners ?? [] : [])];
      for (const [i, state] of states.entries()) {
        try {
          await tryState(page, { lab, names, about: about ?? names[0] }, state, seen);
        } catch (error) {
          error.message += `\n(lab ${lab}, SEED=${seed}, state ${i + 1}: ${JSON.stringify(state)}, ${page.url()})`;
          throw error;
        }
      }
      t.diagnostic(`${lab}: ${seen.figures} figures compared with their references`);
    });
  }
}
