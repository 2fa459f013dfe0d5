// What lab 6 says in numbers and comparisons, with the calls that show it.

import { lab } from "./rotation.js";
import { distance, largest, minus, size, times, vector } from "./vectors.js";

export const figures = ["hands", "proof", "matrix", "residual", "products"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const encode = (d_model, positions, more) => ({
  op: "encode", query: { type: "sinusoidal", d_model, positions, dtype: "float64", ...more },
});
const shift = (distance, more) => ({
  op: "shift", query: { type: "sinusoidal", d_model: 16, distance, dtype: "float64", return: "matrix", ...more },
});
const residual = (query) => ({
  op: "shift", format: "json",
  query: { d_model: 16, distance: 3, positions: "0:128", dtype: "float64", return: "matrix", ...query },
});
const products = (d_model, format) => ({
  op: "similarity", format,
  query: {
    type: "sinusoidal", d_model, positions: "0:64", dtype: "float64", ...(format ? {} : { return: "by_offset" }),
  },
});

// ---- What is computed --------------------------------------------------------------------------------------------

/** The calls of a figure in a state. */
const callsOf = (name, changes = {}) => lab.figures[name].calls({ ...start, ...changes });

/** m [d, d] times x [d] */
const turned = (m, x) => x.map((_, r) => vector(m, r, x.length).reduce((sum, v, c) => sum + v * x[c], 0));

/** The row of place p: a tensor of all that p and p + k can be begins at place -63. */
const placeAt = (t, p) => vector(t, p + 63, t.shape[1]);

/** The largest difference between M times the vector of p and that of p + k. */
const missAt = (m, t, p, k) => Math.max(...minus(turned(m, placeAt(t, p)), placeAt(t, p + k)).map(Math.abs));

const places = Array.from({ length: 128 }, (_, p) => p);
const wavesMiss = ([t, m]) => Math.max(...places.map((p) => missAt(m, t, p, 3)));
const randomMiss = ([, , t, m]) => Math.min(...places.map((p) => missAt(m, t, p, 3)));

/** How far ring and square of any hand are apart, in a state. */
const ringsMiss = (changes) => ([t, m]) => {
  const { "v.p": p, distance: k, d_model: d } = { ...start, ...changes };
  const off = minus(turned(m, placeAt(t, p)), placeAt(t, p + k));
  return Math.max(...Array.from({ length: d / 2 }, (_, i) => Math.hypot(off[2 * i], off[2 * i + 1])));
};

/** The legs to a hand: along the old one, and from there across to the new one. How much their lengths differ. */
const legsDiffer = ([t, m]) => {
  const [i, k] = [start["v.i"], start.distance];
  const pair = (p) => placeAt(t, p).slice(2 * i, 2 * i + 2);
  const lengths = [4, 11, 18, 40, 63].map((p) => {
    const along = times(pair(p), m.data[2 * i * 16 + 2 * i]);
    return [size(along), distance(along, pair(p + k))];
  });
  return Math.max(...lengths.map((both) => largest(minus(both, lengths[0]))));
};

const rise = (width) => ([{ data }]) => {
  const from = (data.length - 1) / 2;
  return Array.from({ length: from }, (_, k) => k + 1).find((k) => data[from + k] > data[from + k - 1]);
};
const asymmetry = ([{ data }]) => Math.max(...data.map((v, i) => Math.abs(v - data[data.length - 1 - i])));

/** Of hands of pair i: by how many radians they turn from place 0 to 1. */
const radians = (i) => ([t]) => Math.acos(vector(t, 0, 16)[2 * i] * vector(t, 1, 16)[2 * i] +
  vector(t, 0, 16)[2 * i + 1] * vector(t, 1, 16)[2 * i + 1]);

const pairs = Array.from({ length: 8 }, (_, i) => i);

/** Pairs that do not turn by less than the one before. */
const notSlower = (replies) => pairs.slice(1).filter((i) => radians(i)(replies) >= radians(i - 1)(replies)).length;

const outside = (data) => data.filter((v, at) => v === 0 && Math.floor(at / 32) !== Math.floor((at % 16) / 2)).length;

/** How far 64 hands of a single pair are from length 1. */
const lengthMiss = ([t]) =>
  Math.max(...Array.from({ length: 64 }, (_, p) => Math.abs(Math.hypot(...vector(t, p, 2)) - 1)));

/** Rows 1 and 3 against M times rows 0 and 2. */
const stepsMiss = ([t, m]) =>
  Math.max(...[0, 2].map((at) => distance(vector(t, at + 1, 16), turned(m, vector(t, at, 16)))));

/** Residual of random vectors: more places, worse fits. */
const rms = ({ rms: value }) => value;

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));
const residuals = callsOf("residual");
const CURVES = [16, 64, 128, 512].map((width) => products(width));
const STATES = [{}, { "v.p": 50 }, { distance: -17, "v.p": 3 }, { order: "cos_sin", distance: 40, d_model: 64 }];

export const claims = [
  ...STATES.flatMap((state) =>
    rows("It always meets the square", callsOf("hands", state), [ringsMiss(state), ["<", 1e-14]])),
  ...rows("pair 0 by one radian, about a sixth of a round, later pairs by less and less", [encode(16, "0:2")],
    [radians(0), { near: 1, within: 1e-12 }], [(r) => 2 * Math.PI / radians(0)(r), { near: 6, within: 0.5 }],
    [notSlower, ["==", 0]]),
  ...rows("The two numbers are then the end of a hand on a circle, of length 1", [encode(2, "0:64")],
    [lengthMiss, ["<", 1e-14]]),
  ...rows("In the first the angle between them is nearly half a turn, in the last one too small to be seen",
    [shift(3)], [([{ data }]) => Math.acos(data[0]) / Math.PI, { near: 1, within: 0.1 }],
    [([{ data }]) => Math.acos(data.at(-1)), ["<", 0.01]]),
  ...["sin_cos", "cos_sin"].flatMap((order) =>
    rows("The legs of the last picture have the same lengths at every place", callsOf("proof", { order }),
      [legsDiffer, ["<", 1e-14]])),
  ...rows("the block of pair 1 has 0.583 for", [shift(3)], [([{ data }]) => data[34], { near: 0.583, within: 0.0005 }]),
  ...rows("for and 0.813 for", [shift(3)], [([{ data }]) => data[35], { near: 0.813, within: 0.0005 }]),
  ...rows("Of 256 entries 224 are 0", [shift(3)],
    [([{ data }]) => data.length, ["==", 256]], [([{ data }]) => data.filter((v) => v === 0).length, ["==", 224]]),
  ...[-63, 5, 40].flatMap((k) =>
    rows("Each pair needs only its own four entries. All others are 0.", [shift(k)],
      [([{ data }]) => outside(data), ["==", 224]])),
  ...rows("the minus stands in the upper right corner", [shift(1, { order: "cos_sin" })],
    [([{ data }]) => data[1], ["<", 0]], [([{ data }]) => data[16], [">", 0]]),
  ...rows("The same one", [encode(16, "5,8,50,53"), shift(3)], [stepsMiss, ["<", 1e-14]]),
  ...rows("With waves every place is met, to the 15th digit and more", residuals, [wavesMiss, ["<", 1e-15]]),
  ...rows(
    "Waves are missed by less than 0.000000000000001 at each of 128 places, random vectors by 0.5 or more at each.",
    residuals, [wavesMiss, ["<", 1e-15]], [(r) => r[4].residual, ["<", 1e-15]], [randomMiss, [">=", 0.5]]),
  ...rows("With random vectors every place is missed by 0.5 or more", residuals, [randomMiss, [">=", 0.5]]),
  ...rows("No, not even nearly", [residual({ type: "random" })],
    [([r]) => r.residual, [">", 1]], [([r]) => rms(r), [">", 0.5]]),
  ...rows("A table has too few entries to keep them all", [residual({ type: "random", positions: "0:32" }),
    residual({ type: "random", positions: "0:512" })], [([few, many]) => rms(many) - rms(few), [">", 0]]),
  ...rows("With as many numbers as places a table could learn them all by heart",
    [residual({ type: "random", d_model: 64, positions: "0:64" })], [([r]) => r.residual, ["<", 1e-12]]),
  ...rows("and again there is no in it", [products(64, "json")], [([r]) => Math.max(...r.spread.data), ["<", 1e-13]]),
  ...rows("Four curves, highest at k = 0 and the same on both sides.", CURVES,
    [(all) => Math.max(...all.map(({ data }) => Math.max(...data.filter((_, i) => i !== 63)) / data[63])), ["<", 0.99]],
    [(all) => Math.max(...all.map((t) => asymmetry([t]))), ["<", 1e-12]]),
  ...rows("The left half mirrors the right one", [products(64)], [asymmetry, ["<", 1e-12]]),
  ...rows("The curve is the same on both sides", [products(16)], [asymmetry, ["<", 1e-12]]),
  ...rows("what a vector has with itself: half of", [products(64)],
    [([{ data }]) => data[63], { near: 32, within: 1e-12 }]),
  ...[[16, 4], [64, 6], [128, 12], [512, 44]].flatMap(([width, k]) =>
    rows("for 16 numbers, at 6 for 64, at 12 for 128, and only at 44 for 512", [products(width)],
      [rise(width), ["==", k]])),
  ...rows("No, it goes up again here and there", [products(16)],
    [([{ data }]) => data[63 + 4] - data[63 + 3], [">", 0]]),
  ...rows("They fall, but not all the way: each has bumps.", CURVES,
    [(all) => Math.max(...all.map((t) => rise()([t]))), ["<", 63]],
    [(all) => Math.min(...all.map(({ data }) => Math.min(...data) / data[63])), [">", 0]]),
  ...rows("are not the same. And the curve falls", [shift(3), shift(-3)],
    [([a, b]) => Math.max(...a.data.map((v, i) => Math.abs(v - b.data[i]))), [">", 1]]),
];
