// PyTorch's text for the calls that drew a figure: the same numbers without the service.
//
// It follows from the calls alone. A recipe makes of one call an expression, and defines on the way what it stands on:
// functions and lists, which the calls of a figure share. What a recipe does not know, be it one name in a query, it
// leaves alone, so that no text says something else than its call. Numbers that the service makes from a seed nobody
// else can make: where they are only a part of what is drawn the text loads them, and goes on from there. A figure of
// which PyTorch could make nothing has no such text.

import { callFormat, callTarget } from "./service.js";

class Unknown extends Error {}

const LOADS = 3; // at most in a text: more would be downloads and no PyTorch

// ---- A text in the making ----------------------------------------------------------------------------------------

/** The name under which a text has a function or a list: `name`, unless that is taken for another one. */
function named(draft, name, source) {
  for (let k = 1; ; k++) {
    const own = k === 1 ? name : name + k;
    const text = source.replaceAll("NAME", own);
    if ((draft.parts.get(own) ?? text) === text) {
      draft.parts.set(own, text);
      return own;
    }
  }
}

/** All of a query, with defaults where it says nothing; unless it has a name that they do not have. */
function read(query, defaults) {
  if (Object.keys(query).some((name) => !(name in defaults))) {
    throw new Unknown();
  }
  return { ...defaults, ...query };
}

/** One of some rows. */
function oneOf(rows, name) {
  if (!Object.hasOwn(rows, name)) {
    throw new Unknown();
  }
  return rows[name];
}

/** A number as Python's float. */
const float = (value) => (Number.isInteger(Number(value)) && !/e/.test(value) ? `${Number(value)}.0` : String(Number(value)));

const CASTS = { float64: ".double()", float32: ".float()" };

/** What makes float64 something else. */
const cast = (dtype) => (dtype === "float64" ? "" : oneOf(CASTS, dtype));

/** The name of what the service has made from a seed. */
function loaded(draft, { op, query }) {
  const load = named(draft, "load", `def NAME(call):
    reply = urlopen("${draft.origin}/v1/" + call).read()
    return torch.from_numpy(numpy.load(io.BytesIO(reply)))`);
  return named(draft, "seeded", `NAME = ${load}(${JSON.stringify(callTarget({ op, query }, "npy").replace("/v1/", ""))})`);
}

// ---- Positions ---------------------------------------------------------------------------------------------------

/** { from, to, step } of "0:64" or "0:16:0.25". */
function range(positions) {
  const parts = String(positions).split(":").map(Number);
  if (parts.length < 2 || parts.length > 3 || parts.some(Number.isNaN)) {
    throw new Unknown();
  }
  const [from, to, step = 1] = parts;
  return { from, to, step, n: Math.ceil((to - from) / step) };
}

/** Of "0:64", a list, or a list by comma. */
function places(draft, positions) {
  if (Array.isArray(positions) || /,/.test(positions)) {
    return named(draft, "p", `NAME = torch.tensor([${String(positions).split(",").join(", ")}])`);
  }
  const { from, to, step } = range(positions);
  const whole = [from, to, step].every(Number.isInteger);
  const bounds = step === 1 && from === 0 ? [to] : step === 1 ? [from, to] : [from, to, step];
  return `torch.arange(${bounds.join(", ")}${whole ? "" : ", dtype=torch.float64"})`;
}

// ---- Vectors of positions ----------------------------------------------------------------------------------------

/** How the speeds of waves and the angles of positions are computed: exactly enough, or as models in use do. */
const ARITHMETIC = {
  exact: { name: "waves", speeds: (over) => `base ** (-torch.arange(0, d, 2).double() / ${over})`, place: "p.double()" },
  float32_exp: { name: "waves_float32", speeds: (over) => `torch.exp(torch.arange(0, d, 2) * (-math.log(base) / ${over}))`, place: "p.float()" },
  float32_pow: { name: "waves_float32", speeds: (over) => `1 / base ** (torch.arange(0, d, 2) / ${over})`, place: "p.float()" },
};
ARITHMETIC.float16_positions = { ...ARITHMETIC.float32_pow, name: "waves_float16", place: "p.half().float()" };
ARITHMETIC.bfloat16_positions = { ...ARITHMETIC.float32_pow, name: "waves_bfloat16", place: "p.bfloat16().float()" };

const LAYOUTS = {
  interleaved: (both) => `torch.stack([${both}], dim=2).flatten(1)`,
  halves: (both) => `torch.cat([${both}], dim=1)`,
};

const ORDERS = { sin_cos: "a.sin(), a.cos()", cos_sin: "a.cos(), a.sin()" };

const OVER = { half: "d", half_minus_one: "max(d - 2, 1)" };

const WAVES = {
  type: "sinusoidal", d_model: 0, base: 10000, layout: "interleaved", order: "sin_cos", denominator: "half",
  odd: "truncate", position_scale: 1, offset: 0, arithmetic: "exact", positions: "",
};

function wavesSource({ arithmetic, layout, order, denominator }, odd) {
  const { speeds, place } = oneOf(ARITHMETIC, arithmetic);
  return `def NAME(p, d, base=10000.0):
    # from each position to the next, pair i turns by w[i]
    w = ${speeds(oneOf(OVER, denominator))}
    a = ${place}[:, None] * w  # angles [positions, pairs]
    return ${oneOf(LAYOUTS, layout)(oneOf(ORDERS, order))}${odd ? "[:, :d]" : ""}`;
}

/** Positions as they are, or multiplied and moved. */
function scaled(draft, { positions, position_scale: scale, offset }) {
  const p = places(draft, positions);
  const times = Number(scale) === 1 ? "" : ` * ${float(scale)}`;
  const plus = Number(offset) === 0 ? "" : ` + ${float(offset)}`;
  return times || plus ? `${p}.double()${times}${plus}` : p;
}

/** What stands behind p in a call of a function. */
const wide = (d, base) => `${d}${Number(base) === 10000 ? "" : `, ${float(base)}`}`;

function sinusoidal(draft, query, dtype = "float64") {
  const q = read(query, WAVES);
  const odd = Number(q.d_model) % 2 === 1;
  const padded = odd && oneOf({ truncate: false, zero: true }, q.odd); // a column of zeros at the end
  const d = Number(q.d_model) - padded;
  const name = named(draft, oneOf(ARITHMETIC, q.arithmetic).name, wavesSource(q, odd && !padded));
  const text = `${name}(${scaled(draft, q)}, ${wide(d, q.base)})`;
  const shorter = q.arithmetic !== "exact" && dtype === "float32" ? "" : cast(dtype); // replays are float32 as they are
  return (padded ? `torch.nn.functional.pad(${text}, (0, 1))` : text) + shorter;
}

const NAIVE = { type: "naive", form: "integer", d_model: 0, seq_len: 0, positions: "" };

const FORMS = {
  integer: (p, { d_model: d }, to) => `${p}[:, None]${to}.expand(-1, ${d})`,
  normalized: (p, { d_model: d, n }, to) => `(${p}${to} / ${n})[:, None].expand(-1, ${d})`,
  binary: (p, { d_model: d }, to) => `(${p}[:, None] >> torch.arange(${d}) & 1)${to}`,
};

function naive(draft, query, dtype) {
  const q = read(query, NAIVE);
  const n = q.seq_len || range(q.positions).n;
  return oneOf(FORMS, q.form)(places(draft, q.positions), { ...q, n }, oneOf(CASTS, dtype));
}

/** Vectors [positions, d]. */
const vectors = (draft, query, dtype = "float64") => oneOf({ sinusoidal, naive }, query.type)(draft, query, dtype);

// ---- A recipe for each operation: (draft, call) to an expression ---------------------------------------------------

const encode = (draft, { query: { dtype = "float32", ...query } }) => vectors(draft, query, dtype);

function similarity(draft, { query: { dtype = "float32", return: wanted, ...query } }) {
  const pe = named(draft, "pe", `NAME = ${vectors(draft, query)}`);
  const means = () => named(draft, "by_offset", `def NAME(gram):  # the mean of each diagonal
    return torch.stack([gram.diagonal(k).mean() for k in range(1 - len(gram), len(gram))])`);
  const gram = `${pe} @ ${pe}.T`;
  const rows = { gram: () => (cast(dtype) ? `(${gram})` : gram), by_offset: () => `${means()}(${gram})` };
  return oneOf(rows, wanted)() + cast(dtype);
}

const SPEEDS = "base ** (-torch.arange(0, d, 2).double() / d)";

/** Of two positions only: what is asked for is how long the waves are, which no position changes. */
function wavelengths(draft, query) {
  const { d_model, base } = read(query, { ...WAVES, layout: "interleaved" });
  const name = named(draft, "wavelengths", `def NAME(d, base=10000.0):
    return 2 * math.pi * base ** (torch.arange(0, d, 2).double() / d)`);
  return `{"wavelengths": ${name}(${wide(d_model, base)})}`;
}

function properties(draft, { query }) {
  if (query.type === "sinusoidal" && range(query.positions).n === 2) {
    return wavelengths(draft, query);
  }
  const pe = vectors(draft, query);
  const name = named(draft, "properties", `def NAME(pe):
    steps = (pe[1:] - pe[:-1]).norm(dim=1)
    return {"unique": {"closest": torch.pdist(pe).min()},
            "bounded": {"largest": pe.abs().max()},
            "step": {"min": steps.min(), "max": steps.max()}}`);
  return `${name}(${pe})`;
}

/** PE(p + k) = M PE(p): blocks of two by two along the diagonal. */
const TURNS = { sin_cos: "b.cos(), b.sin(), -b.sin(), b.cos()", cos_sin: "b.cos(), -b.sin(), b.sin(), b.cos()" };

function turn(draft, k, { d_model, base = 10000, order = "sin_cos" }) {
  const name = named(draft, "turn", `def NAME(k, d, base=10000.0):  # PE(p + k) = turn(k, d) @ PE(p)
    b = k * ${SPEEDS}
    blocks = torch.stack([${oneOf(TURNS, order)}], dim=1)
    return torch.block_diag(*blocks.reshape(-1, 2, 2))`);
  return `${name}(${k}, ${wide(d_model, base)})`;
}

/** No map takes random vectors on: the best one is that with the least squares. */
function fitted(draft, { type, d_model, seed, distance, positions }) {
  const k = Number(distance);
  const { from, to, step, n } = range(positions);
  if (step !== 1) {
    throw new Unknown();
  }
  const ends = `${from + Math.min(0, k)}:${to + Math.max(0, k)}`;
  const more = seed === undefined ? {} : { seed };
  const pe = loaded(draft, { op: "encode", query: { type, d_model, ...more, positions: ends, dtype: "float64" } });
  const rows = (at) => `${pe}[${at}:${at + n}]`;
  return `torch.linalg.lstsq(${rows(Math.max(0, -k))}, ${rows(Math.max(0, k))}, driver="gelsd").solution.T`;
}

const SHIFT = { type: "", d_model: 0, distance: 0, positions: "", dtype: "float64", return: "" };

function shift(draft, { query }) {
  const random = query.type === "random";
  const q = read(query, random ? { ...SHIFT, seed: undefined } : { ...SHIFT, base: 10000, order: "sin_cos" });
  oneOf({ matrix: true }, q.return);
  oneOf({ sinusoidal: Number(q.d_model) % 2 === 0 || undefined, random }, q.type);
  return (random ? fitted(draft, q) : turn(draft, q.distance, q)) + cast(q.dtype);
}

// ---- A head that is built ----------------------------------------------------------------------------------------

const HEAD = {
  type: "", d_model: 0, base: 10000, order: "sin_cos", goal: "", "goal.attend": "", positions: "", causal: "0", return: "weights",
};

/** j: the place that each of the last queries wants. */
const built = (draft, causal) => named(draft, "head", `def NAME(q, pe, j):
    s = q @ pe.T / pe.shape[1] ** 0.5${causal ? `
    # nobody looks ahead
    s = s.masked_fill(torch.ones_like(s).triu(1) == 1, -math.inf)` : ""}
    i = torch.arange(len(s) - len(j), len(s))
    others = s[i].scatter(1, j[:, None], -math.inf).max(dim=1).values
    # so large that all others together get a hundredth
    gain = math.log(len(s) / 0.01) / (s[i, j] - others).min()
    return gain, torch.softmax(gain * s, dim=1)`);

/** Equal tokens have equal scores in any head. */
function even(draft, { positions, causal }) {
  const { n } = range(positions);
  const seen = named(draft, "seen", `NAME = torch.ones(${n}, ${n}, dtype=torch.float64)${causal ? ".tril()" : ""}`);
  return `${seen} / ${seen}.sum(dim=1, keepdim=True)`;
}

function head(draft, { query }) {
  const q = read(query, HEAD);
  const causal = ["1", "true"].includes(String(q.causal));
  if (q.type === "none") {
    return oneOf({ weights: even }, q.return)(draft, { ...q, causal });
  }
  const k = q.goal === "first" ? 0 : Number(q["goal.attend"]);
  const { n } = range(q.positions);
  if (q.type !== "sinusoidal" || q.d_model % 2 || q.order !== "sin_cos" || !(k < 0 || q.goal === "first")) {
    throw new Unknown();
  }
  if (q.return === "w_k") {
    return `torch.eye(${q.d_model}, dtype=torch.float64)`;
  }
  const pe = named(draft, "pe", `NAME = ${sinusoidal(draft, { type: q.type, d_model: q.d_model, base: q.base, positions: q.positions })}`);
  const first = q.goal === "first"; // the slowest cosine, which is nearly 1, times the vector of the first place
  const table = first ? undefined : `${turn(draft, k, q)}.T`;
  const ask = first ? `${pe}[:, -1:] * ${pe}[0]` : `${pe} @ ${table}`;
  const wanted = first ? `torch.zeros(${n}, dtype=torch.long)` : `torch.arange(${n + k})`;
  const made = `${built(draft, causal)}(${ask}, ${pe}, ${wanted})`;
  const gained = () => `${named(draft, "gain", `NAME, _ = ${made}`)} * ${table}`;
  return oneOf({ weights: () => `${made}[1]`, ...(table && { w_q: gained }) }, q.return)();
}

// ---- What is posted, and what is made from seeds -------------------------------------------------------------------

function attention(draft, { body = {} }) {
  const { q, k, v, scale, dtype = "float32", return: wanted } = read(body, { q: [], k: [], v: undefined, scale: undefined, dtype: "float32", return: "" });
  if (![q, k].every((rows) => Array.isArray(rows?.[0]) && typeof rows[0][0] === "number")) {
    throw new Unknown();
  }
  oneOf({ float64: 1, float32: 1 }, dtype);
  const list = (name, rows) => named(draft, name, `NAME = torch.tensor([${rows.map((row) => `[${row.join(", ")}]`).join(", ")}], dtype=torch.${dtype})`);
  const [queries, keys] = [list("q", q), list("k", k)];
  const divided = scale === undefined ? ` / ${k[0].length} ** 0.5` : Number(scale) === 1 ? "" : ` * ${float(scale)}`;
  const logits = `${queries} @ ${keys}.T${divided}`;
  const weights = `torch.softmax(${logits}, dim=-1)`;
  return oneOf({ logits: () => logits, weights: () => weights, output: () => `${weights} @ ${list("v", v)}` }, wanted)();
}

/** What goes into the first layer: word vectors, which are made from seeds, and those of places. */
function block(draft, { query }) {
  const { type, tokens, width, dtype = "float32", return: wanted } = query;
  oneOf({ sinusoidal: true }, type);
  oneOf({ residual: true }, wanted);
  oneOf({ float64: true }, dtype);
  const words = loaded(draft, { op: "block", query: { ...query, type: "none" } });
  return `${words}[0] + ${sinusoidal(draft, { type, d_model: width, positions: `0:${tokens.length}` }, dtype)}`;
}

const RECIPES = { encode, similarity, properties, shift, head, attention, block };

// ---- The text ----------------------------------------------------------------------------------------------------

const IMPORTS = [["io", /\bio\./], ["math", /\bmath\./], ["numpy", /\bnumpy\./], ["torch", /\btorch\./]];

const importLines = (text) => [
  ...IMPORTS.filter(([, used]) => used.test(text)).map(([name]) => `import ${name}`),
  ...(/\burlopen\(/.test(text) ? ["from urllib.request import urlopen"] : []),
];

/** Numbers that come from a seed, in a reply of one tensor. */
const seeded = (call) =>
  !call.body && callFormat(call) === "npy" && (call.op === "block" || (call.op === "encode" && call.query.type === "random"));

/** An expression for a call, and whether PyTorch made any of it; nothing is left of what a recipe began and gave up. */
function expression(draft, call) {
  const before = { parts: new Map(draft.parts) };
  try {
    return { text: oneOf(RECIPES, call.op)(draft, call), made: true };
  } catch (error) {
    if (!(error instanceof Unknown)) {
      throw error;
    }
    Object.assign(draft, before);
    return seeded(call) ? { text: loaded(draft, call), made: false } : null;
  }
}

/**
 * { text, names } of PyTorch's program for some calls, and under which name each call's numbers are in it; null where
 * it could make none of them, or not all.
 */
export function torchProgram(calls, origin) {
  const draft = { origin, parts: new Map() };
  const all = calls.map((call) => expression(draft, call));
  const loads = [...draft.parts.keys()].filter((name) => name.startsWith("seeded")).length;
  if (all.includes(null) || !all.some(({ made }) => made) || loads > LOADS) {
    return null;
  }
  const names = new Map(); // of two calls with the same numbers the second needs no line
  const lines = [];
  all.forEach(({ text }, i) => {
    if (!names.has(text)) {
      names.set(text, i ? `x${i + 1}` : "x");
      lines.push(`${names.get(text)} = ${text}`);
    }
  });
  const parts = [...draft.parts.values()];
  const [functions, lists] = [true, false].map((is) => parts.filter((part) => part.startsWith("def ") === is));
  const body = [...lists, ...lines].join("\n");
  const text = [importLines([...functions, body].join("\n")).join("\n"), ...functions, body].join("\n\n");
  return { text, names: all.map((one) => names.get(one.text)) };
}
