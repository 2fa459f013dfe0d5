// Builds the pages: node build.mjs OUT
//
// A page is made of the words of a language (words/LANGUAGE.js) and a lab (labs/NAME.js): prose with equations, turned
// into MathML here, and figures, which are whole without scripts: pictures that the service draws. The same sources give
// the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import temml from "temml";
import {
  contents, defaults, escape, glossary, help, labPath, partLinks, partsNamed, pictureOf, root, termsLinked,
} from "./contents.mjs";
import { labs } from "./labs/index.js";
import { fieldText } from "./page/fields.js";

const here = dirname(fileURLToPath(import.meta.url));
const languages = readdirSync(join(here, "words")).map((file) => basename(file, ".js")).sort();
const translated = {};
for (const language of languages) {
  translated[language] = (await import(`./words/${language}.js`)).words;
}

// ---- Pieces of a page --------------------------------------------------------------------------------------------

/** MathML without style attributes, which the page's policy forbids. \class{sym-p}{p} makes p a symbol. */
const maths = (tex, displayMode) =>
  temml.renderToString(tex, { displayMode, strict: false, trust: true, throwOnError: true }).replace(/ style="[^"]*"/g, "");

const equation = (tex, words) =>
  `<div class="equation" role="group" tabindex="0" aria-label="${escape(words.page.equation)}">${maths(tex, true)}</div>`;

/**
 * What stands for a figure until it is drawn, and so for good without scripts: its picture, which is that of its first
 * call, with options of pictures it may name; else what is to be seen, in a sentence, and beneath it numbers of the same
 * as a map, where the service can draw one. Scripts would draw over pictures at once: nobody asks for these then.
 */
function still(figure, lab, text) {
  const image = (call, look, words) => `<img src="${escape(pictureOf(call, look))}" alt="${escape(words)}">`;
  const unscripted = (pieces) => `<noscript>${pieces}</noscript>`;
  const s = defaults(lab);
  if (figure.still) {
    return unscripted(image(figure.calls(s)[0], figure.still === true ? {} : figure.still, text.still ?? text.title));
  }
  const sentence = (said) => `<p class="small noscript">${escape(said)}</p>`;
  return `${sentence(text.still ?? text.caption)}${figure.map ? unscripted(`${image(figure.map(s), {}, text.map)}${sentence(text.map)}`) : ""}`;
}

const TAKEN = ["words", "main", "parts", "notes", "live", "theme"]; // ids that every page has

function figureHtml(name, lab, words) {
  const text = words.labs[lab.name].figures[name];
  const figure = lab.figures[name];
  if (!figure || !text || TAKEN.includes(name)) {
    throw new Error(`lab ${lab.name}: no figure or no words "${name}", or a name that every page uses`);
  }
  return `<figure id="${name}" data-figure="${name}" aria-labelledby="${name}-name"><p class="name" id="${name}-name">${escape(text.title)}</p>
<div class="stage">${still(figure, lab, text)}</div>
<figcaption>${prose(text.caption, lab, words)}</figcaption><p class="text"></p></figure>`;
}

function predictHtml(name, lab, words) {
  const text = words.labs[lab.name].predict[name];
  return `<details class="predict" data-predict="${name}"><summary>${escape(text.question)}</summary>
<p>${escape(text.options[text.answer])}. ${escape(text.why)}</p></details>`;
}

const fieldOf = (lab, name) => {
  const field = lab.fields.find((row) => row.name === name);
  if (!field) {
    throw new Error(`lab ${lab.name}: no field "${name}"`);
  }
  return field;
};

const numberHtml = (name, lab) =>
  `<span class="number" data-field="${name}">${escape(fieldText({ ...fieldOf(lab, name), kind: "number" }, fieldOf(lab, name).def))}</span>`;

function controlsHtml(names, lab) {
  names.split(" ").forEach((name) => fieldOf(lab, name));
  return `<div class="controls" data-fields="${names}"></div>`;
}

/** [[figure waves]], [[predict low]], [[controls d_model base]], [[number d_model]], $tex$, $$tex$$. */
function prose(text, lab, words) {
  const pieces = { figure: figureHtml, predict: predictHtml, number: numberHtml, controls: controlsHtml };
  return text
    .replace(/\$\$([^$]+)\$\$/g, (_, tex) => equation(tex, words))
    .replace(/\$([^$]+)\$/g, (_, tex) => maths(tex, false))
    .replace(/\[\[(\w+) ([^\]]+)\]\]/g, (_, kind, name) => pieces[kind](name, lab, words));
}

// ---- Pages -------------------------------------------------------------------------------------------------------

const navigation = (language, words, current) => `<nav aria-label="${escape(words.page.labs)}"><ol start="0">${labs
  .map(({ name }) => `<li><a href="${labPath(language, name)}"${name === current ? ' aria-current="page"' : ""}>${escape(words.labs[name].short)}</a></li>`)
  .join("")}</ol></nav>`;

/** Links that every page has besides the labs. */
const aids = (language, words, current) => ["glossary", "help"]
  .map((name) => `<a href="${root(language)}${name}"${name === current ? ' aria-current="page"' : ""}>${escape(words.page[name])}</a>`)
  .join(" ");

/** The same page in the other languages. */
const translations = (language, path) => languages.filter((other) => other !== language)
  .map((other) => `<a href="${root(other)}${path}" hreflang="${other}" lang="${other}">${escape(translated[other].page.language)}</a>`)
  .join(" ");

/** Links in texts, which are written as in English, to the pages of a language. */
const linked = (language, text) =>
  language === "en" ? text : text.replace(/href="\/(?=(labs\/|glossary|help)|")/g, `href="${root(language)}`);

const next = (language, words, name) => {
  const at = labs.findIndex((lab) => lab.name === name);
  const link = (lab, text) => (lab ? `<a href="${labPath(language, lab.name)}">${escape(text)}: ${escape(words.labs[lab.name].title)}</a>` : "");
  return `<p class="next">${link(labs[at - 1], words.page.before)} ${link(labs[at + 1], words.page.after)}</p>`;
};

function page(language, words, files, { title, body, name, path, script, data }) {
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${escape(title)} \u2013 posenc</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escape(words.page.about)}">
<link rel="icon" href="${files["style/icon.svg"]}">
<link rel="stylesheet" href="${files["style/page.css"]}">
<script src="${files["page/theme.js"]}"></script>
${script ? `<script type="module" src="${script}"></script>` : ""}
</head>
<body>
<a class="skip" href="#main">${escape(words.page.skip)}</a>
<header><a class="home" href="${root(language)}">posenc</a>${navigation(language, words, name)}${aids(language, words, name)}${translations(language, path)}<button type="button" id="theme">${escape(words.page.theme)}</button></header>
<main id="main">
<p id="notes" role="status" hidden></p>
${linked(language, body)}
</main>
<footer><p>${words.page.footer}</p></footer>
<div id="live" class="spoken" aria-live="polite"></div>
${data ? `<script type="application/json" id="words">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>` : ""}
</body>
</html>
`;
}

function labPage(language, words, files, lab) {
  const text = words.labs[lab.name];
  const { prose: article, ...live } = text;
  const list = `<nav class="parts" aria-labelledby="parts"><p class="small" id="parts">${escape(words.page.onThisPage)}</p>${partLinks(text, "", (title) => prose(title, lab, words))}</nav>`;
  const body = `<article><h1>${escape(text.title)}</h1>\n${list}\n${partsNamed(prose(termsLinked(article, language, words), lab, words))}\n${next(language, words, lab.name)}</article>`;
  const data = { page: words.page, lab: live };
  return page(language, words, files, { title: text.title, body, name: lab.name, path: `labs/${lab.name}`, script: files[`labs/${lab.name}.js`], data });
}

/** How many figures readers without scripts see as pictures, as maps of numbers, and how many there are. */
const pictures = () => {
  const all = labs.flatMap((lab) => Object.values(lab.figures));
  const n = (has) => String(all.filter((figure) => figure[has]).length);
  return { pictures: n("still"), maps: n("map"), figures: String(all.length) };
};

/** [file, title, body] of each page that is no lab. */
const around = (language, words) => [
  ["index", words.page.title, contents(language, words, prose)],
  ["glossary", words.page.glossary, glossary(words)],
  ["help", words.page.help, help(words, pictures())],
];

// ---- Files -------------------------------------------------------------------------------------------------------

/** What some labs share belongs to all, so that they have one part in common, and not one for each way of sharing. */
const common = readdirSync(join(here, "labs"))
  .filter((file) => !/\.claims\.js$|^index\.js$/.test(file) && !labs.some(({ name }) => file === `${name}.js`)).sort();

/** Where a lab begins: "lab:waves" is a file of some lines that need not exist. */
const entries = {
  name: "entries",
  setup(build) {
    build.onResolve({ filter: /^lab:/ }, ({ path }) => ({ path: path.slice(4), namespace: "lab" }));
    build.onLoad({ filter: /.*/, namespace: "lab" }, ({ path }) => ({
      contents: [
        ...common.map((file) => `import "./labs/${file}";`),
        `import { lab } from "./labs/${path}.js";`, 'import { start } from "./page/start.js";', "start(lab);",
      ].join("\n"),
      resolveDir: here,
    }));
  },
};

/** One script a lab, with what they share split off: {source: address}. */
async function scripts(out) {
  const { metafile } = await esbuild.build({
    absWorkingDir: here,
    entryPoints: Object.fromEntries(labs.map(({ name }) => [name, `lab:${name}`])),
    outdir: join(out, "assets"),
    bundle: true, splitting: true, format: "esm", target: "es2022", minify: true, legalComments: "none",
    entryNames: "[name]-[hash]", chunkNames: "part-[hash]",
    metafile: true, plugins: [entries],
  });
  writeFileSync(join(out, "licences.txt"), licences(Object.keys(metafile.inputs)));
  const made = Object.entries(metafile.outputs).filter(([, file]) => file.entryPoint);
  return Object.fromEntries(
    made.map(([path, file]) => [`labs/${file.entryPoint.slice(4)}.js`, `/assets/${basename(path)}`]),
  );
}

/** The licences of the packages that went into the scripts: they want to be where copies are. */
function licences(inputs) {
  const packages = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
  return [...packages].sort()
    .map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8")}`).join("\n\n");
}

/** A file as it is, or as esbuild makes it smaller, under a name that its bytes decide. */
function asset(out, source) {
  let bytes = readFileSync(join(here, source));
  const ending = source.split(".").pop();
  if (ending !== "svg") {
    bytes = Buffer.from(esbuild.transformSync(bytes.toString(), { loader: ending, minify: true, target: "es2022" }).code);
  }
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8);
  const name = `${basename(source, `.${ending}`)}-${hash}.${ending}`;
  writeFileSync(join(out, "assets", name), bytes);
  return `/assets/${name}`;
}

const out = process.argv[2] && resolve(process.argv[2]);
if (!out) {
  console.error("build: node build.mjs OUT");
  process.exit(2);
}
rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "assets"), { recursive: true });
const files = await scripts(out);
for (const source of ["style/page.css", "style/icon.svg", "page/theme.js"]) {
  files[source] = asset(out, source);
}
for (const [language, words] of Object.entries(translated)) {
  const folder = join(out, root(language).slice(1));
  mkdirSync(join(folder, "labs"), { recursive: true });
  for (const [name, title, body] of around(language, words)) {
    writeFileSync(join(folder, `${name}.html`), page(language, words, files, { title, body, name, path: name === "index" ? "" : name }));
  }
  for (const lab of labs) {
    writeFileSync(join(folder, "labs", `${lab.name}.html`), labPage(language, words, files, lab));
  }
}
