// SPDX-License-Identifier: MIT
//
// Lab 5, fingerprints: distances are chords where these tell the same, as the distance of two positions follows from
// how far apart they are alone. Positions are rounded to few binary digits by code of this file. Only the last bit of a
// float32 speed is taken from the service's reply, as it is another program's exponential, which no formula tells.

import { chord, gap, least, most, range, speed, wave } from "./_maths.mjs";

const FAR = 2048;
const MANY = 4096;
const PART = 64;
const WIDTHS = [2, 4, 8, 16, 32];
const ENOUGH = 1 - 1e-6; // by which a distance has to be smaller to be a new record: less is rounding

const shape = ({ d_model: d, base, layout }) => ({ d, base, layout });

const single = (rows) => rows.map((row) => row.map(Math.fround));

/** The vectors of the first positions, as float32 has them. */
const prints = (s) => single(range(s.positions).map((p) => wave(p, shape(s))));

/** The first two of all pairs that are as near as any. */
function nearestTwo(rows) {
  const pairs = rows.flatMap((x, a) =>
    range(rows.length - a - 1, a + 1).map((b) => ({ a, b, least: gap(x, rows[b]) })));
  return pairs.reduce((best, pair) => (pair.least < best.least * ENOUGH ? pair : best));
}

// ---- Few digits ---------------------------------------------------------------------------------------------------

/** A number in so many binary digits: the nearest, of two that are equally near the even one. */
function rounded(v, digits) {
  const unit = 2 ** (Math.floor(Math.log2(v)) + 1 - digits);
  const below = Math.floor(v / unit);
  const rest = v / unit - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 === 1);
  return v === 0 ? 0 : (below + (up ? 1 : 0)) * unit;
}

const FORMS = [
  { arithmetic: "float32_exp", digits: 24, largest: Infinity },
  { arithmetic: "float16_positions", digits: 11, largest: 65504 },
  { arithmetic: "bfloat16_positions", digits: 8, largest: Infinity },
];

/** How many different vectors the first 64, 128, .. positions have: position and waves have only so many digits. */
function different({ digits }) {
  const seen = range(MANY).map((p) => single([wave(rounded(p, digits), { d: 2 })]).join());
  return range(MANY / PART, 1).map((n) => new Set(seen.slice(0, n * PART)).size);
}

/** The speed of pair i in float32, as nearly as a formula tells it. */
function roundedSpeed(arithmetic, i, { d_model: d, base }) {
  if (arithmetic === "float32_exp") {
    return Math.fround(Math.exp(Math.fround(2 * i * Math.fround(-Math.log(base) / d))));
  }
  return Math.fround(1 / Math.fround(Math.fround(base) ** Math.fround((2 * i) / d)));
}

const ulp = (v) => 2 ** (Math.floor(Math.log2(v)) - 23);

/** sine and cosine of a position times a speed, where each of them, and the angle, is rounded to float32. */
const hand = (p, w) => single([[Math.sin(Math.fround(p * w)), Math.cos(Math.fround(p * w))]])[0];

/** That of the neighbours of a speed which turns positions to where the service says: [position, pair]. */
function speedFound(w, turned) {
  const off = (v) => most(turned.map(([p, pair]) => gap(hand(p, v), pair)));
  const near = [0, 1, -1, 2, -2].map((k) => Math.fround(w + k * ulp(w)));
  const best = near.reduce((a, b) => (off(b) < off(a) ? b : a));
  if (off(best) > 1e-7) {
    throw new Error(`no float32 near ${w} turns hands to where the service has them: ${off(best)}`);
  }
  return best;
}

/** The vectors of positions as a program with few digits computes them. */
async function fewDigits({ arithmetic, digits, largest }, positions, s, ask) {
  const { d_model: d, base } = s;
  const at = positions.filter((p) => p <= largest);
  const { data } = await ask("encode", { type: "sinusoidal", d_model: d, base, arithmetic, positions: at.join() });
  const places = at.map((p) => rounded(p, digits));
  const pairAt = (k, i) => data.slice(k * d + 2 * i, k * d + 2 * i + 2);
  const speeds = range(d / 2).map((i) =>
    speedFound(roundedSpeed(arithmetic, i, s), places.map((p, k) => [p, pairAt(k, i)])));
  return places.map((p) => speeds.flatMap((w) => hand(p, w)));
}

/** Odd positions up to a million, evenly on a logarithmic axis. */
const ODD = [...new Set(range(37).map((j) => 2 * Math.floor(Math.round(10 ** (j / 6)) / 2) + 1))];

async function errorLine(form, s, ask) {
  const rows = await fewDigits(form, ODD, s, ask);
  return {
    x: ODD.slice(0, rows.length), y: rows.map((row, k) => gap(row, wave(ODD[k], { d: s.d_model, base: s.base }))),
    scale: 1000, // angles near a million have errors of 10^-10 here
  };
}

// ---- Figures ------------------------------------------------------------------------------------------------------

/** The sizes of vectors that number positions in d columns: p, p/N, and its binary digits. */
const numberings = {
  count: ({ positions, d_model }) => range(positions).map((p) => p * Math.sqrt(d_model)),
  part: ({ positions, d_model }) => range(positions).map((p) => (p / positions) * Math.sqrt(d_model)),
  digits: ({ positions, d_model }) =>
    range(Math.min(positions, 2 ** d_model)).map((p) => Math.sqrt(p.toString(2).replaceAll("0", "").length)),
};

/** How far on the nearest of 2048 positions is, and how near: all pairs so far apart are at the same distance. */
function double(d, base) {
  const chords = range(FAR - 1, 1).map((k) => ({ k, at: chord(k, d, base) }));
  return chords.reduce((best, next) => (next.at < best.at * ENOUGH ? next : best));
}

export const reference = {
  async prints(s) {
    const values = range(s.positions).flatMap((p) => wave(p, shape(s)));
    return {
      rows: s.positions, columns: s.d_model, values, domain: 1, at: { row: s["v.p"], column: s["v.c"] },
      labels: { row: range(s.positions), column: range(s.d_model) },
      facts: { least: least(values), most: most(values), p: s["v.p"], size: Math.sqrt(s.d_model / 2) },
    };
  },

  async norms(s) {
    const waves = range(s.positions).map(() => Math.sqrt(s.d_model / 2));
    const all = [...Object.values(numberings).map((sizes) => sizes(s)), waves];
    const lines = all.map((y) => ({ x: range(y.length), y }));
    return { lines, at: s["v.p"], facts: { least: waves[0], most: waves[0] } };
  },

  async distances(s) {
    const rows = prints(s);
    const [p, q] = [s["v.p"], s["v.q"]];
    const values = rows.flatMap((_, a) => rows.map((__, b) => chord(b - a, s.d_model, s.base)));
    return {
      rows: s.positions, columns: s.positions, values, domain: Math.sqrt(2 * s.d_model), at: { row: p, column: q },
      labels: { row: range(s.positions), column: range(s.positions) },
      facts: { p, q, at: chord(q - p, s.d_model, s.base), ...nearestTwo(rows) },
    };
  },

  async hunt(s) {
    const d = Number(s["v.width"]);
    const x = range(FAR, 1);
    const y = x.map((k) => chord(k, d, s.base));
    const records = x.filter((k) => y.slice(0, k - 1).every((before) => y[k - 1] < before * ENOUGH));
    const k = s["v.k"];
    return {
      lines: [{ x, y }, { x: records, y: records.map((at) => y[at - 1]) }],
      at: k,
      facts: {
        d, k, nearest: records.at(-1), least: y[records.at(-1) - 1], at: y[k - 1],
        turns: (k / 2 / Math.PI).toFixed(5),
      },
    };
  },

  async doubles(s, _, words) {
    const cells = WIDTHS.map((d) => {
      const { k, at } = double(d, s.base);
      const step = chord(1, d, s.base);
      return [String(d), k, at, { holds: k === 1, number: step, text: { say: words.step, values: { step } } }];
    });
    const at = { row: WIDTHS.indexOf(Number(s["v.width"])) };
    return { cells, scale: 1, at, facts: { n: cells.filter((row) => row[3].holds).length, all: WIDTHS.length } };
  },

  async different(s) {
    const x = range(MANY / PART, 1).map((n) => n * PART);
    const lines = FORMS.map((form) => ({ x, y: different(form) }));
    const [float32, float16, bfloat16] = lines.map(({ y }) => y[s["v.n"] / PART - 1]);
    return { lines, at: s["v.n"], facts: { n: s["v.n"], float32, float16, bfloat16 } };
  },

  async errors(s, ask) {
    const lines = await Promise.all(FORMS.map((form) => errorLine(form, s, ask)));
    const step = chord(1, s.d_model, s.base);
    return {
      lines: [...lines, { x: [1, ODD.at(-1)], y: [step, step] }],
      at: s["v.far"], facts: { last: ODD.at(-1), error: lines[0].y.at(-1) },
    };
  },
};
