// What lab 0 says in numbers and comparisons, with the calls that show it.

export const figures = [
  "questions", "labels", "products", "scores", "softmax", "weights", "values", "mixed", "all",
];

// ---- Calls -------------------------------------------------------------------------------------------------------

const ASKS = [2, 0, 2, 0]; // "chase"
const LABELS = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]];
const VALUES = [[3, 2], [1, 0], [0, 3]];
const ALL = [[0, 2, 0, 0], ASKS, [0, 1, 2, 0]];

const attention = (more) => ({ op: "attention", body: { q: [ASKS], k: LABELS, dtype: "float64", ...more } });

const products = attention({ scale: 1, return: "logits" });
const scores = attention({ return: "logits" });
const weights = attention({ return: "weights" });
const undivided = attention({ scale: 1, return: "weights" });
const output = attention({ v: VALUES, return: "output" });
const backwards = attention({ k: [...LABELS].reverse(), v: [...VALUES].reverse(), return: "output" });
const all = attention({ q: ALL, return: "weights" });
const changed = attention({ k: [[1, 0, 0, 0], ...LABELS.slice(1)], return: "weights" });
const nothing = attention({ q: [[0, 0, 0, 0]], return: "weights" });

/** The same lists `times` times over, undivided. */
const longer = (times) => {
  const repeat = (list) => Array.from({ length: times }, () => list).flat();
  return attention({ q: [repeat(ASKS)], k: LABELS.map(repeat), scale: 1, return: "weights" });
};

// ---- Claims ------------------------------------------------------------------------------------------------------

const at = (i) => ([{ data }]) => data[i];
const total = ([{ data }]) => data.reduce((sum, v) => sum + v, 0);
const near = (value, within = 0.0005) => ({ near: value, within });
const least = ([{ data }]) => Math.min(...data);

/** How many times more weight a score gets that is 1 larger: that of cats beside that of mice. */
const ofOneMore = ([{ data: s }, { data: w }]) => (w[0] / w[2]) ** (1 / (s[0] - s[2]));

const rows = (says, call, ...checks) => checks.map(([value, is]) => ({ says, calls: [call].flat(), value, is }));

const NINE = "“chase” takes 0.665 from “cats”, and “cats” takes 0.576 from “chase”";

export const claims = [
  ...rows("“chase” fits “cats” best: the product is 4.", products, [at(0), ["==", 4]], [at(1), ["<", 4]], [at(2), ["<", 4]]),
  ...rows("It has nothing in common with its own label, which says action and nothing else: 0.", products,
    [at(1), ["==", 0]]),
  ...rows("The products: 4 for cats, 0 for chase, 2 for mice.", products,
    [at(0), ["==", 4]], [at(1), ["==", 0]], [at(2), ["==", 2]]),
  ...rows("The scores: 2 for cats, 0 for chase, 1 for mice.", scores,
    [at(0), ["==", 2]], [at(1), ["==", 0]], [at(2), ["==", 1]]),
  ...rows("The weights: 0.665 for cats, 0.090 for chase, 0.245 for mice; their sum is 1.", weights,
    [at(0), near(0.665)], [at(1), near(0.09)], [at(2), near(0.245)], [total, near(1, 1e-14)]),
  ...rows("Three columns, 0.665, 0.090 and 0.245 high.", weights, [at(0), near(0.665)], [at(1), near(0.09)], [at(2), near(0.245)]),
  ...["e is the number 2.718…", "First $e$, which is 2.718…, is taken to the power of each score"].flatMap((says) =>
    rows(says, [scores, weights], [ofOneMore, near(2.718)])),
  ...rows("“cats” gets 0.665, two thirds of the attention.", weights, [at(0), near(2 / 3, 0.01)]),
  ...rows("“chase” gets 0.090: little, but never nothing.", weights, [at(1), near(0.09)], [least, [">", 0]]),
  ...rows("The sum of the weights is 1.", weights, [total, near(1, 1e-14)]),
  ...rows("One label changed, and each weight is another one.", [weights, changed],
    [([a, b]) => Math.min(...[0, 1, 2].map((j) => Math.abs(a.data[j] - b.data[j]))), [">", 0.05]]),
  ...rows("what one word loses the others gain", [weights, changed],
    [([a, b]) => b.data[0] - a.data[0], ["<", 0]],
    [([a, b]) => Math.min(b.data[1] - a.data[1], b.data[2] - a.data[2]), [">", 0]]),
  ...rows("Without it the weight of “cats” would be 0.867 instead of 0.665.", [undivided, weights],
    [at(0), near(0.867)], [([, { data }]) => data[0], near(0.665)]),
  ...rows("Without the division they would be 0.867, 0.016 and 0.117 high.", undivided,
    [at(0), near(0.867)], [at(1), near(0.016)], [at(2), near(0.117)]),
  ...rows("With lists of 16 numbers, these same ones four times over, it would be 0.9997", longer(4),
    [at(0), near(0.9997, 0.00005)]),
  ...rows("each number in it lies between the smallest and the largest that was handed over", output,
    [([{ data }]) => Math.min(...data), [">", 0]], [at(0), ["<", 3]], [at(1), ["<", 3]]),
  ...rows("It comes out with 2.086, as it is cats who chase.", output, [at(0), near(2.086)]),
  ...rows("In “mice chase cats” the same three words stand in another order, and “chase” gets the same 2.086.", [output, backwards],
    [([a, b]) => Math.max(...[0, 1].map((j) => Math.abs(a.data[j] - b.data[j]))), ["<", 1e-15]],
    [([, { data }]) => data[0], near(2.086)]),
  ...rows("The result for “chase”: danger 2.086, softness 2.065.", output, [at(0), near(2.086)], [at(1), near(2.065)]),
  ...rows("Three words have nine weights.", all, [([{ data }]) => data.length, ["==", 9]]),
  ...rows(NINE, all, [at(3), near(0.665)], [at(1), near(0.576)]),
  ...rows("all weights are equal: a third of each word", nothing,
    [([{ data }]) => Math.max(...Array.from(data, (v) => Math.abs(v - 1 / 3))), ["<", 1e-15]]),
];
