// Ways of numbering positions that labs compare: a count, p/N, binary digits, and waves.

import { count } from "./vectors.js";

export const FORMS = ["integer", "normalized", "binary"];

/** Vectors of positions 0:n by a form. */
export const naive = (s, form, n = s.positions, more) =>
  ({ op: "encode", query: { type: "naive", form, d_model: s.d_model, positions: `0:${n}`, ...more } });

/** A line for each of FORMS and for waves, told apart by colour, dash and mark everywhere alike. */
export const numberingLines = (names, series) =>
  series.map((y, k) => ({ name: names[k], x: count(y.length), y, dash: (k + 1) % 4, mark: k }));
