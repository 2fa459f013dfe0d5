// What lab 5 says in numbers and comparisons, with the calls that show it.

import { lab } from "./fingerprints.js";
import { distance, largest, rows as vectors, size } from "./vectors.js";

export const unclaimed = [{ says: "6e−5 is short for 0.00006.", why: "it says how numbers are written" }];

export const figures = ["prints", "norms", "distances", "hunt", "doubles", "different", "errors"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const waves = (d_model, positions, more) =>
  ({ op: "encode", query: { type: "sinusoidal", d_model, positions, dtype: "float64", ...more } });

const properties = (d_model, n) =>
  ({ op: "properties", query: { type: "sinusoidal", d_model, positions: `0:${n}` }, format: "json" });

const PRINTS = [waves(16, "0:64")];
const NORMS = lab.figures.norms.calls(start);
const DOUBLES = lab.figures.doubles.calls(start);
const MANY = lab.figures.different.calls(start);
const ERRORS = lab.figures.errors.calls(start);

// ---- What is computed --------------------------------------------------------------------------------------------

/** The largest number of all replies. */
const bound = (replies) => Math.max(...replies.map(({ data }) => largest(data)));

/** How much sizes of rows differ from what they should be. */
const sizesOff = (wanted) => (replies) => largest(replies.flatMap((t) => vectors(t).map((v) => size(v) - wanted)));

const first = ([t]) => size(vectors(t)[0]);
const last = ([t]) => size(vectors(t).at(-1));

/** Of the first two rows. */
const apart = ([t]) => distance(...vectors(t).slice(0, 2));

/** The positions that come nearer to position 0 than all before them. */
function records([t]) {
  const [zero, ...others] = vectors(t).map((v) => [...v]);
  const far = others.map((v) => distance(v, zero));
  return far.flatMap((v, k) => (far.slice(0, k).every((before) => v < before * (1 - 1e-6)) ? [k + 1] : []));
}
const record = (at) => (replies) => records(replies).at(at);
const double = (k) => (replies) => replies[k].unique.indices[1] - replies[k].unique.indices[0];
const nearest = (k) => (replies) => replies[k].unique.closest;

/** How many different rows the first n of reply k have. */
const left = (k, n) => (replies) => new Set(vectors(replies[k]).slice(0, n).map(String)).size;

/** The place in a list of positions of the one nearest to p. */
const placeOf = (p, { query: { positions } }) => {
  const far = positions.map((v) => Math.abs(v - p));
  return far.indexOf(Math.min(...far));
};

/** How far reply k (1 float32, 2 float16, 3 bfloat16) is from the exact one, at the position nearest to p. */
const error = (k, p) => (replies) =>
  distance(...[0, k].map((which) => vectors(replies[which])[placeOf(p, ERRORS[which])]));

const step = (replies) => apart([replies.at(-1)]);

const ratio = (a, b) => (replies) => a(replies) / b(replies);

const near = (value, within) => ({ near: value, within });

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));

export const claims = [
  ...rows("64 rows of 16 numbers between −1 and 1", PRINTS, [bound, ["<=", 1]]),
  ...rows("and no two rows alike", [properties(16, 64)], [nearest(0), [">", 1]]),
  ...rows("So all numbers are bounded, at position 10 as at position ten million",
    [waves(16, "0:1024"), waves(16, "9999000:10000000")], [bound, ["<=", 1]]),
  ...rows("Sine and cosine of one angle always belong together: their squares add up to 1", [waves(2, "0:256")],
    [sizesOff(1), ["<", 1e-14]]),
  ...rows("Each pair of columns adds exactly 1 to the square of the size, at every position",
    [waves(32, "0:128"), waves(32, "1000000:1000128")], [sizesOff(4), ["<", 1e-14]]),
  ...rows("Waves have one size at all positions", PRINTS, [sizesOff(Math.sqrt(8)), ["<", 1e-14]]),
  ...rows("The size of waves is 2.83 at all positions; that of a count goes from 0 to 252.", NORMS,
    [(r) => sizesOff(2.83)([r[3]]), ["<", 0.005]], [first, ["==", 0]], [last, ["==", 252]]),
  ...rows("A count and p/N begin with 0 and grow", NORMS,
    [(r) => first([r[1]]), ["==", 0]], [(r) => last([r[1]]), [">", 3.9]]),
  ...rows("With 16 columns and 64 positions, no distance is smaller than that of neighbours, 1.01",
    [properties(16, 64)], [nearest(0), near(1.01, 0.005)], [([p]) => p.unique.closest / p.step.min, near(1, 1e-12)]),
  ...rows("Only the diagonal, where a position meets itself, is empty", [properties(16, 64)], [nearest(0), [">", 0]]),
  ...rows("With 2 columns there are ever deeper dips at 6, 19, 25, 44, 333 and 710", lab.figures.hunt.calls(start),
    ...[6, 19, 25, 44, 333, 710].map((k, i) => [record(i + 1), ["==", k]]), [record(-1), ["==", 710]]),
  ...rows("At 710 the distance is 0.00006", [waves(2, "0,710")], [apart, near(0.00006, 0.000005)]),
  ...rows("the distance to position 0 is 0.0000603", [waves(2, "0,710")], [apart, near(0.0000603, 5e-8)]),
  ...rows("But 710 steps are very nearly 113 turns", [properties(2, 2)],
    [([p]) => 113 * p.wavelengths[0], near(710, 0.0001)]),
  ...rows("355 steps are nearly 113 half turns", [waves(2, "0,355")], [apart, near(2, 1e-8)]),
  ...rows("At position 710 the hand has made 113 turns", [properties(2, 2)],
    [([p]) => 710 / p.wavelengths[0], near(113, 0.0001)]),
  ...rows("is nearly 355/113", [properties(2, 2)], [([p]) => p.wavelengths[0] / 2, near(355 / 113, 3e-7)]),
  ...rows("position 44 is 7 turns and a little", [properties(2, 2)],
    [([p]) => 44 - 7 * p.wavelengths[0], near(0.018, 0.0005)], [([p]) => 6 - p.wavelengths[0], ["<", 0]]),
  ...rows("In exact numbers two positions never agree, with any width", [properties(2, 4096)],
    [nearest(0), [">", 6e-5]]),
  ...rows("A second, slower hand tells 0 from 710 at once", [waves(4, "0,710")], [apart, [">", 0.7]]),
  ...rows("With four columns the best is 1885 positions away, at a distance of 0.044", DOUBLES,
    [double(1), ["==", 1885]], [nearest(1), near(0.044, 0.0005)]),
  ...rows("With eight it is 63 away, at 0.645", DOUBLES, [double(2), ["==", 63]], [nearest(2), near(0.645, 0.0005)]),
  ...rows("From 16 columns on, no stranger among 2048 positions is nearer than the neighbour",
    [16, 18, 20, 24, 32, 64].map((d) => properties(d, 2048)),
    [(r) => Math.max(...r.map(({ step, unique }) => step.max / unique.closest)), ["<", 1 + 1e-12]]),
  ...rows("With 2 columns the nearest two are 710 positions apart, at 0.00006; with 4, 1885 positions at 0.044; " +
    "with 8, 63 positions at 0.645; from 16 on they are neighbours.", DOUBLES,
    [double(0), ["==", 710]], [nearest(0), near(0.00006, 0.000005)], [double(1), ["==", 1885]], [double(2), ["==", 63]],
    [double(3), ["==", 1]], [double(4), ["==", 1]]),
  ...rows("With 8 binary digits one can write 256, and then 258, but not 257",
    [waves(2, "256,257,258", { arithmetic: "bfloat16_positions" })],
    [apart, ["==", 0]], [([t]) => distance(vectors(t)[0], vectors(t)[2]), [">", 1]]),
  ...rows("float32 keeps 24 binary digits, float16 keeps 11, and bfloat16 only 8",
    [["float32_exp", 24], ["float16_positions", 11], ["bfloat16_positions", 8]].map(([arithmetic, digits]) =>
      waves(2, [2 ** digits - 1, 2 ** digits, 2 ** digits + 1], { arithmetic })),
    [(r) => Math.min(...r.map((t) => apart([t]))), [">", 0.9]],
    [(r) => r.filter((t) => distance(...vectors(t).slice(1)) === 0).length, ["==", 3]]),
  ...rows("256 and 257 then have the same fingerprint", [waves(16, "256,257", { arithmetic: "bfloat16_positions" })],
    [apart, ["==", 0]]),
  ...rows("bfloat16 knows all whole numbers up to 256, then every second one, then every fourth", MANY,
    [left(2, 256), ["==", 256]], [left(2, 512), ["==", 385]], [left(2, 1024), ["==", 513]]),
  ...rows("Of 4096 positions all are told apart with float32, 3073 with float16, and 769 with bfloat16.", MANY,
    [left(0, 4096), ["==", 4096]], [left(1, 4096), ["==", 3073]], [left(2, 4096), ["==", 769]]),
  ...rows("more would not help, as the position is rounded first",
    [waves(32, "0:4096", { arithmetic: "bfloat16_positions", dtype: "float32" })],
    [([t]) => new Set(vectors(t).map(String)).size, ["==", 769]]),
  ...rows("float32 errors grow with the position, from less than 0.0000001 to about 0.013 at a million", ERRORS,
    [error(1, 1), ["<", 1e-7]], [error(1, 1e6), near(0.013, 0.0005)]),
  ...rows("bfloat16 is a whole step off after 256, and float16 after 2048", ERRORS,
    [ratio(error(3, 317), step), near(1, 0.001)], [ratio(error(2, 2155), step), near(1, 0.001)],
    [error(3, 215), ["<", 1e-5]], [error(2, 1469), ["<", 1e-4]]),
  ...rows("float16 has no number above 65504, so its line ends",
    [waves(2, "65472,65503,65504", { arithmetic: "float16_positions" })],
    [apart, [">", 0.1]], [([t]) => distance(...vectors(t).slice(1)), ["==", 0]]),
  ...rows("Its positions are right, up to 16 million",
    ["16777215,16777216", "16777216,16777217"].map((two) => waves(2, two, { arithmetic: "float32_exp" })),
    [apart, [">", 0.9]], [([, t]) => apart([t]), ["==", 0]]),
  ...rows("With 16 columns the error at a million is about 0.013: a hundredth of a step", ERRORS,
    [error(1, 1e6), near(0.013, 0.0005)], [ratio(error(1, 1e6), step), near(0.013, 0.0005)]),
  ...rows("A whole turn takes $2\\pi$ = 6.283… radians.", [properties(2, 2)],
    [([p]) => p.wavelengths[0], near(6.2835, 0.0005)]),
];
