// Lab 7: the step of lab 6, written into the weights of a head: it looks three places back, wherever it is.

import { kept } from "../page/kept.js";
import { count, dot, vector } from "./vectors.js";


// ---- Calls -------------------------------------------------------------------------------------------------------

const head = (query) => ({ op: "head", query });

/** What every head here is asked: on which places, and whether it may look ahead. */
const asked = (s, more) => ({ positions: `0:${s.positions}`, causal: s.causal ? "1" : "0", return: s.return, ...more });

const waves = (s) => ({ type: s.type, d_model: s.d_model });
const back = (s) => ({ "goal.attend": s["goal.attend"] });

const wavesHead = (s, more) => head({ ...waves(s), ...back(s), ...asked(s, more) });
const noneHead = (s) => head({ type: "none", ...back(s), ...asked(s) });

/** The same reply as JSON: it tells what the service itself measured. */
const measured = (call) => ({ ...call, format: "json" });

/** The best table for random vectors at n places (least squares), and the vectors of twice as many. */
const randomCalls = (s) => [
  {
    op: "shift",
    query: {
      type: "random", d_model: s.d_model, distance: s["goal.attend"], positions: `0:${s.positions}`, return: "matrix",
    },
  },
  { op: "encode", query: { type: "random", d_model: s.d_model, positions: `0:${2 * s.positions}` } },
];

// ---- Weights on the wanted place ---------------------------------------------------------------------------------

/** Places that have one so far back. */
const lookers = (n, s) => count(n).slice(-s["goal.attend"]);

/** Of w [n, n]: what each of them gives to the place that is wanted. */
const massOf = ({ shape: [n], data }, s) => lookers(n, s).map((p) => data[p * n + p + s["goal.attend"]]);

/** q_p . k_j / sqrt(d) of all places, with k the vectors and q = m k: [n][n], and nothing where it may not look. */
function scoresOf(m, vectors, s) {
  const [n, d] = vectors.shape;
  const keys = count(n).map((p) => vector(vectors, p, d));
  const rows = count(d).map((r) => vector(m, r, d));
  return keys.map((key, p) => {
    const query = rows.map((row) => dot(row, key));
    return keys.map((other, j) => (s.causal && j > p ? -Infinity : dot(query, other) / Math.sqrt(d)));
  });
}

const REST = 0.01; // of all weight, for all places that are not wanted

/** The gain by the service's rule, from the smallest lead that a wanted place has; 1 where one has none. */
function gainOf(scores, s) {
  const leads = lookers(s.positions, s).map((p) => {
    const wanted = p + s["goal.attend"];
    return scores[p][wanted] - Math.max(...scores[p].slice(0, s.positions).filter((_, j) => j !== wanted));
  });
  const least = Math.min(...leads);
  return least > 0 ? Math.log(s.positions / REST) / least : 1;
}

/** softmax */
function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((v) => Math.exp(v - top));
  const sum = powers.reduce((all, v) => all + v, 0);
  return powers.map((v) => v / sum);
}

/** What a head of the best table for n random vectors gives to the wanted places, at 2 n of them. */
const randomMass = kept((m, vectors, positions, causal, back) => {
  const s = { positions, causal, "goal.attend": back };
  const scores = scoresOf(m, vectors, s);
  const gain = gainOf(scores, s);
  return lookers(scores.length, s).map((p) => softmax(scores[p].map((v) => gain * v))[p + back]);
});

const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;

// ---- Drawings ----------------------------------------------------------------------------------------------------

const matrix = ({ shape: [rows, columns], data }, s, domain = 1) => ({
  rows, columns, values: data, domain, at: { row: s["v.row"], column: s["v.column"] },
  symbols: { row: "p" },
});

const choose = ({ row, column }) => ({ "v.row": row, "v.column": column });

/** What the chosen place gives most to. */
const best = ({ columns, values }, s) => {
  const row = Array.from(values.slice(s["v.row"] * columns, (s["v.row"] + 1) * columns));
  const most = Math.max(...row);
  return { p: s["v.row"], most, to: row.indexOf(most) };
};

/** A heat map of weights of n places. */
const weights = (call) => ({
  kind: "heatmap",
  still: true,
  calls: (s) => [call(s)],
  data: ([w], s) => matrix(w, s),
  facts: best,
  probe: choose,
});

/** A table [d, d] that vectors are multiplied with; its colours reach to the next ten, but for those of ones. */
function table(reply, s, words, cell) {
  const most = reply.data.reduce((big, v) => Math.max(big, Math.abs(v)), 0);
  const name = (i) => `${i % 2 ? words.cosine : words.sine} ${Math.floor(i / 2)}`;
  const domain = most > 1 ? 10 * Math.ceil(most / 10) : 1;
  return { ...matrix(reply, s, domain), at: undefined, rowName: name, columnName: name, cell };
}

const axes = (n, words, ticks) => ({
  x: { title: words.axes.x, min: 0, max: n - 1, ticks }, y: { title: words.axes.y, min: 0, max: 1 },
});

export const lab = {
  name: "head",
  fields: [
    { name: "type", kind: "choice", choices: ["sinusoidal"], def: "sinusoidal" },
    { name: "d_model", kind: "integer", min: 8, max: 128, step: 2, def: 64, symbol: "d" },
    { name: "goal.attend", kind: "integer", min: -12, max: -1, def: -3, symbol: "k" },
    { name: "positions", kind: "count", min: 16, max: 64, def: 24 },
    { name: "causal", kind: "flag", def: true },
    { name: "return", kind: "choice", choices: ["weights"], def: "weights" },
    { name: "v.row", kind: "integer", min: 0, max: 63, def: 10, symbol: "p", most: (s) => s.positions - 1, play: true },
    { name: "v.column", kind: "integer", min: 0, max: 63, def: 7 },
  ],
  settle: (s) => ({
    "v.row": Math.min(s["v.row"], s.positions - 1),
    "v.column": Math.min(s["v.column"], s.positions - 1),
  }),
  figures: {
    weights: weights((s) => wavesHead(s)),
    mass: {
      kind: "chart",
      calls: (s) => [wavesHead(s), noneHead(s), measured(wavesHead(s)), measured(noneHead(s))],
      data: ([w, none], s, words) => ({
        ...axes(s.positions, words),
        lines: [
          { name: words.waves, x: lookers(s.positions, s), y: massOf(w, s), dots: true, mark: 1 },
          { name: words.none, x: lookers(s.positions, s), y: massOf(none, s), dots: true, mark: 2, dash: 1 },
        ],
        at: Math.max(s["v.row"], -s["goal.attend"]),
      }),
      facts: (data, s, [, , { mass }, { mass: none }]) => ({
        mean: mass.mean, least: mass.min, places: mass.queries, none: none.mean, tries: none.tries,
      }),
      probe: (p) => ({ "v.row": p }),
    },
    w_q: {
      kind: "heatmap",
      still: { "png.domain": 60 },
      calls: (s) => [wavesHead(s, { return: "w_q" }), measured(wavesHead(s))],
      data: ([w], s, words) => table(w, s, words),
      facts: ({ values, columns }, s, [, { mass: { gain } }]) => ({
        gain, k: s["goal.attend"], a: values[0] / gain, b: values[columns] / gain,
      }),
    },
    w_k: {
      kind: "heatmap",
      still: true,
      calls: (s) => [wavesHead(s, { return: "w_k" })],
      data: ([w], s, words) => table(w, s, words, 4),
      facts: ({ values }) => ({ ones: values.filter((v) => v === 1).length }),
    },
    first: {
      ...weights((s) => head({ ...waves(s), goal: "first", ...asked(s) })),
      facts: (data, s) => ({
        ...best(data, s), least: Math.min(...count(data.rows).map((p) => data.values[p * data.columns])),
      }),
    },
    none: {
      ...weights(noneHead),
      facts: ({ values, columns }, s) => {
        const p = s["v.row"];
        const row = Array.from(values.slice(p * columns, (p + 1) * columns)).filter((v) => v > 0);
        return { p, n: row.length, each: row[0], apart: Math.max(...row.map((v) => Math.abs(v - row[0]))) };
      },
    },
    random: {
      kind: "chart",
      calls: (s) => [...randomCalls(s), wavesHead({ ...s, positions: 2 * s.positions })],
      data: ([m, vectors, w], s, words) => {
        const all = lookers(2 * s.positions, s);
        const split = all.indexOf(s.positions);
        const mass = randomMass(m, vectors, s.positions, s.causal, s["goal.attend"]);
        return {
          ...axes(2 * s.positions, words, [0, s.positions, 2 * s.positions - 1]),
          lines: [
            { name: words.waves, x: all, y: massOf(w, s), dots: true, mark: 1 },
            { name: words.known, x: all.slice(0, split), y: mass.slice(0, split), dots: true, mark: 2, dash: 1 },
            { name: words.fresh, x: all.slice(split), y: mass.slice(split), dots: true, mark: 3, dash: 2 },
          ],
        };
      },
      facts: ({ lines: [w, known, fresh] }) => ({ waves: mean(w.y), known: mean(known.y), fresh: mean(fresh.y) }),
    },
  },
};
