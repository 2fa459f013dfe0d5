// The pages around the labs: the contents of the course, its glossary, and help. All they say of a lab is taken from the
// lab and its words.

import { labs } from "./labs/index.js";
import { fieldsRead } from "./page/fields.js";
import { callTarget } from "./page/service.js";

export const escape = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

export const root = (language) => (language === "en" ? "/" : `/${language}/`);
export const labPath = (language, name) => `${root(language)}labs/${name}`;

/** Defaults of a lab's fields. */
export const defaults = (lab) => fieldsRead(lab.fields, "").values;

/** The address of a call's picture by the service, with options of pictures. */
export const pictureOf = ({ op, query }, look = {}) => callTarget({ op, query: { ...query, ...look } }, "png");

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// ---- Contents ----------------------------------------------------------------------------------------------------

/** What a lab shows on the contents page: the figure that is its cover, or the first that the service draws. */
function cover(lab, words) {
  const names = [lab.cover, lab.about, ...Object.keys(lab.figures)];
  const name = names.find((one) => lab.figures[one]?.still);
  if (!name) {
    return "";
  }
  const figure = lab.figures[name];
  const text = words.labs[lab.name].figures[name];
  const call = figure.calls(defaults(lab))[0];
  const look = figure.still === true ? {} : figure.still;
  const image = (theme) => `<img class="${theme}" loading="lazy" alt="${escape(text.still ?? text.title)}"
    src="${escape(pictureOf(call, { ...look, "png.theme": theme }))}">`;
  return `<div class="cover">${image("light")}${image("dark")}</div>`;
}

/** Titles of the parts of a text, as HTML; part k has the id part-k. */
const parts = (text) => [...text.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, title]) => title);

/** Links to the parts of a lab's text, on the page at that path; prose() makes HTML of a title. */
export const partLinks = (text, path, prose) =>
  `<ul>${parts(text.prose).map((title, k) => `<li><a href="${path}#part-${k + 1}">${prose(title)}</a></li>`).join("")}</ul>`;

/** Gives each part of a lab's HTML its id. */
export function partsNamed(text) {
  let k = 0;
  return text.replaceAll("<h2>", () => `<h2 id="part-${++k}">`);
}

const READ = 150; // words a minute
const LOOK = 1; // minutes for a figure

function size(text, words) {
  const figures = Object.keys(text.figures).length;
  const read = text.prose.replace(/\$[^$]*\$|\[\[[^\]]*\]\]|<[^>]*>/g, " ").trim().split(/\s+/).length;
  const minutes = 5 * Math.ceil((read / READ + LOOK * figures) / 5);
  return filled(words.page.size, { minutes, figures, questions: Object.keys(text.predict).length });
}

function item(lab, language, words, prose) {
  const text = words.labs[lab.name];
  const path = labPath(language, lab.name);
  const links = partLinks(text, path, (title) => prose(title, lab, words));
  return `<li>${cover(lab, words)}<div><h2><a href="${path}">${escape(text.title)}</a></h2>
<p>${escape(text.lead)}</p>
<p class="asks"><span class="small">${escape(words.page.asks)}</span> ${escape(text.question)}</p>
<details><summary>${escape(size(text, words))}</summary>${links}</details></div></li>`;
}

export const contents = (language, words, prose) => `<article><h1>${escape(words.page.title)}</h1>${words.page.welcome}
<ol class="contents" start="0">${labs.map((lab) => item(lab, language, words, prose)).join("\n")}</ol>
${words.page.lecturers}</article>`;

// ---- Glossary ----------------------------------------------------------------------------------------------------

export const glossary = (words) => `<article><h1>${escape(words.page.glossary)}</h1>${words.page.glossaryLead}
<dl class="glossary">${Object.entries(words.glossary).map(([id, { term, says }]) =>
  `<dt id="${id}">${escape(term)}</dt><dd>${says}</dd>`).join("\n")}</dl></article>`;

const SKIPPED = ["a", "h2", "code", "b", "sub", "sup"]; // in these nothing is linked

/**
 * A lab's text with the first use of each term linked to the glossary. A term whose word means other things, too, is
 * linked only where the text has it in <em>, as texts introduce terms.
 */
export function termsLinked(text, language, words) {
  const found = new Map();
  const spellings = Object.entries(words.glossary).flatMap(([id, { forms }]) => forms.map((form) => [form.toLowerCase(), id]));
  const ids = new Map(spellings);
  const longest = [...ids.keys()].sort((a, b) => b.length - a.length);
  const any = new RegExp(`(?<![\\p{L}-])(?:${longest.join("|")})(?![\\p{L}-])`, "giu");
  let inside = "";
  return text.split(/(<[^>]*>|\$\$[^$]*\$\$|\$[^$]*\$|\[\[[^\]]*\]\])/).map((piece, i) => {
    if (i % 2) {
      const tag = /^<(\/?)(\w+)/.exec(piece);
      inside = tag ? (tag[1] ? "" : tag[2]) : inside;
      return piece;
    }
    return SKIPPED.includes(inside) ? piece : piece.replace(any, (form) => {
      const id = ids.get(form.toLowerCase());
      if (found.has(id) || (words.glossary[id].emphasised && inside !== "em")) {
        return form;
      }
      found.set(id, form);
      return `<a class="term" href="${root(language)}glossary#${id}">${form}</a>`;
    });
  }).join("");
}

// ---- Help --------------------------------------------------------------------------------------------------------

export const help = (words, counts) =>
  `<article class="help"><h1>${escape(words.page.help)}</h1>${filled(words.page.helpText, counts)}</article>`;
