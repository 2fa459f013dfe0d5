// Lab 3: sine and cosine waves of many lengths, side by side, number the positions.

import { encode, pairColumns } from "./calls.js";

const rows = (s) => encode(s, { positions: s.positions });

/** Position, pair and column of the chosen number. */
const chosen = (s) => ({ p: Math.min(s["v.p"], s.positions - 1), i: Math.min(s["v.i"], s.d_model / 2 - 1) });

const columnOf = (values, shape, j) => Array.from({ length: shape[0] }, (_, p) => values[p * shape[1] + j]);
const count = (n) => Array.from({ length: n }, (_, i) => i);

export const lab = {
  name: "waves",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "d_model", kind: "integer", min: 2, max: 512, step: 2, def: 64, symbol: "d" },
    { name: "base", kind: "number", min: 2, max: 1000000, def: 10000, scale: "log", symbol: "base" },
    { name: "layout", kind: "choice", choices: ["interleaved", "halves"], def: "interleaved" },
    { name: "positions", kind: "count", min: 2, max: 512, def: 64 },
    { name: "v.p", kind: "integer", min: 0, max: 511, def: 10, symbol: "p" },
    { name: "v.i", kind: "integer", min: 0, max: 255, def: 2, symbol: "i" },
  ],
  settle: (s) => ({ d_model: s.d_model - (s.d_model % 2) }),
  figures: {
    matrix: {
      kind: "heatmap",
      still: true,
      calls: (s) => [rows(s)],
      data: ([{ shape, data }], s, words) => ({
        rows: shape[0], columns: shape[1], values: data, domain: 1,
        columnName: (j) => columnName(j, s, words),
        at: { row: chosen(s).p, column: pairColumns(s, chosen(s).i)[0] },
        symbols: { row: "p", column: "i" },
      }),
      probe: ({ row, column }, s) => ({ "v.p": row, "v.i": pairOf(column, s) }),
      torch: (s) => `import torch
p = torch.arange(${s.positions}).unsqueeze(1)
w = ${s.base} ** (-torch.arange(0, ${s.d_model}, 2) / ${s.d_model})
x = ${s.layout === "halves" ? "torch.cat([torch.sin(p * w), torch.cos(p * w)], dim=1)" : "torch.stack([torch.sin(p * w), torch.cos(p * w)], dim=2).flatten(1)"}`,
    },
    curves: {
      kind: "chart",
      calls: (s) => [rows(s)],
      data: ([{ shape, data }], s, words) => {
        const [sine, cosine] = pairColumns(s, chosen(s).i);
        const line = (j, name, dash) => ({ name, x: count(shape[0]), y: columnOf(data, shape, j), dots: shape[0] <= 128, dash });
        return {
          x: { title: words.axes.x, min: 0, max: shape[0] - 1 },
          y: { title: words.axes.y, min: -1, max: 1 },
          lines: [line(sine, words.sine, 0), line(cosine, words.cosine, 2)],
          at: chosen(s).p,
        };
      },
      facts: (data, s) => ({ i: chosen(s).i, length: wavelength(s, chosen(s).i), p: chosen(s).p }),
      probe: (x) => ({ "v.p": x }),
    },
    lengths: {
      kind: "chart",
      calls: (s) => [{ op: "properties", query: { type: s.type, d_model: s.d_model, base: s.base, layout: s.layout, positions: s.positions === 1 ? "0:2" : `0:${s.positions}` }, format: "json" }],
      data: ([reply], s, words) => ({
        x: { title: words.axes.x, min: 0, max: Math.max(1, s.d_model / 2 - 1) },
        y: { title: words.axes.y, min: 1, max: 10 ** Math.ceil(Math.log10(reply.wavelengths.at(-1)) + 1e-9), log: true },
        lines: [{ name: words.line, x: count(s.d_model / 2), y: reply.wavelengths, dots: s.d_model <= 128 }],
        at: chosen(s).i,
      }),
      facts: (data) => ({ first: data.lines[0].y[0], last: data.lines[0].y.at(-1) }),
      probe: (x) => ({ "v.i": x }),
    },
  },
};

const wavelength = (s, i) => 2 * Math.PI * s.base ** ((2 * i) / s.d_model);

const pairOf = (column, s) => (s.layout === "halves" ? column % (s.d_model / 2) : Math.floor(column / 2));

const columnName = (j, s, words) => {
  const [sine] = pairColumns(s, pairOf(j, s));
  return `${j} (${j === sine ? "sin" : "cos"}, ${words.pair} ${pairOf(j, s)})`;
};
