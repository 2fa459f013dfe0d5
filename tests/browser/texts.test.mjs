// SPDX-License-Identifier: MIT
//
// What "Show the call" shows runs as it stands, in the language that it names, and makes what was drawn: the bytes, or
// the numbers. Of every figure, as its page opens and in random states; texts that figures share run once.
//
// Where torch is not installed its texts are left out, and `skip` says so; `make torch-texts` sets TORCH, which makes that
// a failure.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { daemonStart, labs, source, top } from "./_page.mjs";
import { npyNumbers } from "./_reference.mjs";
import { randomFrom, randomState } from "./_states.mjs";

const STATES = 3;
const seed = Number(process.env.SEED ?? 1);
const { callFormat, callRequest, callTarget } = await source("page/service.js");
const { callTexts } = await source("page/texts.js");
const { torchProgram } = await source("page/torch.js");
const { fieldsQuery, fieldsRead } = await source("page/fields.js");
const AsyncFunction = (async () => {}).constructor;

const has = (module) => spawnSync("/usr/bin/python3", ["-c", `import ${module}`]).status === 0;
const [numpy, torch] = [has("numpy"), has("numpy, torch")];
const daemon = await daemonStart();
const origin = `http://127.0.0.1:${daemon.port}`;
const folder = mkdtempSync(join(tmpdir(), "posenc-texts-"));

// ---- Python -------------------------------------------------------------------------------------------------------

const python = spawn("/usr/bin/python3", [join(top, "tests", "browser", "_texts.py")], { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: python.stdout })[Symbol.asyncIterator]();

/** Differences of what a program made, by the names of its numbers. */
async function pythonRuns(text, names, wanted, allowed) {
  python.stdin.write(`${JSON.stringify({ text, names, wanted, allowed })}\n`);
  const { worst, fault } = JSON.parse((await answers.next()).value);
  assert.ok(worst, `${fault}\n${text}`);
  return worst;
}

after(async () => {
  python.stdin.end();
  await daemon.stop();
  rmSync(folder, { recursive: true });
});

// ---- What was drawn -----------------------------------------------------------------------------------------------

const replies = new Map();

/** { bytes, numbers } of a call as the pages make it, or { bytes, json }. */
async function drawn(call) {
  const key = callTarget(call, callFormat(call)) + JSON.stringify(call.body);
  if (!replies.has(key)) {
    const response = await fetch(origin + callTarget(call, callFormat(call)), callRequest(call));
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.equal(response.status, 200, `${key}: ${bytes}`);
    replies.set(key, callFormat(call) === "npy" ? { bytes, ...npyNumbers(bytes) } : { bytes, json: JSON.parse(bytes) });
  }
  return replies.get(key);
}

/** Of a reply in JSON the one tensor that it holds; all its numbers in a row. */
const tensorIn = (reply) => Object.values(reply).find((part) => Array.isArray(part?.shape));

// ---- Texts run ----------------------------------------------------------------------------------------------------

function curlRuns(text, wanted) {
  text.split("\n").forEach((line, i) => {
    execFileSync("sh", ["-c", line], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    assert.ok(readFileSync(join(folder, line.match(/-o (\S+)$/)[1])).equals(wanted[i].bytes), `other bytes: ${line}`);
  });
}

async function fetchRuns(text, wanted) {
  const names = wanted.map((_, i) => `reply${i ? i + 1 : ""}`);
  const got = await new AsyncFunction(`${text}; return [${names}];`)();
  got.forEach((reply, i) => {
    if (wanted[i].json) {
      assert.deepEqual(reply, wanted[i].json, text);
    } else {
      const { data, dtype, shape } = tensorIn(reply);
      const numbers = data.flat(Infinity).map(dtype === "float32" ? Math.fround : Number);
      assert.deepEqual([shape, numbers], [wanted[i].shape, wanted[i].data], text);
    }
  });
}

const pythonTextRuns = (text, wanted) => {
  const names = wanted.map(({ json }, i) => `${json ? "reply" : "x"}${i ? i + 1 : ""}`);
  return pythonRuns(text, names, wanted.map(({ json, data }) => json ?? data), wanted.map(() => 0));
};

// ---- PyTorch ------------------------------------------------------------------------------------------------------

/** The farthest position of a call. */
const farthest = ({ query = {} }) =>
  Math.max(1, ...String(query.positions ?? "").split(/[:,]/).map((n) => Math.abs(Number(n))));

/**
 * How far PyTorch may be off. float32: a unit of its last place or so; of angles in float32 the speeds, which depend on
 * the processor, times the position. float64: rounding, of sums that a head multiplies by its gain, and of least squares.
 */
function allowed(call, reply) {
  const { arithmetic = "exact", dtype } = call.query ?? {};
  if (arithmetic !== "exact") {
    return 2 ** -23 * farthest(call);
  }
  const single = /'<f4'|"float32"/.test(reply.bytes.subarray(0, 4096).toString("latin1")) || dtype === "float32";
  return single ? 2 ** -22 : 1e-9;
}

/** Of a layer's reply only what goes into the first is PyTorch's. */
function wantedOf(call, { json, data }, name, text) {
  const { width, tokens, type } = call.query ?? {};
  if (json && tensorIn(json)) {
    return tensorIn(json).data;
  }
  return call.op === "block" && type !== "none" && new RegExp(`^${name} = .*\\[0\\] \\+`, "m").test(text)
    ? data.slice(0, tokens.length * width)
    : json ?? data;
}

async function torchRuns(calls, wanted) {
  const program = torchProgram(calls, origin);
  return pythonRuns(
    program.text, program.names,
    calls.map((call, i) => wantedOf(call, wanted[i], program.names[i], program.text)),
    calls.map((call, i) => allowed(call, wanted[i])),
  );
}

// ---- The tests ----------------------------------------------------------------------------------------------------

const settled = (lab) => (read) => ({ ...read, ...lab.settle?.(read, {}) });

/** The state as a page has it that is opened with some values. */
const opened = (lab, values) =>
  fieldsRead(lab.fields, fieldsQuery(lab.fields, { ...fieldsRead(lab.fields, "").values, ...values }), settled(lab)).values;

const ran = new Set();

/** Runs the texts of one figure; the differences of PyTorch, by operation, go into `seen`. */
async function figureRuns(calls, seen) {
  const wanted = await Promise.all(calls.map(drawn));
  for (const [language, text] of callTexts(calls, origin)) {
    if (ran.has(text) || (language === "Python" && !numpy) || (language === "PyTorch" && !torch)) {
      continue;
    }
    ran.add(text);
    const worst = await { curl: curlRuns, fetch: fetchRuns, Python: pythonTextRuns, PyTorch: () => torchRuns(calls, wanted) }[language](text, wanted);
    seen.texts += 1;
    if (language === "PyTorch") {
      calls.forEach(({ op, query = {} }, i) => {
        const kind = query.arithmetic && query.arithmetic !== "exact" ? `${op} in float32` : op;
        seen.worst[kind] = Math.max(seen.worst[kind] ?? 0, worst[i]);
      });
    }
  }
}

/** Of these PyTorch can make nothing: their numbers come from seeds. */
const SEEDED = [
  "order sentence", "order other", "order weights", "order weights_other", "order sorted", "order difference", "order outputs",
  "order recurrent", "sum content", "sum found", "sum angles",
];

test("all figures have a text for PyTorch but those whose numbers come from seeds", () => {
  const without = labs.flatMap((lab) => Object.entries(lab.figures)
    .filter(([, figure]) => !torchProgram(figure.calls(opened(lab, {})), origin)).map(([name]) => `${lab.name} ${name}`));
  assert.deepEqual(without, SEEDED);
});

test("a call that PyTorch's recipes do not know in all has no text", () => {
  const call = (query) => [{ op: "encode", query: { type: "sinusoidal", d_model: 4, positions: "0:4", ...query } }];
  assert.ok(torchProgram(call({ base: 100 }), origin));
  for (const query of [{ padding_idx: 1 }, { layout: "spiral" }, { arithmetic: "ggml" }, { positions: "x" }, { type: "rope" }]) {
    assert.equal(torchProgram(call(query), origin), null, JSON.stringify(query));
  }
});

/** What no lab asks for today, and the recipes know all the same. */
const MORE = [
  { op: "encode", query: { type: "sinusoidal", d_model: 7, positions: "0:9", layout: "halves" } },
  { op: "encode", query: { type: "sinusoidal", d_model: 7, positions: "0:9", odd: "zero", dtype: "float64" } },
  { op: "encode", query: { type: "sinusoidal", d_model: 8, positions: "5:9", denominator: "half_minus_one", order: "cos_sin" } },
  { op: "encode", query: { type: "sinusoidal", d_model: 2, positions: "-3:9:1.5", denominator: "half_minus_one", offset: 2 } },
  { op: "encode", query: { type: "sinusoidal", d_model: 1, positions: "1,2.5,1000000", position_scale: 0.5 } },
  { op: "encode", query: { type: "sinusoidal", d_model: 8, positions: "0:99", arithmetic: "float32_pow", base: 500 } },
  { op: "similarity", query: { type: "naive", form: "binary", d_model: 3, positions: "0:8", return: "gram" } },
  { op: "properties", query: { type: "sinusoidal", d_model: 5, positions: "0:3" }, format: "json" },
  { op: "shift", query: { type: "random", d_model: 6, seed: 3, distance: -2, positions: "4:20", return: "matrix" } },
  { op: "shift", query: { type: "sinusoidal", d_model: 6, base: 50, distance: 2, order: "cos_sin", dtype: "float32", return: "matrix" } },
  { op: "attention", body: { q: [[1, -2]], k: [[0.5, 1], [3, 1]], v: [[1], [2]], scale: 0.25, return: "output" } },
];

test("calls that no lab makes have texts that are right, too", async () => {
  const seen = { texts: 0, worst: {} };
  for (const call of MORE) {
    assert.ok(torchProgram([call], origin), JSON.stringify(call));
    await figureRuns([call], seen);
  }
});

test("PyTorch is here to run its texts", { skip: !torch && !process.env.TORCH && "torch is missing: PyTorch's texts were not run" }, () =>
  assert.ok(torch, "no torch (apt-get install python3-torch)"));

test("numpy is here to run Python's texts", { skip: !numpy && "numpy is missing: Python's texts were not run" }, () => {});

for (const [k, lab] of labs.entries()) {
  test(`${lab.name}: texts of all figures, ${STATES} random states, seed ${seed}`, async (t) => {
    const random = randomFrom(2000 * seed + k);
    const seen = { texts: 0, worst: {} };
    for (let i = 0; i <= STATES; i++) {
      const values = i ? randomState(lab.fields, random) : {};
      for (const [name, figure] of Object.entries(lab.figures)) {
        try {
          await figureRuns(figure.calls(opened(lab, values)), seen);
        } catch (error) {
          error.message += `\n(lab ${lab.name}, figure ${name}, SEED=${seed}, state ${i}: ${JSON.stringify(values)})`;
          throw error;
        }
      }
    }
    const worst = Object.entries(seen.worst).map(([op, gap]) => `${op} ${gap.toExponential(1)}`).join(", ");
    t.diagnostic(`${lab.name}: ${seen.texts} texts${worst && `; PyTorch is off by ${worst}`}`);
  });
}
