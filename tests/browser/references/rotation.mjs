// SPDX-License-Identifier: MIT
//
// Lab 6, rotation: hands are sines and cosines of p w and (p + k) w, so that nothing here is multiplied with a table,
// and rings and legs have to meet them.

import { bestTable, dot, least, most, noise, range, speed } from "./_maths.mjs";

const PLACES = 128;
const FAR = 63;

const turnsBack = (s) => s.order === "sin_cos"; // as a clock's hand, as the sine goes to the right

/** The end of the hand of pair i at place p. */
function hand(s, i, p) {
  const angle = p * speed(i, s.d_model);
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  return turnsBack(s) ? { x: sine, y: cosine } : { x: cosine, y: sine };
}

const way = (s, by) => ((by >= 0) === turnsBack(s) ? -1 : 1);
const arc = (from, to, turn) => ({ ...from, toX: to.x, toY: to.y, turn });

/** At most eight pairs, from the first to the last, evenly. */
function pairs(s) {
  const all = s.d_model / 2;
  return all <= 8 ? range(all) : range(8).map((k) => Math.round((k * (all - 1)) / 7));
}

/** cos b times the hand of p, and from there to the hand of p + k. */
function legs(s, i, p) {
  const from = hand(s, i, p);
  const cosine = Math.cos(s.distance * speed(i, s.d_model));
  const corner = { x: cosine * from.x, y: cosine * from.y };
  return [corner, { ...hand(s, i, p + s.distance), fromX: corner.x, fromY: corner.y }];
}

/** What the residual of random vectors is at each place, with the table that is best for all of them. */
function missesOf({ d_model: d, distance }) {
  const [from, to] = [0, distance].map((first) => range(PLACES, first).map((p) => noise(p, { d })));
  const table = bestTable(from, to);
  return from.map((x, p) => most(table.map((row, c) => Math.abs(dot(row, x) - to[p][c]))));
}

/** Of all pairs together: the cosines of the angles between two places k apart, 1 for the same place. */
const alike = (k, d) => range(d / 2).reduce((sum, i) => sum + Math.cos(k * speed(i, d)), 0) / (d / 2);

const WIDTHS = [16, 64, 128, 512];
const STEPS = range(2 * FAR + 1, -FAR);
const curves = WIDTHS.map((d) => STEPS.map((k) => alike(k, d)));

/** The same in all states; the first k whose product is larger than that of k - 1 is where a curve rises. */
const products = {
  lines: curves.map((y) => ({ x: STEPS, y })),
  facts: Object.fromEntries(curves.map((y, n) => [
    `rise${WIDTHS[n]}`, range(FAR, 1).find((k) => y[FAR + k] > y[FAR + k - 1]),
  ])),
};

export const reference = {
  async hands(s) {
    const [p, to] = [s["v.p"], s["v.p"] + s.distance];
    const circles = pairs(s).map((i) => {
      const [from, end] = [hand(s, i, p), hand(s, i, to)];
      return { hands: [from, end, end], arcs: [arc(from, end, way(s, s.distance))] };
    });
    return { circles, at: { p, k: s.distance }, facts: { p, to, miss: 0 } };
  },

  async proof(s, _, { labels: of }) {
    const [i, p] = [s["v.i"], s["v.p"]];
    const [from, end, zero] = [hand(s, i, p), hand(s, i, p + s.distance), hand(s, i, 0)];
    const [right, up] = [{ x: from.x, y: 0 }, { ...from, fromX: from.x, fromY: 0 }];
    const others = [p, p + 7, p + 14].map((place) => place % (FAR + 1));
    return {
      circles: [
        {
          hands: [...(turnsBack(s) ? [right, up] : [up, right]), from], arcs: [arc(zero, from, way(s, 1))],
          labels: [of.a, of.sinA, of.cosA],
        },
        { hands: [from, end], arcs: [arc(from, end, way(s, s.distance))], labels: [of.b] },
        { hands: [from, ...legs(s, i, p), end], labels: [of.cosB, of.sinB] },
        { hands: others.flatMap((place) => [...legs(s, i, place), hand(s, i, place + s.distance)]) },
      ],
      facts: {
        i, p, k: s.distance,
        cosine: Math.cos(s.distance * speed(i, s.d_model)), sine: Math.sin(s.distance * speed(i, s.d_model)),
      },
    };
  },

  async matrix(s, _, { sine, cosine }) {
    const d = s.d_model;
    const names = range(d).map((j) => `${(j % 2 === 0) === turnsBack(s) ? sine : cosine} ${Math.floor(j / 2)}`);
    const entry = (row, column) => {
      const i = Math.floor(row / 2);
      const b = s.distance * speed(i, d);
      const across = (row < column) === turnsBack(s) ? Math.sin(b) : -Math.sin(b);
      return Math.floor(column / 2) !== i ? 0 : row === column ? Math.cos(b) : across;
    };
    const first = 2 * s["v.i"];
    const block = (row, column) => entry(first + row, first + column);
    return {
      rows: d, columns: d, values: range(d * d).map((at) => entry(Math.floor(at / d), at % d)), domain: 1,
      at: { row: s["v.row"], column: s["v.column"] }, labels: { row: names, column: names },
      facts: { i: s["v.i"], a: block(0, 0), b: block(0, 1), c: block(1, 0), d: block(1, 1), zeros: d * d - 2 * d },
    };
  },

  /** What waves miss is rounding alone: nothing, to 10^-15. */
  async residual(s) {
    const random = missesOf(s);
    return {
      lines: [{ x: range(PLACES), y: range(PLACES).fill(0), scale: 1e-3 }, { x: range(PLACES), y: random }],
      at: s["v.p"], facts: { waves: 0, said: 0, least: least(random), most: most(random) },
    };
  },

  products: async (s) => ({ ...products, at: s.distance }),
};
