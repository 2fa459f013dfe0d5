// SPDX-License-Identifier: MIT
//
// Under every figure: the call that drew it, in languages that would run it, files that open, a table, and words for
// who cannot see it. What stands in labs/NAME.claims.js as the lab's figures is what is on its page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { claimsFiles, figureNames, inFigure, labs, pageTest, ready, siteOpen, source, words } from "./_page.mjs";
import { npyNumbers } from "./_reference.mjs";

const { callTexts } = await source("page/texts.js");
const site = await siteOpen();
const texts = words.page;

const button = (page, name, text) => page.locator(`#${name} .below > .tools`).getByRole("button", { name: text, exact: true });

// ---- Calls --------------------------------------------------------------------------------------------------------

/** Every language's text is that of the figure's calls; texts.test.mjs runs them all. */
async function callsShown(page, name) {
  await button(page, name, texts.call).click();
  const drawer = page.locator(`#${name} .below > .drawer`).first();
  const languages = await drawer.locator(".tools button[aria-pressed]").allInnerTexts();
  const calls = await inFigure(page, name, (figure) => figure.calls);
  const right = new Map(callTexts(calls, site.origin));
  assert.deepEqual(languages, [...right.keys()]);
  for (const language of languages) {
    await drawer.locator(".tools").getByRole("button", { name: language, exact: true }).click();
    const text = await drawer.locator("pre code").textContent();
    assert.equal(text, right.get(language), `${name}: ${language}`);
    assert.ok(!/undefined|NaN|\[object/.test(text), `${name}: ${language}: ${text}`);
    if (language === "curl") {
      const lines = text.trim().split("\n");
      assert.equal(lines.length, calls.length, `${name}: a line for each call`);
      lines.forEach((line) => assert.ok(line.startsWith(`curl '${site.origin}/v1/`), `${name}: ${line}`));
      assert.equal(new Set(lines.map((line) => line.match(/-o (\S+)$/)[1])).size, calls.length, `${name}: each call has a file of its own`);
    }
  }
  await button(page, name, texts.call).click();
}

// ---- Files and table ----------------------------------------------------------------------------------------------

async function download(page, name, text) {
  const files = button(page, name, texts.save);
  if ((await files.getAttribute("aria-expanded")) === "false") {
    await files.click();
  }
  const [file] = await Promise.all([page.waitForEvent("download"), button(page, name, text).click()]);
  assert.match(file.suggestedFilename(), new RegExp(`^posenc-.*${name}.*\\.${text.replace(".", "").toLowerCase()}$`));
  return readFileSync(await file.path());
}

/** The cells of a CSV file, by RFC 4180. */
const csvCells = (text) =>
  text.split("\n").slice(0, -1).map((line) =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare));

/** What a cell of the page says, as the number that its digits mean. */
const numberOf = (text) => Number(text.replace("\u2212", "-"));

const near = (text, number) => Math.abs(numberOf(text) - number) <= 0.006 * Math.abs(number) + 1e-12;

async function tableShown(page, name, csv) {
  await button(page, name, texts.table).click();
  const table = page.locator(`#${name} .drawer.table table`);
  const rows = await table.locator("tbody tr").count();
  const columns = await table.locator("thead th").count();
  assert.equal(rows, Math.min(64, csv.length - 1), `${name}: rows of the table`);
  assert.equal(columns, Math.min(65, csv[0].length), `${name}: columns of the table`);
  const [head] = await table.locator("tbody th").allInnerTexts();
  const first = await table.locator("tbody td").first().innerText();
  assert.equal(head.trim(), csv[1][0].trim(), `${name}: the first row's name`);
  const number = Number(csv[1][1]);
  assert.ok(csv[1][1] !== "" && Number.isFinite(number) ? near(first, number) : first === csv[1][1],
    `${name}: the table's first cell is ${first}, the file's ${csv[1][1]}`);
  await button(page, name, texts.table).click();
}

/** For what runs in a page: the numbers that a figure shows, and the reply's bytes where these are what it shows. */
async function numbersDrawn({ spec, data, replies: [reply] }) {
  const number = (cell) => [cell?.number, cell?.value, cell?.holds, cell].find((value) => value !== undefined);
  const shown = {
    heatmap: () => Array.from(data.values, Number),
    chart: () => [...new Set(data.lines.flatMap(({ x }) => [...x]))].sort((a, b) => a - b).flatMap((at) =>
      [at, ...data.lines.map(({ x, y }) => { const k = x.lastIndexOf(at); return k < 0 ? NaN : y[k]; })]),
    circles: () => data.circles.flatMap(({ hands }) => hands.flatMap(({ x, y }) => [x, y])),
    grid: () => data.rows.flatMap((row) => row.slice(1).map(number).map((v) => (["number", "boolean"].includes(typeof v) ? Number(v) : NaN))),
    flow: () => Array.from(reply.data, Number),
    tokens: () => Array.from(reply.data, Number),
  };
  const numbers = shown[spec.kind]();
  const own = spec.still || ["flow", "tokens"].includes(spec.kind) || (reply.data && data.values === reply.data);
  const url = new FileReader();
  url.readAsDataURL(new Blob([own ? reply.bytes : ""]));
  await new Promise((resolve) => { url.onload = resolve; });
  return { numbers, bytes: own && url.result.split(",")[1] };
}

/** The file has the numbers that are drawn: the reply's own bytes, where it is drawn as it is; the button says which. */
async function numbersSaved(page, name) {
  const file = await download(page, name, ".npy");
  const npy = npyNumbers(file);
  assert.ok(npy.data.length > 0, `${name}: no number in the npy file`);
  const { numbers, bytes } = await inFigure(page, name, numbersDrawn);
  assert.deepEqual(npy.data, numbers, `${name}: other numbers than are drawn`);
  assert.ok(numbers.some(Number.isFinite), `${name}: no number among them`);
  assert.ok(!bytes || file.equals(Buffer.from(bytes, "base64")), `${name}: other bytes than the service sent`);
  assert.equal(await button(page, name, ".npy").getAttribute("title"), bytes ? texts.npyReply : texts.npyDrawn);
  return npy;
}

async function filesSaved(page, name) {
  const npy = await numbersSaved(page, name);
  const csv = csvCells((await download(page, name, "CSV")).toString());
  const { rows, columns, still } = await inFigure(page, name, ({ kind, data, spec }) => {
    const { head, rows } = kind.table(data);
    return { rows: rows.length, columns: head.length, still: Boolean(spec.still) };
  });
  assert.deepEqual(csv.map((row) => row.length), Array(rows + 1).fill(columns), `${name}: cells of the CSV file`);
  assert.ok(rows > 0 && columns > 1, `${name}: no number in the CSV file`);
  if (still) {
    assert.deepEqual(csv.slice(1).flatMap((row) => row.slice(1).map(Number)), npy.data, `${name}: both files have the same numbers`);
  }
  const png = await download(page, name, "PNG");
  assert.equal(png.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n", `${name}: ${png.subarray(0, 80)}`);
  assert.ok(png.readUInt32BE(16) > 0 && png.readUInt32BE(20) > 0);
  await tableShown(page, name, csv);
}

// ---- Axes and words -----------------------------------------------------------------------------------------------

/** What tells the reader what is drawn along which way: selectors, each with the least number of non-empty texts. */
const AXES = {
  heatmap: { ".axis": 2, ".bar span": 2 },
  chart: { "svg .title": 1, ".axis": 1, "svg .tick": 4, ".legend li": 1 },
  circles: { ".axis": 1, "li p": 1 },
  flow: { "svg .title": 2, "svg .tick": 2 },
  grid: { "thead th": 2, "tbody th": 1 },
  tokens: { "li button": 2, ".small": 1 },
};

async function axesNamed(page, name) {
  const kind = await inFigure(page, name, ({ spec }) => spec.kind);
  assert.ok(AXES[kind], `kind ${kind}: say in AXES what names its axes`);
  for (const [selector, least] of Object.entries(AXES[kind])) {
    const found = await page.locator(`#${name} .stage ${selector}`).allTextContents();
    assert.ok(found.filter((text) => text.trim()).length >= least, `${name}: ${selector}: ${JSON.stringify(found)}`);
  }
}

async function saidInWords(page, name) {
  const figure = page.locator(`#${name}`);
  for (const selector of [".name", "figcaption", ".text"]) {
    const text = (await figure.locator(selector).first().textContent()).trim();
    assert.ok(text.length > 3, `${name}: ${selector} is empty`);
    assert.ok(!/[{}]|undefined|NaN|Infinity|\[object|\[\[/.test(text), `${name}: ${selector}: ${text}`);
  }
}

for (const { name: lab } of labs) {
  const file = claimsFiles[lab];
  pageTest(site, `${lab}: the figures are those that its claims file lists`, `/labs/${lab}`, {}, async (page) => {
    assert.deepEqual(await figureNames(page), file.figures);
    assert.deepEqual(Object.keys(words.labs[lab].figures).sort(), [...file.figures].sort());
  });
  pageTest(site, `${lab}: every figure has axes, words and calls`, `/labs/${lab}`, {}, async (page) => {
    for (const name of await figureNames(page)) {
      await axesNamed(page, name);
      await saidInWords(page, name);
      await callsShown(page, name);
    }
  });
  for (const name of Object.keys(words.labs[lab].figures)) { // a page each: browsers refuse many files of one page
    pageTest(site, `${lab}, ${name}: files and table`, `/labs/${lab}`, {}, (page) => filesSaved(page, name));
  }
}

// ---- Words that are no friends of files ---------------------------------------------------------------------------

const HOSTILE = ["=1+1", "+49", "-x", "@a", "it's", "a;=1+1"];
const HARMLESS = ["'=1+1", "+49", "'-x", "'@a", "it's", "a;'=1+1"]; // of what divides cells ; is in some languages

pageTest(site, "CSV: a text is no formula, and stays in its cell", "/labs/sum", {}, async (page) => {
  await inFigure(page, "lengths", ({ page }, tokens) => page.set({ tokens }), HOSTILE);
  await ready(page);
  await inFigure(page, "lengths", ({ data: { lines } }) => { [lines[0].name, lines[1].name] = ["one\rtwo", "\"three\""]; });
  const text = (await download(page, "lengths", "CSV")).toString();
  assert.ok(text.split("\n")[0].includes(',"one\rtwo","""three""",'), text.split("\n")[0]);
  assert.deepEqual(csvCells(text).slice(1).map(([name]) => name), HARMLESS);
});

pageTest(site, "CSV: a number below zero is a number", "/labs/waves", {}, async (page) => {
  const cells = csvCells((await download(page, "interleaved", "CSV")).toString()).slice(1).flatMap((row) => row.slice(1));
  assert.ok(cells.some((cell) => cell.startsWith("-")), "this tries nothing");
  assert.ok(cells.every((cell) => Number.isFinite(Number(cell))), cells.join());
});

pageTest(site, "a long word is not cut within a character", "/labs/sum", { width: 320 }, async (page) => {
  const long = `a${"\u{1f600}".repeat(30)}`;
  await inFigure(page, "lengths", ({ page }, tokens) => page.set({ tokens }), [long, `${long}b`, "\u{1f600}\u{1f600}\u{1f600}b"]);
  await ready(page);
  const texts = await page.locator("figure .stage").evaluateAll((all) => all.map((stage) => stage.textContent));
  assert.ok(texts.some((text) => text.includes("\u2026")), "nothing was cut");
  assert.deepEqual(texts.flatMap((text) => text.match(/[^]{0,3}(?:\p{Cs}|\ufffd)/gu) ?? []), [], "halves of characters");
  const csv = (await download(page, "lengths", "CSV")).toString();
  assert.ok(csv.includes("\u{1f600}") && !csv.includes("\ufffd"), csv.slice(0, 200));
});
