// SPDX-License-Identifier: MIT
//
// What a lab says is so. labs/NAME.claims.js has a row for each sentence with a number or a comparison: the sentence as
// it stands in the lab's words, the calls that show it, what is computed from their replies and what that must be.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { claimsFiles, daemonStart, labs, source, words } from "./_page.mjs";
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

const texts = (value) => (typeof value === "string" ? [plain(value)] : Object.values(value).flatMap(texts));

const OPERATORS = { ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, "==": (a, b) => a === b };

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

for (const { name } of labs) {
  const file = claimsFiles[name];
  test(`${name}: has claims`, () => assert.ok(file.claims?.length > 0, `labs/${name}.claims.js has none`));
  for (const [i, claim] of (file.claims ?? []).entries()) {
    test(`${name}: claim ${i + 1}: ${claim.says?.slice(0, 80)}`, () => check(claim, texts(words.labs[name])));
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
