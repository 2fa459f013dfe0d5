// Lines and points over one axis, in SVG: marks can be found, styled and highlighted like any other text.
//
//     data { x: {title, min, max, log, ticks, tick(x)}, y: {title, min, max, log, marks: [{at, name}]},
//            at, stops, xName(x), lines: [{name, symbol, tone, x, y, dots, each, bars, dash, bare, mark, shift}] }
//
// lines: at most eight; `dots` marks each point, `bars` draws a column of so many pixels up to it, `bare` leaves out the
// line itself; with `each: n` only every n-th point is marked and can be chosen, the others are the way there; `tone`
// 0..7 is another colour than that of its place among the lines; `dash` 1..3 and `mark` 0..3 (circle, square, triangle,
// diamond) tell lines apart without colour, and `shift` moves points so many pixels aside; marks: heights that have
// names; at: the x that is chosen; stops: those that can be, where not points are; ticks: the x that are named, where
// not round numbers are; tick(x): a name shorter than xName's, for them. What lies outside an axis is drawn at its end.

import { html, nothing, render, svg } from "lit-html";
import { cutText } from "../page/fields.js";
import { plainKey } from "../page/keys.js";
import { pointWatch } from "../page/pointer.js";
import { chosenAt } from "../page/probe.js";
import { say, shown, words } from "../page/words.js";

const LEFT = 52;
const BOTTOM = 36;
const TOP = 10;
const HEIGHT = 280;

const along = (axis, size) => {
  const go = axis.log ? Math.log10 : (v) => v;
  const low = go(axis.min);
  const high = go(axis.max);
  return (v) => ((go(Math.min(axis.max, Math.max(axis.min, v))) - low) / (high - low || 1)) * size;
};

/** Round numbers that divide an axis into some `n` pieces; powers of ten of a logarithmic one. */
function ticks(axis, n) {
  if (axis.ticks) {
    return axis.ticks;
  }
  if (axis.log) {
    const first = Math.ceil(Math.log10(axis.min) - 1e-9);
    const last = Math.floor(Math.log10(axis.max) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first) / n));
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
  }
  const rough = (axis.max - axis.min) / n;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= rough * 0.999);
  const first = Math.ceil(axis.min / step - 1e-9);
  return Array.from({ length: Math.floor(axis.max / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

/** Of x that have names none stands between two points. */
const namedTicks = (data, n) =>
  ticks(data.x, n).filter((v) => !data.xName || data.lines.some(({ x }) => x.includes(v)));

const RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

/** A power of ten as readers write it, where its digits would be many. */
const powerName = (v) => {
  const power = Math.round(Math.log10(v));
  return Math.abs(power) < 5 ? v.toFixed(Math.max(0, -power)) : `10${power < 0 ? "\u207b" : ""}${[...String(Math.abs(power))].map((digit) => RAISED[digit]).join("")}`;
};

const path = (line, X, Y) =>
  Array.from(line.y, (y, i) => `${i ? "L" : "M"}${X(line.x[i]).toFixed(2)} ${Y(y).toFixed(2)}`).join("");

/** A height that has a name, across the plate. */
const height = (name, left, right, y) => svg`<line class="rule dash-2" x1=${left} x2=${right} y1=${y} y2=${y} />
  <text class="tick" x=${right} y=${y - 4} text-anchor="end">${name}</text>`;

const MARKS = ["", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z", "M0 -6L6 0L0 6L-6 0Z"];

/** A point of a line. */
const dot = (line, x, y) =>
  line.mark ? svg`<path class="mark" d=${MARKS[line.mark]} transform=${`translate(${x.toFixed(2)} ${y.toFixed(2)})`} />` :
  svg`<circle cx=${x.toFixed(2)} cy=${y.toFixed(2)} r=${line.mark === 0 ? 4.5 : 3} />`;

/** Of a line's values those at points that are marked and can be chosen. */
const whole = ({ each = 1 }, values) => Array.from(values).filter((_, i) => i % each === 0);

function dots(line, X, Y) {
  const y = whole(line, line.y);
  return whole(line, line.x).map((v, i) => dot(line, X(v) + (line.shift ?? 0), Y(y[i])));
}

/** The class of a line's colour. */
const tone = (line, k) => `line-${line.tone ?? k % 8} ${line.symbol ? `sym-${line.symbol}` : ""}`;

/** A column from the axis up to a point. */
const column = (width, x, y, floor) => svg`<rect x=${(x - width / 2).toFixed(2)} y=${y.toFixed(2)} width=${width}
  height=${Math.max(0, floor - y).toFixed(2)} />`;

const shape = (line, k, X, Y) => svg`<g class=${`line ${tone(line, k)}`}>
  ${line.bars ? Array.from(line.y, (y, i) => column(line.bars, X(line.x[i]) + (line.shift ?? 0), Y(y), HEIGHT - BOTTOM)) : ""}
  ${line.bare ? "" : svg`<path d=${path(line, X, Y)} class=${`dash-${line.dash ?? 0}`} />`}
  ${line.dots ? dots(line, X, Y) : ""}</g>`;

/** A line as the legend shows it. */
const sample = (line) => svg`${line.bare ? "" : svg`<path class=${`dash-${line.dash ?? 0}`} d="M0 6H28" />`}
  ${line.bars ? column(10, 14, 0, 12) : ""}${line.mark === undefined ? "" : dot(line, 14, 6)}`;

/** A round number, with no more digits than it has. */
const roundName = (v) => {
  const round = Number(v.toPrecision(6));
  return Math.abs(round) >= 1e7 || (round && Math.abs(round) < 1e-3) ? shown(round) : String(round).replace("-", "\u2212");
};

/** The name of an x, cut to the room that each has. */
const tickName = (data, v, room) => {
  const plain = data.x.log && !data.x.ticks ? powerName : roundName;
  const name = (data.x.tick ?? data.xName ?? plain)(v);
  const fits = Math.max(2, Math.floor(room / 6.5));
  return name.length > fits && data.x.ticks ? `${cutText(name, fits - 1)}\u2026` : name;
};

/** Of a line the point next to x. */
function nearest(line, x) {
  let best = 0;
  for (let i = 1; i < line.x.length; i++) {
    if (Math.abs(line.x[i] - x) < Math.abs(line.x[best] - x)) {
      best = i;
    }
  }
  return best;
}

/** Lines that have a point at x; where none has, as between points, all. */
function linesAt({ lines }, x) {
  const there = lines.filter((line) => line.x.includes(x));
  return there.length ? there : lines;
}

const atText = (data) =>
  data.at === undefined || !data.lines.length ? "" :
  say(words.page.point, {
    x: data.x.title, at: data.xName?.(data.at) ?? shown(data.at),
    values: linesAt(data, data.at).map((line) => `${line.name} ${shown(line.y[nearest(line, data.at)])}`).join("; "),
  });

/** The x values that can be chosen: those named, or those of the first line with points, or of the first. */
function stops(data) {
  if (data.stops) {
    return data.stops;
  }
  const line = data.lines.find(({ dots }) => dots) ?? data.lines[0];
  return line ? whole(line, line.x) : [];
}

function step(event, figure) {
  const all = stops(figure.data);
  const at = chosenAt(figure);
  const now = at === undefined ? 0 : nearest({ x: all }, at);
  const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -all.length, End: all.length }[plainKey(event)];
  return by && all[Math.min(all.length - 1, Math.max(0, now + by * (event.shiftKey ? 10 : 1)))];
}

function listen(plate, figure) {
  const point = (event) => {
    const box = plate.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - 8);
    const { min, max, log } = figure.data.x;
    const x = log ? min * (max / min) ** share : min + (max - min) * share;
    const all = stops(figure.data);
    figure.probe(all[nearest({ x: all }, x)]);
  };
  plate.addEventListener("keydown", (event) => {
    const x = figure.probe && step(event, figure);
    if (x !== undefined) {
      event.preventDefault();
      figure.probe(x);
    }
  });
  pointWatch(plate, () => figure.probe, point);
}

function draw(stage, data, figure) {
  const width = Math.max(200, figure.width);
  const right = width - LEFT - 8;
  const x = along(data.x, right);
  const y = along(data.y, HEIGHT - TOP - BOTTOM);
  const X = (v) => LEFT + x(v);
  const Y = (v) => HEIGHT - BOTTOM - y(v);
  render(
    html`<ul class="legend">${data.lines.map((line, k) => html`<li class=${tone(line, k)}>
        <svg width="28" height="12" aria-hidden="true">${sample(line)}</svg>${line.name}</li>`)}</ul>
      <div class="plate chart" tabindex=${figure.probe ? "0" : nothing} role=${figure.probe ? "application" : "img"}
        aria-roledescription=${words.page.chart}
        aria-label=${`${data.title}. ${atText(data) || data.lines.map(({ name }) => name).join("; ")}`}>
      <svg viewBox=${`0 0 ${width} ${HEIGHT}`} width=${width} height=${HEIGHT} aria-hidden="true">
        ${ticks(data.y, 5).map((v) => svg`<line class="rule" x1=${LEFT} x2=${LEFT + right} y1=${Y(v)} y2=${Y(v)} />
          <text class="tick" x=${LEFT - 6} y=${Y(v) + 4} text-anchor="end">${data.y.log ? powerName(v) : roundName(v)}</text>`)}
        ${namedTicks(data, Math.max(2, Math.floor(right / 90))).map((v) => svg`<text class="tick" x=${X(v)} y=${HEIGHT - BOTTOM + 16} text-anchor="middle">${tickName(data, v, right / (data.x.ticks?.length ?? 1))}</text>`)}
        ${(data.y.marks ?? []).map((mark) => height(mark.name, LEFT, LEFT + right, Y(mark.at)))}
        <text class="title" x=${LEFT + right / 2} y=${HEIGHT - 4} text-anchor="middle">${data.x.title}</text>
        ${data.at !== undefined ? svg`<line class="probe" x1=${X(data.at)} x2=${X(data.at)} y1=${TOP} y2=${HEIGHT - BOTTOM} />` : ""}
        ${data.lines.map((line, k) => shape(line, k, X, Y))}
      </svg></div>
      <p class="axis">\u2191 ${data.y.title}</p>
      <p class="small">${atText(data)}</p>`,
    stage,
  );
  const plate = stage.querySelector(".plate");
  if (!plate.listening) {
    plate.listening = true;
    listen(plate, figure);
  }
}

/** A row for each x that any line has: x, and the lines' y there, or undefined. */
function points(data) {
  const all = [...new Set(data.lines.flatMap((line) => Array.from(line.x)))].sort((a, b) => a - b);
  const columns = data.lines.map((line) => new Map(Array.from(line.x, (x, i) => [x, line.y[i]])));
  return all.map((x) => [x, ...columns.map((column) => column.get(x))]);
}

const table = (data) => ({
  head: [data.x.title, ...data.lines.map((line) => line.name)],
  rows: points(data).map(([x, ...y]) => [data.xName?.(x) ?? String(x), ...y.map((v) => v ?? "")]),
});

/** What a file of numbers holds: a row for each x, with x before the lines' y; NaN where a line has none. */
const numbers = (data) => points(data).map((row) => row.map(Number));

export const chart = { draw, table, numbers, said: atText, cell: shown };
