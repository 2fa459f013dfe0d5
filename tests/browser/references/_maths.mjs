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

// ---- Random numbers from seeds ------------------------------------------------------------------------------------
//
// Philox4x32-10 (Salmon et al. 2011): a counter of four words goes through ten rounds with a key of two. Normal numbers
// by Box and Muller. Streams, the last word of the counter: 0 vectors of places, 1 of words, 2 weights of blocks.

/** The upper and the lower 32 bits of a product of 32 by 32 bits. */
function wide(a, b) {
  const [high, low] = [a >>> 16, a & 0xffff];
  const rest = low * b;
  const upper = high * b + Math.floor(rest / 0x10000);
  return [Math.floor(upper / 0x10000), Math.imul(a, b) >>> 0];
}

export function philox([c0, c1, c2, c3], [k0, k1]) {
  for (let round = 0; round < 10; round++) {
    const [a, b] = [wide(0xd2511f53, c0), wide(0xcd9e8d57, c2)];
    [c0, c1, c2, c3] = [(b[0] ^ c1 ^ k0) >>> 0, b[1], (a[0] ^ c3 ^ k1) >>> 0, a[1]];
    [k0, k1] = [(k0 + 0x9e3779b9) >>> 0, (k1 + 0xbb67ae85) >>> 0];
  }
  return [c0, c1, c2, c3];
}

/** The upper 53 bits of two words, low word first. */
const bits53 = (low, high) => high * 2 ** 21 + (low >>> 11);

export function normal(counter, seed) {
  const [a, b, c, d] = philox(counter, [seed, 0]);
  const u = (2 * bits53(a, b) + 1) / 2 ** 54;
  return Math.sqrt(-2 * Math.log(u)) * Math.cos((2 * Math.PI * bits53(c, d)) / 2 ** 53);
}

/** The random vector of place p. */
export const noise = (p, { d, seed = 0, std = 1 }) =>
  range(d).map((c) => std * normal([p >>> 0, p < 0 ? 0xffffffff : 0, c, 0], seed));

/** The vector of a word: its bytes' FNV-1a, 64 bits, is what is counted from. */
export function wordVector(word, d, seed = 0) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(word)) {
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  const [low, high] = [Number(hash & 0xffffffffn), Number(hash >> 32n)];
  return range(d).map((c) => normal([low, high, c, 1], seed));
}

// ---- A block ------------------------------------------------------------------------------------------------------

const MATRICES = ["in_proj", "out_proj", "linear1", "linear2"];

/** Weights [out, in] of a first layer from a seed: normal, of variance 2 / (in + out), in_proj as three [d, d]. */
const weightsMade = (d, seed) => {
  const sizes = { in_proj: [3 * d, d, d], out_proj: [d, d, d], linear1: [4 * d, d, 4 * d], linear2: [d, 4 * d, d] };
  return Object.fromEntries(MATRICES.map((name, m) => {
    const [out, into, fan] = sizes[name];
    const std = Math.sqrt(2 / (into + fan));
    return [name, range(out).map((r) => range(into).map((c) => std * normal([r * into + c, 0, m, 2], seed)))];
  }));
};

const kept = new Map(); // weights, as states and figures share them

function weightsOf(d, seed) {
  const key = `${d} ${seed}`;
  if (!kept.has(key)) {
    kept.set(key, weightsMade(d, seed));
  }
  return kept.get(key);
}

export const add = (a, b) => a.map((v, i) => v + b[i]);

/** To mean 0 and variance 1. */
function layerNorm(x) {
  const mean = total(x) / x.length;
  const variance = total(x.map((v) => (v - mean) ** 2)) / x.length;
  return x.map((v) => (v - mean) / Math.sqrt(variance + 1e-5));
}

/** { weights [n][n], output [n][d] } of one Transformer layer, one head, norms behind (Vaswani et al. 2017, 3.1). */
export function block(inputs, { seed, causal = false }) {
  const d = inputs[0].length;
  const { in_proj: projection, out_proj: out, linear1, linear2 } = weightsOf(d, seed);
  const [queries, keys, values] = range(3).map((k) => inputs.map((x) => apply(projection.slice(k * d, (k + 1) * d), x)));
  const weights = queries.map((q, i) =>
    softmax(keys.map((k, j) => (causal && j > i ? -Infinity : dot(q, k) / Math.sqrt(d)))));
  const output = inputs.map((x, i) => {
    const mixed = range(d).map((c) => total(weights[i].map((w, j) => w * values[j][c])));
    const between = layerNorm(add(x, apply(out, mixed)));
    const inner = apply(linear1, between).map((v) => Math.max(0, v));
    return layerNorm(add(between, apply(linear2, inner)));
  });
  return { weights, output };
}

/** What goes into a block: the vectors of words, and of their places. */
export const inputsOf = (tokens, type, d) => {
  const place = { none: () => range(d).map(() => 0), sinusoidal: (p) => wave(p, { d }), random: (p) => noise(p, { d }) }[type];
  return tokens.map((word, p) => add(wordVector(word, d), place(p)));
};

export const mean = (list) => total(list) / list.length;
export const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
export const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);

/** By how many radians pair i of d columns turns from one place to the next. */
export const speed = (i, d, base = 10000) => base ** ((-2 * i) / d);

/** How far apart the vectors of two places are that are k apart: of each pair a chord, 2 sin of half its angle. */
export const chord = (k, d, base) => norm(range(d / 2).map((i) => 2 * Math.sin((k * speed(i, d, base)) / 2)));

// ---- Least squares ------------------------------------------------------------------------------------------------

/** Unit vectors that span the same, each a sum of the columns up to its own, and these sums' numbers r (Gram, Schmidt;
    each is made twice, as the first time leaves what was rounded). */
function orthonormal(columns) {
  const units = [];
  const r = columns.map((column, j) => {
    const sums = new Array(j).fill(0);
    let v = column;
    for (const _ of [1, 2]) {
      units.forEach((unit, i) => {
        const along = dot(unit, v);
        sums[i] += along;
        v = v.map((x, k) => x - along * unit[k]);
      });
    }
    units.push(v.map((x) => x / norm(v)));
    return [...sums, norm(v)];
  });
  return { units, r }; // column j = sum over i <= j of r[j][i] units[i]
}

const transposed = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));

/** x with sum over j of x[j] r[j][i] = b[i] for all i: from the last one back. */
function solvedBack(r, b) {
  const x = [];
  for (let i = b.length - 1; i >= 0; i--) {
    x[i] = (b[i] - range(b.length - 1 - i, i + 1).reduce((sum, j) => sum + x[j] * r[j][i], 0)) / r[i][i];
  }
  return x;
}

/** y with sum over i of r[j][i] y[i] = b[j] for all j: from the first one on. */
function solvedOn(r, b) {
  const y = [];
  r.forEach((row, j) => {
    y[j] = (b[j] - dot(row.slice(0, j), y)) / row[j];
  });
  return y;
}

/** The table m whose m . from[p] miss to[p] by the least sum of squares; the smallest of them if there are several. */
export function bestTable(from, to) {
  if (from.length >= from[0].length) {
    const { units, r } = orthonormal(transposed(from));
    return transposed(to).map((b) => solvedBack(r, units.map((unit) => dot(unit, b))));
  }
  const { units, r } = orthonormal(from);
  return transposed(to).map((b) => {
    const y = solvedOn(r, b);
    return from[0].map((_, c) => y.reduce((sum, v, i) => sum + v * units[i][c], 0));
  });
}
