// What lab 2 says in numbers and comparisons, with the calls that show it.

import { lab } from "./naive.js";
import { distance, size, vector } from "./vectors.js";

export const figures = [
  "numbers", "share", "lengths", "steps", "apart", "apart_waves", "scorecard", "digits", "soft",
];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const naive = (form, positions = "0:16", more = {}) =>
  ({ op: "encode", query: { type: "naive", form, d_model: 4, positions, ...more } });

const waves = (d_model = 4) => ({ op: "encode", query: { type: "sinusoidal", d_model, positions: "0:16" } });
const properties = ({ query }) => ({ op: "properties", query, format: "json" });

const BINARY = [naive("binary")];
const WAVES = [waves()];
const CARD = lab.figures.scorecard.calls(start);
const SHARES = lab.figures.share.calls(start);
const LENGTHS = [10, 20].map((n) => naive("normalized", `0:${n}`));

// ---- What is computed --------------------------------------------------------------------------------------------

const word = ([t]) => size(vector(t, 0, 4));

/** Of the replies to SHARES: what is left of the word, in percent, with form k at position p. */
const share = (k, p) => (replies) => {
  const place = size(vector(replies[k + 1], p, 4));
  return (100 * word(replies)) / (word(replies) + place);
};

const distanceOf = (p, q) => ([t]) => distance(vector(t, p, 4), vector(t, q, 4));
const first = (k, p) => (replies) => replies[k].data[4 * p];

const upTo = (n) => Array.from({ length: n }, (_, i) => i);

/** Of all pairs k apart the smallest or the largest distance. */
const band = (pick, k) => ([t]) => pick(...upTo(16 - k).map((p) => distanceOf(p, p + k)([t])));

/** The largest difference among pairs that are equally far apart. */
const uneven = (replies) =>
  Math.max(...upTo(15).map((k) => band(Math.max, k + 1)(replies) - band(Math.min, k + 1)(replies)));
const farthest = (p) => (replies) => Math.max(...upTo(16).map((q) => distanceOf(p, q)(replies)));

/** How often column c of binary digits changes between neighbours. */
const changes = (c) => ([{ data }]) =>
  upTo(15).filter((p) => data[4 * p + c] !== data[4 * p + 4 + c]).length;

/** 1 where one half minus half a sine is on the side of one half where the digit is, everywhere. Sines are the first d. */
const agrees = ([soft, digits]) => {
  const softened = (p, c) => 0.5 - vector(soft, p, 8)[c] / 2;
  return Number(digits.data.every((digit, k) => softened(Math.floor(k / 4), k % 4) > 0.5 === (digit === 1)));
};

const EVEN = 1 + 1e-6; // steps are equal but for rounding

/** How many wishes of the card numbering k fulfils. */
const score = (k) => (replies) => {
  const { unique, bounded, same_lengths: same, beyond, step } = replies[k];
  return [unique.holds, bounded.holds, same.holds, beyond.holds, step.max <= step.min * EVEN].filter(Boolean).length;
};

const holds = (k, what) => (replies) => Number(replies[k][what].holds);

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));

export const claims = [
  ...rows("each row holds its position, from 0 to 15, four times", [naive("integer")],
    [([{ data }]) => data.filter((v, i) => v === Math.floor(i / 4)).length, ["==", 64]]),
  ...rows("With four columns the word “dog” has size 1.96", SHARES, [word, { near: 1.96, within: 0.005 }]),
  ...rows("The count at position 15 has size 30", SHARES, [([, t]) => size(vector(t, 15, 4)), ["==", 30]]),
  ...rows("In their sum, 6 percent are left for the word", SHARES, [share(0, 15), { near: 6, within: 0.5 }]),
  ...rows("With a count the word falls from 100 percent to 6 at position 15 and to 1.5 at position 63", SHARES,
    [share(0, 0), ["==", 100]], [share(0, 15), { near: 6, within: 0.5 }], [share(0, 63), { near: 1.5, within: 0.05 }]),
  ...rows("With waves it stays at 58", SHARES,
    [share(3, 0), { near: 58, within: 0.5 }], [share(3, 63), { near: 58, within: 0.5 }]),
  ...rows("Binary digits stop where the columns can count no further", SHARES, [(r) => r[3].shape[0], ["==", 16]]),
  ...rows("they are a thousandth of it", [SHARES[0], naive("integer", "1000")],
    [share(0, 0), { near: 0.1, within: 0.005 }]),
  ...rows("Now no number in the text reaches 1", [naive("normalized")], [([{ data }]) => Math.max(...data), ["<", 1]]),
  ...rows("It is 0.5 in a text of 10 words, and 0.25 in one of 20", LENGTHS,
    [first(0, 5), ["==", 0.5]], [first(1, 5), ["==", 0.25]]),
  ...rows("Position 5 is 0.5 in a text of 10 words, and 0.25 in a text of 20", LENGTHS,
    [first(0, 5), ["==", 0.5]], [first(1, 5), ["==", 0.25]]),
  ...rows("it is 0.1 away in one text and 0.05 in the other", LENGTHS,
    [first(0, 1), { near: 0.1, within: 1e-7 }], [first(1, 1), { near: 0.05, within: 1e-7 }]),
  ...rows("Then numbers grow again", [naive("normalized", "0:64", { seq_len: 16 })], [first(0, 63), [">", 3.9]]),
  ...rows("With four columns 16 positions are told apart, and no number is above 1", BINARY.map(properties),
    [holds(0, "unique"), ["==", 1]], [([p]) => p.bounded.largest, ["==", 1]]),
  ...rows("From 3 to 4 three digits change, a distance of 1.73", BINARY,
    [(r) => distanceOf(3, 4)(r) ** 2, { near: 3, within: 1e-9 }], [distanceOf(3, 4), { near: 1.73, within: 0.005 }]),
  ...rows("From 4 to 5 it is one digit, a distance of 1", BINARY, [distanceOf(4, 5), ["==", 1]]),
  ...rows("With binary digits steps are between 1 and 2 long", CARD,
    [(r) => r[2].step.min, ["==", 1]], [(r) => r[2].step.max, ["==", 2]]),
  ...rows("with the other ideas, and with waves, all steps are equal", CARD,
    [(r) => Math.max(...[0, 1, 3].map((k) => r[k].step.max - r[k].step.min)), ["<", 1e-6]]),
  ...rows("three digits go out, and one goes on", BINARY, [distanceOf(7, 8), ["==", 2]],
    [([t]) => vector(t, 7, 4).reduce((a, b) => a + b), ["==", 3]], [([t]) => vector(t, 8, 4)[3], ["==", 1]]),
  ...rows("7 and 8 are neighbours, and as far from each other as four digits can be: 2", BINARY,
    [distanceOf(7, 8), ["==", 2]], [farthest(7), ["==", 2]]),
  ...rows("0 and 8 lie eight words apart, and their distance is 1", BINARY, [distanceOf(0, 8), ["==", 1]]),
  ...rows("cells along a diagonal differ", BINARY, [uneven, [">", 0.9]]),
  ...rows("it is the same step everywhere: 0.959", WAVES,
    [band(Math.min, 1), { near: 0.959, within: 0.0005 }], [band(Math.max, 1), { near: 0.959, within: 0.0005 }]),
  ...rows("pairs that are equally far apart are equally distant", WAVES,
    [uneven, ["<", 1e-6]]),
  ...rows("with only four columns, 0 and 6 come as near as 0.29", WAVES,
    [distanceOf(0, 6), { near: 0.29, within: 0.005 }]),
  ...rows("More columns mend that", [properties(waves(16))], [([p]) => p.unique.closest, [">", 1]]),
  ...rows("Each time texts become twice as long, one more column is needed",
    [naive("binary", "0:32", { d_model: 5 }), naive("binary", "0:64", { d_model: 6 })].map(properties),
    [holds(0, "unique"), ["==", 1]], [holds(1, "unique"), ["==", 1]], [holds(0, "beyond"), ["==", 0]]),
  ...rows("A count fails to be bounded", CARD, [holds(0, "bounded"), ["==", 0]], [score(0), ["==", 4]]),
  ...rows("p/N fails to be bounded and to be the same in other lengths", CARD,
    [holds(1, "bounded"), ["==", 0]], [holds(1, "same_lengths"), ["==", 0]], [score(1), ["==", 3]]),
  ...rows("Binary digits fail to go on and to make even steps", CARD,
    [holds(2, "beyond"), ["==", 0]], [score(2), ["==", 3]]),
  ...rows("Waves fail in nothing", CARD, [score(3), ["==", 5]]),
  ...rows("The count has only one, and that one is enough", CARD, [score(0), ["==", 4]]),
  ...rows("the first column changes in each row, the last only once", BINARY,
    [changes(0), ["==", 15]], [changes(3), ["==", 1]]),
  ...rows("it blinks at each step. The next is half as fast", BINARY,
    [changes(0), ["==", 15]], [changes(1), ["==", 7]]),
  ...rows("Below one half where the digit is 0, above it where the digit is 1",
    [...lab.figures.soft.calls(start), ...BINARY], [agrees, ["==", 1]]),
];
