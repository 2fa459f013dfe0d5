// SPDX-License-Identifier: MIT
//
// Lab 3, waves: all numbers are formulas, so nothing is asked of the service.

import { difference, dot, gap, numberings, range, wave } from "./_maths.mjs";

const TURN = 2 * Math.PI;
const DIGITS = 5; // the counter and the wheels beside it: 32 rows
const COUNTED = 2 ** DIGITS;

const encoding = (s, layout = s.layout) => ({ d: s.d_model, base: s.base, layout });

const places = (n, more) => range(n).map((p) => wave(p, more));

const matrix = (rows, more) => ({ rows: rows.length, columns: rows[0].length, values: rows.flat(), ...more });

/** Positions until the pair comes round. */
const lengthOf = (i, { d_model: d, base }) => TURN * base ** ((2 * i) / d);

/** Where the chosen wave stands in a layout. */
const chosenColumn = (s, layout) =>
  layout === "halves" ? s["v.i"] + (s["v.phase"] === "cos" ? s.d_model / 2 : 0) : 2 * s["v.i"] + (s["v.phase"] === "cos" ? 1 : 0);

/** Sine and cosine of pair i at a place, whatever the layout. */
const pairAt = (p, i, s) => {
  const angle = p / s.base ** ((2 * i) / s.d_model);
  return { sine: Math.sin(angle), cosine: Math.cos(angle) };
};

const handAt = (p, i, s) => ({ x: pairAt(p, i, s).cosine, y: pairAt(p, i, s).sine });

/** Seven pairs from the first to the last, and the chosen one. */
function dialled(s) {
  const last = s.d_model / 2 - 1;
  const pairs = new Set(range(7).map((k) => Math.round((k / 6) * last)));
  return [...pairs.add(s["v.i"])].sort((a, b) => a - b);
}

async function dials(s) {
  const before = s["v.p"] > 0 ? [s["v.p"] - 1] : [];
  return {
    circles: dialled(s).map((i) => ({ hands: [...before, s["v.p"]].map((p) => handAt(p, i, s)) })),
    facts: { p: s["v.p"] },
  };
}

async function steps(s, ask, words) {
  const { "v.p": p, "v.i": i, d_model: d, base } = s;
  const exponent = (2 * i) / d;
  const divisor = base ** exponent;
  const angle = p / divisor;
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const column = (phase) => chosenColumn({ ...s, "v.phase": phase }, s.layout);
  const rows = {
    exponent: [exponent, { i, d }], divisor: [divisor, { base, exponent }], angle: [angle, { p, divisor }],
    turns: [angle / TURN, { angle }], sine: [sine, { angle }], cosine: [cosine, { angle }],
    sentSine: [sine, { p, column: column("sin") }], sentCosine: [cosine, { p, column: column("cos") }],
  };
  return {
    cells: Object.entries(rows).map(([name, [value, values]]) =>
      [{ say: words.steps[name], values }, { say: words.how[name], values }, value]),
    scale: 1, facts: { p, i, angle, sine, cosine },
  };
}

async function curves(s) {
  const each = s.positions <= 128 ? 4 : s.positions <= 256 ? 2 : 1; // points a position
  const x = range((s.positions - 1) * each + 1).map((k) => k / each);
  const line = (phase) => ({ x, y: x.map((p) => pairAt(p, s["v.i"], s)[phase]) });
  return {
    lines: [line("sine"), line("cosine")], facts: { i: s["v.i"], length: lengthOf(s["v.i"], s), each },
  };
}

async function lengths(s) {
  const x = range(s.d_model / 2);
  const y = x.map((i) => lengthOf(i, s));
  return {
    lines: [{ x, y }], facts: { first: TURN, last: y.at(-1), limit: TURN * s.base, i: s["v.i"], length: y[s["v.i"]] },
  };
}

const counter = () => range(COUNTED).map((p) => numberings.binary(p, { d: DIGITS }));

/** A pair for each digit; the base is such that each takes twice as long as the one before. */
const wheels = () => places(COUNTED, { d: 2 * DIGITS, base: COUNTED });

async function binary(s) {
  const p = Math.min(s["v.p"], COUNTED - 1);
  return { ...matrix(counter(), { domain: 1 }), facts: { p, digits: p.toString(2).padStart(DIGITS, "0") } };
}

async function jumps(s) {
  const x = range(COUNTED - 1);
  const p = Math.min(s["v.p"], COUNTED - 2);
  const steps = (rows) => x.map((k) => gap(rows[k], rows[k + 1]));
  const changed = difference(counter()[p], counter()[p + 1]).filter(Boolean).length;
  return {
    lines: [{ x, y: steps(counter()) }, { x, y: steps(wheels()) }],
    facts: { p, next: p + 1, changed, binary: Math.sqrt(changed), smooth: gap(wheels()[p], wheels()[p + 1]) },
  };
}

const inLayout = (layout) => async (s) => ({
  ...matrix(places(s.positions, encoding(s, layout)), { domain: 1 }), facts: { column: chosenColumn(s, layout) },
});

/** Both layouts have the same products, so what is left between them is rounding. */
const productsOf = (layout) => async (s) => {
  const rows = places(Math.min(64, s.positions), encoding(s, layout));
  const [p, q] = [Math.min(s["v.p"], rows.length - 1), s["v.q"]];
  return {
    ...matrix(rows.map((a) => rows.map((b) => dot(a, b))), { domain: s.d_model / 2 }),
    facts: { p, q, value: dot(rows[p], rows[q]), most: 0 },
  };
};

const LAST = 264;

async function alias(s) {
  const every = s["v.every"];
  const line = (step) => {
    const x = range(Math.floor(LAST / step) + 1).map((k) => k * step);
    return { x, y: x.map((p) => Math.sin(p)) };
  };
  const turns = every / TURN; // from one seen position to the next, of which whole ones cannot be seen
  return {
    lines: [line(0.25), line(every)], facts: { n: every, length: every / Math.abs(turns - Math.round(turns)) },
  };
}

export const reference = {
  dials, steps, curves, lengths, binary, jumps, alias,
  matrix: async (s) => matrix(places(s.positions, encoding(s)), { domain: 1 }),
  smooth: async () => matrix(wheels(), { domain: 1 }),
  interleaved: inLayout("interleaved"),
  halves: inLayout("halves"),
  products_interleaved: productsOf("interleaved"),
  products_halves: productsOf("halves"),
};
