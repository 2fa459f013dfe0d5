// Calls that several labs make, and how columns lie.

/** The vectors of the encoding that a lab's fields say; count n is the positions 0:n. */
export const encode = (s, { positions, ...more }) => ({
  op: "encode",
  query: {
    type: s.type, d_model: s.d_model, base: s.base, layout: s.layout,
    positions: typeof positions === "number" ? `0:${positions}` : positions,
    ...more,
  },
});

/** The columns of sine and cosine of pair i, in either layout. */
export const pairColumns = (s, i) => (s.layout === "halves" ? [i, i + s.d_model / 2] : [2 * i, 2 * i + 1]);
