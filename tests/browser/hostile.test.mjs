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
  words: ["", ",,,,", `${"a,".repeat(400)}a`, "<img src=x onerror=alert(1)>", "%00,%00", "\u202e", "x".repeat(900), '"', '[a,"b', '"a,b"'],
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
        const told = name.replaceAll("\0", "U+0000").slice(0, 20);
        assert.ok((await notes.textContent()).includes(told), `nothing is said of ${told}`);
      }
    });
  }
}

// ---- Texts that do not show what they are -------------------------------------------------------------------------

const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
const UNSEEN = [
  ["a surrogate pair at the end", "x".repeat(23) + "\u{1f600}", "x".repeat(23)],
  ["a letter with marks at the end", `${"x".repeat(23)}e\u0301`, "x".repeat(23)],
  ["marks without end", `e${"\u0301".repeat(90)}`, `e${"\u0301".repeat(23)}`],
  ["a family, which is one sign", family, family],
  ["text turned round", "a\u202eb\u2066c", "abc"],
  ["nothing between two letters", "do\u200bg\u2060s\u00ad\ufeff", "dogs"],
  ["letters joined by nothing", "do\u200dg\ufe0f", "dog"],
  ["a filler that looks empty", "\u3164ab\u115f", "ab"],
];

pageTest(site, "order: words of a link are cut between signs, and hold none that is not seen", "/labs/order", {}, async (page) => {
  for (const [what, given, wanted] of UNSEEN) {
    await goTo(page, `tokens=${encodeURIComponent(given)},dog`);
    const { state, notes } = await made(page);
    assert.deepEqual(state.tokens, [wanted, "dog"], what);
    assert.ok(state.tokens[0].isWellFormed() && notes.isWellFormed(), what);
    assert.equal(notes !== "", given !== wanted, `${what}: said of it: "${notes}"`);
    assert.ok(!/[\u202a-\u202e\u2060-\u2069\u200b]/.test(notes), `${what}: the note is turned round itself`);
    assert.ok(!given.includes("\u202e") || notes.includes("U+202E"), `${what}: "${notes}"`);
  }
  assert.deepEqual(page.faults, []);
});

// ---- What a reader writes -----------------------------------------------------------------------------------------

/** Writes what is no value into every control, twice; [what a control shows that is not the state]. */
const written = (page, texts) =>
  page.evaluate((texts) => {
    const { state } = document.querySelector("figure[data-figure]").figure.page;
    const shows = (input, value) => (input.type === "text" ? value.join(" ") : String(value)) === input.value;
    return [...document.querySelectorAll(".controls")].flatMap((host) =>
      host.dataset.fields.split(" ").flatMap((name, i) =>
        [...host.querySelectorAll("fieldset")[i].querySelectorAll("input[type=number], input[type=text], select")].flatMap((input) =>
          texts.filter((text) => input.type !== "number" || text !== ",").filter((text) => {
            input.value = text;
            input.dispatchEvent(new Event("change", { bubbles: true }));
            return !shows(input, state.value[name]);
          }).map((text) => `${name}, "${text}": shows "${input.value}" for ${state.value[name]}`))));
  }, texts);

for (const { name, fields } of labs) {
  pageTest(site, `${name}: controls show the state, whatever was written into them`, `/labs/${name}`, {}, async (page) => {
    const texts = ["999999999", "999999999", "-999999999", "-999999999", "", "", ",", ",", "1.23456", "1.23456"];
    assert.deepEqual(await written(page, texts), []);
    await ready(page);
    const { state, failures } = await made(page);
    assert.deepEqual(failures, []);
    const numeric = fields.filter(({ kind }) => ["integer", "count"].includes(kind));
    assert.deepEqual(numeric.filter(({ name, min, max }) => !(state[name] >= min && state[name] <= max)).map(({ name }) => name), []);
  });
}

pageTest(site, "waves: an emptied number stays what it was", "/labs/waves?v.p=7", {}, async (page) => {
  const box = page.locator(".controls[data-fields='v.p'] input[type=number]");
  await box.fill("");
  await box.press("Enter");
  assert.equal(await box.inputValue(), "7");
});

// ---- Locks --------------------------------------------------------------------------------------------------------

/** Each field is locked alone, and all others are changed: [what moved it]. */
const lockLeaks = (page) =>
  page.evaluate(() => {
    const { page } = document.querySelector("figure[data-figure]").figure;
    const first = page.state.value;
    const fields = page.lab.fields.filter(({ name }) => !["v.hide", "v.lock"].includes(name));
    const wishes = ({ min, max, choices, kind, def }) =>
      choices ?? { flag: [true, false], words: [["b", "a", "c"], [].concat(def).reverse()], numbers: [[].concat(def).fill(1)] }[kind] ?? [min, max];
    const text = (name) => JSON.stringify(page.state.value[name]);
    return fields.flatMap(({ name }) =>
      fields.flatMap((other) => wishes(other).filter((wish) => {
        page.state.value = { ...first, "v.lock": [name] };
        const before = text(name);
        page.set({ [other.name]: wish });
        return text(name) !== before;
      }).map((wish) => `${other.name} = ${wish} moves ${name}`)));
  });

/** What a reader could still take hold of: [description]. */
const holds = (page) =>
  page.$$eval(".controls :is(input, select, button), .number[role], .stage :is(button, input, [role=application], [data-hand])", (all) =>
    all.filter((element) => !element.matches(":disabled")).map((element) => element.outerHTML.slice(0, 100)));

for (const { name, fields } of labs) {
  const all = fields.map((field) => field.name).join(",");
  pageTest(site, `${name}: what a link locks stays, and cannot be taken hold of`, `/labs/${name}?v.lock=${all}`, {}, async (page) => {
    assert.deepEqual(await holds(page), []);
    assert.equal(await page.locator(`.controls label:not(:has-text("${texts.locked}"))`).count(), 0, "a control does not say so");
    for (const figure of await page.locator("figure[data-figure]").all()) {
      const { name, own } = await figure.evaluate(({ figure }) => ({ name: figure.name, own: Boolean(figure.spec.probe) || figure.spec.kind === "tokens" }));
      assert.ok(!own || (await figure.innerText()).includes(texts.locked), `${name} does not say so`);
    }
    assert.deepEqual(await lockLeaks(page), []);
  });
}

pageTest(site, "naive: what cannot be because of a lock is said, and nothing else is changed", "/labs/naive?positions=16&v.lock=d_model", {}, async (page) => {
  const box = page.locator(".controls[data-fields^='form'] input[type=number]").first();
  await box.fill("64");
  await box.press("Enter");
  assert.equal(await box.inputValue(), "16");
  await page.waitForFunction((text) => document.getElementById("live").textContent.startsWith(text), texts.held.slice(0, 12));
});

// ---- The address --------------------------------------------------------------------------------------------------

const set = (page, changes) =>
  page.evaluate((changes) => document.querySelector("figure[data-figure]").figure.page.set(changes), changes);
const valueOf = (page, name) =>
  page.evaluate((name) => document.querySelector("figure[data-figure]").figure.page.state.value[name], name);

pageTest(site, "waves: what was changed last is in the address, however soon the reader leaves", "/labs/waves", {}, async (page) => {
  for (const leave of [() => location.assign("/"), () => document.querySelector("header .home").click()]) {
    const position = (await valueOf(page, "v.p")) + 5;
    await Promise.all([
      page.waitForEvent("load"),
      page.evaluate(([text, position]) => {
        document.querySelector("figure[data-figure]").figure.page.set({ "v.p": position });
        new Function(`(${text})()`)();
      }, [leave.toString(), position]),
    ]);
    await page.goBack();
    await ready(page);
    assert.equal(await valueOf(page, "v.p"), position, leave.toString());
  }
});

pageTest(site, "waves: the address keeps the place of the page, and going there keeps the state", "/labs/waves#part-2", {}, async (page) => {
  await set(page, { "v.p": 21 });
  await page.waitForFunction(() => location.search.includes("v.p=21"));
  assert.equal(new URL(page.url()).hash, "#part-2");
  await set(page, { "v.p": 22 });
  await page.evaluate(() => { location.hash = "part-3"; });
  await page.waitForFunction(() => location.search.includes("v.p=22"));
  assert.equal(new URL(page.url()).hash, "#part-3");
  assert.equal(await valueOf(page, "v.p"), 22);
});

pageTest(site, "waves: notes of a bad link last until the reader changes something", "/labs/waves?d_model=9999&x=1", {}, async (page) => {
  const notes = page.locator("#notes");
  assert.ok(await notes.isVisible());
  await set(page, { "v.p": 10 });
  assert.ok(await notes.isVisible(), "it was 10 before");
  await set(page, { "v.p": 11 });
  assert.ok(await notes.isHidden());
});

pageTest(site, "waves: the link for a class follows the page", "/labs/waves", {}, async (page) => {
  await page.locator(".teacher summary").click();
  await page.locator(".teacher select").first().selectOption("v.lock");
  await set(page, { "v.p": 33 });
  const link = await page.locator(".teacher code").textContent();
  assert.ok(link.includes("v.p=33") && link.includes("v.lock="), link);
});

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
    const links = await page.locator(".parts a").evaluateAll((all) => all.map((link) => [link.textContent, document.querySelector(link.getAttribute("href"))?.textContent]));
    assert.deepEqual(links.map(([text]) => text), await page.locator("article h2").allTextContents(), "the list of parts");
    assert.ok(links.length > 1 && links.every(([text, there]) => text === there), JSON.stringify(links));
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
