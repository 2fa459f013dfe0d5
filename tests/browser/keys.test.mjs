// SPDX-License-Identifier: MIT
//
// By keyboard alone: every control is reached, in sight and without a trap; probes move by arrows and say where they
// are; questions are answered, drawers opened, the theme changed.

import assert from "node:assert/strict";
import { figureNames, inFigure, labs, pageTest, ready, siteOpen, words } from "./_page.mjs";

const site = await siteOpen();
const texts = words.page;

// ---- Tab ----------------------------------------------------------------------------------------------------------

/** Numbers what a reader must be able to reach; [description]. */
const numberStops = (page) =>
  page.evaluate(() => {
    // what is in closed <details> has a place, but is not there to be reached
    const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0 && getComputedStyle(element).visibility === "visible";
    globalThis.stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
      .filter((element) => element.tabIndex >= 0 && !element.disabled && seen(element));
    return globalThis.stops.map((element) => `${element.localName}.${element.className} "${(element.ariaLabel ?? element.textContent).trim().slice(0, 40)}"`);
  });

/** Where the focus is, and whether a reader sees it. */
const focused = (page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const { top, bottom, left, right } = element.getBoundingClientRect();
    return {
      stop: globalThis.stops.indexOf(element),
      away: element === document.body || element === document.documentElement,
      name: `${element.localName}.${element.className}#${element.id}`,
      outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
      inView: bottom > 0 && top < innerHeight && right > 0 && left < innerWidth,
    };
  });

async function walk(page, key, most) {
  const visited = [];
  for (let i = 0; i < most; i++) {
    await page.keyboard.press(key);
    const at = await focused(page);
    if (at.away || (i > 0 && at.stop === visited[0].stop && at.stop >= 0)) {
      return visited;
    }
    visited.push(at);
  }
  assert.fail(`no end after ${most} presses of ${key}: at ${visited.at(-1).name}`);
}

for (const [name, path] of [["index", "/"], ["glossary", "/glossary"], ["help", "/help"], ...labs.map(({ name }) => [name, `/labs/${name}`])]) {
  pageTest(site, `${name}: Tab reaches every control, in sight, and leads out again`, path, { reducedMotion: "reduce" }, async (page) => {
    const stops = await numberStops(page);
    const visited = await walk(page, "Tab", stops.length + 30);
    const missed = stops.filter((_, i) => !visited.some(({ stop }) => stop === i));
    assert.deepEqual(missed, [], "not reached");
    assert.deepEqual(visited.filter(({ outlined }) => !outlined).map(({ name }) => name), [], "without an outline");
    assert.deepEqual(visited.filter(({ inView }) => !inView).map(({ name }) => name), [], "out of sight");
    const back = await walk(page, "Shift+Tab", stops.length + 30);
    assert.ok(back.length >= stops.length, `back only over ${back.length} of ${stops.length}`);
  });

  pageTest(site, `${name}: the first stop leads past the navigation`, path, {}, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement.closest("main, footer") !== null), "the next stop is before the text");
  });
}

// ---- Probes -------------------------------------------------------------------------------------------------------

const probed = (page, name) => inFigure(page, name, ({ data }) => JSON.stringify(data.at));

/** Presses a key where the focus is; whether the probe of the figure moved. */
async function moves(page, name, key) {
  const before = await probed(page, name);
  await page.keyboard.press(key);
  await ready(page);
  return (await probed(page, name)) !== before;
}

/** What the probe found is said, once the reader has come to rest, and is what stands under the figure. */
async function says(page, name) {
  const written = await page.locator(`#${name} .stage .small`).allTextContents();
  const spoken = (texts) => {
    const said = document.getElementById("live").textContent.trim();
    return said !== "" && texts.some((text) => text.trim().startsWith(said));
  };
  await page.waitForFunction(spoken, written, { timeout: 5000 }).catch(async () => {
    assert.fail(`${name}: said "${await page.locator("#live").textContent()}", written "${written}"`);
  });
}

/** Each key of a pair undoes the other: one that is at its end moves after the other has. */
async function probeByKeys(page, name, pairs) {
  assert.equal(await page.locator(`#${name} .plate`).evaluate((plate) => plate.tabIndex), 0, `${name}: Tab does not reach its probe`);
  await page.locator(`#${name} .plate`).focus();
  for (const [there, back] of pairs) {
    if (await moves(page, name, there)) {
      assert.ok(await moves(page, name, back), `${name}: ${back} does not lead back`);
    } else {
      assert.ok(await moves(page, name, back), `${name}: neither ${there} nor ${back} moves the probe`);
      assert.ok(await moves(page, name, there), `${name}: ${there} does not move the probe`);
    }
  }
  await says(page, name);
  assert.ok(await page.evaluate(() => document.activeElement.matches(".plate")), `${name}: a key took the focus away`);
}

const KEYS = {
  heatmap: [["ArrowDown", "ArrowUp"], ["ArrowRight", "ArrowLeft"], ["End", "Home"]],
  chart: [["ArrowRight", "ArrowLeft"], ["End", "Home"]],
  circles: [["ArrowRight", "ArrowLeft"], ["ArrowUp", "ArrowDown"]],
};

// ---- Controls -----------------------------------------------------------------------------------------------------

/** What changes a control, by its kind; the second where the first finds it at its end. */
const CHANGES = {
  range: ["ArrowRight", "ArrowLeft"],
  number: ["ArrowUp", "ArrowDown"],
  checkbox: ["Space"],
  "select-one": ["ArrowDown", "ArrowUp"],
  spinbutton: ["ArrowUp", "ArrowDown"],
};

const stateText = (page, name) => inFigure(page, name, ({ page }) => JSON.stringify(page.state.value));

async function changesByKeys(page, name, control, what) {
  const kind = await control.evaluate((element) => element.type ?? element.getAttribute("role"));
  const before = await stateText(page, name);
  await control.focus();
  if (kind === "text") {
    await page.keyboard.press("Control+A");
    await page.keyboard.type("two words");
    await page.keyboard.press("Enter");
  }
  if (kind === "select-one" && (await control.locator("option").count()) < 2) {
    return;
  }
  for (const key of CHANGES[kind] ?? []) {
    if ((await stateText(page, name)) === before) {
      await page.keyboard.press(key);
      await page.keyboard.press(kind === "number" ? "Enter" : "Shift");
    }
  }
  await ready(page);
  assert.notEqual(await stateText(page, name), before, `${what}: no key changes it`);
}

for (const { name: lab } of labs) {
  pageTest(site, `${lab}: probes move by arrows, and what they find is said`, `/labs/${lab}`, {}, async (page) => {
    for (const name of await figureNames(page)) {
      const { kind, probe } = await inFigure(page, name, ({ spec }) => ({ kind: spec.kind, probe: Boolean(spec.probe) }));
      if (probe && KEYS[kind]) {
        await probeByKeys(page, name, KEYS[kind]);
      }
    }
  });

  pageTest(site, `${lab}: every control is changed by keys`, `/labs/${lab}`, {}, async (page) => {
    const [figure] = await figureNames(page);
    for (const control of await page.locator(".controls input, .controls select, .number[role], .stage tr:first-child td:nth-child(2) input").all()) {
      const what = await control.evaluate((element) => element.outerHTML.slice(0, 120));
      await changesByKeys(page, figure, control, what);
    }
    assert.equal(await page.locator(".failed").count(), 0);
  });

  pageTest(site, `${lab}: questions, drawers and theme by keys`, `/labs/${lab}`, {}, async (page) => {
    const questions = page.locator("fieldset.predict");
    assert.ok((await questions.count()) > 0, "no question");
    for (const question of await questions.all()) {
      const option = question.locator("button").last();
      await option.focus();
      await page.keyboard.press("Enter");
      assert.equal(await option.getAttribute("aria-pressed"), "true");
      assert.ok((await question.locator("[role=status]").innerText()).trim().length > 10, "no answer");
      assert.ok(await option.evaluate((element) => element === document.activeElement), "the focus went elsewhere");
    }
    const call = page.locator("figure .below > .tools").first().getByRole("button", { name: texts.call, exact: true });
    await call.focus();
    for (const open of ["true", "false"]) {
      await page.keyboard.press("Space");
      assert.equal(await call.getAttribute("aria-expanded"), open);
    }
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.locator("#theme").focus();
    await page.keyboard.press("Enter");
    const dark = await background();
    assert.notEqual(dark, light);
    await page.reload();
    await ready(page);
    assert.equal(await background(), dark, "the choice of a theme is kept");
  });
}

// ---- Keys that are the browser's ----------------------------------------------------------------------------------

/** Presses arrows with Alt and the like on all that answers to arrows: [what kept one from the browser, or changed]. */
const swallowed = (page) =>
  page.evaluate(() => {
    const { state } = document.querySelector("figure[data-figure]").figure.page;
    const press = (element, key, more) => {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
      const before = JSON.stringify(state.value);
      return !element.dispatchEvent(event) || JSON.stringify(state.value) !== before ? [`${element.className}: ${key} ${JSON.stringify(more)}`] : [];
    };
    return [...document.querySelectorAll(".plate, .tokens button, .number, .tools button, .controls input")].flatMap((element) =>
      ["altKey", "ctrlKey", "metaKey"].flatMap((name) =>
        ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].flatMap((key) => press(element, key, { [name]: true }))));
  });

/** Names that more than one control of a list has, as a reader hears them. */
const twice = (page) =>
  page.$$eval(".controls", (all) => all.flatMap((host) => {
    const names = [...host.querySelectorAll("input, select, button")].map((control) => control.ariaLabel ?? control.labels[0].textContent.trim());
    return names.filter((name, i) => names.indexOf(name) < i);
  }));

/** What a reader is told that it takes keys, though it does not, or the other way round. */
const misnamed = (page) =>
  page.$$eval("figure[data-figure]", (all) =>
    all.flatMap(({ figure }) => {
      const plate = figure.stage.querySelector(".plate");
      const takes = Boolean(figure.spec.probe);
      const right = !plate || (takes ? plate.tabIndex === 0 && plate.role === "application" : plate.tabIndex === -1 && plate.role === "img");
      return right && (!plate || plate.ariaLabel.length > figure.data.title.length + 5) ? [] : [`${figure.name}: ${plate.outerHTML.slice(0, 200)}`];
    }));

for (const { name: lab } of labs) {
  pageTest(site, `${lab}: what takes keys says so and leaves the browser its own, and all has a name of its own`, `/labs/${lab}`, {}, async (page) => {
    assert.deepEqual(await misnamed(page), []);
    assert.deepEqual(await twice(page), []);
    assert.deepEqual(await swallowed(page), []);
    const stops = await page.$$eval(".below > .tools", (all) =>
      all.map((bar) => [...bar.querySelectorAll("button")].filter(({ tabIndex }) => tabIndex === 0).length));
    assert.deepEqual(stops, Array(stops.length).fill(1), "stops of Tab in each row of buttons");
  });
}

pageTest(site, "order: a word is taken along with Shift and an arrow", "/labs/order", {}, async (page) => {
  const words = () => page.locator("#other .tokens button").evaluateAll((all) => all.map((button) => button.firstChild.textContent + button.childNodes[1].textContent));
  const [first, second] = await words();
  await page.locator("#other .tokens button").first().focus();
  await page.keyboard.press("Shift+ArrowRight");
  await ready(page);
  assert.deepEqual((await words()).slice(0, 2), [second, first]);
  assert.ok(await page.locator("#other .tokens button").nth(1).evaluate((button) => button === document.activeElement));
});

// ---- Rows of buttons ----------------------------------------------------------------------------------------------

const focusedText = (page) => page.evaluate(() => document.activeElement.textContent.trim());

pageTest(site, "beneath a figure: arrows lead from button to button, to files that were opened, and Tab leads out", `/labs/${labs[0].name}`, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
  const bar = page.locator(".below > .tools").first();
  await bar.getByRole("button", { name: texts.call, exact: true }).focus();
  const walked = [];
  const go = async (...keys) => {
    for (const key of keys) {
      await page.keyboard.press(key);
      walked.push(await focusedText(page));
    }
  };
  await go("ArrowRight", "ArrowRight", "Space", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End");
  const { call, table, save, link } = texts;
  assert.deepEqual(walked, [table, save, save, ".npy", "CSV", "PNG", link, call, link, call, link]);
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.getElementById("live").textContent === text, texts.copied);
  await page.keyboard.press("Tab");
  assert.ok(await bar.evaluate((element) => !element.contains(document.activeElement)), "Tab does not lead out");
  await page.keyboard.press("Shift+Tab");
  assert.ok(await bar.evaluate((element) => element.lastElementChild === document.activeElement), "Tab forgot the button");
  await go("Home", "ArrowRight", "ArrowRight", "ArrowRight");
  const [file] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  assert.match(file.suggestedFilename(), /\.npy$/);
});

// ---- Playing ------------------------------------------------------------------------------------------------------

const positionOf = (page) => inFigure(page, "matrix", ({ page }) => page.state.value["v.p"]);

pageTest(site, "waves: a field plays to its end, and stops at Escape and at a touch", "/labs/waves?positions=0:12&v.p=4", {}, async (page) => {
  const button = page.locator(".play").first();
  const playing = async (wanted) => assert.equal(await button.innerText(), wanted ? texts.stop : texts.play);
  const passes = (position) => page.waitForFunction((position) => document.getElementById("matrix").figure.page.state.value["v.p"] > position, position);
  assert.equal(await positionOf(page), 4, "it begins by itself");
  await button.focus();
  await page.keyboard.press("Enter");
  await playing(true);
  await passes(5);
  await page.keyboard.press("Escape");
  await playing(false);
  await button.click();
  await passes(await positionOf(page));
  await page.locator("h1").click();
  await playing(false);
  await button.click();
  await page.waitForFunction((text) => document.querySelector(".play").textContent === text, texts.play);
  assert.equal(await positionOf(page), 11);
  await button.click();
  await page.waitForFunction(() => document.getElementById("matrix").figure.page.state.value["v.p"] < 5);
  await button.click();
  await playing(false);
});

pageTest(site, "waves: nothing is played to whoever wants no motion", "/labs/waves", { reducedMotion: "reduce" }, async (page) => {
  assert.equal(await page.locator(".play").count(), 0);
});

// ---- A lesson -----------------------------------------------------------------------------------------------------

/** Presses Tab until the focus is where it is wanted, as a reader would. */
async function tabTo(page, selector, key = "Tab") {
  for (let i = 0; i < 150; i++) {
    await page.keyboard.press(key);
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) {
      return;
    }
  }
  assert.fail(`Tab does not lead to ${selector}`);
}

pageTest(site, "a lesson from its beginning to the next, with no key but Tab, arrows, Enter, Space and Escape", "/", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const state = (name) => inFigure(page, "matrix", ({ page }, name) => page.state.value[name], name);
  await tabTo(page, ".contents h2 a[href$='/labs/waves']");
  await Promise.all([page.waitForURL("**/labs/waves"), press("Enter")]);
  await ready(page);
  await press("Tab", "Enter");
  await tabTo(page, ".parts a[href='#part-2']");
  await press("Enter");
  assert.equal(new URL(page.url()).hash, "#part-2");
  await tabTo(page, "fieldset.predict button");
  await press("Space");
  assert.ok((await page.locator("fieldset.predict [role=status]").allInnerTexts()).join("").trim().length > 10);
  await tabTo(page, ".controls[data-fields^='d_model'] input[type=range]");
  await press("ArrowRight");
  await ready(page);
  assert.equal(await state("d_model"), 66);
  await tabTo(page, "#matrix .plate");
  await press("ArrowDown", "ArrowRight", "Shift+ArrowDown");
  await ready(page);
  assert.equal(await state("v.p"), 21);
  await press("Tab", "Enter");
  assert.ok(await page.locator("#matrix .drawer code").isVisible());
  await press("Enter", "ArrowRight", "Enter");
  assert.ok(await page.locator("#matrix .drawer.table table").isVisible());
  await press("Enter", "ArrowRight", "Enter", "ArrowRight");
  await Promise.all([page.waitForEvent("download"), press("Enter")]);
  await press("End", "Enter");
  await page.locator("#live", { hasText: texts.copied }).waitFor({ state: "attached" });
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /v\.p=21.*#matrix$/);
  await tabTo(page, ".teacher summary");
  await press("Enter");
  await tabTo(page, ".teacher select");
  await tabTo(page, ".next a:last-child");
  await Promise.all([page.waitForURL("**/labs/sum"), press("Enter")]);
  await ready(page);
});
