// SPDX-License-Identifier: MIT
//
// A daemon and a browser for the tests of the pages. A file of tests opens both once, and each test has a context of
// its own, so that nothing that one test keeps is there for the next:
//
//     const site = await siteOpen();
//     pageTest(site, "waves: wakes", "/labs/waves", { theme: "dark" }, async (page) => { ... });
//
// The daemon is build/posencd, or the one that POSENCD names. The browser is Debian's; it resolves no name but
// class.lan, which is the daemon under a name that is no secure context, as in a class room.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

export const top = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const require = createRequire(join(top, "server", "www", "package.json"));
const { chromium } = require("playwright-core");

export const axeFile = require.resolve("axe-core/axe.min.js");
export const shots = join(top, "build", "browser");
const { labs } = await import(pathToFileURL(join(top, "server", "www", "labs", "index.js")));
const { words } = await import(pathToFileURL(join(top, "server", "www", "words", "en.js")));
export { labs, words };

/** A module of the pages, or undefined where there is none. */
export const source = (path) =>
  import(pathToFileURL(join(top, "server", "www", path))).catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") {
      throw error;
    }
  });

/** { NAME: what labs/NAME.claims.js exports, or nothing }; read before any test begins, as a file ends with its last. */
export const claimsFiles = Object.fromEntries(
  await Promise.all(labs.map(async ({ name }) => [name, (await source(`labs/${name}.claims.js`)) ?? {}])),
);

// ---- Daemon and browser ------------------------------------------------------------------------------------------

/** { port, stop } of a daemon on a free port, which its log tells. */
export async function daemonStart() {
  const command = process.env.POSENCD ?? join(top, "build", "posencd");
  const options = ["--listen", "127.0.0.1:0", "--admin-listen", "", "--log-format", "json"];
  const daemon = spawn(command, options, { stdio: ["ignore", "ignore", "pipe"] });
  process.on("exit", () => daemon.kill("SIGKILL"));
  const ended = new Promise((resolve) => daemon.on("exit", (code) => resolve(code)));
  daemon.on("error", (error) => console.error(`${command}: ${error.message}`));
  const log = [];
  const port = await new Promise((resolve, reject) => {
    createInterface({ input: daemon.stderr }).on("line", (line) => {
      log.push(line);
      const address = /"msg":"listening".*"address":"[^"]*:(\d+)"/.exec(line);
      if (address) {
        resolve(Number(address[1]));
      }
    });
    ended.then((code) => reject(new Error(`the daemon ended with ${code}: ${log.slice(-5).join("\n")}`)));
  });
  const stop = async () => {
    daemon.kill("SIGTERM");
    assert.equal(await ended, 0, log.slice(-5).join("\n"));
  };
  return { port, stop };
}

const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--font-render-hinting=none", "--force-color-profile=srgb",
  "--host-resolver-rules=MAP class.lan 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Of CHROMIUM, or of the command of that name. */
const browserPath = () =>
  execFileSync("sh", ["-c", 'command -v "$1"', "sh", process.env.CHROMIUM ?? "chromium"]).toString().trim();

export const browserOpen = () =>
  chromium.launch({ executablePath: browserPath(), args: ARGUMENTS });

/** A daemon and a browser until the file's tests are done. */
export async function siteOpen() {
  mkdirSync(shots, { recursive: true });
  const daemon = await daemonStart();
  const browser = await browserOpen();
  after(async () => {
    await browser.close();
    await daemon.stop();
  });
  return { browser, origin: `http://127.0.0.1:${daemon.port}`, port: daemon.port };
}

// ---- Pages -------------------------------------------------------------------------------------------------------

/** What the browser has to say against a page, and what the page asks of others than its own origin. */
function watch(page, origin) {
  page.faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      page.faults.push(`console ${message.type()}: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => page.faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(blob|data):/.test(url)) {
      page.faults.push(`a request off the origin: ${url}`);
    }
  });
}

/** For what runs in the page: the bytes of a canvas, read from a copy, as canvases that are read become slow ones. */
function pixelsOf(canvas) {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(0, 0, canvas.width, canvas.height).data;
}

/** For what runs in the page: how light a colour of CSS is, 0 to 1, as WCAG measures it for contrast. */
function lightOf(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((text) => {
    const v = text / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** A page in a context of its own. */
export async function pageOpen(site, path, { width = 1280, height = 900, theme = "light", origin = site.origin, ...more } = {}) {
  const context = await site.browser.newContext({ viewport: { width, height }, colorScheme: theme, ...more });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  watch(page, origin);
  await page.addInitScript(`Object.assign(globalThis, { pixelsOf: ${pixelsOf}, lightOf: ${lightOf} })`);
  page.status = (await page.goto(origin + path))?.status();
  if (path.includes("/labs/") && more.javaScriptEnabled !== false && page.status === 200) {
    await ready(page);
  }
  return page;
}

/** A test with a page; what the browser complains of meanwhile fails it. */
export function pageTest(site, name, path, options, run) {
  test(name, async (t) => {
    const page = await pageOpen(site, path, options);
    try {
      await run(page, t);
      assert.deepEqual(page.faults, []);
    } finally {
      await page.context().close();
    }
  });
}

/** Until the page is awake and all figures are drawn from what they asked last. */
export const ready = (page) =>
  page.waitForFunction(
    () => document.documentElement.dataset.ready !== undefined && !document.querySelector("[aria-busy]"),
  );

/** Wider than its window? axe does not see that. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Names of the figures on a lab's page, in their order. */
export const figureNames = (page) =>
  page.$$eval("figure[data-figure]", (all) => all.map((figure) => figure.dataset.figure));

/** Calls run(figure) in the page, with the live figure of that name (page/figure.js). */
export const inFigure = (page, name, run, more) =>
  page.evaluate(
    ([name, text, more]) => new Function("figure", "more", `return (${text})(figure, more)`)(document.getElementById(name).figure, more),
    [name, run.toString(), more],
  );
