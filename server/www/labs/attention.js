// Lab 0: attention, by hand. A word asks a question, a list of numbers. Each word has a label, a list that the question
// is multiplied with, and a list that it hands over. The products become weights, and the weights mix what is handed
// over.
//
// All that the reader changes goes into the bodies of calls, so the page's query has names of the page alone, "v.".

import { count, vector } from "./vectors.js";

const WORDS = ["cats", "chase", "mice"];
const N = WORDS.length;
const D = 4; // numbers in a question and in a label: d_k
const HANDED = 2; // numbers that a word hands over

// Chosen by hand: who asks for animals and hunters, finds them. Rows are words.
const QUESTIONS = [[0, 2, 0, 0], [2, 0, 2, 0], [0, 1, 2, 0]];
const LABELS = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]];
const VALUES = [[3, 2], [1, 0], [0, 3]];


/** A list of numbers as rows of `width` numbers. */
const rows = (list, width) => count(list.length / width).map((i) => vector({ data: list }, i, width));

// ---- Calls -------------------------------------------------------------------------------------------------------

const attention = (s, questions, more) => ({
  op: "attention",
  body: { q: questions, k: rows(s["v.k"], D), dtype: "float64", ...more },
});

const question = (s) => vector({ data: s["v.q"] }, s["v.i"], D);

const label = (s, j) => vector({ data: s["v.k"] }, j, D);

const handed = (s, j) => vector({ data: s["v.v"] }, j, HANDED);

/** What the word that asks gets: products [1, N], those divided by the root of D, weights, or the mix [1, HANDED]. */
const asks = {
  products: (s) => attention(s, [question(s)], { scale: 1, return: "logits" }),
  scores: (s) => attention(s, [question(s)], { return: "logits" }),
  weights: (s) => attention(s, [question(s)], { return: "weights" }),
  undivided: (s) => attention(s, [question(s)], { scale: 1, return: "weights" }),
  output: (s) => attention(s, [question(s)], { v: rows(s["v.v"], HANDED), return: "output" }),
};

// ---- Arithmetic written out --------------------------------------------------------------------------------------

/** A number that was computed: to three places, unless it is whole but for rounding; a small weight is "0.000", not 0. */
const digits = (v) => {
  const whole = Math.abs(v - Math.round(v)) < 1e-12 * Math.max(1, Math.abs(v));
  const text = whole ? String(Math.round(v)) : Math.abs(v) < 1e6 ? v.toFixed(3) : v.toPrecision(3);
  return text.replace("-0.000", "0.000").replace("-", "\u2212");
};

/** Behind a sign a negative number wants brackets; what the reader wrote stays as it is. */
const factor = (v) => (v < 0 ? `(\u2212${-v})` : String(v));

/** "2·1 + 0·0": of numbers as they were written, or of weights and such numbers. */
const terms = (a, b, write = factor) => a.map((v, i) => `${write(v)}\u00b7${factor(b[i])}`).join(" + ");

/** What was computed, as cells that light up together. */
const result = (value, symbol) => ({ value, text: digits(value), symbol });

const sum = (list) => list.reduce((total, v) => total + v, 0);

/** Three words: a shorter list is filled up. */
const settle = (s) => ({ "v.words": WORDS.map((word, i) => s["v.words"][i] ?? word) });

const editable = (s, field, i, width) =>
  count(width).map((j) => ({ value: s[field][i * width + j], field, index: i * width + j }));

const list = (reply) => Array.from(reply.data);

/** The row of the word that is looked at, in tables with a row for each word; `before` rows come first. */
const seen = (s, before = 0) => ({ row: s["v.j"] + before });

const looked = ({ row }) => ({ "v.j": row });

// ---- Steps: each begins with what the one before it ended with ---------------------------------------------------

const questions = {
  kind: "grid",
  calls: (s) => [attention(s, rows(s["v.q"], D), { scale: 1, return: "logits" })],
  data: (replies, s, words) => ({
    head: [words.word, ...words.numbers],
    rows: s["v.words"].map((word, i) => [word, ...editable(s, "v.q", i, D)]),
    at: { row: s["v.i"] }, pick: N,
  }),
  facts: (data, s) => ({ asking: s["v.words"][s["v.i"]], list: question(s).map(factor).join(", ") }),
  probe: ({ row }) => ({ "v.i": row }),
};

const labels = {
  kind: "grid",
  calls: (s) => [asks.products(s)],
  data: (replies, s, words) => ({
    head: [words.word, ...words.numbers],
    rows: s["v.words"].map((word, j) => [word, ...editable(s, "v.k", j, D)]),
    at: seen(s), pick: N,
  }),
  facts: (data, s) => ({ seen: s["v.words"][s["v.j"]], list: label(s, s["v.j"]).map(factor).join(", ") }),
  probe: looked,
};

const products = {
  kind: "grid",
  calls: (s) => [asks.products(s)],
  data: ([reply], s, words) => ({
    head: [words.word, words.sum, words.product],
    rows: s["v.words"].map((word, j) => [word, terms(question(s), label(s, j)), result(reply.data[j], "product")]),
    at: seen(s), pick: N,
  }),
  facts: (data, s, [reply]) => ({
    asking: s["v.words"][s["v.i"]], seen: s["v.words"][s["v.j"]],
    terms: terms(question(s), label(s, s["v.j"])), product: digits(reply.data[s["v.j"]]),
  }),
  probe: looked,
};

const scores = {
  kind: "grid",
  calls: (s) => [asks.scores(s), asks.products(s)],
  data: ([score, product], s, words) => ({
    head: [words.word, words.product, words.divided, words.score],
    rows: s["v.words"].map((word, j) => [
      word, result(product.data[j], "product"), `${digits(product.data[j])} / ${Math.sqrt(D)}`,
      result(score.data[j], "score"),
    ]),
    at: seen(s), pick: N,
  }),
  facts: (data, s, [score, product]) => ({
    seen: s["v.words"][s["v.j"]], product: digits(product.data[s["v.j"]]), score: digits(score.data[s["v.j"]]),
  }),
  probe: looked,
};

const softmax = {
  kind: "grid",
  calls: (s) => [asks.weights(s), asks.scores(s)],
  data: ([weight, score], s, words) => {
    const powers = list(score).map(Math.exp);
    return {
      head: [words.word, words.score, words.power, words.divided, words.weight],
      rows: [
        ...s["v.words"].map((word, j) => [
          word, result(score.data[j], "score"), result(powers[j]), `${digits(powers[j])} / ${digits(sum(powers))}`,
          result(weight.data[j], "weight"),
        ]),
        [words.total, "", result(sum(powers)), "", result(sum(list(weight)), "weight")],
      ],
      at: seen(s), pick: N,
    };
  },
  facts: (data, s, [weight]) => ({
    weights: list(weight).map(digits).join(" + "), total: digits(sum(list(weight))),
  }),
  probe: looked,
};

const weights = {
  kind: "chart",
  calls: (s) => [asks.weights(s), asks.undivided(s)],
  data: ([weight, undivided], s, words) => ({
    x: { title: words.axes.x, min: -0.5, max: N - 0.5, ticks: count(N) },
    y: { title: words.axes.y, min: 0, max: 1 },
    lines: [
      { name: words.weight, x: count(N), y: list(weight), bars: 30, bare: true, shift: -8, tone: 4, symbol: "weight" },
      { name: words.undivided, x: count(N), y: list(undivided), dots: true, bare: true, mark: 3, shift: 16, tone: 5 },
    ],
    at: s["v.j"],
    xName: (j) => s["v.words"][j],
  }),
  facts: ({ lines }, s) => ({
    asking: s["v.words"][s["v.i"]], seen: s["v.words"][s["v.j"]],
    weight: lines[0].y[s["v.j"]], undivided: lines[1].y[s["v.j"]],
  }),
  probe: (j) => ({ "v.j": j }),
};

const values = {
  kind: "grid",
  calls: (s) => [asks.output(s)],
  data: (replies, s, words) => ({
    head: [words.word, ...words.numbers],
    rows: s["v.words"].map((word, j) => [word, ...editable(s, "v.v", j, HANDED)]),
    at: seen(s), pick: N,
  }),
  facts: (data, s) => ({ seen: s["v.words"][s["v.j"]], list: handed(s, s["v.j"]).map(factor).join(", ") }),
  probe: looked,
};

const mixed = {
  kind: "grid",
  calls: (s) => [asks.output(s), asks.weights(s)],
  data: ([output, weight], s, words) => {
    const part = (a, v) => `${digits(a)}\u00b7${factor(v)} = ${digits(a * v)}`;
    return {
      head: [words.word, ...words.parts],
      rows: [
        ...s["v.words"].map((word, j) => [word, ...handed(s, j).map((v) => part(weight.data[j], v))]),
        [words.total, ...list(output).map((v) => result(v, "output"))],
      ],
      at: seen(s), pick: N,
    };
  },
  facts: (data, s, [output, weight]) => ({
    asking: s["v.words"][s["v.i"]], list: list(output).map(digits).join(", "), first: digits(output.data[0]),
    terms: terms(list(weight), count(N).map((j) => handed(s, j)[0]), digits),
  }),
  probe: looked,
};

const all = {
  kind: "heatmap",
  calls: (s) => [attention(s, rows(s["v.q"], D), { return: "weights" })],
  data: ([{ data }], s) => ({
    rows: N, columns: N, values: data, domain: 1, at: { row: s["v.i"], column: s["v.j"] },
    rowName: (i) => s["v.words"][i], columnName: (j) => s["v.words"][j],
    labels: { row: s["v.words"], column: s["v.words"] },
    symbols: { row: "i", column: "j" },
  }),
  facts: ({ values }, s) => ({
    asking: s["v.words"][s["v.i"]], seen: s["v.words"][s["v.j"]],
    there: values[s["v.i"] * N + s["v.j"]], back: values[s["v.j"] * N + s["v.i"]],
  }),
  probe: ({ row, column }) => ({ "v.i": row, "v.j": column }),
};

// ---- The lab -----------------------------------------------------------------------------------------------------

const numbers = (name, def) => ({ name, kind: "numbers", min: -9, max: 9, step: 1, def: def.flat() });

export const lab = {
  name: "attention",
  fields: [
    { name: "v.words", kind: "words", min: 1, max: N, def: WORDS },
    { name: "v.i", kind: "integer", min: 0, max: N - 1, def: 1, symbol: "i" },
    { name: "v.j", kind: "integer", min: 0, max: N - 1, def: 0, symbol: "j" },
    numbers("v.q", QUESTIONS),
    numbers("v.k", LABELS),
    numbers("v.v", VALUES),
  ],
  settle,
  figures: { questions, labels, products, scores, softmax, weights, values, mixed, all },
};
