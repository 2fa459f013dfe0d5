// Lab 2: three first ideas of how to number positions, what is good in each, and where it fails.

import { kept } from "../page/kept.js";
import { say, shown } from "../page/words.js";
import { FORMS, naive, numberingLines } from "./numberings.js";
import { count, distance, rows, size, vector } from "./vectors.js";

const LONGER = 4; // times the length, for what lies beyond it

/** How many binary digits the positions 0..n-1 take. */
const digits = (n) => Math.ceil(Math.log2(n));

/** All forms are drawn beside each other, so there are digits enough for the positions, and the probes lie within. */
function settle(s) {
  const d_model = Math.max(s.d_model, digits(s.positions));
  const last = s.positions - 1;
  return {
    d_model,
    "v.p": Math.min(s["v.p"], last), "v.q": Math.min(s["v.q"], last), "v.c": Math.min(s["v.c"], d_model - 1),
  };
}

// ---- Calls -------------------------------------------------------------------------------------------------------

const encode = (query) => ({ op: "encode", query });

const waves = (s, n = s.positions) => encode({ type: "sinusoidal", d_model: s.d_model, positions: `0:${n}` });

/** The three forms and waves, in the order of all drawings. */
const all = (s) => [...FORMS.map((form) => naive(s, form)), waves(s)];

/** The word's vector, and all vectors up to LONGER times the length; binary digits end earlier. */
function longCalls(s) {
  const n = LONGER * s.positions;
  return [
    { op: "block", query: { type: "none", tokens: "dog", width: s.d_model, weights_seed: 30, return: "residual" } },
    naive(s, "integer", n), naive(s, "normalized", n, { seq_len: s.positions }),
    naive(s, "binary", Math.min(n, 2 ** s.d_model)), waves(s, n),
  ];
}

const properties = (s) => all(s).map(({ query }) => ({ op: "properties", query, format: "json" }));

/**
 * Waves as fast as binary digits: pair i turns by pi/2^i a position, so that its sine comes back after 2^(i+1), as
 * digit i does. Half a position further on, whole positions lie in the middle of their digit.
 */
const soft = (s) =>
  encode({
    type: "sinusoidal", d_model: 2 * s.d_model, base: 2 ** s.d_model, layout: "halves",
    position_scale: Math.PI, offset: Math.PI / 2, positions: `0:${s.positions}`,
  });

/** Of those the sines, from 0 to 1. */
const softDigits = kept((reply, d) => rows(reply).flatMap((row) => row.slice(0, d).map((sine) => 0.5 - sine / 2)));

/** Products of all pairs of waves, at most d/2: |a - b|^2 = d - 2 a.b. */
const alike = (s) => ({
  op: "similarity",
  query: { ...waves(s).query, return: "gram", "png.domain": s.d_model / 2 },
});

// ---- Drawings ----------------------------------------------------------------------------------------------------

const WRITTEN = 16; // rows at most whose numbers are written out

/** A matrix [n, d] in which all numbers of small ones are written out. */
const matrix = (values, s, columnName = String, domain = 1) => ({
  rows: s.positions, columns: s.d_model, values, domain, columnName,
  at: { row: s["v.p"], column: s["v.c"] },
  symbols: { row: "p", column: "c" },
  labels: s.positions <= WRITTEN && { row: count(s.positions).map(String), column: count(s.d_model).map(columnName) },
});

/** The same with a column for each binary digit, by what it is worth. */
const digitMatrix = (values, s) => matrix(values, s, (c) => String(2 ** c));

/** Which digit is chosen, after how many positions it comes back, and its value. */
const digitFacts = ({ values }, s) =>
  ({ c: 2 ** s["v.c"], length: 2 ** (s["v.c"] + 1), p: s["v.p"], value: values[s["v.p"] * s.d_model + s["v.c"]] });

const choose = ({ row, column }) => ({ "v.p": row, "v.c": column });

const stepsOf = (vectors) => vectors.slice(1).map((v, p) => distance(vectors[p], v));

/** Distances of all pairs of positions. */
const distancesOf = (vectors) => vectors.flatMap((a) => vectors.map((b) => distance(a, b)));

/** How far pairs are that lie as many positions apart as the chosen ones: the smallest and the largest distance. */
function band({ values, rows: n }, s) {
  const k = Math.abs(s["v.p"] - s["v.q"]);
  const pairs = count(n - k).map((p) => values[p * n + p + k]);
  return { k, at: values[s["v.p"] * n + s["v.q"]], least: Math.min(...pairs), most: Math.max(...pairs) };
}

/** Distances of all pairs by colour; binary digits and waves on one scale, the largest distance that waves can have. */
function apart(call) {
  const distances = kept((reply) => distancesOf(rows(reply)));
  return {
    kind: "heatmap",
    calls: (s) => [call(s)],
    data: ([reply], s) => ({
      rows: s.positions, columns: s.positions, values: distances(reply), domain: Math.sqrt(2 * s.d_model),
      at: { row: s["v.p"], column: s["v.q"] },
      symbols: { row: "p", column: "q" },
    }),
    facts: band,
    probe: ({ row, column }) => ({ "v.p": row, "v.q": column }),
  };
}

// ---- The scorecard -----------------------------------------------------------------------------------------------

const EVEN = 1 + 1e-6; // a largest step this many times the smallest is the same one, rounded

const CRITERIA = {
  unique: ({ unique }) => ({ holds: unique.holds, number: unique.closest }),
  bounded: ({ bounded }) => ({ holds: bounded.holds, number: bounded.largest, far: bounded.largest_far }),
  same: ({ same_lengths: same }) => ({ holds: same.holds, number: same.change }),
  beyond: ({ beyond }) => ({ holds: beyond.holds, number: Number(beyond.holds) }),
  even: ({ step }) => ({ holds: step.max <= step.min * EVEN, number: step.max, least: step.min }),
};

/** A verdict with what was measured. */
function verdict(name, reply, words) {
  const found = CRITERIA[name](reply);
  return { ...found, text: say((found.holds ? words.holds : words.fails)[name], found) };
}

// ---- The lab -----------------------------------------------------------------------------------------------------

const LARGEST = { integer: (s) => s.positions - 1, normalized: () => 1 };

export const lab = {
  name: "naive",
  cover: "digits",
  fields: [
    { name: "type", kind: "choice", choices: ["naive"], def: "naive" },
    { name: "form", kind: "choice", choices: FORMS, def: "integer" },
    { name: "d_model", kind: "integer", min: 2, max: 12, def: 4, symbol: "d" },
    { name: "positions", kind: "count", min: 4, max: 32, def: 16, symbol: "n" },
    { name: "v.p", kind: "integer", min: 0, max: 31, def: 3, symbol: "p" },
    { name: "v.q", kind: "integer", min: 0, max: 31, def: 4, symbol: "q" },
    { name: "v.c", kind: "integer", min: 0, max: 11, def: 2, symbol: "c" },
    { name: "v.short", kind: "integer", min: 2, max: 40, def: 10 },
    { name: "v.long", kind: "integer", min: 2, max: 40, def: 20 },
  ],
  settle,
  figures: {
    numbers: {
      kind: "heatmap",
      still: { "png.domain": 15 },
      calls: (s) => [naive(s, s.form)],
      data: ([{ data }], s, words) =>
        s.form === "binary"
          ? { ...digitMatrix(data, s), column: words.digit }
          : matrix(data, s, String, LARGEST[s.form](s)),
      facts: (data, s, [tensor]) => ({ p: s["v.p"], row: vector(tensor, s["v.p"], s.d_model).map(shown).join(", ") }),
      probe: choose,
    },
    share: {
      kind: "chart",
      calls: longCalls,
      data: ([word, ...tensors], s, words) => {
        const own = size(vector(word, 0, s.d_model));
        const shares = tensors.map((tensor) => rows(tensor).map((place) => (100 * own) / (own + size(place))));
        return {
          x: { title: say(words.axes.x, { last: s.positions - 1 }), min: 0, max: LONGER * s.positions - 1 },
          y: { title: words.axes.y, min: 0, max: 100 },
          lines: numberingLines(words.forms, shares),
          at: s["v.p"], own,
        };
      },
      facts: ({ lines: all, own }, s) => ({
        own, p: s["v.p"], integer: all[0].y[s["v.p"]], waves: all[3].y[s["v.p"]],
        last: all[0].x.at(-1), least: all[0].y.at(-1),
      }),
      probe: (p) => ({ "v.p": p }),
    },
    lengths: {
      kind: "chart",
      calls: (s) => [s["v.short"], s["v.long"]].map((n) => naive({ ...s, d_model: 1 }, "normalized", n)),
      data: (replies, s, words) => {
        const most = Math.max(s["v.short"], s["v.long"]);
        return {
          x: { title: words.axes.x, min: 0, max: most - 1 },
          y: { title: words.axes.y, min: 0, max: 1 },
          lines: replies.map(({ data }, k) => ({
            name: say(words.text_of, { n: data.length }),
            x: count(data.length), y: Array.from(data), dots: true, mark: k, dash: 2 * k,
          })),
          at: Math.min(s["v.p"], most - 1),
        };
      },
      facts: ({ lines: [a, b] }) => ({ short: a.x.length, long: b.x.length, step: a.y[1], other: b.y[1] }),
      probe: (p) => ({ "v.p": p }),
    },
    steps: {
      kind: "chart",
      calls: all,
      data: (replies, s, words) => {
        const steps = replies.map((tensor) => stepsOf(rows(tensor)));
        return {
          x: { title: words.axes.x, min: 0, max: s.positions - 2 },
          y: { title: words.axes.y, min: 0, max: Math.ceil(Math.max(...steps.flat())) },
          lines: numberingLines(words.forms, steps).map((line) => ({ ...line, dots: true })),
          at: Math.min(s["v.p"], s.positions - 2),
          xName: (p) => `${p} \u2192 ${p + 1}`,
        };
      },
      facts: ({ lines: all, at }) => ({ p: at, next: at + 1, n: Math.round(all[2].y[at] ** 2), step: all[2].y[at] }),
      probe: (p) => ({ "v.p": p }),
    },
    apart: apart((s) => naive(s, "binary")),
    apart_waves: { ...apart((s) => waves(s)), map: alike },
    scorecard: {
      kind: "grid",
      calls: properties,
      data: (replies, s, words) => ({
        head: [words.criterion, ...words.forms],
        rows: Object.keys(CRITERIA).map((name) =>
          [words.criteria[name], ...replies.map((reply) => verdict(name, reply, words))]),
      }),
      facts: ({ rows: all }) => Object.fromEntries(
        [...FORMS, "waves"].map((name, k) => [name, all.filter((row) => row[k + 1].holds).length]),
      ),
    },
    digits: {
      kind: "heatmap",
      still: true,
      calls: (s) => [naive(s, "binary")],
      data: ([{ data }], s) => digitMatrix(data, s),
      facts: digitFacts,
      probe: choose,
    },
    soft: {
      kind: "heatmap",
      map: soft,
      calls: (s) => [soft(s)],
      data: ([tensor], s) => digitMatrix(softDigits(tensor, s.d_model), s),
      facts: digitFacts,
      probe: choose,
    },
  },
};
