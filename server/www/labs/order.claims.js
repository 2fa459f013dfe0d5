// What lab 1 says in numbers and comparisons, with the calls that show it.

import { lab } from "./order.js";
import { add, distance, minus, times, vector } from "./vectors.js";

export const figures = [
  "pages", "sentence", "other", "weights", "weights_other", "sorted", "difference", "outputs", "recurrent",
];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const A = ["the", "dog", "bites", "the", "man"];
const B = ["the", "man", "bites", "the", "dog"];
const TO = [0, 4, 2, 3, 1]; // where A's words stand in B

const block = (tokens, changes = {}) => ({
  op: "block",
  query: {
    type: "none", tokens, width: 16, weights_seed: 30, "mask.causal": "0", dtype: "float64", return: "weights",
    ...changes,
  },
});

const both = (changes) => [block(A, changes), block(B, changes)];
const output = (changes) => both({ return: "output", ...changes });
const CAUSAL = { "mask.causal": "1" };

// ---- What is computed --------------------------------------------------------------------------------------------

const row = ({ data }, i, n = A.length) => Array.from(data.slice(i * n, (i + 1) * n));
const most = (list) => Math.max(...list.map(Math.abs));
const one = (i, j) => ([w]) => row(w, i)[j];

/** Largest difference of A's weights and B's, sorted. */
const gap = ([a, b]) => most(TO.flatMap((to, i) => TO.map((toJ, j) => row(a, i)[j] - row(b, to)[toJ])));

/** Largest difference of the rows of the two "the". */
const twins = ([a]) => most(minus(row(a, 0), row(a, 3)));

const distances = ([a, b]) => TO.map((to, i) => distance(vector(a, i, 16), vector(b, to, 16)));
const farthest = (replies) => Math.max(...distances(replies));
const farthestOfAll = (replies) =>
  Math.max(...Array.from({ length: replies.length / 2 }, (_, k) => farthest(replies.slice(2 * k, 2 * k + 2))));

const mean = (t) => times(A.map((_, i) => vector(t, i, 16)).reduce(add), 1 / A.length);
const means = ([a, b]) => distance(mean(a), mean(b));

/** The sums of rows that are farthest from 1. */
const sumGap = ([w]) => most(A.map((_, i) => row(w, i).reduce((sum, v) => sum + v, 0) - 1));

// The recurrent cell: 16 rows of W, then 16 of U.
const times16 = (t, first, x) => x.map((_, r) => x.reduce((sum, v, c) => sum + t.data[(first + r) * 16 + c] * v, 0));
const nextMemory = (cell) => (h, x) => add(times16(cell, 0, x), times16(cell, 16, h)).map(Math.tanh);

/** How far apart A and B are after their last words: next(h, x) goes on from what is remembered of those before. */
const lastGap = (next) => ([a, b, cell]) =>
  distance(...[a, b].map((t) => A.map((_, i) => vector(t, i, 16)).reduce(next(cell), new Array(16).fill(0))));
const memories = lastGap(nextMemory);
const bags = lastGap(() => add);

// After the same words in another order, the last one's row: what is before it is a bag.
const SHUFFLED = ["bites", "the", "dog", "the", "man"];

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));

export const claims = [
  ...rows("“dog” takes 0.075 from “bites”", both(), [one(1, 2), { near: 0.075, within: 0.0005 }],
    [([, b]) => row(b, 4)[2], { near: 0.075, within: 0.0005 }]),
  ...rows("the matrix of B is the matrix of A: the difference is 0", both(), [gap, ["==", 0]]),
  ...rows("The same weights, in other places", both(), [gap, ["==", 0]]),
  ...rows("No weight is new", both({ weights_seed: 31 }), [gap, ["<", 1e-14]]),
  ...rows("their rows are equal, number by number", both(), [twins, ["==", 0]]),
  ...rows("The first and the fourth row, the two words “the”, are the same", both(), [twins, ["==", 0]]),
  ...rows("and their sum is 1", both(), [sumGap, ["<", 1e-14]]),
  ...rows("dividing by the sum lets each row add up to 1", both(), [sumGap, ["<", 1e-14]]),
  ...rows("the marks go, and the difference is empty no more",
    both({ type: "sinusoidal" }), [gap, [">", 0.1]], [twins, [">", 0.1]]),
  ...rows("A and B become the same vector", output(), [means, ["<", 1e-14]]),
  ...rows("Each word's result goes along with it", output(), [farthest, ["<", 1e-14]]),
  ...rows("every word's distance is below 10−14", output(), [farthest, ["<", 1e-14]]),
  ...rows("Without an encoding all distances are below 0.00000000000001",
    output(), [farthest, ["<", 1e-14]], [means, ["<", 1e-14]]),
  ...rows("less than a ten-millionth of what the same word moves when waves tell the places",
    [...output(), ...output({ type: "sinusoidal" })],
    [([a, b, c, d]) => Math.max(...distances([a, b]).map((v, i) => v / distances([c, d])[i])), ["<", 1e-7]]),
  ...rows("It is not quite 0", output(), [farthest, [">", 0]]),
  ...rows("In numbers of 7 digits (float32) even that is rounded away",
    output({ dtype: "float32" }), [farthest, ["==", 0]], [means, ["==", 0]]),
  ...rows("the means differ by 0.4 or more", output({ type: "sinusoidal" }), [means, [">", 0.4]]),
  ...rows("the means differ by 0.4 or more", output({ type: "random" }), [means, [">", 0.4]]),
  ...rows("the means differ by 0.4 or more", output(CAUSAL), [means, [">", 0.4]]),
  ...rows("Random vectors do it, too.", output({ type: "random" }), [(r) => Math.min(...distances(r)), [">", 0.1]]),
  ...rows("its row is 1, 0, 0, 0, 0",
    both(CAUSAL), [one(0, 0), ["==", 1]], [([a]) => most(row(a, 0).slice(1)), ["==", 0]]),
  ...rows("The second sees two words.", both(CAUSAL), [([a]) => row(a, 1).filter((v) => v > 0).length, ["==", 2]]),
  ...rows("So the results depend on the order, with no encoding at all.", output(CAUSAL), [farthest, [">", 0.1]]),
  ...rows("within one block, still a bag",
    [block(A, { return: "output", ...CAUSAL }), block(SHUFFLED, { return: "output", ...CAUSAL })],
    [([a, b]) => distance(vector(a, 4, 16), vector(b, 4, 16)), ["<", 1e-14]]),
  ...rows("its last memory of A differs from that of B",
    lab.figures.recurrent.calls(start), [memories, [">", 1]]),
  ...rows("After five words the memory of the cell differs by 1.7 between the sentences",
    lab.figures.recurrent.calls(start),
    [memories, { near: 1.7, within: 0.05 }]),
  ...rows("The sum forgets the order: at the end it is the same.",
    lab.figures.recurrent.calls(start), [bags, ["<", 1e-14]]),
  ...rows("The same word always has the same vector, wherever it stands.", [block(A, { return: "residual" })],
    [([t]) => distance(vector(t, 0, 16), vector(t, 3, 16)), ["==", 0]]),
  ...rows("it holds for all weights", Array.from({ length: 12 }, (_, seed) => output({ weights_seed: seed })).flat(),
    [farthestOfAll, ["<", 1e-13]]),
  ...rows("Five pages with the numbers 3, 1, 5, 2, 4", lab.figures.pages.calls(start),
    [([{ data }]) => start["v.pages"].filter((page, i) => data[page - 1] === [3, 1, 5, 2, 4][i]).length, ["==", 5]]),
];

export const unclaimed = [
  { says: "A rest such as 1e−16, a 1 in the 16th place behind the point", why: "how a number is written, not what one is" },
];
