// SPDX-License-Identifier: MIT
//
// Lab 4, the sum: vectors of words follow from their bytes and a seed, those of places from the formula.

import { add, dot, mean, norm, range, wave, wordVector } from "./_maths.mjs";

/** The 64 words of the figures over d, and of the dictionary. */
const DICTIONARY = [
  "the dog bites man cat sat on mat a bird sings in tree child reads old book sun rises over sea we walk home",
  "by night they drink cold water my sister plays piano it rains today wind is strong bread and salt good",
  "friend your house has red door snow falls from grey sky he writes long letters she runs fast but not",
].join(" ").split(" ");

const WIDTHS = [4, 8, 16, 32, 64, 128, 256];

const made = new Map();

/** A word's vector; a shorter one is the beginning of a longer one. */
function vectorOf(word, width, { token_seed: seed }) {
  const key = `${seed} ${word}`;
  if (!made.has(key)) {
    made.set(key, wordVector(word, WIDTHS.at(-1), seed));
  }
  return made.get(key).slice(0, width);
}

/** What the table's words are multiplied by: the root of d takes them to what the service makes, or they stay. */
const factor = (times, width) => (times === "root" ? 1 : Number((width ** -0.5).toPrecision(4)));

const placesOf = (words, width) => words.map((_, p) => wave(p, { d: width }));

/** The sentence's words, places and sums, as lists of vectors. */
function sentence(s) {
  const by = factor(s["v.times"], s.width);
  const words = s.tokens.map((token) => vectorOf(token, s.width, s).map((v) => by * v));
  const places = placesOf(s.tokens, s.width);
  return { words, places, sums: words.map((word, p) => add(word, places[p])) };
}

/** A row for each word; the chosen number of each of the three is what the text tells. */
function strip(which, s) {
  const parts = sentence(s);
  const [p, c] = [s["v.p"], s["v.c"]];
  return {
    rows: s.tokens.length, columns: s.width, values: parts[which].flat(), domain: 3, at: { row: p, column: c },
    labels: { row: s.tokens.map((token, place) => `${place} ${token}`), column: range(s.width) },
    facts: {
      word: s.tokens[p], p, c, value: parts[which][p][c], ofWord: parts.words[p][c], ofPlace: parts.places[p][c],
    },
  };
}

const cosine = (a, b) => dot(a, b) / (norm(a) * norm(b));

/** Which of a list is in the direction of x, and all cosines. */
function nearest(x, list) {
  const cosines = list.map((word) => cosine(x, word));
  return { cosines, at: cosines.indexOf(Math.max(...cosines)) };
}

const dictionaryAt = (width, s) => DICTIONARY.map((word) => vectorOf(word, width, s));

const atWidth = (s) => WIDTHS.filter((width) => width <= s.width).at(-1);

/** How many of the dictionary's words are nearest to themselves, each in the place where it stands. */
function foundAt(times, width, s) {
  const words = dictionaryAt(width, s);
  const places = placesOf(words, width);
  const by = factor(times, width);
  return words.filter((word, p) => nearest(add(word.map((v) => by * v), places[p]), words).at === p).length;
}

/** The mean size of the cosines of all words with all places. */
function commonAt(width, s) {
  const words = dictionaryAt(width, s);
  const places = placesOf(words, width);
  return mean(words.flatMap((word) => places.map((place) => Math.abs(cosine(word, place)))));
}

export const reference = {
  async enters(s, ask, words) {
    const shape = `[${s.tokens.length}, ${s.width}]`;
    const texts = {
      words: s.tokens.join(" "), places: range(s.tokens.length).join(" "), vectors: shape, positions: shape, sum: shape,
      layer: words.inLayer, more: words.inMore, out: shape,
    };
    return {
      boxes: Object.entries(texts).map(([name, text]) => [words.boxes[name], text]),
      links: [[0, 2], [1, 3], [2, 4], [3, 4], [4, 5], [5, 6], [6, 7]],
      facts: { n: s.tokens.length, width: s.width },
    };
  },

  content: async (s) => strip("words", s),
  positions: async (s) => strip("places", s),
  sum: async (s) => strip("sums", s),

  async lengths(s) {
    const { words, places, sums } = sentence(s);
    const p = s["v.p"];
    return {
      lines: [words, places, sums].map((list) => ({ x: range(s.tokens.length), y: list.map(norm) })),
      at: p,
      facts: { word: s.tokens[p], ofWord: norm(words[p]), ofPlace: norm(places[p]), root: Math.sqrt(s.width / 2) },
    };
  },

  async left(s) {
    const names = [...new Set([...DICTIONARY, ...s.tokens])];
    const known = names.map((name) => vectorOf(name, s.width, s));
    const cells = sentence(s).sums.map((x, p) => {
      const { cosines, at } = nearest(x, known);
      const own = names.indexOf(s.tokens[p]);
      const other = Math.max(...cosines.filter((_, i) => i !== own));
      return [s.tokens[p], names[at], cosines[own], other, { holds: at === own, text: "" }];
    });
    const right = cells.filter((row) => row[4].holds).length;
    return { cells, at: { row: s["v.p"] }, facts: { right, n: s.tokens.length, all: names.length } };
  },

  async found(s) {
    const [root, table] = ["root", "table"].map((times) => WIDTHS.map((width) => foundAt(times, width, s)));
    const at = atWidth(s);
    const here = WIDTHS.indexOf(at);
    return {
      lines: [{ x: WIDTHS, y: root }, { x: WIDTHS, y: table }],
      at, facts: { at, root: root[here], table: table[here], all: 64 },
    };
  },

  async angles(s) {
    const y = WIDTHS.map((width) => commonAt(width, s));
    const at = atWidth(s);
    return {
      lines: [{ x: WIDTHS, y }, { x: WIDTHS, y: WIDTHS.map((d) => Math.sqrt(2 / Math.PI / d)) }],
      at, facts: { at, mean: y[WIDTHS.indexOf(at)] },
    };
  },
};
