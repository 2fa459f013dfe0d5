// SPDX-License-Identifier: MIT
//
// Every page in light and dark, wide and narrow: nothing for the browser or axe to complain of, nothing wider than its
// window, nothing from elsewhere. Pictures of all are kept in build/browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { axeFile, labs, overflow, pageOpen, pageTest, shots, siteOpen } from "./_page.mjs";

const axe = readFileSync(axeFile, "utf8");
const WIDTHS = [1280, 390, 320];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Where axe cannot tell what colour is behind a text; contrastFaults() can. */
const DECIDED = { "color-contrast": "math, math *, svg text" };

const site = await siteOpen();
const pages = [["index", "/"], ["glossary", "/glossary"], ["help", "/help"], ...labs.map(({ name }) => [name, `/labs/${name}`])];

/** Until what depends on the window's width is drawn anew. */
const settled = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))));

/** What is pressed around the text and beneath figures, and is too small for a finger: [text]. */
const small = (page) =>
  page.$$eval("header :is(a, button), .parts a, .below button", (all) =>
    all.map((element) => [element.textContent, element.getBoundingClientRect()]).filter(([, { width, height }]) => width < 24 || height < 24).map(([text]) => text));

for (const [name, path] of pages) {
  for (const theme of ["light", "dark"]) {
    pageTest(site, `${name}, ${theme}: fits at ${WIDTHS}, without complaint`, path, { theme }, async (page) => {
      assert.equal(page.status, 200);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await settled(page);
        assert.ok((await overflow(page)) <= 0, `${width}: wider than its window by ${await overflow(page)} pixels`);
        assert.equal(await page.locator(".failed").count(), 0, "a figure could not be drawn");
        assert.deepEqual(await small(page), [], `${width}: smaller than 24 pixels`);
        await page.screenshot({ path: join(shots, `${name}-${theme}-${width}.png`), fullPage: true });
      }
    });
  }
}

/** What axe finds, as lines: violations, and what it could not decide and is not among what we have decided. */
async function accessFaults(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async ([rules, decided]) => {
    const { violations, incomplete } = await globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations", "incomplete"] });
    const open = ({ id, nodes }) => ({
      id: `${id} (undecided)`,
      nodes: nodes.filter(({ target }) => !decided[id] || !document.querySelector(target.at(-1))?.matches(decided[id])),
    });
    return [...violations, ...incomplete.map(open)].map(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
  }, [RULES, DECIDED]);
  return found.flat();
}

/** Texts in equations and drawings whose contrast with what is behind them is below 4.5, as WCAG measures it. */
const contrastFaults = (page) =>
  page.evaluate(() => {
    const behind = (element) => {
      const colour = getComputedStyle(element).backgroundColor;
      return Number(colour.match(/[\d.]+/g)[3]) === 0 && element.parentElement ? behind(element.parentElement) : colour;
    };
    return [...document.querySelectorAll("math, math *, svg text")].flatMap((element) => {
      const style = getComputedStyle(element);
      const [low, high] = [lightOf(element.matches("svg *") ? style.fill : style.color), lightOf(behind(element))].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05) >= 4.5 ? [] : [`contrast below 4.5: ${element.outerHTML.slice(0, 80)}`];
    });
  });

/** All that opens is open: axe sees only what is shown. One table is enough, as all are made by the same lines. */
async function openDrawers(page) {
  await page.$$eval(".tools", (all) => all.forEach((tools) => tools.querySelector("button[aria-expanded]").click()));
  await page.$$eval("details:not([hidden])", (all) => all.forEach((details) => { details.open = true; }));
  await page.$$eval("fieldset.predict", (all) => all.forEach((question) => question.querySelector("button").click()));
}

for (const [name, path] of pages) {
  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["light", 320]]) {
    test(`${name}, ${theme}, ${width}: axe`, async () => {
      const page = await pageOpen(site, path, { theme, width, bypassCSP: true });
      await openDrawers(page);
      assert.deepEqual([...(await accessFaults(page)), ...(await contrastFaults(page))], []);
      assert.ok((await overflow(page)) <= 0, "wider than its window with all drawers open");
      await page.context().close();
    });
  }
}

// ---- Without colours ----------------------------------------------------------------------------------------------

/** Lines of a chart that have the same dash and the same marks: whoever does not see colours takes one for the other. */
const alike = (page) =>
  page.$$eval(".plate.chart", (all) =>
    all.flatMap((plate) => {
      const looks = [...plate.querySelectorAll("g.line")].map((line) => {
        const path = line.querySelector(":scope > path:not(.mark)");
        const marks = [...line.querySelectorAll("circle, rect, path.mark")].at(-1);
        return [path && getComputedStyle(path).strokeDasharray, marks?.localName, marks?.getAttribute("d"), marks?.getAttribute("r")].join(" ");
      });
      return new Set(looks).size === looks.length ? [] : [`${plate.ariaLabel.slice(0, 40)}: ${looks.join(" | ")}`];
    }));

/** What is not seen where the reader's system chooses the colours: [what]. */
const unseen = (page) =>
  page.evaluate(() => {
    const canvas = lightOf(getComputedStyle(document.body).backgroundColor);
    const seen = (colour) => (Math.max(lightOf(colour), canvas) + 0.05) / (Math.min(lightOf(colour), canvas) + 0.05) >= 3;
    const all = (selector, test) => [...document.querySelectorAll(selector)].filter((element) => !test(getComputedStyle(element), element))
      .map((element) => `${selector}: ${element.outerHTML.slice(0, 90)}`);
    const system = (text) => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.cssText = `forced-color-adjust: none; color: ${text}`;
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    };
    const chosen = system("Highlight");
    return [
      ...all(".line > path:not(.mark), .hand line, .arc, .probe, .flow .link", (style) => seen(style.stroke)),
      ...all(".line :is(circle, rect, path.mark), .hand .end", (style) => seen(style.fill)),
      ...all(".cross", (style) => style.outlineStyle !== "none" && seen(style.outlineColor)),
      ...all("button[aria-pressed=true], button[aria-expanded=true], table.grid td.at", (style) => style.backgroundColor === chosen),
      ...all("button:not([aria-pressed=true], [aria-expanded=true])", (style) => style.backgroundColor !== chosen && style.borderTopStyle !== "none" && seen(style.borderTopColor)),
      ...all(".heatmap .plate canvas:not(.numbers)", (style) => style.forcedColorAdjust === "none"),
    ];
  });

for (const { name } of labs) {
  pageTest(site, `${name}: lines differ without colours, and all is seen in the colours of the reader's system`, `/labs/${name}`, { forcedColors: "active" }, async (page) => {
    assert.deepEqual(await alike(page), []);
    await openDrawers(page);
    assert.deepEqual(await unseen(page), []);
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none");
  });
}

test("a table that is open: axe", async () => {
  for (const { name } of labs) {
    const page = await pageOpen(site, `/labs/${name}`, { bypassCSP: true });
    await page.locator(".tools button[aria-expanded]").nth(1).click();
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document.querySelector(".drawer.table:not([hidden])"), { runOnly: ["cat.tables", "cat.aria", "cat.keyboard", "cat.name-role-value"] }));
    assert.deepEqual(violations.map(({ id }) => id), [], name);
    await page.context().close();
  }
});

test("axe as called here finds what is wrong, and what is undecided", async () => {
  const page = await pageOpen(site, "/", { bypassCSP: true });
  await page.evaluate(() => {
    document.querySelector("h1").style.color = "#bbb";
    document.querySelector("main").append(document.createElement("button"));
    const text = Object.assign(document.createElement("p"), { textContent: "over a picture" });
    text.style.background = "linear-gradient(red, blue)";
    document.querySelector("main").append(text);
  });
  const found = (await accessFaults(page)).join("\n");
  assert.match(found, /^color-contrast: /m);
  assert.match(found, /^button-name: /m);
  assert.match(found, /^color-contrast \(undecided\): /m);
  await page.context().close();
});

test("a page that is not there is a 404", async () => {
  const page = await pageOpen(site, "/labs/no-such-lab", { width: 320 });
  assert.equal(page.status, 404);
  assert.ok((await overflow(page)) <= 0);
  assert.ok(page.faults.every((fault) => /404/.test(fault)), page.faults.join("\n"));
  await page.context().close();
});

// ---- On paper -----------------------------------------------------------------------------------------------------

/** For what runs in a page: are all heat maps light where their number is 0, as their bars say, or are none? */
const zerosAre = (light) =>
  [...document.querySelectorAll("figure .colours")].every((canvas) => (pixelsOf(canvas)[4 * (canvas.width > 200 ? 128 : 0)] > 200) === light);

/** All of them are, or none. */
async function colours(page, light) {
  await page.waitForFunction(zerosAre, light);
  const { color } = await page.locator("figure .axis").first().evaluate((axis) => ({ color: getComputedStyle(axis).color }));
  assert.equal(Number(color.match(/\d+/)[0]) < 128, light, `text is ${color}`);
}

for (const chosen of ["", "dark"]) {
  const name = `printed from dark${chosen && ", as the reader chose it"}, pictures are light, and dark again afterwards`;
  pageTest(site, name, "/labs/waves", { theme: chosen ? "light" : "dark" }, async (page) => {
    if (chosen) {
      await page.locator("#theme").click();
    }
    await colours(page, false);
    await page.emulateMedia({ media: "print" });
    await colours(page, true);
    await page.emulateMedia({ media: "screen" });
    await colours(page, false);
    await page.evaluate(async () => { // a browser that prints waits for no frame and no timer
      dispatchEvent(new Event("beforeprint"));
      for (let i = 0; i < 20; i++) {
        await null;
      }
      globalThis.printed = [...document.querySelectorAll("figure .colours")].map((canvas) => pixelsOf(canvas)[4 * (canvas.width > 200 ? 128 : 0)]);
      dispatchEvent(new Event("afterprint"));
    });
    const printed = await page.evaluate(() => globalThis.printed);
    assert.ok(printed.length > 3 && printed.every((v) => v > 200), printed.join());
    await colours(page, false);
    assert.equal(await page.evaluate(() => localStorage.getItem("theme") ?? ""), chosen, "what the reader chose");
  });
}
