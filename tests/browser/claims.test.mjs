// SPDX-License-Identifier: MIT
//
// What a lab says is so. labs/NAME.claims.js has a row for each sentence with a number or a comparison: the sentence as
// it stands in the lab's words, the calls that show it, what is computed from their replies and what that must be. What
// draws the figures takes no part, as it would be held against itself. Every number with a point or an exponent in a
// lab's words is part of a claim, or of the file's `unclaimed`: [{ says, why }].

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { claimsFiles, daemonStart, labs, source, top, words } from "./_page.mjs";
import { npyNumbers } from "./_reference.mjs";

const { callFormat, callRequest, callTarget } = await source("page/service.js");
const daemon = await daemonStart();
after(() => daemon.stop());

async function reply(call) {
  const response = await fetch(`http://127.0.0.1:${daemon.port}${callTarget(call, callFormat(call))}`, callRequest(call));
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, 200, `${callTarget(call)}: ${bytes}`);
  return callFormat(call) === "json" ? JSON.parse(bytes) : npyNumbers(bytes);
}

/** Words alone: no tags, no TeX, no places of figures, and spaces as readers see them. */
const plain = (text) =>
  text
    .replace(/\$\$[^$]*\$\$|\$[^$]*\$|\[\[[^\]]*\]\]/g, " ")
    .replace(/<\/?(a|abbr|b|code|dfn|em|i|kbd|q|small|span|strong|sub|sup|var)\b[^>]*>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&(lt|gt|amp|quot|nbsp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&", quot: '"', nbsp: " " })[name])
    .replace(/\s+/g, " ")
    .replace(/ (?=[.,;:?!)])/g, "")
    .trim();

/** All texts below a value, but for the wrong ones of a question's options. */
function texts(value) {
  if (typeof value === "string") {
    return [plain(value)];
  }
  const { options, ...rest } = value;
  return Object.values(options && "answer" in value ? { ...rest, right: options[value.answer] } : value).flatMap(texts);
}

const OPERATORS = {
  ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, "==": (a, b) => a === b,
};

function holds(value, is) {
  if (Array.isArray(is)) {
    return OPERATORS[is[0]](value, is[1]);
  }
  assert.ok(Number.isFinite(is.near) && is.within >= 0, `neither [operator, bound] nor {near, within}: ${JSON.stringify(is)}`);
  return Math.abs(value - is.near) <= is.within;
}

/** Fails where a claim stands nowhere in the texts, or is not so. */
async function check({ says, calls, value, is }, said) {
  const sentence = plain(says);
  assert.ok(sentence.split(" ").length >= 3, `no sentence: "${sentence}"`);
  assert.ok(said.some((text) => text.includes(sentence)), `stands nowhere in the lab's words: "${sentence}"`);
  assert.ok(calls.length > 0, "a claim without a call shows nothing");
  const found = await value(await Promise.all(calls.map(reply)));
  assert.equal(typeof found, "number", `"${sentence}": what is computed is no number`);
  assert.ok(holds(found, is), `"${sentence}": ${found} is not ${JSON.stringify(is)}`);
}

// ---- Claims that cannot fail --------------------------------------------------------------------------------------

const members = (object, run) => Object.fromEntries(Object.entries(object).map(([name, v]) => [name, run(v, name)]));

/** The same reply with other numbers and verdicts. */
const changed = (change) => function other(value, name) {
  if (typeof value === "number" || typeof value === "boolean") {
    return typeof value === "number" ? change(value) : !value;
  }
  if (Array.isArray(value)) {
    return name === "shape" ? value : value.map((v) => other(v));
  }
  return value && typeof value === "object" ? members(value, other) : value;
};

/** One row less of each tensor, one item less of each list. */
function cut(value) {
  if (value?.shape) {
    const [n, ...rest] = value.shape;
    return { shape: [n - 1, ...rest], data: value.data.slice(0, (value.data.length / n) * (n - 1)) };
  }
  if (Array.isArray(value)) {
    return value.slice(1);
  }
  return value && typeof value === "object" ? members(value, cut) : value;
}

/** Replies that nothing is true of but what is true of all: nothing, ones, other signs, and noise of three sizes. */
const noise = (size) => () => {
  let state = 1; // for each claim anew: what one meets does not depend on which were tried before
  return changed(() => ((state = (state * 48271) % 2147483647) / 2147483647 - 0.5) * size);
};
const SPOILT = [
  ...[changed(() => 0), changed(() => 1), changed((v) => -v), cut].map((spoil) => () => spoil),
  noise(1e-3), noise(1), noise(1e9),
];

async function spoilt({ calls, value, is }, spoil) {
  try {
    return !holds(await value((await Promise.all(calls.map(reply))).map((one) => spoil(one))), is);
  } catch {
    return false; // of another shape than it can read: that says nothing
  }
}

async function canFail(claim) {
  for (const spoil of SPOILT) {
    if (await spoilt(claim, spoil())) {
      return;
    }
  }
  assert.fail(`"${plain(claim.says)}": holds whatever the replies are`);
}

// ---- Numbers without a claim --------------------------------------------------------------------------------------

/** 0.5, 1e−9, and 10−9, which is a power once its tags are gone. */
const NUMBERS = /(?<![\d.,])\d[\d,]*(?:\.\d+(?:e[+\u2212-]?\d+)?|e[+\u2212-]?\d+|(?<=\b10)\u2212\d+)/gu;

/** Those of a text that are part of no sentence. */
function unclaimed(text, sentences) {
  const parts = sentences.flatMap((sentence) =>
    [...text.matchAll(new RegExp(escaped(sentence), "gu"))].map(({ index }) => [index, index + sentence.length]));
  return [...text.matchAll(NUMBERS)]
    .filter(({ 0: number, index }) => !parts.some(([from, to]) => from <= index && index + number.length <= to))
    .map(({ 0: number, index }) => `${number} in "${text.slice(Math.max(0, index - 60), index + 40)}"`);
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function numbersClaimed({ claims, unclaimed: left = [] }, said) {
  for (const { says, why } of left) {
    assert.ok(why?.length > 10, `"${says}": why is it no claim?`);
    assert.ok(said.some((text) => text.includes(plain(says))), `stands nowhere in the lab's words: "${says}"`);
  }
  const sentences = [...claims, ...left].map(({ says }) => plain(says));
  assert.deepEqual(said.flatMap((text) => unclaimed(text, sentences)), []);
}

// ---- The tests ----------------------------------------------------------------------------------------------------

/** Of a lab's own module claims have the calls; what draws is out of their reach. */
const OWN = /import\s*\{([^}]*)\}\s*from\s*"\.\/([a-z]+)\.js"/g;

function drawingApart({ name, figures }) {
  const text = readFileSync(join(top, "server", "www", "labs", `${name}.claims.js`), "utf8");
  const taken = [...text.matchAll(OWN)].flatMap(([, names, file]) => (file === name ? names.split(",") : []));
  assert.deepEqual(taken.filter((one) => one.trim() !== "lab"), [], "what draws is held against itself");
  for (const figure of Object.values(figures)) {
    for (const part of ["data", "facts"]) {
      if (figure[part]) {
        figure[part] = () => assert.fail(`a claim of ${name} calls ${part}() of a figure: it has to compute by itself`);
      }
    }
  }
}

for (const lab of labs) {
  const { name } = lab;
  const file = claimsFiles[name];
  const said = texts(words.labs[name]);
  test(`${name}: has claims`, () => assert.ok(file.claims?.length > 0, `labs/${name}.claims.js has none`));
  test(`${name}: claims have nothing of what draws`, () => drawingApart(lab));
  test(`${name}: numbers are claims`, () => numbersClaimed(file, said));
  for (const [i, claim] of (file.claims ?? []).entries()) {
    test(`${name}: claim ${i + 1}: ${claim.says?.slice(0, 80)}`, async () => {
      await check(claim, said);
      await canFail(claim);
    });
  }
}

test("claims that are false, or stand nowhere, are found", async () => {
  const said = texts({ prose: "<p>The first number of position <b>$p$</b> zero is 0, as sin 0 is.</p>" });
  const calls = [{ op: "encode", query: { type: "sinusoidal", d_model: 4, positions: "0:2" } }];
  const claim = { says: "number of position zero is 0,", calls, value: ([{ data }]) => data[0], is: ["==", 0] };
  await check(claim, said);
  await check({ ...claim, value: ([{ data }]) => data[4], is: { near: Math.sin(1), within: 1e-7 } }, said);
  const wrong = [
    { is: ["==", 1] }, { is: [">", 0] }, { is: { near: 0.1, within: 0.05 } }, { is: {} }, { calls: [] },
    { says: "number of position one is 0" }, { says: "0" }, { value: () => NaN }, { value: () => undefined },
    { calls: [{ op: "encode", query: { type: "no-such-type" } }] },
  ];
  for (const change of wrong) {
    await assert.rejects(check({ ...claim, ...change }, said), JSON.stringify(change));
  }
});

test("claims that cannot fail are found", async () => {
  const calls = [{ op: "encode", query: { type: "sinusoidal", d_model: 4, positions: "0:2" } }];
  await canFail({ says: "a", calls, value: ([{ data }]) => data[0], is: ["==", 0] });
  await canFail({ says: "a", calls, value: ([{ shape }]) => shape[0], is: ["==", 2] });
  for (const value of [() => 1, ([{ data }]) => Number(Math.abs(data[0]) >= 0), ([{ data }]) => data[0] ** 2 * 0 + 1]) {
    await assert.rejects(canFail({ says: "a", calls, value, is: ["==", 1] }));
  }
});

test("numbers that no claim has are found", () => {
  const said = texts({ a: "<p>One is 0.5 wide, and 10<sup>−9</sup> high; the other 1e−3.</p>", b: "$0.7$, 12 and 3,000" });
  const claims = ["is 0.5 wide", "and 10<sup>−9</sup> high", "the other 1e−3"].map((says) => ({ says }));
  numbersClaimed({ claims }, said);
  for (let i = 0; i < claims.length; i++) {
    const others = claims.filter((_, k) => k !== i);
    assert.throws(() => numbersClaimed({ claims: others }, said));
    numbersClaimed({ claims: others, unclaimed: [{ says: claims[i].says, why: "it is a test of this test" }] }, said);
  }
});
