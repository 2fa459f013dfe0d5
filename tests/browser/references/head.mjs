// SPDX-License-Identifier: MIT
//
// Lab 7, a head by its recipe. The score of place p for place j is their query times key, divided by the root of d:
//
//     k places on    gain/sqrt(d) sum over pairs of cos(w (p + k - j))
//     the first      gain/sqrt(d) cos(w_slowest p) sum over pairs of cos(w j)
//
// The gain is the least for which the wanted place's lead over each other one makes that one at most 0.01/n as heavy.

import { bestTable, dot, least, mean, most, noise, range, speed } from "./_maths.mjs";

const REST = 0.01;
const TRIES = 100; // random heads without an encoding

const sums = new Map(); // as many pairs of places are equally far apart

/** Sum of the cosines of all hands that have turned for so many places. */
function together(places, d) {
  const key = 1000 * d + places;
  if (!sums.has(key)) {
    sums.set(key, range(d / 2).reduce((sum, i) => sum + Math.cos(places * speed(i, d)), 0));
  }
  return sums.get(key);
}

const sees = (s, p, j) => !s.causal || j <= p;

/** The gain from the leads of wanted(p), where there is such a place, before all that p sees; 1 without a lead. */
function gainOf(scores, n, wanted, s) {
  const leads = range(n).filter((p) => wanted(p) >= 0).flatMap((p) =>
    range(n).filter((j) => j !== wanted(p) && sees(s, p, j)).map((j) => scores(p, wanted(p)) - scores(p, j)));
  return least(leads) > 0 ? Math.log(n / REST) / least(leads) : 1;
}

/** Rows of weights that add up to 1: powers of e, divided by their sum. */
function weightsOf(scores, n, gain, s) {
  return range(n).map((p) => {
    const seen = range(n).map((j) => (sees(s, p, j) ? gain * scores(p, j) : -Infinity));
    const powers = seen.map((v) => Math.exp(v - most(seen)));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((v) => v / sum);
  });
}

/** { gain, weights } of a head for n places that looks k places on, which is back. */
function headBack(s, n) {
  const scores = (p, j) => together(p + s["goal.attend"] - j, s.d_model) / Math.sqrt(s.d_model);
  const gain = gainOf(scores, n, (p) => p + s["goal.attend"], s);
  return { gain, weights: weightsOf(scores, n, gain, s) };
}

function headFirst(s) {
  const slow = speed(s.d_model / 2 - 1, s.d_model);
  const scores = (p, j) => (Math.cos(slow * p) * together(j, s.d_model)) / Math.sqrt(s.d_model);
  return weightsOf(scores, s.positions, gainOf(scores, s.positions, () => 0, s), s);
}

const even = (s, p) => range(s.positions).map((j) => (sees(s, p, j) ? 1 / (s.causal ? p + 1 : s.positions) : 0));

/** The places of n that have the wanted one, and what each gives to it. */
const lookers = (n, s) => range(n + s["goal.attend"], -s["goal.attend"]);
const massOf = (weights, s) => lookers(weights.length, s).map((p) => weights[p][p + s["goal.attend"]]);

function heat(weights, s) {
  const row = weights[s["v.row"]].map(Math.fround);
  return {
    rows: weights.length, columns: weights.length, values: weights.flat(), domain: 1,
    at: { row: s["v.row"], column: s["v.column"] },
    labels: { row: range(weights.length), column: range(weights.length) },
    facts: { p: s["v.row"], most: most(row), to: row.indexOf(most(row)) },
  };
}

/** What a head gives to wanted places whose table was fitted to n random vectors, at 2 n of them. */
function randomMass(s) {
  const [n, d, k] = [s.positions, s.d_model, s["goal.attend"]];
  const of = (p) => noise(p, { d });
  const table = bestTable(range(n).map(of), range(n).map((p) => of(p + k))).map((row) => row.map(Math.fround));
  const keys = range(2 * n).map((p) => of(p).map(Math.fround));
  const queries = keys.map((key) => table.map((row) => dot(row, key)));
  const scores = (p, j) => dot(queries[p], keys[j]) / Math.sqrt(d);
  return massOf(weightsOf(scores, 2 * n, gainOf(scores, n, (p) => p + k, s), s), s);
}

/** What numbers of a place are called. */
function namesOf(d, { sine, cosine }) {
  const names = range(d).map((j) => `${j % 2 ? cosine : sine} ${Math.floor(j / 2)}`);
  return { row: names, column: names };
}

/** Where what is not yet known comes next to what is wanted. */
export const corners = [{ d_model: 24, "goal.attend": -3, positions: 24, causal: false }];

export const reference = {
  weights: async (s) => heat(headBack(s, s.positions).weights, s),

  async mass(s) {
    const x = lookers(s.positions, s);
    const waves = massOf(headBack(s, s.positions).weights, s);
    const none = massOf(range(s.positions).map((p) => even(s, p)), s);
    return {
      lines: [{ x, y: waves }, { x, y: none }],
      at: Math.max(s["v.row"], -s["goal.attend"]),
      facts: { mean: mean(waves), least: least(waves), places: x.length, none: mean(none), tries: TRIES },
    };
  },

  /** The gain times the turn by k of each pair, laid on its side: a query's number is a column. */
  async w_q(s, _, words) {
    const { gain } = headBack(s, s.positions);
    const d = s.d_model;
    const turn = (row, column) => {
      const b = s["goal.attend"] * speed(Math.floor(row / 2), d);
      const sine = row < column ? -Math.sin(b) : Math.sin(b);
      return Math.floor(row / 2) !== Math.floor(column / 2) ? 0 : row === column ? Math.cos(b) : sine;
    };
    const values = range(d * d).map((at) => gain * turn(Math.floor(at / d), at % d));
    return {
      rows: d, columns: d, values, domain: Math.max(1, 10 * Math.ceil(most(values.map(Math.abs)) / 10)),
      labels: namesOf(d, words),
      facts: { gain, k: s["goal.attend"], a: turn(0, 0), b: turn(1, 0) },
    };
  },

  async w_k({ d_model: d }, _, words) {
    const values = range(d * d).map((at) => (Math.floor(at / d) === at % d ? 1 : 0));
    return { rows: d, columns: d, values, domain: 1, labels: namesOf(d, words), facts: { ones: d } };
  },

  async first(s) {
    const weights = headFirst(s);
    const shown = heat(weights, s);
    return { ...shown, facts: { ...shown.facts, least: least(weights.map(([first]) => first)) } };
  },

  async none(s) {
    const weights = range(s.positions).map((p) => even(s, p));
    const seen = s.causal ? s["v.row"] + 1 : s.positions;
    return { ...heat(weights, s), facts: { p: s["v.row"], n: seen, each: 1 / seen, apart: 0 } };
  },

  async random(s) {
    const [n, k] = [s.positions, -s["goal.attend"]];
    const waves = massOf(headBack(s, 2 * n).weights, s);
    const random = randomMass(s);
    const [known, fresh] = [random.slice(0, n - k), random.slice(n - k)];
    return {
      lines: [
        { x: lookers(2 * n, s), y: waves }, { x: range(n - k, k), y: known }, { x: range(n, n), y: fresh },
      ],
      scale: 1, units: 100, // a gain of hundreds makes that of a table's last bits
      facts: { waves: mean(waves), known: mean(known), fresh: mean(fresh) },
    };
  },
};
