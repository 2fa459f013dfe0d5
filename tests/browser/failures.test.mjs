// SPDX-License-Identifier: MIT
//
// What a reader sees when something does not work: a service that is gone, late, or sends what nobody can read, and a
// page that makes a mistake of its own. Nothing that stood there is thrown away before something better comes, nothing can
// be saved that is not there, and all is well again when it is well again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { figureNames, inFigure, labs, pageOpen, pageTest, ready, siteOpen, words } from "./_page.mjs";

const site = await siteOpen();
const texts = words.page;
const lab = "rotation";
const DATA = /\/v1\/.*format=(npy|json)/;

/** A page that opens while calls are answered as answer(route) likes. */
async function openWith(answer, before) {
  const page = await pageOpen(site, "/help");
  await page.addInitScript(before ?? "");
  await page.route(DATA, answer);
  await page.goto(`${site.origin}/labs/${lab}`);
  return page;
}

const failed = (page) => page.locator("figure .failed");

/** Which buttons of a figure can be pressed. */
const pressable = async (page, name) =>
  page.locator(`#${name} .below > .tools > button:enabled`).allInnerTexts();

async function wellAgain(page, names) {
  await ready(page);
  assert.equal(await failed(page).count(), 0, "still failed");
  for (const name of names) {
    assert.ok(await inFigure(page, name, ({ data, stage }) => Boolean(data) && stage.querySelector(".noscript") === null), `${name} is not drawn`);
    const names = await pressable(page, name);
    assert.ok(names.includes(texts.table) && names.includes(texts.save), `${name}: ${names}`);
  }
}

test("before the first reply what stands there stays, and nothing can be saved", async () => {
  let answer;
  const wanted = new Promise((resolve) => { answer = resolve; });
  const page = await openWith((route) => wanted.then(() => route.continue()));
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  const names = await figureNames(page);
  for (const name of names) {
    assert.deepEqual(await pressable(page, name), [texts.link], name);
  }
  const still = page.locator("#hands .stage");
  assert.equal((await still.innerText()).trim(), words.labs[lab].figures.hands.still ?? words.labs[lab].figures.hands.caption);
  answer();
  await wellAgain(page, names);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a service that is gone from the start: one reason, the call, and another try", async () => {
  const page = await openWith((route) => route.abort());
  await ready(page);
  const names = await figureNames(page);
  const reasons = await failed(page).allInnerTexts();
  assert.equal(reasons.length, names.length, "each figure says why it is not there");
  assert.deepEqual([...new Set(reasons)], [`${texts.failed.replace("{why}", texts.gone)} ${texts.again}`]);
  assert.ok((await page.locator("#hands .stage").innerText()).length > reasons[0].length + 10, "what stood there is gone");
  for (const name of names) {
    assert.deepEqual(await pressable(page, name), [texts.call, texts.link], name);
  }
  await page.locator("#hands .tools").getByRole("button", { name: texts.call }).click();
  assert.match(await page.locator("#hands .drawer code").innerText(), /^curl /);
  await page.waitForFunction((text) => document.getElementById("live").textContent.includes(text), texts.gone);
  assert.equal(await page.locator("figure [role=status]").count(), 0, "said once, not by each figure");
  await page.locator("#proof .failed button").click(); // still gone
  await ready(page);
  assert.equal(await failed(page).count(), names.length);
  await page.unroute(DATA);
  await page.locator("#hands .failed button").focus();
  await page.keyboard.press("Enter");
  await wellAgain(page, names);
  assert.ok(await page.evaluate(() => document.getElementById("hands").contains(document.activeElement)), "the focus is lost");
  assert.ok(page.faults.every((fault) => /ERR_FAILED/.test(fault)), page.faults.join("\n"));
  await page.context().close();
});

test("a service that does not answer in 15 seconds is given up", async () => {
  const page = await openWith(() => {}, () => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    globalThis.hurry = 100; // the test has less time
    AbortSignal.timeout = (ms) => timeout(ms / globalThis.hurry);
  });
  await ready(page);
  const [reason] = await failed(page).allInnerTexts();
  assert.equal(reason, `${texts.failed.replace("{why}", texts.late.replace("{seconds}", 15))} ${texts.again}`);
  await page.unroute(DATA);
  await page.evaluate(() => { globalThis.hurry = 1; });
  await page.locator("#matrix .failed button").click();
  await wellAgain(page, await figureNames(page));
  await page.context().close();
});

const ANSWERS = {
  "a refusal": [{ status: 400, json: { field: "d_model", detail: "is odd" } }, "d_model: is odd"],
  "an error without words": [{ status: 502, body: "<html>" }, "status 502"],
  "no npy": [{ status: 200, body: "hello" }, "npy"],
};

for (const [what, [answer, says]] of Object.entries(ANSWERS)) {
  test(`what the service sends is ${what}`, async () => {
    const page = await openWith((route) => route.fulfill(answer));
    await ready(page);
    const [reason] = await failed(page).allInnerTexts();
    assert.ok(reason.startsWith(texts.failed.split("{why}")[0]) && reason.includes(says), reason);
    assert.ok(!/undefined|Offset|Unexpected/.test(reason), reason);
    await page.context().close();
  });
}

test("a mistake in drawing is told as the page's own, and the console has it", async () => {
  const page = await pageOpen(site, `/labs/${lab}`);
  const spoil = (part) => inFigure(page, "hands", ({ spec, page }, part) => {
    spec.spoilt = spec[part];
    spec[part] = () => { throw new Error(`a mistake in ${part}`); };
    page.set({ distance: page.state.value.distance + 1 });
  }, part);
  for (const part of ["data", "facts", "calls"]) {
    await spoil(part);
    await ready(page);
    const [reason, ...others] = await failed(page).allInnerTexts();
    assert.equal(reason, texts.broken, part);
    assert.deepEqual(others, [], "other figures are drawn");
    assert.ok(page.faults.some((fault) => fault.includes(`a mistake in ${part}`)), `the console does not know: ${page.faults}`);
    await inFigure(page, "hands", ({ spec, page }, part) => {
      spec[part] = spec.spoilt;
      page.set({ distance: page.state.value.distance + 1 });
    }, part);
    await wellAgain(page, ["hands"]);
  }
  await page.context().close();
});

test("saving a picture when the service is gone meanwhile gives the page's own", async () => {
  const page = await pageOpen(site, `/labs/${lab}`);
  await page.route("**/v1/**", (route) => route.abort());
  await page.locator("#matrix .tools").getByRole("button", { name: texts.save }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("#matrix .files").getByRole("button", { name: "PNG" }).click()]);
  assert.match(file.suggestedFilename(), /matrix\.png$/);
  await page.context().close();
});

// ---- What need not be asked for -----------------------------------------------------------------------------------

for (const { name } of labs) {
  pageTest(site, `${name}: few requests come before figures, none for pictures that nobody sees`, "/help", {}, async (page) => {
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`${site.origin}/labs/${name}`);
    await ready(page);
    const first = asked.findIndex((url) => DATA.test(url));
    assert.ok(first > 0 && first <= 8, `${first} requests before the first figure: ${asked.slice(0, first).join("\n")}`);
    assert.deepEqual(asked.filter((url) => url.includes("format=png")), []);
  });
}
