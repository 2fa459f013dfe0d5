// What lab 4 says in numbers and comparisons, with the calls that show it.

import { lab } from "./sum.js";
import { add, distance, minus, size, times, vector } from "./vectors.js";

export const figures = ["enters", "content", "positions", "sum", "lengths", "left", "found", "angles"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));
const table = { ...start, embedding_scale: 0.1768, "v.times": "table" };
const D = start.width;
const N = start.tokens.length;

const callsOf = (name, s = start) => lab.figures[name].calls(s);

const sum = callsOf("sum"); // the sum, words alone, places
const lengths = callsOf("lengths"); // words alone, places, the sum
const over = callsOf("found"); // for each of WIDTHS the words of a dictionary, and as many places
const WIDTHS = over.filter(({ op }) => op === "block").map(({ query }) => query.width);
const left = callsOf("left"); // the sum, the words of the dictionary
const own = (token) => left[1].query.tokens.indexOf(token);

const placesAt = (width) => ({
  op: "encode", query: { type: "sinusoidal", d_model: width, positions: "0:64", dtype: "float64" },
});

/** Many normal numbers, 64 at a time a random direction. */
const normals = {
  op: "encode", query: { type: "random", d_model: 64, positions: "0:8192", dtype: "float64" },
};

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

const sizes = (reply) => rowsOf(reply, N, D).map(size);
const least = (list) => Math.min(...list);

/** How far the lengths of 64 places are from the root of d/2. */
const lengthGap = (width) => ([reply]) =>
  most(rowsOf(reply, 64, width).map((row) => size(row) - Math.sqrt(width / 2)));

const cosine = (a, b) => a.reduce((total, v, i) => total + v * b[i], 0) / (size(a) * size(b));

/** Which of a list of words has the largest cosine with a vector. */
function nearest(x, words) {
  const cosines = words.map((word) => cosine(x, word));
  return cosines.indexOf(Math.max(...cosines));
}

/** The words and places of replies at a width. */
const pairAt = (replies, width) => {
  const k = WIDTHS.indexOf(width);
  return [replies[2 * k], replies[2 * k + 1]].map((reply) => rowsOf(reply, reply.shape.at(-2), width));
};

/** How many words times a factor, each plus its place, are nearest to themselves. */
function foundAt(replies, width, factor) {
  const [words, places] = pairAt(replies, width);
  return words.filter((word, p) => nearest(add(times(word, factor), places[p]), words) === p).length;
}

/** The fewest that are found from a width on. */
const foundFrom = (from) => (replies) =>
  least(WIDTHS.filter((width) => width >= from).map((width) => foundAt(replies, width, 1)));

/** With how many of the widths all are found. */
const widthsOfAll = (replies) => WIDTHS.filter((width) => foundAt(replies, width, 1) === 64).length;

const root = (width) => (replies) => foundAt(replies, width, 1);
const asTable = (width) => (replies) => foundAt(replies, width, Number((width ** -0.5).toPrecision(4)));

/** The mean size of the cosines of all words with all places. */
function meanCosine(replies, width) {
  const [words, places] = pairAt(replies, width);
  return mean(words.flatMap((word) => places.map((place) => Math.abs(cosine(word, place)))));
}

/** The sizes of the cosines of all pairs of two words. */
function crossings(replies, width) {
  const [words] = pairAt(replies, width);
  return words.flatMap((a, i) => words.slice(i + 1).map((b) => Math.abs(cosine(a, b))));
}

const share = (list, is) => list.filter(is).length / list.length;

const cosineAt = (width) => (replies) => meanCosine(replies, width);

/** The largest of the changes from each width to the next. */
const rises = (replies) => {
  const means = WIDTHS.map((width) => meanCosine(replies, width));
  return Math.max(...means.slice(1).map((v, k) => v - means[k]));
};

/** How much random directions have in common with the first axis, on average, times the root of how many numbers. */
const meanTilt = (data) => 8 * mean(rowsOf({ data }, 8192, 64).map((row) => Math.abs(row[0]) / size(row)));

const dictionaryLength = (replies) => mean(pairAt(replies, D)[0].map(size));

/** Words of the sentence that are found again, with their places added. */
const stillNearest = ([both, words]) =>
  rowsOf(both, N, D).filter((x, p) => nearest(x, rowsOf(words, words.shape.at(-2), D)) === own(start.tokens[p])).length;

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
    [([, place]) => least(sizes(place)), near(4, 1e-14)], [([, place]) => most(sizes(place)), near(4, 1e-14)]),
  ...rows("The five words are 4.3 to 6.3 long, all places 4.", lengths,
    [([word]) => least(sizes(word)), near(4.3, 0.05)], [([word]) => most(sizes(word)), near(6.3, 0.05)],
    [([, place]) => most(sizes(place)), near(4, 1e-14)]),
  ...rows("so that each word is about 1 long", [callsOf("content", table)[0]],
    [([word]) => mean(rowsOf(word, N, D).map(size)), near(1, 0.15)]),
  ...rows("words are then 5.6 long on the average of 64", over, [dictionaryLength, near(5.6, 0.05)]),
  ...rows("louder than their places, but not by much", over,
    [(replies) => dictionaryLength(replies) / mean(pairAt(replies, D)[1].map(size)), near(1.5, 0.4)]),
  ...rows("With 32 numbers all five are found.", left, [stillNearest, ["==", 5]]),
  ...rows("All five words are nearest to themselves, among 64.", left,
    [stillNearest, ["==", 5]], [([, words]) => words.data.length / 2 / D, ["==", 64]]),
  ...rows("With 4 numbers, 17 of 64; with 8, 43; from 32 on, all 64.", over,
    [root(4), ["==", 17]], [root(8), ["==", 43]], [foundFrom(32), ["==", 64]], [widthsOfAll, ["==", 4]]),
  ...rows("with 256 there are 12", over, [asTable(256), ["==", 12]]),
  ...rows("Not multiplied: never more than 13.", over,
    [(replies) => Math.max(...WIDTHS.map((width) => asTable(width)(replies))), ["==", 13]]),
  ...rows("43 of 64 words with 8 numbers each, all 64 from 32 numbers on", over,
    [root(8), ["==", 43]], [foundFrom(32), ["==", 64]]),
  ...seeds.flatMap((calls) =>
    rows("Each sum is still nearest to its own word.", calls, [root(32), ["==", 64]])),
  ...rows("The mean falls from 0.43 with 4 numbers to 0.05 with 256.", over,
    [cosineAt(4), near(0.43, 0.005)], [cosineAt(256), near(0.05, 0.0005)], [rises, ["<", 0]]),
  ...rows("With 256 numbers, the mean size of the cosine is 0.05", over, [cosineAt(256), near(0.05, 0.0005)]),
  ...seeds.flatMap((calls) => rows("It comes nearer to 0", calls, [rises, ["<", 0]])),
  ...rows("and the mean of all 4096", over, [([words, places]) => words.shape[1] * places.shape[0], ["==", 4096]]),
  ...rows("Lists of 256 random numbers nearly always do, or almost.", over,
    [(replies) => share(crossings(replies, 256), (v) => v < 0.2), [">", 0.99]],
    [(replies) => share(crossings(replies, 4), (v) => v < 0.2), near(0.25, 0.1)]),
  ...rows("0.8/√d, for random directions", [normals], [([{ data }]) => meanTilt(data), near(0.8, 0.005)]),
];
