// SPDX-License-Identifier: MIT
//
// What readers bring along: links that were written by hand or by an enemy, no scripts, no wish for motion, no secure
// context, the browser's own buttons.

import assert from "node:assert/strict";
import { inFigure, figureNames, labs, overflow, pageOpen, pageTest, ready, siteOpen, words } from "./_page.mjs";

const site = await siteOpen();
const texts = words.page;

// ---- Links --------------------------------------------------------------------------------------------------------

const HOSTILE = {
  integer: ["999999999", "-77777", "abc", "1.5", "1e9", "NaN", "0x10", "", "99999999999999999999", "%00", "<script>"],
  number: ["1e999", "-1", "abc", "NaN", "Infinity", "", "%00", "<script>alert(1)</script>"],
  count: ["0:999999999", "0:0", "5:9", "abc", "0:-1", "0:1:0.001", "", "%00"],
  choice: ["<script>", "__proto__", "constructor", "toString", "", "%00", "SINUSOIDAL"],
  flag: ["yes", "2", "", "__proto__", "%00"],
  numbers: ["", "1,2", "abc", `${"9,".repeat(400)}9`, "1e999,NaN,,", "%00"],
  words: ["", ",,,,", `${"a,".repeat(400)}a`, "<img src=x onerror=alert(1)>", "%00,%00", "\u202e", "x".repeat(900)],
};

const STRANGERS = [
  "n=999999999", "__proto__=1", "constructor=2", "__proto__[a]=1", "hasOwnProperty=1", "toString=", "v.no-such-name=1",
  "%00=%00", "=", `${"x".repeat(500)}=1`, `y=${"z".repeat(1000)}`, "%FF%FE=%zz", "<script>=alert(1)", "format=png",
];

/** Queries that are wrong for a lab: by strangers, then in every field at once, each time in another way. */
function hostileQueries(fields) {
  const most = Math.max(...fields.map(({ kind }) => HOSTILE[kind].length));
  const value = (kind, k) => encodeURI(HOSTILE[kind][k % HOSTILE[kind].length]).replaceAll("%25", "%");
  const wrong = Array.from({ length: most }, (_, k) => fields.map(({ name, kind }) => `${name}=${value(kind, k)}`).join("&"));
  const thrice = fields.map(({ name }) => `${name}=1&${name}=2&${name}=3`).join("&");
  return [...STRANGERS, "d_model=-7&base=abc&layout=<script>", ...wrong, thrice];
}

/** What a page makes of its query: { state, notes, elements among the notes, failures }. */
const made = (page) =>
  page.evaluate(() => {
    const { state } = document.querySelector("figure[data-figure]").figure.page;
    const notes = document.getElementById("notes");
    return {
      state: state.value, notes: notes.hidden ? "" : notes.textContent, elements: notes.childElementCount,
      failures: [...document.querySelectorAll(".failed")].map((element) => element.textContent),
    };
  });

/** As if a link were opened, but without the cost of a page. */
const goTo = (page, query) =>
  page.evaluate(async (query) => {
    history.replaceState(null, "", `?${query}`);
    dispatchEvent(new PopStateEvent("popstate"));
    while (document.querySelector("[aria-busy]")) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }, query);

/** The state of the page is within its rows, and the page said what it made of the query. */
function clamped({ state, notes, elements, failures }, lab, query) {
  for (const { name, kind, min, max, choices, def } of lab.fields) {
    const value = state[name];
    const inside = {
      choice: () => choices.includes(value),
      flag: () => typeof value === "boolean",
      numbers: () => value.length === def.length && value.every((v) => Number.isFinite(v) && v >= min && v <= max),
      words: () => value.length >= (min ?? 0) && value.length <= max && value.every((word) => typeof word === "string" && word.length <= 24),
    }[kind] ?? (() => Number.isFinite(value) && value >= min && value <= max);
    assert.ok(inside(), `${query}: ${name} is ${value}`);
  }
  assert.deepEqual(failures, [], query);
  assert.equal(elements, 0, `${query}: elements among the notes`);
  assert.ok(notes.trim() !== "" && notes.length < 4000, `${query}: said of it: "${notes}"`);
}

for (const lab of labs) {
  const path = `/labs/${lab.name}`;
  pageTest(site, `${lab.name}: hostile links are clamped`, path, {}, async (page) => {
    for (const query of hostileQueries(lab.fields)) {
      await goTo(page, query);
      clamped(await made(page), lab, query);
      assert.deepEqual(page.faults, [], query);
    }
  });

  const first = lab.fields.map(({ name, kind }) => `${name}=${encodeURIComponent(HOSTILE[kind][0])}`).join("&");
  for (const [what, query] of [["every field wrong", first], ["strangers", STRANGERS.slice(0, 8).join("&")]]) {
    pageTest(site, `${lab.name}: a link that is opened, ${what}`, `${path}?${query}`, { width: 320 }, async (page) => {
      clamped(await made(page), lab, query);
      const notes = page.locator("#notes");
      assert.ok(await notes.isVisible());
      assert.ok((await overflow(page)) <= 0, "the notes are wider than the window");
      for (const name of new URLSearchParams(query).keys()) {
        assert.ok((await notes.textContent()).includes(name.slice(0, 20)), `nothing is said of ${name}`);
      }
    });
  }
}

// ---- No scripts, no motion ----------------------------------------------------------------------------------------

for (const { name } of labs) {
  const options = { javaScriptEnabled: false };
  pageTest(site, `${name}: without scripts there are prose, equations, pictures and answers`, `/labs/${name}`, options, async (page) => {
    const text = await page.locator("article").innerText();
    assert.ok(text.split(/\s+/).length > 100, "hardly any words");
    assert.ok(!/\[\[|\$|[{}]/.test(text), "what should have been filled in");
    const figures = page.locator("figure[data-figure]");
    const n = await figures.count();
    assert.equal(n, await figureNames(page).then((all) => all.length));
    for (let i = 0; i < n; i++) {
      const figure = figures.nth(i);
      const images = figure.locator(".stage img");
      if (await images.count()) {
        await images.first().scrollIntoViewIfNeeded();
        await page.waitForFunction((i) => document.querySelectorAll("figure[data-figure]")[i].querySelector("img").complete, i);
        assert.ok(await images.first().evaluate((image) => image.naturalWidth > 0 && image.alt.length > 10), "a picture that did not come, or without words");
      } else {
        assert.ok((await figure.locator(".stage").innerText()).trim().length > 10, "neither picture nor words");
      }
    }
    const question = page.locator("details.predict").first();
    await question.locator("summary").click();
    assert.ok((await question.locator("p").innerText()).length > 3);
    assert.ok((await page.locator("math").count()) > 0 || !/\$/.test(words.labs[name].prose), "no equation");
    assert.ok((await overflow(page)) <= 0);
  });

  pageTest(site, `${name}: whoever wants no motion has none`, `/labs/${name}`, { reducedMotion: "reduce" }, async (page) => {
    const moving = () =>
      page.evaluate(() => [
        ...document.getAnimations().map((animation) => `running: ${animation.animationName ?? animation.transitionProperty}`),
        ...[document.documentElement, ...document.querySelectorAll("body *")].flatMap((element) => {
          const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
          const still = /^(0s(, )?)+$/.test(transitionDuration) && animationName === "none" && scrollBehavior === "auto";
          return still ? [] : [`${element.localName}.${element.className}: moves`];
        }),
      ]);
    assert.deepEqual(await moving(), []);
    await page.locator("#theme").click();
    await page.locator("fieldset.predict button").first().click();
    assert.deepEqual(await moving(), []);
  });
}

// ---- Copying ------------------------------------------------------------------------------------------------------

const openCall = async (page) => {
  await page.locator("figure .below > .tools").first().getByRole("button", { name: texts.call, exact: true }).click();
  return page.locator("figure .drawer").first();
};

const wakened = labs[0].name;

pageTest(site, "copying, where the browser lets us", `/labs/${wakened}`, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
  const drawer = await openCall(page);
  await drawer.locator(".copy").click();
  await drawer.getByRole("button", { name: texts.copied }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await drawer.locator("code").textContent());
});

pageTest(site, "copying in a class room, where the context is not secure", `/labs/${wakened}`, { origin: `http://class.lan:${site.port}` }, async (page) => {
  assert.equal(await page.evaluate(() => isSecureContext || navigator.clipboard !== undefined), false, "this tries nothing");
  const drawer = await openCall(page);
  const code = await drawer.locator("code").textContent();
  assert.ok(code.includes(`'http://class.lan:${site.port}/v1/`), code);
  await drawer.locator(".copy").click();
  assert.equal(await page.evaluate(() => String(getSelection())), code);
  const said = await drawer.locator(".copy").textContent();
  assert.ok([texts.copied, texts.copyKeys].includes(said), said);
  await page.evaluate(() => { document.execCommand = () => false; });
  await drawer.locator(".copy").click();
  assert.equal(await drawer.locator(".copy").textContent(), texts.copyKeys);
});

// ---- Back and forward ---------------------------------------------------------------------------------------------

for (const { name, fields } of labs) {
  const field = fields.find(({ kind, name }) => kind === "integer" && !name.startsWith("v.")) ?? fields.find(({ kind }) => kind === "integer");
  pageTest(site, `${name}: back and forward lead to what was there`, `/labs/${name}`, {}, async (page) => {
    const [figure] = await figureNames(page);
    const state = () => inFigure(page, figure, ({ page }, name) => page.state.value[name], field.name);
    await inFigure(page, figure, ({ page }, name) => page.set({ [name]: page.lab.fields.find((row) => row.name === name).max }), field.name);
    await ready(page);
    const changed = await state();
    assert.notEqual(changed, field.def);
    await page.waitForFunction((text) => location.search.includes(text), `${field.name}=${changed}`);
    const address = page.url();
    await page.locator("header .home").click();
    await page.waitForURL(`${site.origin}/`);
    await page.goBack();
    await ready(page);
    assert.equal(page.url(), address);
    assert.equal(await state(), changed);
    await page.goForward();
    assert.equal(page.url(), `${site.origin}/`);
  });
}

// ---- A service that does not answer -------------------------------------------------------------------------------

const whole = ({ name, kind }) => kind === "integer" && !name.startsWith("v.");
const lab = labs.find(({ fields }) => fields.some(whole));

pageTest(site, "a service that is gone is said so, and all is well once it is back", `/labs/${lab.name}`, {}, async (page) => {
  const [name] = await figureNames(page);
  const { name: field, min, step = 1 } = lab.fields.find(whole);
  const change = (n) => inFigure(page, name, ({ page }, changes) => page.set(changes), { [field]: min + step * n });
  await page.route("**/v1/**", (route) => route.abort());
  await change(1);
  await ready(page);
  assert.ok((await page.locator(".failed").count()) > 0, "nothing is said");
  await page.unroute("**/v1/**");
  await change(2);
  await ready(page);
  assert.equal(await page.locator(".failed").count(), 0, "still failed");
  assert.ok((await page.locator("figure .stage").first().innerText()).trim() !== "");
  assert.ok(page.faults.every((fault) => /ERR_FAILED/.test(fault)), page.faults.join("\n"));
  page.faults.length = 0; // the browser reports each call that was refused
});
