// SPDX-License-Identifier: MIT
//
// What a figure shows, read from its elements as a reader sees them: lengths in pixels, texts of ticks and cells, ends of
// hands. The functions of the first part run in the page, all together, and know nothing but the document; none of them
// asks how the page came to draw so.

import { inFigure } from "./_page.mjs";

// ---- In the page --------------------------------------------------------------------------------------------------

const textsOf = (root, selector) => [...root.querySelectorAll(selector)].map((element) => element.textContent.trim());

const numbersOf = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));

/** Of a transform "translate(1 2)". */
const movedBy = (element) => element.getAttribute("transform").match(/-?[\d.]+/g).map(Number);

/** Values as they can leave the page: no functions, lists for typed arrays. */
function plain(value) {
  if (ArrayBuffer.isView(value)) {
    return Array.from(value, Number);
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (!value || typeof value !== "object") {
    return value;
  }
  const values = Object.entries(value).filter(([, v]) => typeof v !== "function");
  return Object.fromEntries(values.map(([key, v]) => [key, plain(v)]));
}

const pathOf = (path) =>
  [...(path?.getAttribute("d") ?? "").matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);

const lineDrawn = (group) => ({
  path: pathOf(group.querySelector("path:not(.mark)")),
  dots: [...group.querySelectorAll("circle, .mark")].map((dot) =>
    (dot.matches("circle") ? numbersOf(dot, "cx", "cy") : movedBy(dot))),
  bars: [...group.querySelectorAll("rect")].map((bar) => numbersOf(bar, "x", "y", "width", "height")),
});

/** A tick of y stands at its rule; off: how far below that its text's foot is. */
function tickAtRule(rule) {
  const [at] = numbersOf(rule, "y1");
  const text = rule.nextElementSibling;
  return { at, text: text.textContent, off: Number(text.getAttribute("y")) - at };
}

/** Ticks of x stand at the texts' middles. */
const chartDrawn = (stage) => ({
  y: [...stage.querySelectorAll(".chart > svg > line.rule:not(.dash-2)")].map(tickAtRule),
  x: [...stage.querySelectorAll(".chart > svg > text.tick[text-anchor=middle]")].map((tick) =>
    ({ at: Number(tick.getAttribute("x")), text: tick.textContent })),
  marks: [...stage.querySelectorAll(".chart > svg > line.rule.dash-2")].map((rule) => Number(rule.getAttribute("y1"))),
  at: [...stage.querySelectorAll("line.probe")].map((line) => Number(line.getAttribute("x1"))),
  wide: numbersOf(stage.querySelector(".chart > svg > line.rule:not(.dash-2)"), "x1", "x2"),
  high: [...stage.querySelectorAll("line.probe")].flatMap((line) => numbersOf(line, "y2", "y1")),
  legend: textsOf(stage, ".legend li"),
  lines: [...stage.querySelectorAll("g.line")].map(lineDrawn),
  said: stage.querySelector(":scope > .small").textContent,
});

const handDrawn = (group) => ({
  end: movedBy(group.querySelector(":scope > g[transform]")),
  line: [...group.querySelectorAll(":scope > line")].map((line) => numbersOf(line, "x1", "y1", "x2", "y2")),
});

const circlesDrawn = (stage) => ({
  circles: [...stage.querySelectorAll(".circles > li")].map((item) => ({
    R: Number(item.querySelector("circle.rule").getAttribute("r")),
    texts: textsOf(item, "p"), labels: textsOf(item, "text"),
    hands: [...item.querySelectorAll("svg > g.hand:has(> g[transform])")].map(handDrawn),
    arcs: [...item.querySelectorAll("path.arc")].map((arc) => arc.getAttribute("d").match(/-?[\d.]+(e-?\d+)?/g).map(Number)),
  })),
});

const gridDrawn = (stage) => ({
  head: textsOf(stage, "thead th"),
  rows: [...stage.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].map((cell) => cell.querySelector("input")?.value ?? cell.textContent.trim())),
});

const tokensDrawn = (stage) => ({
  tokens: [...stage.querySelectorAll("li button")].map((button) => {
    const below = button.querySelector(".small").textContent;
    const spoken = button.querySelector(".spoken").textContent;
    return { below, spoken, word: button.textContent.slice(0, -(below + spoken).length) };
  }),
});

const flowDrawn = (stage) => ({
  boxes: [...stage.querySelectorAll("g.box")].map((box) => textsOf(box, "text")),
  frames: [...stage.querySelectorAll("g.box > rect")].map((frame) => numbersOf(frame, "x", "y", "width", "height")),
  links: [...stage.querySelectorAll("path.link")].map((link) => link.getAttribute("d").match(/-?[\d.]+/g).slice(0, 3).map(Number)),
});

/** A colour for each pixel of the canvas, and which part of the matrix it is. */
function heatmapDrawn(stage, { view }) {
  const pixels = pixelsOf(stage.querySelector(".plate canvas"));
  const hex = Array.from({ length: 256 }, (_, v) => v.toString(16).padStart(2, "0"));
  const colourAt = (at) => `#${hex[pixels[at]]}${hex[pixels[at + 1]]}${hex[pixels[at + 2]]}`;
  const colours = Array.from({ length: pixels.length / 4 }, (_, i) => colourAt(4 * i));
  return {
    colours, view: { rows: view.rows, columns: view.columns },
    labels: { row: textsOf(stage, ".labels.row li"), column: textsOf(stage, ".labels.column li") },
    ends: { column: textsOf(stage, ".axis:first-of-type .small")[0], row: textsOf(stage, ".plate ~ .axis .small")[0] },
    bar: textsOf(stage, ".bar span"), said: stage.querySelector(".heatmap > .small").textContent,
  };
}

/** What a figure was given to draw, and what stands in its place. */
function figureDrawn(figure) {
  const { stage, data, spec, state, replies, host, page } = figure;
  const readers = {
    chart: chartDrawn, circles: circlesDrawn, grid: gridDrawn, tokens: tokensDrawn, flow: flowDrawn, heatmap: heatmapDrawn,
  };
  return {
    kind: spec.kind, still: Boolean(spec.still), theme: page.theme.value, data: plain(data), state: plain(state),
    named: Boolean(data.xName),
    single: replies.some((reply) => reply.data instanceof Float32Array),
    text: host.querySelector(".text").textContent, drawn: readers[spec.kind](stage, figure),
  };
}

// ---- Here ---------------------------------------------------------------------------------------------------------

const consts = {
  textsOf, numbersOf, movedBy, pathOf, lineDrawn, chartDrawn, handDrawn, circlesDrawn, gridDrawn, tokensDrawn, flowDrawn,
};

const IN_PAGE = `(figure) => {
  ${Object.entries(consts).map(([name, run]) => `const ${name} = ${run};`).join("\n")}
  ${plain}
  ${tickAtRule}
  ${heatmapDrawn}
  ${figureDrawn}
  return figureDrawn(figure);
}`;

/**
 * { kind, data, state, drawn, text, ... } of the figure of that name; `single` where numbers came as float32, `named`
 * where a chart has names for its x.
 */
export const figureShown = (page, name) => inFigure(page, name, IN_PAGE);
