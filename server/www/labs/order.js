// Lab 1: attention does not know in which order words stand: the same words in another order have the same weights,
// only in other places.
//
// A sentence A is the field tokens, B the same words in another order, v.other. The page's query is A's call.

import { kept } from "../page/kept.js";
import { say } from "../page/words.js";
import { add, count, distance, minus, product, rows, times, vector } from "./vectors.js";

const SENTENCES = {
  dog: { a: "the dog bites the man", b: "the man bites the dog" },
  hund: { a: "der Hund beißt den Mann", b: "den Mann beißt der Hund" },
  cat: { a: "the cat sat on the mat", b: "mat the on sat cat the" },
  own: { a: "Anna loves Ben", b: "Ben loves Anna" },
};

const wordsOf = (text) => text.split(" ");
const sameWords = (a, b) => a.length === b.length && [...a].sort().join() === [...b].sort().join();

// ---- State -------------------------------------------------------------------------------------------------------

const sentenceOf = (tokens) =>
  Object.keys(SENTENCES).find((name) => sameWords(wordsOf(SENTENCES[name].a), tokens)) ?? "own";

/** B for an A: as it is, if it has A's words; else as the chosen sentence has it, or A backwards. */
function otherOf(s) {
  const given = wordsOf(SENTENCES[sentenceOf(s.tokens)].b);
  return [s["v.other"], given].find((other) => sameWords(other, s.tokens)) ?? [...s.tokens].reverse();
}

/** A sentence that was chosen is put in; one that was typed or dragged is told by its words. */
function settle(s, changes) {
  const chosen = SENTENCES[changes["v.sentence"]];
  const words = chosen
    ? { tokens: wordsOf(chosen.a), "v.other": wordsOf(chosen.b) }
    : { tokens: s.tokens, "v.other": otherOf(s) };
  const last = words.tokens.length - 1;
  return {
    ...words,
    "v.sentence": sentenceOf(words.tokens),
    "v.i": Math.min(s["v.i"], last),
    "v.j": Math.min(s["v.j"], last),
    "v.pages": sameWords(s["v.pages"], PAGES) ? s["v.pages"] : PAGES,
  };
}

const PAGES = ["3", "1", "5", "2", "4"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const block = (s, tokens, more) => ({
  op: "block",
  query: {
    type: s.type, tokens, width: s.width, weights_seed: s.weights_seed, "mask.causal": s["mask.causal"] ? "1" : "0",
    dtype: s.dtype, return: "weights", ...more,
  },
});

const both = (s, more) => [block(s, s.tokens, more), block(s, s["v.other"], more)];

// ---- One order in the other --------------------------------------------------------------------------------------

/** Where each word of a stands in b; of equal words the first goes with the first, the second with the second. */
function places(a, b) {
  const left = [...b];
  return a.map((word) => {
    const j = left.indexOf(word);
    left[j] = null;
    return j;
  });
}

/** w [n, n] with row and column i taken from place to[i]. */
const sorted = (w, to) => to.flatMap((i) => to.map((j) => w[i * to.length + j]));

/** The first two places of a word that stands twice. */
function twinsOf(tokens) {
  const first = tokens.findIndex((word, i) => tokens.indexOf(word, i + 1) > i);
  return first < 0 ? null : [first, tokens.indexOf(tokens[first], first + 1)];
}

const most = (list) => list.reduce((big, v) => Math.max(big, Math.abs(v)), 0);

const rowOf = (w, i, n) => Array.from(w.slice(i * n, (i + 1) * n));

/** How far the rows of two equal words are apart, in words. */
function twinVerdict(w, tokens, words) {
  const twins = twinsOf(tokens);
  if (!twins) {
    return words.single;
  }
  const gap = most(minus(...twins.map((i) => rowOf(w, i, tokens.length))));
  return say(gap === 0 ? words.same : words.apart, { twin: tokens[twins[0]], gap });
}

/** Of each row whether another one is equal to it, number by number. */
function alike(w, n) {
  const texts = count(n).map((i) => rowOf(w, i, n).join());
  return texts.map((text, i) => texts.some((other, j) => j !== i && other === text));
}

/** "=" before the names of such rows. */
const signed = (tokens, w) => alike(w, tokens.length).map((twin, i) => (twin ? `= ${tokens[i]}` : tokens[i]));

// ---- Drawings ----------------------------------------------------------------------------------------------------

const matrix = (values, tokens, at, marked = tokens) => ({
  rows: tokens.length, columns: tokens.length, values, domain: 1, at,
  rowName: (i) => tokens[i], columnName: (j) => tokens[j],
  labels: { row: marked, column: tokens },
  symbols: { row: "i", column: "j" },
});

const chosen = (s) => ({ row: s["v.i"], column: s["v.j"] });

/** The chosen words where they stand in B. */
const chosenThere = (s) => {
  const to = places(s.tokens, s["v.other"]);
  return { row: to[s["v.i"]], column: to[s["v.j"]] };
};

const choose = ({ row, column }) => ({ "v.i": row, "v.j": column });

const chooseThere = ({ row, column }, s) => {
  const from = places(s["v.other"], s.tokens);
  return { "v.i": from[row], "v.j": from[column] };
};

/** A sentence whose words can be moved; words that the block does not tell apart are marked. */
const sentence = (field) => ({
  kind: "tokens",
  calls: (s) => [block(s, s[field])],
  data: ([{ data }], s, words) => {
    const tokens = s[field];
    const equal = alike(data, tokens.length);
    return {
      words: tokens, field,
      below: tokens.map((_, i) => `${i}${equal[i] ? " =" : ""}`),
      marks: equal.map((same) => (same ? "twin" : "")),
      notes: equal.map((same) => (same ? words.twin : "")),
      verdict: twinVerdict(data, tokens, words),
    };
  },
  facts: (data) => ({ text: data.words.join(" "), verdict: data.verdict }),
});

const CASES = [
  { name: "none", type: "none", causal: false, mark: 0 },
  { name: "sinusoidal", type: "sinusoidal", causal: false, mark: 1 },
  { name: "random", type: "random", causal: false, mark: 2 },
  { name: "causal", type: "none", causal: true, mark: 3 },
];

const outputCalls = (s) =>
  CASES.flatMap(({ type, causal }) => both({ ...s, type, "mask.causal": causal }, { return: "output" }));

/** Distances |a_i - b_to(i)| of each word's vectors, and at the end that of their means. */
function apart(a, b, to) {
  const width = a.shape[1];
  const each = to.map((j, i) => distance(vector(a, i, width), vector(b, j, width)));
  const mean = (t) => times(count(t.shape[0]).map((i) => vector(t, i, width)).reduce(add), 1 / t.shape[0]);
  return [...each, distance(mean(a), mean(b))];
}

// ---- A recurrent cell --------------------------------------------------------------------------------------------

/** The word vectors of A and B as they enter the block, and 2 width rows of random numbers: W, then U. */
const cellCalls = (s) => [
  ...both({ ...s, type: "none", "mask.causal": false }, { return: "residual" }),
  {
    op: "encode",
    query: {
      type: "random", d_model: s.width, seed: s.weights_seed, std: Number((1 / Math.sqrt(s.width)).toPrecision(3)),
      positions: `0:${2 * s.width}`, dtype: s.dtype,
    },
  },
];

/** h after each word: h = tanh(W x + U h), from h = 0. */
function states(words, [w, u], width, n) {
  const all = [];
  let h = new Array(width).fill(0);
  for (let p = 0; p < n; p++) {
    h = add(product(w, vector(words, p, width)), product(u, h)).map(Math.tanh);
    all.push(h);
  }
  return all;
}

/** The sum of the vectors after each word. */
const sums = (words, width, n) =>
  count(n).map((p) => count(p + 1).map((i) => vector(words, i, width)).reduce(add));

/** How far a and b are apart after each word: what a cell has made of them, and their sums. */
const readGaps = kept((a, b, cell, width, n) => {
  const gaps = (of) => {
    const [one, other] = [a, b].map(of);
    return one.map((h, p) => distance(h, other[p]));
  };
  const m = rows(cell);
  const parts = [m.slice(0, width), m.slice(width)];
  return { cell: gaps((t) => states(t, parts, width, n)), sum: gaps((t) => sums(t, width, n)) };
});

// ---- The lab -----------------------------------------------------------------------------------------------------

export const lab = {
  name: "order",
  about: "weights",
  fields: [
    { name: "type", kind: "choice", choices: ["none", "sinusoidal", "random"], def: "none" },
    { name: "tokens", kind: "words", min: 2, max: 10, def: wordsOf(SENTENCES.dog.a) },
    { name: "width", kind: "integer", min: 4, max: 64, step: 4, def: 16 },
    { name: "weights_seed", kind: "integer", min: 0, max: 9999, def: 30 },
    { name: "mask.causal", kind: "flag", def: false },
    { name: "dtype", kind: "choice", choices: ["float64", "float32"], def: "float64" },
    { name: "return", kind: "choice", choices: ["weights"], def: "weights" },
    { name: "v.other", kind: "words", min: 2, max: 10, def: wordsOf(SENTENCES.dog.b) },
    { name: "v.sentence", kind: "choice", choices: Object.keys(SENTENCES), def: "dog" },
    { name: "v.i", kind: "integer", min: 0, max: 9, def: 1, symbol: "i" },
    { name: "v.j", kind: "integer", min: 0, max: 9, def: 2, symbol: "j" },
    { name: "v.pages", kind: "words", min: 5, max: 5, def: PAGES },
    { name: "v.numbers", kind: "flag", def: true },
  ],
  settle,
  figures: {
    pages: {
      kind: "tokens",
      calls: () => [{ op: "encode", query: { type: "naive", form: "integer", d_model: 1, positions: "1:6" } }],
      data: ([{ data }], s, words) => ({
        words: s["v.pages"].map((page) => words.pages[page - 1]),
        values: s["v.pages"], field: "v.pages",
        below: s["v.pages"].map((page) => (s["v.numbers"] ? `\u2013 ${data[page - 1]} \u2013` : "?")),
        notes: s["v.pages"].map((page) => (s["v.numbers"] ? `${words.number} ${data[page - 1]}` : words.unnumbered)),
        marks: s["v.pages"].map(() => "sheet"),
        verdict: say(s["v.numbers"] ? words.numbered : words.lost, {
          right: s["v.pages"].filter((page, i) => data[page - 1] === i + 1).length,
        }),
      }),
      facts: ({ verdict }) => ({ verdict }),
    },
    sentence: sentence("tokens"),
    other: sentence("v.other"),
    weights: {
      kind: "heatmap",
      still: true,
      calls: (s) => [block(s, s.tokens)],
      data: ([{ data }], s) => matrix(data, s.tokens, chosen(s), signed(s.tokens, data)),
      facts: ({ values }, s) => ({
        word: s.tokens[s["v.i"]], seen: s.tokens[s["v.j"]], value: values[s["v.i"] * s.tokens.length + s["v.j"]],
      }),
      probe: choose,
    },
    weights_other: {
      kind: "heatmap",
      still: true,
      calls: (s) => [block(s, s["v.other"])],
      data: ([{ data }], s) => matrix(data, s["v.other"], chosenThere(s), signed(s["v.other"], data)),
      facts: ({ values }, s) => {
        const { row, column } = chosenThere(s);
        return { word: s.tokens[s["v.i"]], seen: s.tokens[s["v.j"]], value: values[row * s.tokens.length + column] };
      },
      probe: chooseThere,
    },
    sorted: {
      kind: "heatmap",
      calls: (s) => [block(s, s["v.other"])],
      data: ([{ data }], s) => matrix(sorted(data, places(s.tokens, s["v.other"])), s.tokens, chosen(s)),
      facts: (data, s) => ({ from: places(s.tokens, s["v.other"]).join(", ") }),
      probe: choose,
    },
    difference: {
      kind: "heatmap",
      calls: (s) => both(s),
      data: ([a, b], s) => {
        const rest = minus(Array.from(a.data), sorted(b.data, places(s.tokens, s["v.other"])));
        return matrix(rest, s.tokens, chosen(s));
      },
      facts: ({ values }) => ({ most: most(values) }),
      probe: choose,
    },
    outputs: {
      kind: "chart",
      calls: outputCalls,
      data: (replies, s, words) => {
        const n = s.tokens.length;
        const to = places(s.tokens, s["v.other"]);
        const names = [...s.tokens, words.mean];
        return {
          x: { title: words.axes.x, min: -0.5, max: n + 0.5, ticks: count(n + 1) },
          y: { title: words.axes.y, min: 1e-18, max: 100, log: true },
          lines: CASES.map(({ name, mark }, k) => ({
            name: words.cases[name], x: count(n + 1), y: apart(replies[2 * k], replies[2 * k + 1], to),
            dots: true, bare: true, mark, shift: 11 * (k - 1.5),
          })),
          at: s["v.i"],
          xName: (v) => names[v],
        };
      },
      facts: ({ lines }) => Object.fromEntries(CASES.map(({ name }, k) => [name, lines[k].y.at(-1)])),
      probe: (x, s) => ({ "v.i": Math.min(x, s.tokens.length - 1) }),
    },
    recurrent: {
      kind: "chart",
      calls: cellCalls,
      data: ([a, b, cell], s, words) => {
        const n = s.tokens.length;
        const gaps = readGaps(a, b, cell, s.width, n);
        const x = count(n).map((p) => p + 1);
        return {
          x: { title: words.axes.x, min: 0.5, max: n + 0.5, ticks: x, tick: String },
          y: { title: words.axes.y, min: 0, max: Math.ceil(Math.max(1, ...gaps.cell, ...gaps.sum)) },
          lines: [
            { name: words.cell, x, y: gaps.cell, dots: true, mark: 0 },
            { name: words.sum, x, y: gaps.sum, dots: true, dash: 2, mark: 1 },
          ],
          at: s["v.i"] + 1,
          xName: (p) => `${p} (${s.tokens[p - 1]} | ${s["v.other"][p - 1]})`,
        };
      },
      probe: (p) => ({ "v.i": p - 1 }),
      facts: ({ lines }) => ({ cell: lines[0].y.at(-1), sum: lines[1].y.at(-1) }),
    },
  },
};
