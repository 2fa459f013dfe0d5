// A matrix as colours: rows down, columns across, one cell a number, never fewer pixels than numbers. What is wider or
// longer than the room is shown in part, around the cell that is chosen, and the figure says so.
//
//     data { rows, columns, values, domain, row, column, rowName(i), columnName(j), at: {row, column}, symbols, labels }
//
// values [rows * columns]; domain d: colours go from -d to d; row, column: titles of the axes; at: the chosen cell;
// labels: {row: [text], column: [text]} of a matrix so small that each row, and perhaps each column and number, can be
// written out.

import { html, nothing, render } from "lit-html";
import { colourIndex, pixels } from "../page/colour.js";
import { plainKey } from "../page/keys.js";
import { pointWatch } from "../page/pointer.js";
import { chosenAt } from "../page/probe.js";
import { say, shown, words } from "../page/words.js";

const palettes = { light: pixels("light"), dark: pixels("dark") };
const HEIGHT = 512; // at most, in pixels of the page
const SIDE = 72; // labels of rows

/** The part of 0..all that is shown: `room` of them, with `at` in it. */
const part = (all, room, at) => {
  const n = Math.min(all, room);
  return { from: Math.min(all - n, Math.max(0, at - Math.floor(n / 2))), n };
};

const rowName = (data, i) => data.rowName?.(i) ?? String(i);
const columnName = (data, j) => data.columnName?.(j) ?? String(j);

const LEGIBLE = 16; // pixels of a row with its name beside it

/** Which part is shown, in cells how wide and how high. Under a pointer that is down it stays: see listen(). */
function layout({ width: room, held }, data) {
  const width = Math.max(64, room - (data.labels ? SIDE : 64));
  const rows = held?.rows ?? part(data.rows, HEIGHT, data.at?.row ?? 0);
  const columns = held?.columns ?? part(data.columns, width, data.at?.column ?? 0);
  const cell = Math.max(1, Math.floor(Math.min(width / columns.n, HEIGHT / rows.n, data.cell ?? (data.labels ? 56 : 32))));
  return { rows, columns, cell, high: Math.max(cell, data.labels ? LEGIBLE : 1) };
}

/** What a canvas's pixels follow from; while it is the same, as when only the chosen cell changes, they are right. */
const sources = new WeakMap();

function ifOther(canvas, source, paint) {
  if (sources.get(canvas)?.every((part, i) => part === source[i])) {
    return;
  }
  sources.set(canvas, source);
  paint();
}

/** What colours and numbers of cells follow from. */
const sourceOf = (data, { rows, columns, cell }, theme) =>
  [data.values, data.domain, data.columns, theme, rows.from, rows.n, columns.from, columns.n, cell, globalThis.devicePixelRatio];

function paint(canvas, data, view, theme) {
  const colours = palettes[theme];
  canvas.width = view.columns.n;
  canvas.height = view.rows.n;
  const pen = canvas.getContext("2d", { alpha: false });
  const image = pen.createImageData(view.columns.n, view.rows.n);
  const out = new Uint32Array(image.data.buffer);
  for (let i = 0, k = 0; i < view.rows.n; i++) {
    const start = (view.rows.from + i) * data.columns + view.columns.from;
    for (let j = 0; j < view.columns.n; j++) {
      out[k++] = colours[colourIndex(data.values[start + j], data.domain)];
    }
  }
  pen.putImageData(image, 0, 0);
}

const ROOM = 30; // pixels of a cell with its number in it

/** The numbers themselves, in dark or light ink, whichever is read better on the cell's colour. */
function write(canvas, data, { rows, columns, cell }, theme) {
  const sharp = globalThis.devicePixelRatio || 1;
  canvas.width = columns.n * cell * sharp;
  canvas.height = rows.n * cell * sharp;
  const pen = canvas.getContext("2d");
  pen.scale(sharp, sharp);
  pen.font = `${cell < 34 ? 10 : cell < 44 ? 11 : 13}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let k = 0; k < rows.n * columns.n; k++) {
    const i = Math.floor(k / columns.n);
    const j = k % columns.n;
    const value = data.values[(rows.from + i) * data.columns + columns.from + j];
    pen.fillStyle = ink(palettes[theme][colourIndex(value, data.domain)]);
    pen.fillText(twoPlaces(value), (j + 0.5) * cell, (i + 0.5) * cell);
  }
}

/** "0" is exactly that, and "1"; what is only next to it is "0.00". */
const twoPlaces = (v) => (Number.isInteger(v) ? String(v).replace("-", "\u2212") : v.toFixed(2).replace("-0.00", "0.00").replace("-", "\u2212"));

/** Black or white on a pixel's colour: by its luminance, where both have the same contrast. */
function ink(pixel) {
  const [r, g, b] = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255].map((v) => (v / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** Names of all columns, or of all rows, each as wide or high as a cell; upright where one is too long. */
const names = (list, way, { from, n }, cell) => html`
  <ol class=${`labels ${way} ${way === "column" && list.some((name) => name.length * 7 > cell) ? "upright" : ""}`} aria-hidden="true">
    ${list.slice(from, from + n).map((name) => html`<li .style=${way === "column" ? `width:${cell}px` : `height:${cell}px`}><span>${name}</span></li>`)}</ol>`;

/** What is under the probe, in words. */
const cellText = (data, { row, column }) =>
  say(words.page.cell, {
    row: data.row, column: data.column, i: rowName(data, row), j: columnName(data, column),
    value: shown(data.values[row * data.columns + column]),
  });

/** What is shown where no cell is chosen. */
const wholeText = (data) =>
  `${data.row} ${rowName(data, 0)} \u2026 ${rowName(data, data.rows - 1)}, ${data.column} ${columnName(data, 0)} \u2026 ${columnName(data, data.columns - 1)}`;

const STEPS = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
};

function moved(event, figure) {
  const { data } = figure;
  const at = chosenAt(figure) ?? { row: 0, column: 0 };
  const by = event.shiftKey ? 10 : 1;
  const key = plainKey(event);
  const step = STEPS[key];
  if (key === "Home" || key === "End") {
    return { row: at.row, column: key === "Home" ? 0 : data.columns - 1 };
  }
  return (
    step && {
      row: Math.min(data.rows - 1, Math.max(0, at.row + step[0] * by)),
      column: Math.min(data.columns - 1, Math.max(0, at.column + step[1] * by)),
    }
  );
}

function listen(plate, figure) {
  const point = (event) => {
    const box = plate.querySelector("canvas").getBoundingClientRect();
    const { rows, columns, cell, high } = figure.view;
    figure.held = { rows, columns };
    figure.probe({
      row: rows.from + Math.min(rows.n - 1, Math.max(0, Math.floor((event.clientY - box.top) / high))),
      column: columns.from + Math.min(columns.n - 1, Math.max(0, Math.floor((event.clientX - box.left) / cell))),
    });
  };
  plate.addEventListener("keydown", (event) => {
    const at = figure.probe && moved(event, figure);
    if (at) {
      event.preventDefault();
      figure.probe(at);
    }
  });
  const over = () => {
    figure.held = undefined;
    draw(figure.stage, figure.data, figure); // with what was chosen in the middle
  };
  pointWatch(plate, () => figure.probe, point, over);
}

/** Whether values go below 0; asked once for the same ones. */
const below = new WeakMap();

function belowZero(values) {
  if (!below.has(values)) {
    below.set(values, values.some((v) => v < 0));
  }
  return below.get(values);
}

/** The colours and what they stand for: those from 0 on, if no number is below it. */
function bar(canvas, theme, data) {
  const colours = palettes[theme].slice(belowZero(data.values) ? 0 : 128);
  canvas.width = colours.length;
  canvas.height = 1;
  const pen = canvas.getContext("2d", { alpha: false });
  const image = pen.createImageData(colours.length, 1);
  new Uint32Array(image.data.buffer).set(colours);
  pen.putImageData(image, 0, 0);
}

/** The title of an axis and, unless all are written out, its first and last name. */
const axis = (title, arrow, ends) => html`<p class="axis">${title} ${arrow}
  ${ends ? html`<span class="small">${ends[0]} \u2026 ${ends[1]}</span>` : ""}</p>`;

const place = (left, top, width, height) => `left:${left}px;top:${top}px;width:${width}px;height:${height}px`;

function draw(stage, data, figure) {
  const view = layout(figure, data);
  const { rows, columns, cell, high } = view;
  const { labels } = data;
  const theme = figure.page.theme.value;
  figure.view = view;
  const cut = rows.n < data.rows || columns.n < data.columns;
  const at = data.at && figure.spec.probe ? data.at : null;
  render(
    html`<div class=${`heatmap ${labels ? "labelled" : ""}`}>
      ${axis(data.column, "\u2192", !labels?.column && [columnName(data, columns.from), columnName(data, columns.from + columns.n - 1)])}
      ${labels?.column ? names(labels.column, "column", columns, cell) : ""}
      ${labels ? names(labels.row, "row", rows, high) : ""}
      <div class="plate" tabindex=${figure.probe ? "0" : nothing} role=${figure.probe ? "application" : "img"}
          aria-roledescription=${words.page.heatmap} aria-label=${`${data.title}. ${at ? cellText(data, at) : wholeText(data)}`}
          .style=${`width:${columns.n * cell}px;height:${rows.n * high}px`}>
        <canvas aria-hidden="true"></canvas>${labels && cell >= ROOM ? html`<canvas class="numbers" aria-hidden="true"></canvas>` : ""}
        ${at ? html`<div class="cross ${data.symbols?.row ? `sym-${data.symbols.row}` : ""}" .style=${place(0, (at.row - rows.from) * high, columns.n * cell, high)}></div>
          <div class="cross ${data.symbols?.column ? `sym-${data.symbols.column}` : ""}" .style=${place((at.column - columns.from) * cell, 0, cell, rows.n * high)}></div>` : ""}
      </div>
      ${axis(data.row, "\u2193", !labels && [rowName(data, rows.from), rowName(data, rows.from + rows.n - 1)])}
      <p class="bar"><span>${shown(belowZero(data.values) ? -data.domain : 0)}</span><canvas aria-hidden="true" class="colours"></canvas><span>${shown(data.domain)}</span></p>
      <p class="small">${at ? cellText(data, at) : ""} ${cut ? say(words.page.window, { rows: rows.n, columns: columns.n, allRows: data.rows, allColumns: data.columns }) : ""}</p>
    </div>`,
    stage,
  );
  const plate = stage.querySelector(".plate");
  const source = sourceOf(data, view, theme);
  const [colours, numbers] = ["canvas", ".numbers"].map((name) => plate.querySelector(name));
  ifOther(colours, source, () => paint(colours, data, view, theme));
  if (numbers) {
    ifOther(numbers, source, () => write(numbers, data, view, theme));
  }
  const scale = stage.querySelector(".colours");
  ifOther(scale, [theme, belowZero(data.values)], () => bar(scale, theme, data));
  if (!plate.listening) {
    plate.listening = true;
    listen(plate, figure);
  }
}

/** Of no more than so many rows and columns. */
function table(data, most = Infinity) {
  const columns = Math.min(data.columns, most);
  return {
    head: [`${data.row} \u2193 ${data.column} \u2192`, ...Array.from({ length: columns }, (_, j) => columnName(data, j))],
    rows: Array.from({ length: Math.min(data.rows, most) }, (_, i) => [
      rowName(data, i), ...data.values.slice(i * data.columns, i * data.columns + columns),
    ]),
  };
}

/** What a file of numbers holds: [rows, columns]. */
const numbers = (data) =>
  Array.from({ length: data.rows }, (_, i) => Array.from(data.values.slice(i * data.columns, (i + 1) * data.columns), Number));

const said = (data) => (data.at ? cellText(data, data.at) : "");

export const heatmap = { draw, table, numbers, said, cell: shown };
