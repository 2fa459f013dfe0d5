// SPDX-License-Identifier: MIT
//
// Random states of a lab: values of its fields, the same for the same seed.

/** Numbers in 0..1, the same for the same seed (mulberry32, by Tommy Ettinger). */
export function randomFrom(start) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORDS = ["the", "dog", "bites", "man", "Hund", "beißt", "Ω", "a&b", "100%", "it's", "\"q\"", "x=1", "= a", "+", "日本", "ö", "."];

const pick = (list, random) => list[Math.floor(random() * list.length)];

/** Small numbers more often than large ones, as most that can go wrong goes wrong there. */
const whole = ({ min, max, step = 1 }, random) => min + step * Math.floor(((max - min) / step + 1) * random() ** 2 * 0.999999);

/** Every third word is one that stands there already, so that there are twins, and more than two of a kind. */
function sentence(n, random) {
  const words = [];
  while (words.length < n) {
    words.push(pick(random() < 0.35 && words.length ? words : WORDS, random));
  }
  return words;
}

const values = {
  integer: whole,
  count: whole,
  number: ({ min, max, scale }, random) =>
    Number((scale === "log" ? min * (max / min) ** random() : min + (max - min) * random()).toPrecision(4)),
  numbers: ({ min, max, def }, random) => def.map(() => Number((min + (max - min) * random()).toPrecision(2))),
  choice: ({ choices }, random) => pick(choices, random),
  flag: (_, random) => random() < 0.5,
  words: ({ min = 1, max }, random) => sentence(whole({ min, max }, random), random),
};

/** Changes of most fields; not of all, as what a lab makes of one may overrule others. */
export const randomState = (fields, random) =>
  Object.fromEntries(fields.filter(() => random() < 0.8).map((field) => [field.name, values[field.kind](field, random)]));
