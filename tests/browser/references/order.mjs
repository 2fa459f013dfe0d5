// SPDX-License-Identifier: MIT
//
// Lab 1, order: a whole block, its seeded weights and the vectors of its words included (see _maths.mjs), so nothing is
// asked of the service.

import { add, apply, block, difference, gap, inputsOf, noise, range, wordVector } from "./_maths.mjs";

const run = (s, tokens, { type = s.type, causal = s["mask.causal"] } = {}) =>
  block(inputsOf(tokens, type, s.width), { seed: s.weights_seed, causal });

const largest = (list) => Math.max(...list.map(Math.abs));

const SAME = 1e-12; // what is nearer is rounding: weights are at most 1

/** Where each word of a stands in b: the k-th "the" where the k-th "the" is. */
const placesIn = (a, b) =>
  a.map((word, i) => {
    const before = a.slice(0, i).filter((other) => other === word).length;
    return range(b.length).filter((j) => b[j] === word)[before];
  });

const moves = (s) => placesIn(s.tokens, s["v.other"]);

/** B's weights, cell for cell where A's words are. */
const moved = (weights, to) => to.map((i) => to.map((j) => weights[i][j]));

const matrix = (rows, tokens, more) => ({ rows: tokens.length, columns: tokens.length, values: rows.flat(), domain: 1, ...more });

const equalRows = (weights) =>
  weights.map((row, i) => weights.some((other, j) => j !== i && largest(difference(row, other)) < SAME));

const marked = (tokens, weights) => equalRows(weights).map((equal, i) => (equal ? `= ${tokens[i]}` : tokens[i]));

// ---- Figures ------------------------------------------------------------------------------------------------------

async function pages(s, ask, words) {
  const [order, told] = [s["v.pages"], s["v.numbers"]];
  const number = (page, before, after = "") => [before, Number(page), after];
  const right = order.filter((page, i) => Number(page) === i + 1).length;
  return {
    words: order.map((page) => words.pages[page - 1]),
    below: order.map((page) => (told ? number(page, "\u2013 ", " \u2013") : "?")),
    notes: order.map((page) => (told ? number(page, `${words.number} `) : words.unnumbered)),
    facts: { verdict: told ? { say: words.numbered, values: { right } } : words.lost },
  };
}

/** What is said of the first word that stands twice. */
function twinsSaid(tokens, weights, words) {
  const first = tokens.findIndex((word, i) => tokens.lastIndexOf(word) > i);
  if (first < 0) {
    return words.single;
  }
  const second = range(tokens.length).find((i) => i > first && tokens[i] === tokens[first]);
  const far = largest(difference(weights[first], weights[second]));
  return { say: far < SAME ? words.same : words.apart, values: { twin: tokens[first], gap: far < SAME ? 0 : far } };
}

const sentence = (field) => async (s, ask, words) => {
  const tokens = s[field];
  const { weights } = run(s, tokens);
  const equal = equalRows(weights);
  return {
    words: tokens,
    below: tokens.map((_, i) => [i, equal[i] ? " =" : ""]),
    notes: equal.map((yes) => (yes ? words.twin : "")),
    facts: { text: tokens.join(" "), verdict: twinsSaid(tokens, weights, words) },
  };
};

async function weights(s) {
  const rows = run(s, s.tokens).weights;
  const [i, j] = [s["v.i"], s["v.j"]];
  return matrix(rows, s.tokens, {
    at: { row: i, column: j }, labels: { row: marked(s.tokens, rows), column: s.tokens },
    facts: { word: s.tokens[i], seen: s.tokens[j], value: rows[i][j] },
  });
}

async function weightsOther(s) {
  const tokens = s["v.other"];
  const rows = run(s, tokens).weights;
  const [i, j] = [s["v.i"], s["v.j"]].map((at) => moves(s)[at]);
  return matrix(rows, tokens, {
    at: { row: i, column: j }, labels: { row: marked(tokens, rows), column: tokens },
    facts: { word: tokens[i], seen: tokens[j], value: rows[i][j] },
  });
}

async function sorted(s) {
  return matrix(moved(run(s, s["v.other"]).weights, moves(s)), s.tokens, {
    at: { row: s["v.i"], column: s["v.j"] }, labels: { row: s.tokens, column: s.tokens },
    facts: { from: moves(s).join(", ") },
  });
}

async function rest(s) {
  const b = moved(run(s, s["v.other"]).weights, moves(s));
  const rows = run(s, s.tokens).weights.map((row, i) => difference(row, b[i]));
  return matrix(rows, s.tokens, {
    at: { row: s["v.i"], column: s["v.j"] }, labels: { row: s.tokens, column: s.tokens },
    scale: 1, facts: { most: largest(rows.flat()) },
  });
}

const CASES = { none: {}, sinusoidal: { type: "sinusoidal" }, random: { type: "random" }, causal: { causal: true } };

/** Differences of vectors that are about sqrt(width) long, so their rounding is of that size. */
async function outputs(s) {
  const to = moves(s);
  const meanOf = (rows) => rows.reduce(add).map((v) => v / rows.length);
  const far = (more) => {
    const [a, b] = [s.tokens, s["v.other"]].map((tokens) => run(s, tokens, { type: "none", causal: false, ...more }).output);
    return [...a.map((row, i) => gap(row, b[to[i]])), gap(meanOf(a), meanOf(b))];
  };
  const y = Object.fromEntries(Object.entries(CASES).map(([name, more]) => [name, far(more)]));
  return {
    lines: Object.values(y).map((values) => ({ x: range(s.tokens.length + 1), y: values })), at: s["v.i"],
    scale: 4 * Math.sqrt(s.width),
    facts: Object.fromEntries(Object.entries(y).map(([name, values]) => [name, values.at(-1)])),
  };
}

/** h = tanh(W x + U h), and beside it the sum of all x. */
async function recurrent(s) {
  const d = s.width;
  const std = Number((1 / Math.sqrt(d)).toPrecision(3));
  const [W, U] = [0, d].map((from) => range(d, from).map((p) => noise(p, { d, seed: s.weights_seed, std })));
  const after = (tokens, next) => {
    let h = range(d).map(() => 0);
    return tokens.map((word) => (h = next(wordVector(word, d), h)));
  };
  const gapsOf = (next) => {
    const [a, b] = [s.tokens, s["v.other"]].map((tokens) => after(tokens, next));
    return a.map((h, p) => gap(h, b[p]));
  };
  const cell = gapsOf((x, h) => add(apply(W, x), apply(U, h)).map(Math.tanh));
  const bag = gapsOf(add);
  const x = range(s.tokens.length, 1);
  return {
    lines: [{ x, y: cell }, { x, y: bag }], at: s["v.i"] + 1, scale: Math.sqrt(d) * s.tokens.length,
    facts: { cell: cell.at(-1), sum: bag.at(-1) },
  };
}

export const reference = {
  pages, sentence: sentence("tokens"), other: sentence("v.other"), weights, weights_other: weightsOther, sorted,
  difference: rest, outputs, recurrent,
};
