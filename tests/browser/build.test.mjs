// SPDX-License-Identifier: MIT
//
// How the pages are built: twice the same, and in two languages, each with pages and links of its own.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { labs, top, words } from "./_page.mjs";

const folder = mkdtempSync(join(tmpdir(), "posenc-build-"));
after(() => rmSync(folder, { recursive: true }));

const from = join(top, "server", "www");
const www = join(folder, "www");
cpSync(from, www, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
symlinkSync(join(from, "node_modules"), join(www, "node_modules"));

/** Builds into a folder; { path: bytes }. */
function build(name) {
  const out = join(folder, name);
  execFileSync(process.execPath, ["build.mjs", out], { cwd: www, stdio: ["ignore", "pipe", "pipe"] });
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(files.map((entry) => {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    return [path.slice(out.length + 1), readFileSync(path)];
  }));
}

const paths = (prefix) => ["index", "glossary", "help", ...labs.map(({ name }) => `labs/${name}`)].map((name) => `${prefix}${name}.html`);

test("the same sources give the same bytes", () => {
  const [a, b] = [build("a"), build("b")];
  assert.deepEqual(Object.keys(a).sort(), Object.keys(b).sort());
  assert.deepEqual(Object.keys(a).filter((path) => !a[path].equals(b[path])), []);
  assert.deepEqual(paths("").filter((path) => !(path in a)), [], "pages that are missing");
});

test("a second language has pages, words and links of its own", () => {
  const one = build("one");
  writeFileSync(join(www, "words", "xx.js"), `import { words as en } from "./en.js";
export const words = { ...en, page: { ...en.page, language: "Other", title: "ANOTHER TITLE" } };
`);
  const two = build("two");
  rmSync(join(www, "words", "xx.js"));
  assert.deepEqual([...paths(""), ...paths("xx/")].filter((path) => !(path in two)), [], "pages that are missing");
  const text = (path) => two[path].toString();
  assert.match(text("xx/index.html"), /<html lang="xx">[^]*<h1>ANOTHER TITLE<\/h1>/);
  assert.ok(!text("index.html").includes("ANOTHER TITLE"));
  for (const path of paths("")) {
    const own = path.replace(/\.html$/, "").replace(/^index$/, "");
    assert.ok(text(path).includes(`href="/xx/${own}" hreflang="xx"`), `${path}: no link to the other language`);
    assert.ok(text(`xx/${path}`).includes(`href="/${own}" hreflang="en"`), `xx/${path}: no link to English`);
    const links = [...text(`xx/${path}`).matchAll(/<a (?:class="\w+" )?href="(\/[^"]*)"(?! hreflang)/g)].map(([, link]) => link);
    const astray = links.filter((link) => !/^\/(xx\/|v1|licences\.txt)/.test(link));
    assert.deepEqual(astray, [], `xx/${path}: links that leave the language`);
    assert.ok(!one[path].includes("hreflang"), `${path}: a language to choose where there is one`);
  }
});

test("help says how many figures are pictures without scripts, and contents what each lab answers", () => {
  const pages = build("still");
  const figures = labs.flatMap(({ name }) =>
    [...pages[`labs/${name}.html`].toString().matchAll(/<figure [^]*?<\/figure>/g)].map(([html]) => html));
  const count = (has) => figures.filter((html) => has(/<img /.test(html), /<p class="small noscript">/.test(html))).length;
  const [pictures, maps] = [count((image, words) => image && !words), count((image, words) => image && words)];
  assert.ok(pictures > 0 && maps > 0 && pictures + maps < figures.length);
  assert.equal(count((image, words) => !image && !words), 0, "neither a picture nor words");
  const help = pages["help.html"].toString();
  for (const said of [`Of the ${figures.length} figures ${pictures},`, `and ${maps} of them have`]) {
    assert.ok(help.includes(said), said);
  }
  const contents = pages["index.html"].toString();
  const missing = labs.map(({ name }) => words.labs[name]).filter(({ title, lead, question }) => ![title, lead, question].every((text) => contents.includes(text)));
  assert.deepEqual(missing.map(({ title }) => title), []);
});
