// SPDX-License-Identifier: MIT
//
// What keys and pointers do, by the value that they lead to: also while the service has not answered yet.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inFigure, pageOpen, pageTest, ready, siteOpen } from "./_page.mjs";

const site = await siteOpen();

/** The service answers after so many ms. */
const slow = (page, ms) =>
  page.route("**/v1/**", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    await route.continue();
  });

const state = (page) => page.evaluate(() => document.querySelector("figure[data-figure]").figure.page.state.value);

const set = (page, changes) => page.evaluate((changes) => document.querySelector("figure[data-figure]").figure.page.set(changes), changes);

const stage = (page, name) => page.locator(`figure[data-figure="${name}"] .stage`);

async function pressed(page, key, n) {
  for (let i = 0; i < n; i++) {
    await page.keyboard.press(key);
  }
}

// ---- Keys that come faster than answers ---------------------------------------------------------------------------

pageTest(site, "a word goes as many places as keys were pressed, however late the service is", "/labs/order?tokens=a,b,c,d,e", {}, async (page) => {
  await slow(page, 400);
  await stage(page, "sentence").locator("button").first().focus();
  await pressed(page, "Shift+ArrowRight", 3);
  assert.deepEqual((await state(page)).tokens, ["b", "c", "d", "a", "e"]);
  assert.match(await stage(page, "sentence").locator("button:focus").textContent(), /^a/, "the word in focus is the one that was moved");
  await ready(page);
  assert.deepEqual((await state(page)).tokens, ["b", "c", "d", "a", "e"]);
});

pageTest(site, "a word that was taken up is let go when others come", "/labs/order", {}, async (page) => {
  await stage(page, "sentence").locator("button").nth(1).click();
  await set(page, { "v.sentence": "cat" });
  await ready(page);
  assert.equal(await stage(page, "sentence").locator("[aria-pressed=true]").count(), 0);
});

for (const [kind, path, name, key, field] of [
  ["map", "/labs/waves?d_model=64&positions=0:64&v.p=10", "matrix", "ArrowDown", "v.p"],
  ["chart", "/labs/waves?d_model=64&positions=0:64&v.p=10", "curves", "ArrowRight", "v.p"],
]) {
  pageTest(site, `the probe of a ${kind} takes as many steps as keys were pressed while a call is open`, path, {}, async (page) => {
    await slow(page, 400);
    await set(page, { d_model: 96 });
    await stage(page, name).locator(".plate").focus();
    await pressed(page, key, 6);
    assert.equal((await state(page))[field], 16);
    await ready(page);
    assert.equal((await state(page))[field], 16);
  });
}

pageTest(site, "a drawing that is not yet what was asked for is seen to be so, once one would wonder", "/labs/waves", {}, async (page) => {
  await slow(page, 1500);
  await set(page, { d_model: 96 });
  const opacity = () => stage(page, "matrix").evaluate((element) => Number(getComputedStyle(element).opacity));
  assert.equal(await opacity(), 1, "at once it would flicker");
  await page.waitForFunction(() => Number(getComputedStyle(document.querySelector("#matrix .stage")).opacity) < 1, undefined, { timeout: 1400 });
  await ready(page);
  assert.equal(await opacity(), 1);
});

test("a link to a figure leads there, but pulls no reader back who went elsewhere", async () => {
  for (const scrolls of [false, true]) {
    const page = await pageOpen(site, "/help", {});
    await slow(page, 800);
    await page.goto(`${site.origin}/labs/waves#alias`, { waitUntil: "load" });
    await page.waitForSelector("[aria-busy]");
    if (scrolls) {
      await page.keyboard.press("Home");
      await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    }
    await ready(page);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const top = await page.locator("#alias").evaluate((element) => element.getBoundingClientRect().top);
    assert.equal(Math.abs(top) < 200, !scrolls, `the figure is at ${top}`);
    await page.context().close();
  }
});

// ---- Pointers -----------------------------------------------------------------------------------------------------

pageTest(site, "a map that shows a part of it does not run away under the pointer", "/labs/waves?d_model=512&positions=0:512", { width: 390 }, async (page) => {
  await set(page, { "v.p": 0, "v.i": 0 });
  await ready(page);
  const plate = stage(page, "matrix").locator(".plate");
  await plate.scrollIntoViewIfNeeded();
  const box = await plate.boundingBox();
  const chosen = () => inFigure(page, "matrix", ({ data }) => data.at.column);
  await page.mouse.move(box.x + box.width - 3, box.y + 20);
  await page.mouse.down();
  await ready(page);
  const first = await chosen();
  await page.mouse.move(box.x + box.width - 2, box.y + 20);
  await page.mouse.move(box.x + box.width - 3, box.y + 20);
  await ready(page);
  assert.ok(Math.abs((await chosen()) - first) <= 2, `column ${first}, then ${await chosen()}`);
  await page.mouse.up();
  await ready(page);
  assert.ok(Math.abs((await chosen()) - first) <= 2, "the choice stays when the button is lifted");
  const { from, n } = await inFigure(page, "matrix", ({ view }) => view.columns);
  assert.ok(from < first && first < from + n - 1, "and the part that is shown has it in its middle then");
});

pageTest(site, "only the first button drags", "/labs/rotation", {}, async (page) => {
  const before = await state(page);
  for (const selector of [".number", "figure .grip", "figure .plate canvas"]) {
    const box = await page.locator(selector).first().scrollIntoViewIfNeeded().then(() => page.locator(selector).first().boundingBox());
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down({ button: "right" });
    await page.mouse.move(x + 60, y + 40);
    await page.mouse.up({ button: "right" });
    assert.deepEqual(await state(page), before, `${selector}: by the right button`);
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 60, y + 40);
    await page.mouse.up();
    assert.notDeepEqual(await state(page), before, `${selector}: not even by the first`);
    await set(page, before);
  }
});

pageTest(site, "a word is not dragged by the right button", "/labs/order?tokens=a,b,c,d,e", {}, async (page) => {
  await stage(page, "sentence").scrollIntoViewIfNeeded();
  const box = await stage(page, "sentence").locator("button").first().boundingBox();
  const to = await stage(page, "sentence").locator("button").nth(2).boundingBox();
  for (const [button, wanted] of [["right", "abcde"], ["left", "bcade"]]) {
    await page.mouse.move(box.x + 8, box.y + 8);
    await page.mouse.down({ button });
    await page.mouse.move(to.x + 8, to.y + 8);
    await page.mouse.up({ button });
    assert.equal((await state(page)).tokens.join(""), wanted, button);
  }
});

// ---- What a chart says of a place ---------------------------------------------------------------------------------

pageTest(site, "of lines that have no point at the chosen x nothing is said", "/labs/fingerprints", {}, async (page) => {
  const names = await page.$$eval("figure[data-figure]", (all) => all.filter(({ figure }) => figure.spec.kind === "chart").map(({ figure }) => figure.name));
  assert.ok(names.length > 2);
  let left = 0;
  for (const name of names) {
    left += await inFigure(page, name, ({ data, kind }) => {
      const xs = [...new Set(data.lines.flatMap(({ x }) => Array.from(x)))];
      return xs.filter((at) => data.lines.some((line) => {
        const said = kind.said({ ...data, at }).includes(` ${line.name} `);
        if (said !== Array.from(line.x).includes(at)) {
          throw new Error(`${data.title}: at ${at} of ${line.name}: ${kind.said({ ...data, at })}`);
        }
        return !said;
      })).length;
    });
  }
  assert.ok(left > 0, "some line ends before another");
});
