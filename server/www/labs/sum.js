// Lab 4: what goes into the first layer is the word's vector plus that of its place, number by number. How long the two
// are, and what is left of the word.
//
// Word vectors are those that the service makes of a text and token_seed: numbers of size 1 or so, as they are in the
// original once they were multiplied by the root of d_model. embedding_scale = 1/sqrt(d_model) takes that back: the
// vectors as the original's table has them, about 1 long. It is the field v.times.

import { kept } from "../page/kept.js";
import { add, count, dot, product, size, times, vector } from "./vectors.js";

/** A small dictionary, whose words stand at places 0..63 in the figures over d. */
const WORDS = (
  "the dog bites man cat sat on mat a bird sings in tree child reads old book sun rises over sea we walk home by " +
  "night they drink cold water my sister plays piano it rains today wind is strong bread and salt good friend your " +
  "house has red door snow falls from grey sky he writes long letters she runs fast but not"
).split(" ");

const WIDTHS = [4, 8, 16, 32, 64, 128, 256];


// ---- State -------------------------------------------------------------------------------------------------------

/** What vectors of the service are multiplied by. */
const scaleOf = (width, name) => (name === "root" ? 1 : Number((1 / Math.sqrt(width)).toPrecision(4)));

const settle = (s) => ({
  embedding_scale: scaleOf(s.width, s["v.times"]),
  "v.p": Math.min(s["v.p"], s.tokens.length - 1),
  "v.c": Math.min(s["v.c"], s.width - 1),
});

// ---- Calls -------------------------------------------------------------------------------------------------------

/** What goes into the first layer, and what comes out of it: [2, T, width]. */
const block = (s, more) => ({
  op: "block",
  query: {
    type: s.type, tokens: s.tokens, width: s.width, embedding_scale: s.embedding_scale, token_seed: s.token_seed,
    weights_seed: s.weights_seed, dtype: s.dtype, return: "residual", ...more,
  },
});

const wordsAlone = (s, more) => block(s, { type: "none", ...more });

/** The vectors of places 0..n-1: [n, width]. */
const places = (s, n, width = s.width) => ({
  op: "encode",
  query: { type: s.type, d_model: width, positions: `0:${n}`, dtype: s.dtype },
});

/** The dictionary's own vectors; the layer behind them is not looked at, so it is as small as can be. */
const dictionary = (s, tokens, width) => wordsAlone(s, { tokens, width, embedding_scale: 1, d_ff: 1 });

const overWidths = (s) => WIDTHS.flatMap((width) => [dictionary(s, WORDS, width), places(s, WORDS.length, width)]);

// ---- Vectors -----------------------------------------------------------------------------------------------------

/** The first n rows of a reply. */
const rows = (reply, n, width) => count(n).map((i) => vector(reply, i, width));

/** Of length 1: products of such vectors are cosines, 1 in the same direction, 0 at right angles, -1 opposite. */
const unit = (a) => times(a, 1 / size(a));

/** Those of a vector with each of a list of unit vectors. */
const cosines = (x, units) => product(units, unit(x));

/** Where the largest stands. */
const first = (list) => list.indexOf(Math.max(...list));

/** Of all words at the places where they stand in the dictionary: how many are nearest to themselves after adding. */
function found(words, positions, width, scale) {
  const all = rows(words, WORDS.length, width);
  const units = all.map(unit);
  const sums = all.map((word, p) => add(times(word, scale), vector(positions, p, width)));
  return sums.filter((x, p) => first(cosines(x, units)) === p).length;
}

/** Mean of |cosine| between every word and every place. */
function meanCosine(words, positions, width) {
  const [all, at] = [words, positions].map((reply) => rows(reply, WORDS.length, width).map(unit));
  const sizes = all.flatMap((word) => at.map((p) => Math.abs(dot(word, p))));
  return sizes.reduce((sum, v) => sum + v, 0) / sizes.length;
}

/** f(words, positions, width) at each width. */
const eachWidth = (replies, f) => WIDTHS.map((width, k) => f(replies[2 * k], replies[2 * k + 1], width));

const countsOf = kept((...replies) => Object.fromEntries(["root", "table"].map((name) => [
  name, eachWidth(replies, (words, positions, width) => found(words, positions, width, scaleOf(width, name))),
])));

const cosinesOf = kept((...replies) => eachWidth(replies, meanCosine));

const foundCounts = (replies) => countsOf(...replies);

const meanCosines = (replies) => cosinesOf(...replies);

// ---- Pictures ----------------------------------------------------------------------------------------------------

const strip = (values, s) => ({
  rows: s.tokens.length, columns: s.width, values, domain: 3,
  at: { row: s["v.p"], column: s["v.c"] },
  rowName: (p) => `${p}, ${s.tokens[p]}`,
  labels: { row: s.tokens.map((token, p) => `${p} ${token}`) },
  symbols: { row: "p", column: "column" },
});

const choose = ({ row, column }) => ({ "v.p": row, "v.c": column });

const chosenIn = (reply, s) => reply.data[s["v.p"] * s.width + s["v.c"]];

const chosenFacts = (reply, s) => ({ word: s.tokens[s["v.p"]], p: s["v.p"], c: s["v.c"], value: chosenIn(reply, s) });

/** A reply's first n numbers; all of them as they are. */
const firstOf = ({ data }, n) => (data.length === n ? data : data.slice(0, n));

function heat(call, more) {
  const shown = kept(firstOf);
  return {
    kind: "heatmap",
    calls: (s) => [call(s)],
    data: ([reply], s) => strip(shown(reply, s.tokens.length * s.width), s),
    facts: (data, s, [reply]) => chosenFacts(reply, s),
    probe: choose,
    ...more,
  };
}

const enters = {
  kind: "flow",
  calls: (s) => [block(s), places(s, s.tokens.length)],
  data: ([stream, positions], s, words) => {
    const shape = `[${stream.shape.slice(1).join(", ")}]`;
    const texts = {
      words: s.tokens.join(" "), places: count(s.tokens.length).join(" "), vectors: shape,
      positions: `[${positions.shape.join(", ")}]`, sum: shape, layer: words.inLayer, more: words.inMore, out: shape,
    };
    const box = (name, row, more) => ({ name: words.boxes[name], text: texts[name], row, ...more });
    return {
      columns: 2, step: words.step, shape: words.shape,
      boxes: [
        box("words", 0, { column: 0, tone: 2 }), box("places", 0, { column: 1, tone: 3 }),
        box("vectors", 1, { column: 0, tone: 2 }), box("positions", 1, { column: 1, tone: 3 }),
        box("sum", 2, { tone: 0, symbol: "sum" }), box("layer", 3), box("more", 4), box("out", 5),
      ],
      links: [[0, 2], [1, 3], [2, 4], [3, 4], [4, 5], [5, 6], [6, 7]],
    };
  },
  facts: (data, s) => ({ n: s.tokens.length, width: s.width }),
};

const sum = heat(block, {
  calls: (s) => [block(s), wordsAlone(s), places(s, s.tokens.length)],
  facts: (data, s, [both, word, position]) => ({
    ...chosenFacts(both, s), ofWord: chosenIn(word, s), ofPlace: chosenIn(position, s),
  }),
});

const lengths = {
  kind: "chart",
  calls: (s) => [wordsAlone(s), places(s, s.tokens.length), block(s)],
  data: (replies, s, words) => {
    const n = s.tokens.length;
    const [word, place, both] = replies.map((reply) => rows(reply, n, s.width).map(size));
    const line = (name, y, tone, mark) => ({ name, x: count(n), y, dots: true, tone, mark, dash: mark });
    return {
      x: { title: words.axes.x, min: -0.5, max: n - 0.5, ticks: count(n) },
      y: { title: words.axes.y, min: 0, max: Math.ceil(Math.max(...word, ...place, ...both)) },
      lines: [line(words.word, word, 2, 0), line(words.place, place, 3, 1), line(words.sum, both, 0, 2)],
      at: s["v.p"],
      xName: (p) => s.tokens[p],
    };
  },
  facts: ({ lines }, s) => ({
    word: s.tokens[s["v.p"]], ofWord: lines[0].y[s["v.p"]], ofPlace: lines[1].y[s["v.p"]], root: Math.sqrt(s.width / 2),
  }),
  probe: (p) => ({ "v.p": p }),
};

const unitsOf = kept((words, n, width) => rows(words, n, width).map(unit));

/** The dictionary, and words of the sentence that are not in it. */
const known = (s) => [...new Set([...WORDS, ...s.tokens])];

const left = {
  kind: "grid",
  calls: (s) => [block(s), dictionary(s, known(s), s.width)],
  data: ([both, words], s, text) => {
    const names = known(s);
    const units = unitsOf(words, names.length, s.width);
    return {
      head: [text.word, text.nearest, text.itself, text.other, text.same],
      rows: s.tokens.map((token, p) => {
        const own = names.indexOf(token);
        const near = cosines(vector(both, p, s.width), units);
        const other = Math.max(...near.filter((_, i) => i !== own));
        return [token, names[first(near)], near[own], other, { holds: first(near) === own, text: "" }];
      }),
      at: { row: s["v.p"] }, pick: s.tokens.length,
    };
  },
  facts: (data, s) => ({
    right: data.rows.filter((row) => row[4].holds).length, n: s.tokens.length, all: known(s).length,
  }),
  probe: ({ row }) => ({ "v.p": row }),
};

const overD = (words, y) => ({
  x: { title: words.axes.x, min: WIDTHS[0] / 1.3, max: WIDTHS.at(-1) * 1.3, log: true, ticks: WIDTHS },
  y: { title: words.axes.y, ...y },
});

const atWidth = (s) => WIDTHS[WIDTHS.findLastIndex((width) => width <= s.width)];

const foundOf = {
  kind: "chart",
  calls: overWidths,
  data: (replies, s, words) => {
    const counts = foundCounts(replies);
    const line = (name, tone, mark) => ({
      name: words[name], x: WIDTHS, y: counts[name], dots: true, tone, mark, dash: mark,
    });
    const lines = [line("root", 2, 0), line("table", 4, 1)];
    return { ...overD(words, { min: 0, max: WORDS.length, ticks: [0, 16, 32, 48, 64] }), lines, at: atWidth(s) };
  },
  facts: ({ lines, at }) => ({
    at, root: lines[0].y[WIDTHS.indexOf(at)], table: lines[1].y[WIDTHS.indexOf(at)], all: WORDS.length,
  }),
  probe: (width) => ({ width }),
};

const angles = {
  kind: "chart",
  calls: overWidths,
  data: (replies, s, words) => ({
    ...overD(words, { min: 0, max: 0.6 }),
    lines: [
      { name: words.measured, x: WIDTHS, y: meanCosines(replies), dots: true, mark: 0, tone: 0 },
      { name: words.chance, x: WIDTHS, y: WIDTHS.map((d) => Math.sqrt(2 / (Math.PI * d))), dash: 2, tone: 7 },
    ],
    at: atWidth(s),
  }),
  facts: ({ lines, at }) => ({ at, mean: lines[0].y[WIDTHS.indexOf(at)] }),
  probe: (width) => ({ width }),
};

// ---- The lab -----------------------------------------------------------------------------------------------------

export const lab = {
  name: "sum",
  about: "sum",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "tokens", kind: "words", min: 1, max: 10, def: ["the", "dog", "bites", "the", "man"] },
    { name: "width", kind: "integer", min: 4, max: 256, step: 4, def: 32, symbol: "d" },
    { name: "embedding_scale", kind: "number", min: 0.05, max: 1, def: 1 },
    { name: "token_seed", kind: "integer", min: 0, max: 9999, def: 0 },
    { name: "weights_seed", kind: "choice", choices: ["0"], def: "0" },
    { name: "dtype", kind: "choice", choices: ["float64"], def: "float64" },
    { name: "return", kind: "choice", choices: ["residual"], def: "residual" },
    { name: "v.times", kind: "choice", choices: ["root", "table"], def: "root" },
    { name: "v.p", kind: "integer", min: 0, max: 9, def: 1, symbol: "p" },
    { name: "v.c", kind: "integer", min: 0, max: 255, def: 2, symbol: "column" },
  ],
  settle,
  figures: {
    enters, content: heat(wordsAlone), positions: heat((s) => places(s, s.tokens.length), { still: true }), sum,
    lengths, left, found: foundOf, angles,
  },
};
