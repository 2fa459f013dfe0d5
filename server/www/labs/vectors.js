// Lists of numbers: what labs do with vectors that the service sent.

export const count = (n) => Array.from({ length: n }, (_, i) => i);

/** Row i of a tensor whose last axis is `width` long. */
export const vector = ({ data }, i, width) => Array.from(data.slice(i * width, (i + 1) * width));

/** All rows of a tensor [n, width]. */
export const rows = (tensor) => count(tensor.shape[0]).map((i) => vector(tensor, i, tensor.shape[1]));

export const add = (a, b) => a.map((v, i) => v + b[i]);
export const minus = (a, b) => a.map((v, i) => v - b[i]);
export const times = (a, k) => a.map((v) => k * v);

/** |a|: sqrt of the sum of squares. */
export const size = (a) => Math.hypot(...a);

/** Of two points: sqrt of the sum of squared differences. */
export function distance(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    sum += (a[i] - b[i]) ** 2;
  }
  return Math.sqrt(sum);
}

/** a . b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    sum += a[i] * b[i];
  }
  return sum;
}

/** A matrix, by its rows, times a vector. */
export const product = (m, x) => m.map((row) => dot(row, x));

/** The largest of |a_i|; 0 of none. */
export const largest = (a) => a.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
