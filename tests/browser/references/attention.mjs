// SPDX-License-Identifier: MIT
//
// Lab 0, attention: three lists each of questions, labels and what is handed over, all of the page's state; nothing is
// asked of the service.

import { dot, range, softmax, total } from "./_maths.mjs";

const N = 3;
const D = 4;
const HANDED = 2;

const rows = (list, width) => range(N).map((i) => list.slice(i * width, (i + 1) * width));

const minus = (v) => String(v).replace("-", "\u2212");

/** A number that the reader wrote, as a factor: negative ones in brackets. */
const factor = (v) => (v < 0 ? `(${minus(v)})` : String(v));

const listed = (texts, between) => texts.flatMap((text, i) => (i ? [between, text] : [text]));

/** "2·1 + 0·0" */
const products = (a, b, write = factor) => listed(a.map((v, i) => [write(v), "\u00b7", factor(b[i])]), " + ");

/** All that follows from the state, for the word that asks. */
function worked(s) {
  const [q, k, v] = [rows(s["v.q"], D), rows(s["v.k"], D), rows(s["v.v"], HANDED)];
  const question = q[s["v.i"]];
  const product = k.map((label) => dot(question, label));
  const score = product.map((x) => x / Math.sqrt(D));
  const weight = softmax(score);
  const output = range(HANDED).map((c) => total(weight.map((a, j) => a * v[j][c])));
  return { q, k, v, question, product, score, weight, output, undivided: softmax(product) };
}

const names = (s) => ({ asking: s["v.words"][s["v.i"]], seen: s["v.words"][s["v.j"]] });

const seen = (s) => ({ row: s["v.j"] });

/** Rows of numbers that the reader can change. */
const table = (s, lists) => s["v.words"].map((word, j) => [word, ...lists[j].map(String)]);

const written = (list) => list.map(factor).join(", ");

async function questions(s) {
  const { q, question } = worked(s);
  return { cells: table(s, q), at: { row: s["v.i"] }, facts: { ...names(s), list: written(question) } };
}

async function labels(s) {
  const { k } = worked(s);
  return { cells: table(s, k), at: seen(s), facts: { ...names(s), list: written(k[s["v.j"]]) } };
}

async function values(s) {
  const { v } = worked(s);
  return { cells: table(s, v), at: seen(s), facts: { ...names(s), list: written(v[s["v.j"]]) } };
}

async function productsShown(s) {
  const { question, k, product } = worked(s);
  const j = s["v.j"];
  return {
    cells: s["v.words"].map((word, i) => [word, products(question, k[i]), product[i]]), at: seen(s), scale: largest(product),
    facts: { ...names(s), terms: products(question, k[j]), product: product[j] },
  };
}

const largest = (list) => Math.max(1, ...list.map(Math.abs));

async function scores(s) {
  const { product, score } = worked(s);
  const j = s["v.j"];
  return {
    cells: s["v.words"].map((word, i) => [word, product[i], [product[i], " / 2"], score[i]]), at: seen(s),
    scale: largest(product), facts: { ...names(s), product: product[j], score: score[j] },
  };
}

async function softmaxShown(s, ask, words) {
  const { score, weight } = worked(s);
  const powers = score.map((x) => Math.exp(x));
  return {
    cells: [
      ...s["v.words"].map((word, i) => [word, score[i], powers[i], [powers[i], " / ", total(powers)], weight[i]]),
      [words.total, "", total(powers), "", 1],
    ],
    at: seen(s), scale: largest([...score, ...powers]), facts: { weights: listed(weight, " + "), total: 1 },
  };
}

async function weights(s) {
  const { weight, undivided } = worked(s);
  const x = range(N);
  return {
    lines: [{ x, y: weight }, { x, y: undivided }], at: s["v.j"], scale: 1,
    facts: { ...names(s), weight: weight[s["v.j"]], undivided: undivided[s["v.j"]] },
  };
}

async function mixed(s, ask, words) {
  const { v, weight, output } = worked(s);
  const part = (a, value) => [a, "\u00b7", factor(value), " = ", a * value];
  return {
    cells: [...s["v.words"].map((word, j) => [word, ...v[j].map((value) => part(weight[j], value))]), [words.total, ...output]],
    at: seen(s), scale: largest(s["v.v"]),
    facts: {
      ...names(s), list: listed(output, ", "), first: output[0],
      terms: products(weight, v.map(([first]) => first), (v) => v),
    },
  };
}

async function all(s) {
  const { q, k } = worked(s);
  const rows = q.map((question) => softmax(k.map((label) => dot(question, label) / Math.sqrt(D))));
  const [i, j] = [s["v.i"], s["v.j"]];
  return {
    rows: N, columns: N, values: rows.flat(), domain: 1, scale: 1, at: { row: i, column: j },
    labels: { row: s["v.words"], column: s["v.words"] }, facts: { ...names(s), there: rows[i][j], back: rows[j][i] },
  };
}

export const reference = {
  questions, labels, products: productsShown, scores, softmax: softmaxShown, weights, values, mixed, all,
};
