// SPDX-License-Identifier: MIT
//
// With a finger on a phone: whoever swipes up or down scrolls the page, also over a figure, and changes nothing; a tap
// chooses, and so does a swipe sideways.

import assert from "node:assert/strict";
import { inFigure, pageTest, ready, siteOpen } from "./_page.mjs";

const site = await siteOpen();
const phone = { width: 390, height: 800, hasTouch: true, isMobile: true, deviceScaleFactor: 1 };

/** One finger from a point by so many pixels, in steps as a phone sends them. */
async function swipe(page, { x, y }, right, down) {
  const session = await page.context().newCDPSession(page);
  const send = (type, touchPoints) => session.send("Input.dispatchTouchEvent", { type, touchPoints });
  await send("touchStart", [{ x, y }]);
  for (let k = 1; k <= 8; k++) {
    await send("touchMove", [{ x: x + (right * k) / 8, y: y + (down * k) / 8 }]);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await send("touchMove", [{ x: x + right, y: y + down }]); // held, so that the page does not roll on
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 120)));
  await send("touchEnd", []);
  await page.evaluate(async () => {
    for (let last = NaN; last !== scrollY; ) {
      last = scrollY;
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  });
  await session.detach();
  await ready(page);
}

/** The middle of what is at the selector, which is put into the middle of the window; and how far that scrolled. */
async function middle(page, selector) {
  const place = page.locator(selector).first();
  await place.evaluate((element) => element.scrollIntoView({ block: "center", behavior: "instant" }));
  const { x, y, width, height } = await place.boundingBox();
  return { x: x + width / 2, y: y + height / 2 };
}

const stateText = (page, name) => inFigure(page, name, ({ page }) => JSON.stringify(page.state.value));
const scrolled = (page) => page.evaluate(() => Math.round(scrollY));

/** { scrolled, changed } by a swipe over what is at the selector of a figure. */
async function swiped(page, name, selector, right, down) {
  const at = await middle(page, `#${name} ${selector}`);
  const before = { y: await scrolled(page), text: await stateText(page, name) };
  await swipe(page, at, right, down);
  return { scrolled: (await scrolled(page)) - before.y, changed: (await stateText(page, name)) !== before.text };
}

async function scrolls(page, name, selector) {
  const done = await swiped(page, name, selector, 0, -160);
  assert.ok(done.scrolled > 80, `${name}: scrolled by ${done.scrolled}`);
  assert.equal(done.changed, false, `${name}: and changed the state`);
}

async function chooses(page, name) {
  const done = await swiped(page, name, ".plate", 120, 0);
  assert.deepEqual([done.changed, Math.abs(done.scrolled) < 5], [true, true], `${name}: scrolled by ${done.scrolled}`);
  const before = await stateText(page, name);
  const { x, y } = await middle(page, `#${name} .plate`);
  await page.touchscreen.tap(x - 40, y - 20);
  await ready(page);
  assert.notEqual(await stateText(page, name), before, `${name}: a tap chose nothing`);
}

pageTest(site, "waves: over maps and charts a swipe up scrolls, a tap and a swipe sideways choose", "/labs/waves", phone, async (page) => {
  for (const name of ["matrix", "alias", "jumps"]) {
    await scrolls(page, name, ".plate");
  }
  for (const name of ["matrix", "jumps"]) {
    await chooses(page, name);
  }
});

pageTest(site, "order: over words a swipe up scrolls, and a word is carried sideways", "/labs/order", phone, async (page) => {
  await scrolls(page, "other", ".tokens button");
  assert.equal((await swiped(page, "other", ".tokens button", 110, 0)).changed, true);
});

pageTest(site, "rotation: over circles a swipe up scrolls, but on a hand it turns the hand", "/labs/rotation", phone, async (page) => {
  await scrolls(page, "hands", ".plate");
  assert.equal((await swiped(page, "hands", "[data-hand=p]", 30, 40)).changed, true);
});
