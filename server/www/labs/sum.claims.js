// What lab 4 says in numbers and comparisons, with the calls that show it.

import { foundCounts, lab, meanCosines, WIDTHS, WORDS } from "./sum.js";
import { add, distance, minus, size, vector } from "./vectors.js";

export const figures = ["enters", "content", "positions", "sum", "lengths", "left", "found", "angles"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));
const table = { ...start, embedding_scale: 0.1768, "v.times": "table" };
const D = start.width;
const N = start.tokens.length;

const callsOf = (name, s = start) => lab.figures[name].calls(s);
const drawn = (name, replies, s = start) => lab.figures[name].data(replies, s, { axes: {}, boxes: {} });

const sum = callsOf("sum"); // the sum, words alone, places
const lengths = callsOf("lengths"); // words alone, places, the sum
const over = callsOf("found");

const placesAt = (width) => ({
  op: "encode", query: { type: "sinusoidal", d_model: width, positions: "0:64", dtype: "float64" },
});

const seeds = [0, 1, 2, 3, 4].map((token_seed) => callsOf("found", { ...start, token_seed }));

// ---- What is computed --------------------------------------------------------------------------------------------

const rowsOf = (reply, n, width) => Array.from({ length: n }, (_, i) => vector(reply, i, width));
const mean = (list) => list.reduce((total, v) => total + v, 0) / list.length;
const most = (list) => Math.max(...list.map(Math.abs));

/** How far each row of the sum is from word + place. */
const gap = ([both, word, place]) =>
  most(rowsOf(both, N, D).flatMap((row, p) => minus(row, add(vector(word, p, D), vector(place, p, D)))));

/** Distance of rows 0 and 3, the two "the". */
const twins = (reply) => distance(vector(reply, 0, D), vector(reply, 3, D));

const lengthOf = (line, pick) => (replies) => pick(drawn("lengths", replies).lines[line].y);
const least = (list) => Math.min(...list);

/** How far the lengths of 64 places are from the root of d/2. */
const lengthGap = (width) => ([reply]) =>
  most(rowsOf(reply, 64, width).map((row) => size(row) - Math.sqrt(width / 2)));

const foundAt = (name, width) => (replies) => foundCounts(replies)[name][WIDTHS.indexOf(width)];
const foundMost = (name) => (replies) => Math.max(...foundCounts(replies)[name]);
const foundLeast = (from) => (replies) => least(foundCounts(replies).root.slice(WIDTHS.indexOf(from)));

const cosineAt = (width) => (replies) => meanCosines(replies)[WIDTHS.indexOf(width)];
const falls = (replies) => Math.max(...meanCosines(replies).map((v, k, all) => (k ? v - all[k - 1] : -1)));

const dictionaryLengths = (replies) =>
  mean(rowsOf(replies[2 * WIDTHS.indexOf(D)], WORDS.length, D).map(size));

const stillNearest = (replies) => drawn("left", replies).rows.filter((row) => row[4].holds).length;

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));
const near = (value, within) => ({ near: value, within });

export const claims = [
  ...rows("The model adds the two rows and goes on with the sum.", sum, [gap, ["<", 1e-15]]),
  ...rows("Each cell is the sum of the two cells above it.", sum, [gap, ["<", 1e-15]]),
  ...rows("The two “the” have the same row.", [sum[1]], [([word]) => twins(word), ["==", 0]]),
  ...rows("The two “the” now differ.", [sum[0]], [([both]) => twins(both), [">", 1]]),
  ...rows("no number is beyond 1 or −1", [sum[2]], [([{ data }]) => most(Array.from(data)), ["<=", 1]]),
  ...[4, 32, 256].flatMap((width) =>
    rows("every place is equally long: √(d/2)", [placesAt(width)], [lengthGap(width), ["<", 1e-13]])),
  ...rows("With 32 numbers that is √16 = 4, for each place.", lengths,
    [lengthOf(1, least), near(4, 1e-14)], [lengthOf(1, most), near(4, 1e-14)]),
  ...rows("The five words are 4.2 to 6.3 long, all places 4.", lengths,
    [lengthOf(0, least), near(4.25, 0.05)], [lengthOf(0, most), near(6.28, 0.05)], [lengthOf(1, most), near(4, 1e-14)]),
  ...rows("so that each word is about 1 long", [callsOf("content", table)[0]],
    [([word]) => mean(rowsOf(word, N, D).map(size)), near(1, 0.15)]),
  ...rows("words are then 5.6 long on the average of 64", over, [dictionaryLengths, near(5.6, 0.05)]),
  ...rows("louder than their places", over, [dictionaryLengths, [">", 4]]),
  ...rows("With 32 numbers all five are found.", callsOf("left"), [stillNearest, ["==", 5]]),
  ...rows("All five words are nearest to themselves, among 64.", callsOf("left"),
    [stillNearest, ["==", 5]], [([, words]) => words.shape[1], ["==", 64]]),
  ...rows("With 4 numbers, 17 of 64; with 8, 43; from 32 on, all 64.", over,
    [foundAt("root", 4), ["==", 17]], [foundAt("root", 8), ["==", 43]], [foundLeast(32), ["==", 64]],
    [foundAt("root", 16), ["<", 64]]),
  ...rows("with 256 there are 12", over, [foundAt("table", 256), ["==", 12]]),
  ...rows("Not multiplied: never more than 13.", over, [foundMost("table"), ["==", 13]]),
  ...rows("43 of 64 words with 8 numbers each, all 64 from 32 numbers on", over,
    [foundAt("root", 8), ["==", 43]], [foundLeast(32), ["==", 64]]),
  ...seeds.flatMap((calls) =>
    rows("Each sum is still nearest to its own word.", calls, [foundAt("root", 32), ["==", 64]])),
  ...rows("The mean falls from 0.43 with 4 numbers to 0.05 with 256.", over,
    [cosineAt(4), near(0.43, 0.005)], [cosineAt(256), near(0.05, 0.0005)], [falls, ["<", 0]]),
  ...rows("With 256 numbers, the mean size of the cosine is 0.05", over, [cosineAt(256), near(0.05, 0.0005)]),
  ...seeds.flatMap((calls) => rows("It comes nearer to 0", calls, [falls, ["<", 0]])),
  ...rows("and the mean of all 4096", over, [() => WORDS.length ** 2, ["==", 4096]]),
];
