// SPDX-License-Identifier: MIT
//
// Lab 2, naive attempts: numberings by their formulas, the word's vector from its bytes; nothing is asked of the service.

import { gap, norm, numberings, range, wordVector } from "./_maths.mjs";

const FORMS = ["integer", "normalized", "binary", "waves"];
const LONGER = 4;
const EVEN = 1 + 1e-6;

const vectors = (form, s, n = s.positions) => range(n).map((p) => numberings[form](p, { d: s.d_model, n: s.positions }));

const matrix = (rows, more) => ({ rows: rows.length, columns: rows[0].length, values: rows.flat(), ...more });

const chosen = (s) => ({ row: s["v.p"], column: s["v.c"] });

const written = (s, columns) =>
  (s.positions <= 16 ? { row: range(s.positions).map(String), column: range(s.d_model).map(columns) } : {});

const digitNames = (s) => written(s, (c) => String(2 ** c));

async function numbers(s) {
  const rows = vectors(s.form, s);
  const list = rows[s["v.p"]].flatMap((v, c) => [c ? ", " : "", v]);
  return matrix(rows, {
    domain: s.form === "integer" ? s.positions - 1 : 1, at: chosen(s),
    labels: s.form === "binary" ? digitNames(s) : written(s, String),
    facts: { p: s["v.p"], row: list },
  });
}

async function share(s) {
  const own = norm(wordVector("dog", s.d_model));
  const lines = FORMS.map((form) => {
    const n = form === "binary" ? Math.min(LONGER * s.positions, 2 ** s.d_model) : LONGER * s.positions;
    return { x: range(n), y: vectors(form, s, n).map((place) => (own / (own + norm(place))) * 100) };
  });
  const [count, , , waves] = lines;
  return {
    lines, at: s["v.p"], scale: 100,
    facts: {
      own, p: s["v.p"], integer: count.y[s["v.p"]], waves: waves.y[s["v.p"]],
      last: LONGER * s.positions - 1, least: count.y.at(-1),
    },
  };
}

async function lengths(s) {
  const texts = [s["v.short"], s["v.long"]];
  return {
    lines: texts.map((n) => ({ x: range(n), y: range(n).map((p) => p / n) })),
    at: Math.min(s["v.p"], Math.max(...texts) - 1),
    facts: { short: texts[0], long: texts[1], step: 1 / texts[0], other: 1 / texts[1] },
  };
}

const stepsBetween = (rows) => range(rows.length - 1).map((p) => gap(rows[p], rows[p + 1]));

/** Digits that are not the same in two numbers. */
const flips = (a, b) => [...(a ^ b).toString(2)].filter((digit) => digit === "1").length;

async function steps(s) {
  const at = Math.min(s["v.p"], s.positions - 2);
  const n = flips(at, at + 1);
  return {
    lines: FORMS.map((form) => ({ x: range(s.positions - 1), y: stepsBetween(vectors(form, s)), scale: s.positions })), at,
    facts: { p: at, next: at + 1, n, step: Math.sqrt(n) },
  };
}

/** Of binary numbers a distance is the root of how many digits differ; of waves it follows from p - q. */
const FAR = {
  binary: (p, q) => Math.sqrt(flips(p, q)),
  waves: (p, q, d) => {
    const pairs = range(Math.ceil(d / 2)).map((i) => (p - q) / 10000 ** ((2 * i) / d));
    const chords = pairs.map((angle) => (2 * Math.sin(angle / 2)) ** 2);
    return Math.sqrt(chords.reduce((sum, v) => sum + v, 0));
  },
};

const distances = (form) => async (s) => {
  const { d_model: d, positions: n, "v.p": p, "v.q": q } = s;
  const far = form === "waves" && d % 2 ? (a, b) => gap(numberings.waves(a, { d }), numberings.waves(b, { d })) : FAR[form];
  const k = Math.abs(p - q);
  const band = range(n - k).map((a) => far(a, a + k, d));
  return matrix(range(n).map((a) => range(n).map((b) => far(a, b, d))), {
    domain: Math.sqrt(2 * d), at: { row: p, column: q }, units: 4,
    facts: { k, at: far(p, q, d), least: Math.min(...band), most: Math.max(...band) },
  });
};

// ---- The scorecard ------------------------------------------------------------------------------------------------

const largest = (rows) => Math.max(...rows.flat().map(Math.abs));

/** What each wish asks, of a numbering with its vectors. */
const WISHES = {
  unique: ({ rows }) => {
    const closest = Math.min(...rows.flatMap((a, i) => rows.slice(i + 1).map((b) => gap(a, b))));
    return { holds: closest > 0, number: closest };
  },
  bounded: ({ form, rows, far }) =>
    ({ holds: form === "binary" || form === "waves", number: largest(rows), far: far ? largest(far) : largest(rows) }),
  same: ({ rows, longer }) => {
    const change = largest(rows.map((row, p) => row.map((v, c) => v - longer[p][c])));
    return { holds: change === 0, number: change };
  },
  beyond: ({ far }) => ({ holds: Boolean(far), number: far ? 1 : 0 }),
  even: ({ rows }) => {
    const all = stepsBetween(rows);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    return { holds: most <= least * EVEN, number: most, least };
  },
};

/** The same positions in a text twice as long, and ten times as far, where there is room for it. */
function tried(form, s) {
  const { d_model: d, positions: n } = s;
  const at = (p, length = n) => numberings[form](p, { d, n: length });
  const room = form !== "binary" || 10 * (n - 1) < 2 ** d;
  return {
    form, rows: vectors(form, s), longer: range(n).map((p) => at(p, 2 * n)),
    far: room ? range(n).map((p) => at(10 * p)) : null,
  };
}

async function scorecard(s, ask, words) {
  const all = FORMS.map((form) => tried(form, s));
  const verdicts = Object.entries(WISHES).map(([name, wish]) => [name, all.map(wish)]);
  const fulfilled = FORMS.map((_, k) => verdicts.filter(([, found]) => found[k].holds).length);
  return {
    cells: verdicts.map(([name, found]) => [
      words.criteria[name],
      ...found.map((values) => ({ ...values, text: { say: (values.holds ? words.holds : words.fails)[name], values } })),
    ]),
    facts: Object.fromEntries(FORMS.map((form, k) => [form, fulfilled[k]])),
  };
}

// ---- Digits -------------------------------------------------------------------------------------------------------

const beats = (value) => async (s) => {
  const rows = range(s.positions).map((p) => range(s.d_model).map((c) => value(p, c)));
  const { row, column } = chosen(s);
  return matrix(rows, {
    domain: 1, at: chosen(s), labels: digitNames(s),
    facts: { c: 2 ** column, length: 2 ** (column + 1), p: row, value: rows[row][column] },
  });
};

export const reference = {
  numbers, share, lengths, steps, scorecard,
  apart: distances("binary"),
  apart_waves: distances("waves"),
  digits: beats((p, c) => (p >> c) & 1),
  soft: beats((p, c) => (1 - Math.sin((Math.PI * (p + 0.5)) / 2 ** c)) / 2),
};
