// SPDX-License-Identifier: MIT
//
// What references share: lists of numbers and the formulas of encodings, in float64, written for the tests alone.

export const range = (n, from = 0) => Array.from({ length: n }, (_, i) => from + i);

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    sum += a[i] * b[i];
  }
  return sum;
}

export const norm = (a) => Math.sqrt(dot(a, a));

export const difference = (a, b) => a.map((v, i) => v - b[i]);

export const gap = (a, b) => norm(difference(a, b));

export const total = (list) => list.reduce((sum, v) => sum + v, 0);

/** Rows of a reply [n, width], or of one with leading axes. */
export function rowsOf({ shape, data }) {
  const width = shape.at(-1);
  return range(data.length / width).map((i) => data.slice(i * width, (i + 1) * width));
}

/** matrix [rows][columns] times vector [columns] */
export const apply = (matrix, vector) => matrix.map((row) => dot(row, vector));

/** e^x over the sum of all, less the largest x, which changes nothing but that no power overflows. */
export function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((x) => Math.exp(x - most));
  const sum = total(powers);
  return powers.map((power) => power / sum);
}

/** Of a sinusoidal encoding (Vaswani et al. 2017) the column j: which pair's, and whether it is the sine. */
const columnOf = (j, d, layout) =>
  layout === "halves" ? [j % (d / 2), j < d / 2] : [Math.floor(j / 2), j % 2 === 0];

/** The vector of place p: sines and cosines of p / base^(2i/d); d may be odd, the last column is then a sine. */
export const wave = (p, { d, base = 10000, layout = "interleaved" }) =>
  range(d).map((j) => {
    const [i, sine] = columnOf(j, d, layout);
    const angle = p / base ** ((2 * i) / d);
    return sine ? Math.sin(angle) : Math.cos(angle);
  });

/** Vectors of places, by any of the ways in which they are numbered. */
export const numberings = {
  integer: (p, { d }) => range(d).map(() => p),
  normalized: (p, { d, n }) => range(d).map(() => p / n),
  binary: (p, { d }) => range(d).map((c) => Math.floor(p / 2 ** c) % 2),
  waves: (p, { d }) => wave(p, { d }),
};
