// Lab 5: every position has a vector of its own, how near others come, and what few digits make of that.

import { kept } from "../page/kept.js";
import { say } from "../page/words.js";
import { encode } from "./calls.js";
import { FORMS, naive, numberingLines } from "./numberings.js";
import { count, distance, rows, size } from "./vectors.js";

const FAR = 2048; // positions among which doubles are sought
const WIDTHS = [2, 4, 8, 16, 32];

const settle = (s) => ({
  "v.c": Math.min(s["v.c"], s.d_model - 1),
  "v.p": Math.min(s["v.p"], s.positions - 1), "v.q": Math.min(s["v.q"], s.positions - 1),
});

// ---- Calls -------------------------------------------------------------------------------------------------------

const prints = (s) => encode(s, { positions: s.positions });

/** Waves alone, of any width, at some positions. */
const waves = (s, d_model, positions, more) =>
  ({ op: "encode", query: { type: s.type, d_model, base: s.base, positions, ...more } });

const properties = (s) =>
  WIDTHS.map((d) => ({ ...waves(s, d, `0:${FAR}`), op: "properties", format: "json" }));

/** Odd positions from 1 to a million, at equal distances on a logarithmic axis: even ones have fewer digits to lose. */
const LONG = [...new Set(count(37).map((j) => Math.round(10 ** (j / 6)) | 1))];

const DIGITS = [
  { name: "float32", arithmetic: "float32_exp", largest: Infinity },
  { name: "float16", arithmetic: "float16_positions", largest: 65504 },
  { name: "bfloat16", arithmetic: "bfloat16_positions", largest: Infinity },
];

const inReach = ({ largest }) => LONG.filter((p) => p <= largest);

const errorCalls = (s) => [
  waves(s, s.d_model, LONG, { dtype: "float64" }),
  ...DIGITS.map((row) => waves(s, s.d_model, inReach(row), { dtype: "float64", arithmetic: row.arithmetic })),
  waves(s, s.d_model, "0:2", { dtype: "float64" }),
];

const MANY = 4096; // positions whose different vectors are counted
const PART = 64;

/** Two columns are enough: the position is rounded before any wave is made of it. */
const manyCalls = (s) =>
  DIGITS.map(({ arithmetic }) => waves(s, 2, `0:${MANY}`, { arithmetic }));

// ---- What is computed --------------------------------------------------------------------------------------------

/** Of the distances [n, n] of all pairs the two that are nearest: { a, b, least }. */
function nearestPair(values, n) {
  let best = { least: Infinity };
  for (let a = 0; a < n; a++) {
    for (let b = a + 1; b < n; b++) {
      const least = values[a * n + b];
      best = least < best.least * (1 - 1e-6) ? { a, b, least } : best;
    }
  }
  return best;
}

/** The positions that come nearer to position 0 than all before them. */
function records(distances) {
  let least = Infinity;
  return distances.flatMap((far, i) => {
    const nearer = far < least * (1 - 1e-6);
    least = nearer ? far : least;
    return nearer ? [i] : [];
  });
}

/** How many different rows there are among the first PART, 2 PART, .. of them. */
function different(vectors) {
  const seen = new Set();
  return vectors.flatMap((v, i) => {
    seen.add(v.join());
    return (i + 1) % PART === 0 ? [seen.size] : [];
  });
}

/** |a - b| of the vectors of all pairs [n, n]. */
const distances = kept((tensor) => {
  const vectors = rows(tensor);
  return vectors.flatMap((a) => vectors.map((b) => distance(a, b)));
});

/** |v_0 - v_i| of all others. */
const distancesToFirst = kept((tensor) => {
  const [first, ...others] = rows(tensor);
  return others.map((v) => distance(first, v));
});

const differentIn = kept((...replies) => replies.map((tensor) => different(rows(tensor))));

const between = (list) => ({ least: Math.min(...list), most: Math.max(...list) });

/** A row of the table of doubles: how far apart the nearest two are, and whether they are neighbours. */
function doublesRow(d, { unique, step }, words) {
  const [a, b] = unique.indices;
  const verdict = { holds: b - a === 1, text: say(words.step, { step: step.max }), number: step.max };
  return [String(d), b - a, unique.closest, verdict];
}

// ---- The lab -----------------------------------------------------------------------------------------------------

export const lab = {
  name: "fingerprints",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "d_model", kind: "integer", min: 2, max: 32, step: 2, def: 16, symbol: "d" },
    { name: "base", kind: "number", min: 2, max: 1000000, def: 10000, scale: "log", symbol: "base" },
    { name: "layout", kind: "choice", choices: ["interleaved", "halves"], def: "interleaved" },
    { name: "positions", kind: "count", min: 2, max: 128, def: 64 },
    { name: "v.p", kind: "integer", min: 0, max: 127, def: 20, symbol: "p" },
    { name: "v.q", kind: "integer", min: 0, max: 127, def: 26, symbol: "q" },
    { name: "v.c", kind: "integer", min: 0, max: 31, def: 0 },
    { name: "v.width", kind: "choice", choices: WIDTHS.map(String), def: "2" },
    { name: "v.k", kind: "integer", min: 1, max: FAR, def: 710, symbol: "k" },
    { name: "v.n", kind: "integer", min: PART, max: MANY, step: PART, def: MANY },
    { name: "v.far", kind: "integer", min: 1, max: 1000001, def: 10001 },
  ],
  settle,
  figures: {
    prints: {
      kind: "heatmap",
      still: true,
      calls: (s) => [prints(s)],
      data: ([{ shape, data }], s) => ({
        rows: shape[0], columns: shape[1], values: data, domain: 1,
        at: { row: s["v.p"], column: s["v.c"] },
        symbols: { row: "p" },
      }),
      facts: (data, s, [tensor]) => ({
        ...between(Array.from(tensor.data)), size: size(rows(tensor)[s["v.p"]]), p: s["v.p"],
      }),
      probe: ({ row, column }) => ({ "v.p": row, "v.c": column }),
    },
    norms: {
      kind: "chart",
      calls: (s) => [
        ...FORMS.map((form) => naive(s, form, form === "binary" ? Math.min(s.positions, 2 ** s.d_model) : s.positions)),
        prints(s),
      ],
      data: (replies, s, words) => ({
        x: { title: words.axes.x, min: 0, max: s.positions - 1 },
        y: { title: words.axes.y, min: 0.01, max: 1000, log: true },
        lines: numberingLines(words.forms, replies.map((tensor) => rows(tensor).map(size))),
        at: s["v.p"],
      }),
      facts: ({ lines }) => between(lines[3].y),
      probe: (p) => ({ "v.p": p }),
    },
    distances: {
      kind: "heatmap",
      map: (s) => ({ op: "similarity", query: { ...prints(s).query, return: "gram", "png.domain": s.d_model / 2 } }),
      calls: (s) => [prints(s)],
      data: ([tensor], s) => ({
        rows: s.positions, columns: s.positions, domain: Math.sqrt(2 * s.d_model), values: distances(tensor),
        at: { row: s["v.p"], column: s["v.q"] },
        symbols: { row: "p", column: "q" },
      }),
      facts: ({ values }, s) => ({
        ...nearestPair(values, s.positions), p: s["v.p"], q: s["v.q"], at: values[s["v.p"] * s.positions + s["v.q"]],
      }),
      probe: ({ row, column }) => ({ "v.p": row, "v.q": column }),
    },
    hunt: {
      kind: "chart",
      calls: (s) => [waves(s, Number(s["v.width"]), `0:${FAR + 1}`, { dtype: "float64" })],
      data: ([tensor], s, words) => {
        const y = distancesToFirst(tensor);
        const x = count(FAR).map((i) => i + 1);
        const at = records(y);
        return {
          x: { title: words.axes.x, min: 1, max: FAR, log: true },
          y: { title: words.axes.y, min: 1e-5, max: 10, log: true },
          lines: [
            { name: words.distance, x, y },
            { name: words.record, x: at.map((i) => i + 1), y: at.map((i) => y[i]), dots: true, bare: true, mark: 3 },
          ],
          at: s["v.k"], stops: x,
        };
      },
      facts: ({ lines: [all, nearer] }, s) => ({
        k: s["v.k"], at: all.y[s["v.k"] - 1], turns: (s["v.k"] / (2 * Math.PI)).toFixed(5),
        nearest: nearer.x.at(-1), least: nearer.y.at(-1), d: Number(s["v.width"]),
      }),
      probe: (k) => ({ "v.k": k }),
    },
    doubles: {
      kind: "grid",
      calls: properties,
      data: (replies, s, words) => ({
        head: words.head,
        rows: replies.map((reply, i) => doublesRow(WIDTHS[i], reply, words)),
        at: { row: WIDTHS.indexOf(Number(s["v.width"])) }, pick: WIDTHS.length,
      }),
      probe: ({ row }) => ({ "v.width": String(WIDTHS[row]) }),
      facts: ({ rows: all }) => ({ n: all.filter((row) => row[3].holds).length, all: all.length }),
    },
    different: {
      kind: "chart",
      calls: manyCalls,
      data: (replies, s, words) => {
        const x = count(MANY / PART).map((i) => (i + 1) * PART);
        return {
          x: { title: words.axes.x, min: 0, max: MANY, ticks: [0, 1024, 2048, 3072, MANY] },
          y: { title: words.axes.y, min: 0, max: MANY },
          lines: differentIn(...replies).map((y, k) => ({ name: DIGITS[k].name, x, y, dash: k })),
          at: s["v.n"],
        };
      },
      facts: ({ lines }, s) => ({
        n: s["v.n"], ...Object.fromEntries(lines.map(({ name, y }) => [name, y[s["v.n"] / PART - 1]])),
      }),
      probe: (n) => ({ "v.n": n }),
    },
    errors: {
      kind: "chart",
      calls: errorCalls,
      data: ([exact, ...replies], s, words) => {
        const right = rows(exact);
        const step = distance(...rows(replies.pop()));
        const lines = replies.map((tensor, k) => ({
          name: DIGITS[k].name, x: inReach(DIGITS[k]), y: rows(tensor).map((v, i) => distance(v, right[i])),
          dots: true, mark: k, dash: k,
        }));
        return {
          x: { title: words.axes.x, min: 1, max: LONG.at(-1), log: true },
          y: { title: words.axes.y, min: 1e-9, max: 10, log: true },
          lines: [...lines, { name: words.step, x: [1, LONG.at(-1)], y: [step, step], dash: 3 }],
          at: s["v.far"],
        };
      },
      facts: ({ lines: [single] }) => ({ last: single.x.at(-1), error: single.y.at(-1) }),
      probe: (p) => ({ "v.far": p }),
    },
  },
};
