// Lab 3: sine and cosine waves of many lengths, side by side, number the positions.
//
// What is chosen is a position v.p and one wave, by pair and phase: v.i and v.phase. Columns follow from these and from
// the layout, so that all figures mean the same wave whatever the order of columns.

import { say } from "../page/words.js";
import { encode, pairColumns } from "./calls.js";
import { count, distance, largest, vector } from "./vectors.js";

const column = ({ shape, data }, j) => count(shape[0]).map((p) => data[p * shape[1] + j]);

// ---- Calls -------------------------------------------------------------------------------------------------------

const matrixCall = (s) => encode(s, { positions: s.positions });

/** The lengths of waves do not depend on positions: two are enough to ask. */
const lengthsCall = (s) => ({
  op: "properties",
  query: { type: s.type, d_model: s.d_model, base: s.base, layout: s.layout, positions: "0:2" },
  format: "json",
});

/** How many points a position has where the wave between positions is drawn: fewer where there are many positions. */
const fineness = (s) => (s.positions <= 128 ? 4 : s.positions <= 256 ? 2 : 1);

const fineCall = (s) => {
  const step = 1 / fineness(s);
  return encode(s, { positions: step === 1 ? s.positions : `0:${s.positions - 1 + step}:${step}` });
};

const LAYOUTS = ["interleaved", "halves"];
const seen = (s) => Math.min(64, s.positions); // positions whose products are drawn

/** Dot products of the vectors of all pairs of positions, in either layout. */
const productCalls = (s, first) =>
  [first, ...LAYOUTS.filter((layout) => layout !== first)].map((layout) => ({
    op: "similarity",
    query: {
      type: s.type, d_model: s.d_model, base: s.base, layout, positions: `0:${seen(s)}`,
      dtype: "float64", return: "gram",
    },
  }));

const BITS = 5;
const COUNTED = 2 ** BITS;
const binaryCall = () => ({
  op: "encode", query: { type: "naive", form: "binary", d_model: BITS, positions: `0:${COUNTED}` },
});

/** As many pairs as the counter has digits, each half as fast as the one before: base^(2/d) = 2. */
const smoothCall = () => ({
  op: "encode", query: { type: "sinusoidal", d_model: 2 * BITS, base: COUNTED, positions: `0:${COUNTED}` },
});

const LAST = 264; // two of the slow waves that every sixth position pretends
const pairZero = (step) => ({
  op: "encode", query: { type: "sinusoidal", d_model: 2, positions: `0:${LAST + step}:${step}` },
});

// ---- Position, pair and phase ------------------------------------------------------------------------------------

const columnOf = (s, layout = s.layout) => pairColumns({ ...s, layout }, s["v.i"])[s["v.phase"] === "sin" ? 0 : 1];

const waveAt = (j, { d_model, layout }) =>
  layout === "halves"
    ? { "v.i": j % (d_model / 2), "v.phase": j < d_model / 2 ? "sin" : "cos" }
    : { "v.i": Math.floor(j / 2), "v.phase": j % 2 ? "cos" : "sin" };

const columnName = (j, s, words) => {
  const wave = waveAt(j, s);
  return `${j} (${words.phases[wave["v.phase"]]}, ${words.pair} ${wave["v.i"]})`;
};

function settle(s) {
  const d = s.d_model - (s.d_model % 2);
  return {
    d_model: d,
    "v.i": Math.min(s["v.i"], d / 2 - 1),
    "v.p": Math.min(s["v.p"], s.positions - 1),
    "v.q": Math.min(s["v.q"], seen(s) - 1),
  };
}

// ---- Drawings ----------------------------------------------------------------------------------------------------

/** The vectors [positions, d] of a layout. */
const matrix = ({ shape, data }, s, words) => ({
  rows: shape[0], columns: shape[1], values: data, domain: 1,
  columnName: (j) => columnName(j, s, words),
  at: { row: s["v.p"], column: columnOf(s) },
  symbols: { row: "p", column: "i" },
});

/** The same encoding in a layout of its own, whichever the page has. */
const inLayout = (layout) => ({
  kind: "heatmap",
  still: true,
  calls: (s) => [matrixCall({ ...s, layout })],
  data: ([reply], s, words) => matrix(reply, { ...s, layout }, words),
  facts: (data, s) => ({ column: columnOf(s, layout) }),
  probe: ({ row, column: j }, s) => ({ "v.p": row, ...waveAt(j, { ...s, layout }) }),
});

const productsOf = (layout) => ({
  kind: "heatmap",
  still: true,
  calls: (s) => productCalls(s, layout),
  data: ([{ shape, data }, other], s) => ({
    rows: shape[0], columns: shape[1], values: data, domain: s.d_model / 2,
    at: { row: Math.min(s["v.p"], shape[0] - 1), column: s["v.q"] }, symbols: { row: "p", column: "q" },
    most: largest(Array.from(data, (v, k) => v - other.data[k])),
  }),
  facts: ({ at, values, columns, most }) => ({
    p: at.row, q: at.column, value: values[at.row * columns + at.column], most,
  }),
  probe: ({ row, column: q }) => ({ "v.p": row, "v.q": q }),
});

/** At most eight pairs from first to last, the chosen one among them. */
function dialPairs(s) {
  const last = s.d_model / 2 - 1;
  const even = count(7).map((k) => Math.round((k * last) / 6));
  return [...new Set([...even, s["v.i"]])].sort((a, b) => a - b);
}

function dial(t, s, i, words) {
  const [sine, cosine] = pairColumns(s, i);
  const hand = (p, kind) => ({
    name: `${words.at} ${p}`, x: t.data[p * s.d_model + cosine], y: t.data[p * s.d_model + sine],
    kind, symbol: kind === "to" ? "p" : "",
  });
  const p = s["v.p"];
  return { title: `${words.pair} ${i}`, hands: [...(p > 0 ? [hand(p - 1, "ghost")] : []), hand(p, "to")] };
}

/** The formula's numbers from the inside out; the last two are as the service sent them. */
function stepRows(t, s, words) {
  const { "v.p": p, "v.i": i, d_model: d, base } = s;
  const exponent = (2 * i) / d;
  const divisor = base ** exponent;
  const angle = p / divisor;
  const [sine, cosine] = pairColumns(s, i);
  const row = (name, value, values, symbol) =>
    [say(words.steps[name], values), { value: say(words.how[name], values) }, { value, symbol }];
  return [
    row("exponent", exponent, { i: String(i), d }, "i"),
    row("divisor", divisor, { base, exponent }, "base"),
    row("angle", angle, { p, divisor }, "p"),
    row("turns", angle / (2 * Math.PI), { angle }),
    row("sine", Math.sin(angle), { angle }),
    row("cosine", Math.cos(angle), { angle }),
    row("sentSine", t.data[p * d + sine], { p, column: sine }),
    row("sentCosine", t.data[p * d + cosine], { p, column: cosine }),
  ];
}

const SMOOTH = { d_model: 2 * BITS, layout: "interleaved" };

/** A table of COUNTED positions with the chosen one, or the last where that is beyond it. */
const counter = ({ shape, data }, s, column, columnName) => ({
  rows: shape[0], columns: shape[1], values: data, domain: 1, columnName,
  at: { row: Math.min(s["v.p"], COUNTED - 1), column }, symbols: { row: "p", column: "i" },
});

/** The digit, or the pair of smooth wheels, that is as the chosen pair. */
const wheel = (s) => Math.min(s["v.i"], BITS - 1);

const jumps = (t) => count(COUNTED - 1).map((p) => distance(vector(t, p, t.shape[1]), vector(t, p + 1, t.shape[1])));

// ---- The lab -----------------------------------------------------------------------------------------------------

export const lab = {
  name: "waves",
  about: "matrix",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "d_model", kind: "integer", min: 2, max: 512, step: 2, def: 64, symbol: "d" },
    { name: "base", kind: "number", min: 2, max: 1000000, def: 10000, scale: "log", symbol: "base" },
    { name: "layout", kind: "choice", choices: LAYOUTS, def: "interleaved" },
    { name: "positions", kind: "count", min: 2, max: 512, def: 64 },
    { name: "v.p", kind: "integer", min: 0, max: 511, def: 10, symbol: "p", most: (s) => s.positions - 1, play: true },
    { name: "v.i", kind: "integer", min: 0, max: 255, def: 2, symbol: "i", most: (s) => s.d_model / 2 - 1 },
    { name: "v.phase", kind: "choice", choices: ["sin", "cos"], def: "sin" },
    { name: "v.q", kind: "integer", min: 0, max: 63, def: 14, symbol: "q", most: (s) => seen(s) - 1 },
    { name: "v.every", kind: "integer", min: 1, max: 12, def: 6 },
  ],
  settle,
  figures: {
    dials: {
      kind: "circles",
      calls: (s) => [matrixCall(s)],
      map: (s) => encode(s, { positions: `${s["v.p"]}:${s["v.p"] + 1}` }),
      data: ([t], s, words) => ({
        circles: dialPairs(s).map((i) => dial(t, s, i, words)),
        x: { title: words.axes.x }, y: { title: words.axes.y },
      }),
      facts: (data, s) => ({ p: s["v.p"] }),
    },
    steps: {
      kind: "grid",
      calls: (s) => [matrixCall(s)],
      data: ([t], s, words) => ({ head: words.head, rows: stepRows(t, s, words) }),
      facts: ({ rows }, s) => ({
        p: s["v.p"], i: s["v.i"], angle: rows[2][2].value, sine: rows[6][2].value, cosine: rows[7][2].value,
      }),
    },
    matrix: {
      kind: "heatmap",
      still: true,
      calls: (s) => [matrixCall(s)],
      data: ([reply], s, words) => matrix(reply, s, words),
      probe: ({ row, column: j }, s) => ({ "v.p": row, ...waveAt(j, s) }),
    },
    curves: {
      kind: "chart",
      calls: (s) => [fineCall(s), lengthsCall(s)],
      data: ([t, { wavelengths }], s, words) => {
        const each = fineness(s);
        const x = count(t.shape[0]).map((k) => k / each);
        const dots = s.positions <= 128;
        const line = (j, name, dash, mark) => ({ name, x, y: column(t, j), each, dots, dash, mark });
        const [sine, cosine] = pairColumns(s, s["v.i"]);
        return {
          x: { title: words.axes.x, min: 0, max: s.positions - 1 },
          y: { title: words.axes.y, min: -1, max: 1 },
          lines: [line(sine, words.sine, 0, 0), line(cosine, words.cosine, 2, 1)],
          at: s["v.p"], each, length: wavelengths[s["v.i"]],
        };
      },
      facts: ({ each, length }, s) => ({ i: s["v.i"], length, each }),
      probe: (p) => ({ "v.p": p }),
    },
    lengths: {
      kind: "chart",
      calls: (s) => [lengthsCall(s)],
      data: ([{ wavelengths }], s, words) => {
        const max = Math.max(1e5, 10 ** Math.ceil(Math.log10(wavelengths.at(-1)) - 1e-9));
        return {
          x: { title: words.axes.x, min: 0, max: Math.max(1, s.d_model / 2 - 1) },
          y: { title: words.axes.y, min: 1, max, log: true, marks: words.rulers },
          lines: [{ name: words.line, x: count(s.d_model / 2), y: wavelengths, dots: s.d_model <= 128 }],
          at: s["v.i"],
        };
      },
      facts: ({ lines: [{ y }] }, s) => ({
        first: y[0], last: y.at(-1), limit: 2 * Math.PI * s.base, i: s["v.i"], length: y[s["v.i"]],
      }),
      probe: (i) => ({ "v.i": i }),
    },
    binary: {
      kind: "heatmap",
      still: true,
      calls: () => [binaryCall()],
      data: ([t], s) => counter(t, s, wheel(s), (j) => String(2 ** j)),
      facts: ({ at, values }) => ({
        p: at.row, digits: count(BITS).map((j) => values[at.row * BITS + j]).reverse().join(""),
      }),
      probe: ({ row, column: digit }) => ({ "v.p": row, "v.i": digit }),
    },
    smooth: {
      kind: "heatmap",
      still: true,
      calls: () => [smoothCall()],
      data: ([t], s, words) =>
        counter(t, s, columnOf({ ...s, ...SMOOTH, "v.i": wheel(s) }), (j) => columnName(j, SMOOTH, words)),
      probe: ({ row, column: j }) => ({ "v.p": row, ...waveAt(j, SMOOTH) }),
    },
    jumps: {
      kind: "chart",
      calls: () => [binaryCall(), smoothCall()],
      data: ([binary, smooth], s, words) => ({
        x: { title: words.axes.x, min: 0, max: COUNTED - 2 },
        y: { title: words.axes.y, min: 0, max: 2.5 },
        lines: [
          { name: words.binary, x: count(COUNTED - 1), y: jumps(binary), dots: true, dash: 1, mark: 1 },
          { name: words.smooth, x: count(COUNTED - 1), y: jumps(smooth), dots: true, mark: 0 },
        ],
        at: Math.min(s["v.p"], COUNTED - 2),
      }),
      facts: ({ lines: [binary, smooth], at }) => ({
        p: at, next: at + 1, changed: Math.round(binary.y[at] ** 2), binary: binary.y[at], smooth: smooth.y[at],
      }),
      probe: (p) => ({ "v.p": p }),
    },
    interleaved: inLayout("interleaved"),
    halves: inLayout("halves"),
    products_interleaved: productsOf("interleaved"),
    products_halves: productsOf("halves"),
    alias: {
      kind: "chart",
      calls: (s) => [pairZero(0.25), pairZero(s["v.every"])],
      data: ([fine, few], s, words) => {
        const step = s["v.every"];
        const y = column(few, 0).filter((_, k) => k * step <= LAST);
        return {
          x: { title: words.axes.x, min: 0, max: LAST },
          y: { title: words.axes.y, min: -1, max: 1 },
          lines: [
            { name: words.wave, x: count(4 * LAST + 1).map((k) => k / 4), y: column(fine, 0) },
            { name: say(words.seen, { n: step }), x: y.map((_, k) => k * step), y, dots: true, mark: 1 },
          ],
        };
      },
      facts: (data, s) => ({ n: s["v.every"], length: pretended(s["v.every"]) }),
    },
  },
};

/** The wavelength that pair 0 seems to have where only every n-th position is seen: n radians, less whole turns. */
function pretended(n) {
  const turn = 2 * Math.PI;
  return (turn * n) / Math.abs(n - turn * Math.round(n / turn));
}
