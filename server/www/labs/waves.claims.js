// What lab 3 says in numbers and comparisons, with the calls that show it.

import { pairColumns } from "./calls.js";
import { count, distance, largest, minus, vector } from "./vectors.js";
import { lab } from "./waves.js";

export const figures = [
  "dials", "steps", "matrix", "curves", "lengths", "binary", "smooth", "jumps", "interleaved", "halves",
  "products_interleaved", "products_halves", "alias",
];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const encode = (changes) => ({
  op: "encode",
  query: {
    type: "sinusoidal", d_model: 64, base: 10000, layout: "interleaved", positions: "0:64", dtype: "float64", ...changes,
  },
});
const lengths = (changes) => ({
  op: "properties",
  query: { type: "sinusoidal", d_model: 64, base: 10000, positions: "0:2", ...changes },
  format: "json",
});
const callsOf = (name, changes) => lab.figures[name].calls({ ...start, ...changes });
const both = (changes) => callsOf("products_interleaved", changes);

// ---- What is computed --------------------------------------------------------------------------------------------

const row = (t, p) => vector(t, p, t.shape[1]);
const gap = ([a, b]) => largest(minus(Array.from(a.data), Array.from(b.data)));
const first = ([{ wavelengths }]) => wavelengths[0];
const last = ([{ wavelengths }]) => wavelengths.at(-1);
const factors = ([{ wavelengths }]) => wavelengths.slice(1).map((v, i) => v / wavelengths[i]);

/** How far pair i of [positions, 64] is from row p to row q. */
const pairGap = (t, i, p, q) => {
  const pair = (at) => pairColumns({ layout: "interleaved", d_model: 64 }, i).map((j) => row(t, at)[j]);
  return distance(pair(p), pair(q));
};

/** Column j as one text, so that equal ones are found. */
const columnText = (t, j) => count(t.shape[0]).map((p) => row(t, p)[j]).join();
const columnsTexts = (t) => count(t.shape[1]).map((j) => columnText(t, j));

/** Digits that differ from p to p + 1. */
const flips = (p) => ([t]) => minus(row(t, p + 1), row(t, p)).filter((v) => v !== 0).length;

const steps = (t) => count(t.shape[0] - 1).map((p) => distance(row(t, p), row(t, p + 1)));
const changes = (t, j) => count(t.shape[0] - 1).map((p) => Math.abs(row(t, p + 1)[j] - row(t, p)[j]));
const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;
const falling = (list) => Number(list.every((v, i) => i === 0 || v < list[i - 1]));

// Of pair 2, from how long it is: the divisor is what its turn takes more than one of 2 pi, so many radians a position.
const divisor = ([{ wavelengths }]) => wavelengths[2] / (2 * Math.PI);
const exponent = (replies) => Math.log(divisor(replies)) / Math.log(10000);
const turns = ([{ wavelengths }]) => 10 / wavelengths[2];
const angle = (replies) => 2 * Math.PI * turns(replies);
const sent = (column) => ([, t]) => row(t, 10)[column];

/** Positions between two upward passages through 0 of a row of values that are `every` positions apart. */
function repeats(values, every) {
  const up = values.flatMap((v, i) => (v < 0 && values[i + 1] >= 0 ? [i + v / (v - values[i + 1])] : []));
  return every * (up.at(-1) - up[0]) / (up.length - 1);
}
const sines = (t) => count(t.shape[0]).map((p) => row(t, p)[0]);
const pairZero = (positions) => encode({ d_model: 2, positions });

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));

export const claims = [
  ...rows("the hand of pair 0 has jumped, those of high pairs have hardly moved", [encode()],
    [([t]) => pairGap(t, 0, 9, 10), [">", 0.9]], [([t]) => pairGap(t, 31, 9, 10), ["<", 0.001]]),
  ...rows("the hand of pair 0 has gone around once and more, that of the last pair still points to the right",
    [lengths(), encode()],
    [([{ wavelengths }]) => 10 / wavelengths[0], [">", 1]], [([, t]) => row(t, 10)[63], [">", 0.999]]),
  ...rows("Each has one hand of length 1", [encode()],
    [([t]) => largest(count(32).map((i) => Math.hypot(...row(t, 10).slice(2 * i, 2 * i + 2)) - 1)), ["<", 1e-15]]),
  ...rows("Position 10, pair 2 of 32: exponent 0.0625, divisor 1.78, angle 5.62, which is 0.895 of a turn; sine −0.613, "
    + "cosine 0.790.", [lengths(), encode()],
    [exponent, { near: 0.0625, within: 1e-12 }], [divisor, { near: 1.78, within: 0.005 }],
    [angle, { near: 5.62, within: 0.005 }], [turns, { near: 0.895, within: 0.0005 }],
    [sent(4), { near: -0.613, within: 0.0005 }], [sent(5), { near: 0.79, within: 0.0005 }]),
  ...rows("The last two are what the service sent for the same position and pair: the same numbers.", [lengths(), encode()],
    [(r) => Math.abs(Math.sin(angle(r)) - sent(4)(r)), ["<", 1e-13]],
    [(r) => Math.abs(Math.cos(angle(r)) - sent(5)(r)), ["<", 1e-13]]),
  ...rows("all from −1 to 1", [encode({ d_model: 512, positions: "0:512" })], [([t]) => largest(t.data), ["<=", 1]]),
  ...rows("One wave at all positions: the cosine of pair 2", [encode()],
    [([t]) => largest(count(64).map((p) => row(t, p)[5] - Math.cos(p / 10000 ** (4 / 64)))), ["<", 1e-14]]),
  ...rows("a sine and a cosine that repeat after 11.2 positions", [lengths()],
    [([{ wavelengths }]) => wavelengths[2], { near: 11.2, within: 0.05 }]),
  ...["{angle} / 6.28", "Angles are measured in radians, where 6.28, or $2\\pi$, is one full turn"].flatMap((says) =>
    rows(says, [lengths()], [first, { near: 6.28, within: 0.005 }])),
  ...rows("Pair 0 turns by one radian at each position, about a sixth of a turn", [lengths()],
    [(r) => (2 * Math.PI) / first(r), { near: 1, within: 1e-12 }],
    [(r) => 1 / first(r), { near: 1 / 6, within: 0.01 }]),
  ...rows("Each wave is longer than the one before by the same factor", [lengths()],
    [(r) => Math.min(...factors(r)), [">", 1.3]],
    [(r) => Math.max(...factors(r)) - Math.min(...factors(r)), ["<", 1e-9]]),
  ...rows("from 6.28 positions of pair 0, less than a sentence, to 47,117 of pair 31, between a chapter and a book",
    [lengths()],
    [first, { near: 6.28, within: 0.005 }], [last, { near: 47117, within: 0.5 }],
    [([{ wavelengths }]) => wavelengths.length, ["==", 32]]),
  ...rows("Pair 0 repeats after 6.28 positions, whatever the width and the base.",
    [lengths(), lengths({ d_model: 512 }), lengths({ base: 100 }), lengths({ d_model: 2, base: 500000 })],
    [(all) => largest(all.map((reply) => first([reply]) - 2 * Math.PI)), ["<", 1e-12]]),
  ...rows("there it is off by less than 0.02", [encode()], [([t]) => pairGap(t, 0, 0, 44), ["<", 0.02]]),
  ...rows("The last pair needs 47,117 positions here.", [lengths()], [last, { near: 47117, within: 0.5 }]),
  ...rows("It tells the beginning of a book from its middle, but not one word from the next.",
    [encode({ positions: "0:40001:40000" }), encode()],
    [([t]) => pairGap(t, 31, 0, 1), [">", 0.5]], [([, t]) => pairGap(t, 31, 0, 1), ["<", 0.001]]),
  ...rows("which is 62,832", [lengths()], [(r) => first(r) * 10000, { near: 62832, within: 0.5 }]),
  ...rows("They never quite do, as the last pair is", [lengths({ d_model: 512 }), lengths({ d_model: 1024 })],
    [(all) => Math.max(...all.map((reply) => last([reply]))), ["<", 2 * Math.PI * 10000]]),
  ...rows("the longest has 54,410 positions", [lengths({ d_model: 128 })], [last, { near: 54410, within: 0.5 }]),
  ...rows("it has 60,611", [lengths({ d_model: 512 })], [last, { near: 60611, within: 0.5 }]),
  ...rows("The ones flip at every step.", callsOf("binary"), [([t]) => Math.min(...changes(t, 0)), ["==", 1]]),
  ...rows("the first changes at every row, each next one half as often", callsOf("binary"),
    ...[31, 15, 7, 3, 1].map((n, j) => [([t]) => changes(t, j).filter(Boolean).length, ["==", n]])),
  ...rows("Five pairs of waves, each half as fast as the one before (d = 10, base 32).",
    [lengths({ d_model: 10, base: 32 })], [(r) => largest(factors(r).map((v) => v - 2)), ["<", 1e-12]]),
  ...rows("the first change most from row to row, and the last least", callsOf("smooth"),
    [([t]) => falling([0, 2, 4, 6, 8].map((j) => mean(changes(t, j)))), ["==", 1]]),
  ...rows("From 7 to 8 four digits of the counter flip at once, from 8 to 9 only one.", callsOf("binary"),
    [flips(7), ["==", 4]], [flips(8), ["==", 1]]),
  ...rows("the waves always make steps of the same size", callsOf("smooth"),
    [([t]) => Math.max(...steps(t)) - Math.min(...steps(t)), ["<", 1e-6]]),
  ...rows("The counter's steps are between 1 and 2.24 long; those of the waves are all 1.12.", callsOf("jumps"),
    [([t]) => Math.min(...steps(t)), ["==", 1]], [([t]) => Math.max(...steps(t)), { near: 2.24, within: 0.005 }],
    [([, t]) => steps(t)[0], { near: 1.12, within: 0.005 }]),
  ...rows("They stay the same", both(), [gap, ["<", 1e-13]]),
  ...rows("The two pictures at the bottom differ by less than 10−13, which is rounding.", both(), [gap, ["<", 1e-13]]),
  ...rows("It is the same picture.", both({ d_model: 512, positions: 512 }), [gap, ["<", 1e-12]]),
  ...rows("Halves: the two waves of a pair are d/2 columns apart.",
    [encode(), encode({ layout: "halves" })],
    [([a, b]) => count(32).filter((i) => columnText(b, i) === columnText(a, 2 * i)).length, ["==", 32]],
    [([a, b]) => count(32).filter((i) => columnText(b, i + 32) === columnText(a, 2 * i + 1)).length, ["==", 32]]),
  ...rows("All columns are put into another order, the same for every position.",
    [encode(), encode({ layout: "halves" })],
    [([a, b]) => Number(columnsTexts(a).sort().join() === columnsTexts(b).sort().join()), ["==", 1]]),
  ...rows("A bright diagonal that fades to both sides.", both(),
    [([t]) => row(t, 32)[32] / row(t, 32)[42], [">", 1.3]], [([t]) => row(t, 32)[32] / row(t, 32)[22], [">", 1.3]]),
  ...rows("even the fastest wave has more than six positions for each turn", [lengths()], [first, [">", 6]]),
  ...rows("At every sixth, it seems to repeat after 133 positions.", [pairZero("0:4800:6")],
    [([t]) => repeats(sines(t), 6), { near: 133, within: 0.5 }]),
  ...rows("which repeats after 6.28 positions", [pairZero("0:264:0.25")],
    [([t]) => repeats(sines(t), 0.25), { near: 6.28, within: 0.005 }]),
];
