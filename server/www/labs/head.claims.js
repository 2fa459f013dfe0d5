// What lab 7 says in numbers and comparisons, with the calls that show it.

import { lab } from "./head.js";
import { count, dot, vector } from "./vectors.js";

export const figures = ["weights", "mass", "w_q", "w_k", "first", "none", "random"];

// ---- Calls -------------------------------------------------------------------------------------------------------

const start = Object.fromEntries(lab.fields.map(({ name, def }) => [name, def]));

const head = (more) => ({
  op: "head",
  query: {
    type: "sinusoidal", d_model: 64, "goal.attend": -3, positions: "0:24", causal: "1", return: "weights", ...more,
  },
});
const asJson = (call) => ({ ...call, format: "json" });
const first = () => {
  const { query: { "goal.attend": _, ...query } } = head({ goal: "first" });
  return { op: "head", query };
};
const none = (more) => {
  const { query: { d_model: _, ...query } } = head({ type: "none", ...more });
  return { op: "head", query };
};
const turn = { op: "shift", query: { type: "sinusoidal", d_model: 64, distance: -3, return: "matrix" } };

const places = { op: "encode", query: { type: "sinusoidal", d_model: 64, positions: "0:24" } };
const alike = { op: "similarity", query: { type: "sinusoidal", d_model: 64, positions: "0:24", return: "by_offset" } };

// ---- What is computed --------------------------------------------------------------------------------------------

const N = 24;
const at = ({ shape: [, n], data }, p, j) => data[p * n + j];

/** The least weight that places p of a list give to the place wanted(p). */
const least = (list, wanted) => ([w]) => Math.min(...list.map((p) => at(w, p, wanted(p))));
const back = (k) => least(count(N).slice(k), (p) => p - k);
const edge = least([0, 1, 2], () => 0);

const most = (list, of) => list.reduce((big, v, i) => Math.max(big, Math.abs(of(v, i))), 0);

/** Largest difference of weights within rows, of what each place sees. */
const uneven = ([w]) => most(count(N), (p) => most(count(p + 1), (j) => at(w, p, j) - at(w, p, 0)));
const rowsApart = ([w]) => most(count(N), (p) => most(count(N), (j) => at(w, p, j) - at(w, 0, j)));

/** W_q against the gain times the rotation with rows and columns changed. */
const turned = ([w, m, { mass }]) =>
  most(count(64), (i) => most(count(64), (j) => at(w, i, j) / mass.gain - at(m, j, i)));

const identity = ([w]) => w.data.filter((v, i) => v !== (i % 65 === 0 ? 1 : 0)).length;

/** The head of the best table for 24 random vectors, at 48 places: what each gives to the wanted one. */
const randomMass = ([m, vectors]) => {
  const [n, d] = [2 * N, vectors.shape[1]];
  const keys = count(n).map((p) => vector(vectors, p, d));
  const queries = keys.map((key) => count(d).map((r) => dot(vector(m, r, d), key)));
  const scores = queries.map((query, p) => count(p + 1).map((j) => dot(query, keys[j]) / Math.sqrt(d)));
  const lead = (p) => scores[p][p - 3] - Math.max(...scores[p].filter((_, j) => j !== p - 3));
  const gain = Math.log(N * 100) / Math.min(...count(N).slice(3).map(lead));
  return count(n).slice(3).map((p) => {
    const powers = scores[p].map((v) => Math.exp(gain * (v - scores[p][p - 3])));
    return 1 / powers.reduce((sum, v) => sum + v, 0);
  });
};
const known = (reduce) => (replies) => reduce(randomMass(replies).slice(0, N - 3));
const fresh = (reduce) => (replies) => reduce(randomMass(replies).slice(N - 3));
const lowest = (list) => Math.min(...list);

const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;

// ---- Claims ------------------------------------------------------------------------------------------------------

const rows = (says, calls, ...checks) => checks.map(([value, is]) => ({ says, calls, value, is }));

const near = (value, within) => ({ near: value, within });
const randomCalls = lab.figures.random.calls(start);

export const claims = [
  ...rows("empty but for a line three below the diagonal", [head()], [back(3), [">", 0.99]]),
  ...rows("each place gives nearly all its weight to one other place", [head()], [back(3), [">", 0.99]]),
  ...[-1, -7, -12].flatMap((k) =>
    rows("Change it: the line moves. Nothing else does.", [head({ "goal.attend": k })], [back(-k), [">", 0.99]])),
  ...[8, 16, 128].flatMap((d_model) =>
    rows("that one is as far back as the head was told", [head({ d_model })], [back(3), [">", 0.99]])),
  ...rows("each gives more than 0.99 to place 0, the nearest there is", [head()], [edge, [">", 0.99]]),
  ...rows("Look at place 0, the nearest there is", [head()], [([w]) => at(w, 1, 0), [">", 0.99]]),
  ...rows("With waves every place gives 0.999 or more to the wanted one", [head()], [back(3), [">=", 0.999]]),
  ...rows("the weight falls from a quarter to a twenty-fourth", [none()],
    [([w]) => at(w, 3, 0), ["==", 0.25]], [([w]) => at(w, 23, 20), { near: 1 / 24, within: 1e-7 }]),
  ...rows("it is the rotation of the lab before, laid on its side", [head({ return: "w_q" }), turn, asJson(head())],
    [turned, ["<", 1e-6]]),
  ...rows("as weights add up to 1", [head()],
    [([w]) => most(count(N), (p) => count(N).reduce((sum, j) => sum + at(w, p, j), 0) - 1), ["<", 1e-6]]),
  ...rows("Ones along the diagonal, zeros elsewhere", [head({ return: "w_k" })], [identity, ["==", 0]]),
  ...rows("all the others together get less than a hundredth", [head()], [([w]) => 1 - back(3)([w]), ["<", 0.01]]),
  ...rows("the wanted place would win by a little only, and softmax would still give much to its neighbours", [alike],
    [([{ data }]) => Math.exp((data[24] - data[23]) / 8), near(0.75, 0.249)]),
  ...rows("As the page opens, it is 57.5", [asJson(head())], [([{ mass }]) => mass.gain, { near: 57.5, within: 0.05 }]),
  ...rows("empty but for its first column", [first()], [least(count(N), () => 0), [">", 0.99]]),
  ...rows("That hand hardly moves, so the number is nearly 1 at all these places.", [places],
    [([{ data }]) => Math.min(...data.filter((_, i) => i % 64 === 63)), [">", 0.99]],
    [([{ data }]) => Math.min(...data.filter((_, i) => i % 64 === 1)), ["<", 0]]),
  ...rows("Each row is spread evenly over all that it sees, whatever the head", [none()], [uneven, ["==", 0]]),
  ...rows("Switch “causal” off above, and all rows are the same", [none({ causal: "0" })], [rowsApart, ["==", 0]]),
  ...rows("As much as to every other word it sees", [none()], [uneven, ["==", 0]]),
  ...rows("The service tried 100 heads with random tables", [asJson(none())],
    [([{ mass }]) => mass.tries, ["==", 100]]),
  ...rows("The best of them did no better than these rows", [asJson(none())],
    [([{ mass }]) => mass.mean - mean(count(21).map((p) => 1 / (p + 4))), { near: 0, within: 1e-12 }]),
  ...rows("With waves the weight is near 1 at all 48 places", randomCalls,
    [([, , w]) => lowest(count(2 * N).slice(3).map((p) => at(w, p, p - 3))), [">", 0.99]]),
  ...rows("With random vectors it is near 1 up to place 23, and near 0 after it.", randomCalls,
    [known(lowest), [">", 0.99]], [fresh(mean), ["<", 0.05]], [fresh((y) => Math.max(...y)), ["<", 0.2]]),
  ...rows("at the places it was made for, it works as well as with waves", randomCalls,
    [known(mean), [">", 0.99]]),
  ...rows("At the next 24 places it is lost", randomCalls, [fresh(mean), ["<", 0.05]],
    [([, vectors]) => vectors.shape[0] - N, ["==", 24]]),
  ...rows("No, it only knows the places it was made for", randomCalls, [fresh(mean), ["<", 0.05]]),
];
