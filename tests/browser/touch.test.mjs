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
  await send("touchEnd", []);
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

const PLATES = [["waves", "matrix", ".plate"], ["waves", "alias", ".plate"], ["waves", "jumps", ".plate"], ["rotation", "hands", ".plate"], ["order", "other", ".tokens button"]];

for (const [lab, name, selector] of PLATES) {
  pageTest(site, `${lab}, ${name}: a swipe up scrolls the page and changes nothing`, `/labs/${lab}`, phone, async (page) => {
    const done = await swiped(page, name, selector, 0, -160);
    assert.ok(done.scrolled > 80, `scrolled by ${done.scrolled}`);
    assert.equal(done.changed, false, "and changed the state");
  });
}

for (const [lab, name] of [["waves", "matrix"], ["waves", "jumps"]]) {
  pageTest(site, `${lab}, ${name}: a tap chooses, and a swipe sideways does`, `/labs/${lab}`, phone, async (page) => {
    const done = await swiped(page, name, ".plate", 120, 0);
    assert.deepEqual([done.changed, Math.abs(done.scrolled) < 5], [true, true], `scrolled by ${done.scrolled}`);
    const before = await stateText(page, name);
    const { x, y } = await middle(page, `#${name} .plate`);
    await page.touchscreen.tap(x - 40, y - 20);
    await ready(page);
    assert.notEqual(await stateText(page, name), before, "a tap chose nothing");
  });
}

pageTest(site, "order: a word is carried sideways by a finger", "/labs/order", phone, async (page) => {
  assert.equal((await swiped(page, "other", ".tokens button", 110, 0)).changed, true);
});

pageTest(site, "rotation: a hand is turned by a finger", "/labs/rotation", phone, async (page) => {
  assert.equal((await swiped(page, "hands", "[data-hand=p]", 30, 40)).changed, true);
});
