// Lab 6: k places on are one and the same turn everywhere: PE(p + k) = M_k PE(p), and M_k does not know p.

import { kept } from "../page/kept.js";
import { say } from "../page/words.js";
import { count, largest, minus, product, times, vector } from "./vectors.js";

const FAR = 63; // the largest k, and the last p that can be chosen
const FROM = -FAR; // encodings that are asked for begin here: p + k may be below 0
const PLACES = 128; // p that are tried for residuals
const ROUND = 8; // circles at most

// ---- Calls -------------------------------------------------------------------------------------------------------

const encoding = (s) => ({ type: s.type, d_model: s.d_model, order: s.order });
const random = (s) => ({ type: "random", d_model: s.d_model });

/** M_k [d, d] */
const shift = (s) => ({
  op: "shift", query: { ...encoding(s), distance: s.distance, dtype: s.dtype, return: s.return },
});

/** The vectors of all places that p and p + k can be: [PLACES + 2 FAR, d] */
const encode = (of, s) => ({
  op: "encode", query: { ...of, positions: `${FROM}:${PLACES + FAR}`, dtype: s.dtype },
});

/** The best matrix for random vectors: the sum of all squared misses is least (least squares). */
const fitted = (s) => ({
  op: "shift",
  query: { ...random(s), distance: s.distance, positions: `0:${PLACES}`, dtype: s.dtype, return: "matrix" },
});

/** What the service itself finds to be the largest difference. */
const measured = (s) => ({
  op: "shift", format: "json",
  query: { ...encoding(s), distance: s.distance, positions: `0:${PLACES}`, dtype: s.dtype, return: s.return },
});

// ---- Hands -------------------------------------------------------------------------------------------------------

/** The pair of numbers of pair i at place p: a point on the unit circle. */
const pairAt = ({ data }, s, p, i) => {
  const at = (p - FROM) * s.d_model + 2 * i;
  return [data[at], data[at + 1]];
};

/** The block of pair i in M_k: [[m00, m01], [m10, m11]] */
const blockOf = ({ data }, s, i) => {
  const at = 2 * i * s.d_model + 2 * i;
  return [[data[at], data[at + 1]], [data[at + s.d_model], data[at + s.d_model + 1]]];
};

/** All pairs, or so many of them, from the first to the last. */
function pairsShown(s) {
  const pairs = s.d_model / 2;
  const n = Math.min(pairs, ROUND);
  return count(n).map((i) => (n === 1 ? 0 : Math.round((i * (pairs - 1)) / (n - 1))));
}

const clockwise = (s) => s.order === "sin_cos";
const turnOf = (s) => (clockwise(s) === s.distance >= 0 ? -1 : 1);

const point = (name, kind, [x, y], more) => ({ name, kind, x, y, ...more });

const end = ([toX, toY]) => ({ toX, toY });

/** The end of a hand at angle 0: its sine is 0, its cosine 1. */
const start = (s) => (clockwise(s) ? { x: 0, y: 1 } : { x: 1, y: 0 });

/** A hand at p and one at p + k; the ring is where M_k takes the first. */
function handsOf([vectors, matrix], s, i, words) {
  const from = pairAt(vectors, s, s["v.p"], i);
  const to = pairAt(vectors, s, s["v.p"] + s.distance, i);
  const ring = blockOf(matrix, s, i).map(([a, b]) => a * from[0] + b * from[1]);
  return {
    title: `${words.pair} ${i}`,
    arcs: [{ x: from[0], y: from[1], ...end(to), turn: turnOf(s) }],
    hands: [
      point(words.from, "from", from, { symbol: "p", drag: "p" }),
      point(words.ring, "ring", ring),
      point(words.to, "to", to, { symbol: "k", drag: "k" }),
    ],
  };
}

/** Radians from one place to the next: those of the formula. */
const speed = (s, i) => 10000 ** ((-2 * i) / s.d_model);

/** A hand that was turned moves p, or p + k; so do keys. */
function turned({ circle, hand, turn, from, right, up }, s) {
  if (hand === undefined) {
    return { "v.p": s["v.p"] + right, distance: s.distance + up };
  }
  const steps = Math.round(((clockwise(s) ? -1 : 1) * turn) / speed(s, pairsShown(s)[circle]));
  return hand === "p" ? { "v.p": from["v.p"] + steps } : { distance: from.distance + steps };
}

// ---- The proof, in four pictures ---------------------------------------------------------------------------------

/** Two legs that lead from the middle to the hand at p + k: cos b of the hand at p, then sin b of that hand turned. */
function legs(from, [[a, b], [c, d]], words, named) {
  const along = [a * from[0], d * from[1]];
  const across = [b * from[1], c * from[0]];
  const to = [along[0] + across[0], along[1] + across[1]];
  return [
    point(words.along, "along", along, { fromX: 0, fromY: 0, label: named && words.labels.cosB }),
    point(words.across, "across", to, { fromX: along[0], fromY: along[1], label: named && words.labels.sinB }),
  ];
}

/** The first number goes to the right, the second up. */
function coordinates([x, y], s, words) {
  const right = { fromX: 0, fromY: 0, x, y: 0 };
  const up = { fromX: x, fromY: 0, x, y };
  const [sine, cosine] = clockwise(s) ? [right, up] : [up, right];
  return [
    { name: words.sine, kind: "sine", label: words.labels.sinA, side: -1, ...sine },
    { name: words.cosine, kind: "cosine", label: words.labels.cosA, side: -1, ...cosine },
  ];
}

const OTHERS = [7, 14]; // places further on, for the last picture

function proofCircles([vectors, matrix], s, words) {
  const i = s["v.i"];
  const block = blockOf(matrix, s, i);
  const at = (p) => pairAt(vectors, s, p, i);
  const from = at(s["v.p"]);
  const to = at(s["v.p"] + s.distance);
  const first = point(words.from, "from", from, { symbol: "p" });
  const second = point(words.to, "to", to, { symbol: "k" });
  const arcs = [
    [{ ...start(s), ...end(from), turn: clockwise(s) ? -1 : 1, label: words.labels.a }],
    [{ x: from[0], y: from[1], ...end(to), turn: turnOf(s), label: words.labels.b }],
  ];
  const others = [s["v.p"], ...OTHERS.map((more) => (s["v.p"] + more) % (FAR + 1))];
  const hands = [
    [...coordinates(from, s, words), first],
    [first, second],
    [point(words.from, "ghost", from), ...legs(from, block, words, true), second],
    others.flatMap((p) => [...legs(at(p), block, words), point(words.to, "to", at(p + s.distance))]),
  ];
  return hands.map((all, k) => ({
    title: words.steps[k], line: words.lines[s.order][k], hands: all, arcs: arcs[k],
  }));
}

// ---- Residuals ---------------------------------------------------------------------------------------------------

/** For each p the largest of |M PE(p) - PE(p + k)|. */
function misses(m, vectors, d, k) {
  const turn = count(d).map((r) => vector(m, r, d));
  const [from, to] = [0, k].map((more) => count(PLACES).map((p) => vector(vectors, p + more - FROM, d)));
  return from.map((x, p) => largest(minus(product(turn, x), to[p])));
}

/** Those of the waves, and those of random vectors. */
const allMisses = kept((turn, waves, best, noise, d, k) => [misses(turn, waves, d, k), misses(best, noise, d, k)]);

// ---- Products ----------------------------------------------------------------------------------------------------

const WIDTHS = [16, 64, 128, 512];

const products = (s) =>
  WIDTHS.map((width) => ({
    op: "similarity",
    query: { type: s.type, d_model: width, positions: `0:${FAR + 1}`, dtype: s.dtype, return: "by_offset" },
  }));

/** The first k whose product is larger than that of k - 1; y [2 FAR + 1] is of k = -FAR ... FAR. */
const firstRise = (y) => count(FAR).map((k) => k + 1).find((k) => y[FAR + k] > y[FAR + k - 1]);

// ---- The lab -----------------------------------------------------------------------------------------------------

/** A pair that was chosen is where the matrix is looked at, and the other way round. */
function settle(s, changes) {
  const last = s.d_model / 2 - 1;
  const pair = Math.min(last, "v.column" in changes ? Math.floor(s["v.column"] / 2) : s["v.i"]);
  const cell = "v.i" in changes ? { row: 2 * pair, column: 2 * pair } : { row: s["v.row"], column: s["v.column"] };
  return {
    "v.i": pair,
    "v.row": Math.min(cell.row, s.d_model - 1),
    "v.column": Math.min(cell.column, s.d_model - 1),
  };
}

/** How many entries outside the blocks are exactly 0. */
const zerosBeside = (data, d) =>
  data.reduce((n, v, at) => n + (v === 0 && Math.floor(at / d / 2) !== Math.floor((at % d) / 2)), 0);

/** What column j holds: a sine or a cosine, and of which pair. */
const columnName = (j, s, words) =>
  `${(j % 2 === 0) === clockwise(s) ? words.sine : words.cosine} ${Math.floor(j / 2)}`;

export const lab = {
  name: "rotation",
  about: "matrix",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "d_model", kind: "integer", min: 4, max: 64, step: 2, def: 16, symbol: "d" },
    { name: "order", kind: "choice", choices: ["sin_cos", "cos_sin"], def: "sin_cos" },
    { name: "distance", kind: "integer", min: -FAR, max: FAR, def: 3, symbol: "k" },
    { name: "dtype", kind: "choice", choices: ["float64"], def: "float64" },
    { name: "return", kind: "choice", choices: ["matrix"], def: "matrix" },
    { name: "v.p", kind: "integer", min: 0, max: FAR, def: 4, symbol: "p", play: true },
    { name: "v.i", kind: "integer", min: 0, max: 31, def: 1, symbol: "i" },
    { name: "v.row", kind: "integer", min: 0, max: 63, def: 2 },
    { name: "v.column", kind: "integer", min: 0, max: 63, def: 2 },
  ],
  settle,
  figures: {
    hands: {
      kind: "circles",
      map: (s) => ({ op: "encode", query: { ...encoding(s), positions: "0:32" } }),
      calls: (s) => [encode(encoding(s), s), shift(s)],
      data: (replies, s, words) => ({
        circles: pairsShown(s).map((i) => handsOf(replies, s, i, words)),
        x: { title: words.axes.x[s.order] }, y: { title: words.axes.y[s.order] },
        at: { p: s["v.p"], k: s.distance },
        note: say(words.note, { p: s["v.p"], k: s.distance }),
      }),
      facts: ({ circles }, s) => ({
        p: s["v.p"], to: s["v.p"] + s.distance,
        miss: Math.max(...circles.map(({ hands: [, ring, to] }) => Math.hypot(ring.x - to.x, ring.y - to.y))),
      }),
      probe: turned,
    },
    proof: {
      kind: "circles",
      calls: (s) => [encode(encoding(s), s), shift(s)],
      data: (replies, s, words) => ({
        circles: proofCircles(replies, s, words), size: 250,
        x: { title: words.axes.x[s.order] }, y: { title: words.axes.y[s.order] },
      }),
      facts: (data, s, [, matrix]) => {
        const [[cosine], [sine]] = blockOf(matrix, s, s["v.i"]);
        return { i: s["v.i"], p: s["v.p"], k: s.distance, cosine, sine: clockwise(s) ? -sine : sine };
      },
    },
    matrix: {
      kind: "heatmap",
      still: true,
      calls: (s) => [shift(s)],
      data: ([{ data }], s, words) => {
        const names = count(s.d_model).map((j) => columnName(j, s, words));
        return {
          rows: s.d_model, columns: s.d_model, values: data, domain: 1,
          at: { row: s["v.row"], column: s["v.column"] },
          rowName: (i) => names[i], columnName: (j) => names[j],
          labels: s.d_model <= 16 ? { row: names, column: names } : undefined,
          symbols: { column: "i" },
        };
      },
      facts: (data, s, [matrix]) => {
        const [[a, b], [c, d]] = blockOf(matrix, s, s["v.i"]);
        return { i: s["v.i"], a, b, c, d, zeros: zerosBeside(matrix.data, s.d_model) };
      },
      probe: ({ row, column }) => ({ "v.row": row, "v.column": column }),
    },
    residual: {
      kind: "chart",
      calls: (s) => [encode(encoding(s), s), shift(s), encode(random(s), s), fitted(s), measured(s)],
      data: ([waves, turn, noise, best], s, words) => {
        const [ofWaves, ofNoise] = allMisses(turn, waves, best, noise, s.d_model, s.distance);
        return {
          x: { title: words.axes.x, min: 0, max: PLACES - 1, ticks: [0, 25, 50, 75, 100, 125] },
          y: { title: words.axes.y, min: 1e-18, max: 100, log: true },
          lines: [
            { name: words.waves, x: count(PLACES), y: ofWaves, dots: true, bare: true, mark: 1 },
            { name: words.random, x: count(PLACES), y: ofNoise, dots: true, bare: true, mark: 2 },
          ],
          at: s["v.p"],
        };
      },
      facts: ({ lines: [waves, noise] }, s, replies) => ({
        waves: Math.max(...waves.y), least: Math.min(...noise.y), most: Math.max(...noise.y),
        said: replies[4].residual,
      }),
      probe: (p) => ({ "v.p": p }),
    },
    products: {
      kind: "chart",
      calls: products,
      map: (s) => ({ ...products(s)[0], query: { ...products(s)[0].query, "png.domain": WIDTHS[0] / 2 } }),
      data: (replies, s, words) => ({
        x: { title: words.axes.x, min: -FAR, max: FAR, ticks: [-60, -40, -20, 0, 20, 40, 60] },
        y: { title: words.axes.y, min: 0, max: 1 },
        lines: replies.map(({ data }, i) => ({
          name: `${words.width} ${WIDTHS[i]}`, x: count(2 * FAR + 1).map((k) => k - FAR),
          y: times(Array.from(data), 2 / WIDTHS[i]), dots: i === 0, dash: i,
        })),
        at: s.distance,
      }),
      facts: ({ lines }) => Object.fromEntries(lines.map(({ y }, i) => [`rise${WIDTHS[i]}`, firstRise(y)])),
      probe: (k) => ({ distance: k }),
    },
  },
};
