// SPDX-License-Identifier: MIT
//
// What a figure was given to draw, what it shows and what its words say, against what a reference expects:
//
//     references/LAB.mjs  reference = { FIGURE: async (s, ask, words) => expected }
//
// s: the state's values; ask(op, query, body): the service's reply in float64; words: the figure's, for texts.
// expected, by the kind of figure:
//
//     heatmap  { rows, columns, values, domain, labels: { row: [text] } }   chart  { lines: [{ x, y }] }
//     circles  { circles: [{ hands: [{ x, y, fromX, fromY }], arcs: [{ x, y, toX, toY, turn }], labels: [text] }] }
//     grid     { cells: [[text]] }, the rows below the head; of a verdict { holds, number, text }
//     tokens   { words: [text], below: [text], notes: [text] }   flow  { boxes: [[name, text]], links: [[from, to]] }
//
// and for all of them at, what is chosen, and facts: { NAME: text }, what the sentence under the figure has in the place of {NAME}, but for
// those that are values of the state. A text is a string; or a number, which is then shown in as many digits as it is;
// or { say: "template {name}", values: { name: text } }; or a list of such texts, which stand behind each other; or
// null, where nothing is said of it.
//
// Numbers are compared to 1.5 units of float32's last place where any reply was float32, else to 1e-12, both of a scale:
// the largest that is drawn, or `scale`, where what is drawn are small differences of large numbers. `units` says how
// many units instead of 1.5, for what was added up of many.

import assert from "node:assert/strict";
import { words as all } from "./_page.mjs";
import { colourOf, colours } from "./_reference.mjs";

const largest = (list) => list.reduce((most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : most), 0);

const tolerance = ({ single }, { scale, units = 1.5 }, list) =>
  (single ? units * 2 ** -23 : 1e-12) * (scale ?? largest(list));

const same = (a, b, within) => a === b || Math.abs(a - b) <= within || (Number.isNaN(a) && Number.isNaN(b));

function numbersNear(got, wanted, within, what) {
  assert.equal(got?.length, wanted.length, `${what}: as many numbers as expected`);
  const wrong = Array.from(wanted).findIndex((v, i) => !same(got[i], v, within));
  assert.equal(wrong, -1, `${what}: number ${wrong} is ${got[wrong]}, the reference's ${wanted[wrong]} (within ${within})`);
}

// ---- Texts --------------------------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const NUMBER = "([\u2212-]?(?:\\d+(?:\\.\\d+)?(?:e[+\u2212-]?\\d+)?|Infinity)|NaN)";

/** The pattern of a text, and the numbers that its groups stand for, in their order. */
function patternOf(text) {
  if (text === null) {
    return { source: ".*?", numbers: [] };
  }
  if (typeof text === "number") {
    return { source: NUMBER, numbers: [text] };
  }
  if (typeof text === "string") {
    return { source: escaped(text), numbers: [] };
  }
  const parts = (Array.isArray(text) ? text : templateParts(text)).map(patternOf);
  return { source: parts.map(({ source }) => source).join(""), numbers: parts.flatMap(({ numbers }) => numbers) };
}

/** "a {b} c" with values as a list of texts. */
const templateParts = ({ say, values }) =>
  say.split(/\{(\w+)\}/).map((part, i) => {
    if (i % 2 === 0) {
      return part;
    }
    assert.ok(values[part] !== undefined, `the reference does not say what {${part}} is in "${say}"`);
    return typeof values[part] === "boolean" ? String(values[part]) : values[part];
  });

const readNumber = (text) => Number(text.replaceAll("\u2212", "-"));

/** Half a unit of the last digit that is shown; whole numbers below 100 are exact. */
function halfUnit(text) {
  const [digits, power = "0"] = text.replaceAll("\u2212", "-").split("e");
  const places = digits.split(".")[1]?.length ?? 0;
  const whole = places === 0 && power === "0" && Math.abs(Number(digits)) < 100;
  return whole ? 0 : 0.5000001 * 10 ** (Number(power) - places);
}

/** A text that is shown is the one expected, its numbers those expected, rounded. */
function textAgrees(shown, text, within, what) {
  const { source, numbers } = patternOf(text);
  const found = new RegExp(`^${source}$`, "su").exec(shown.trim());
  assert.ok(found, `${what}: "${shown.trim()}" is not of the form ${source}`);
  numbers.forEach((v, i) => assert.ok(same(readNumber(found[i + 1]), v, halfUnit(found[i + 1]) + within),
    `${what}: "${shown.trim()}" says ${found[i + 1]}, the reference's number is ${v}`));
}

// ---- Kinds --------------------------------------------------------------------------------------------------------

const kinds = {
  heatmap(shown, expected, what) {
    const { data, drawn, theme } = shown;
    const { rows, columns, values } = expected;
    assert.deepEqual([data.rows, data.columns], [rows, columns], `${what}: rows and columns`);
    const within = tolerance(shown, expected, values);
    numbersNear(data.values, values, within, what);
    if (expected.domain !== undefined) {
      const right = same(data.domain, expected.domain, 1e-12 * expected.domain);
      assert.ok(right, `${what}: the domain is ${data.domain}, not ${expected.domain}`);
    }
    coloursAgree(drawn, theme, { columns, values, domain: expected.domain ?? data.domain }, within, what);
    const most = textOfNumber(drawn.bar.at(-1), data.domain);
    assert.ok(most, `${what}: the bar of colours ends with ${drawn.bar.at(-1)}, the domain is ${data.domain}`);
    for (const [way, names] of Object.entries(expected.labels ?? {})) {
      const { from, n } = drawn.view[`${way}s`];
      const seen = names.slice(from, from + n);
      assert.ok(drawn.labels[way].length || drawn.ends[way], `${what}: no names of ${way}s`);
      if (drawn.labels[way].length) {
        assert.deepEqual(drawn.labels[way], seen, `${what}: names of ${way}s`);
      } else {
        assert.equal(drawn.ends[way], `${seen[0]} \u2026 ${seen.at(-1)}`, `${what}: names of the first and the last ${way}`);
      }
    }
    const there = data.at && drawn.said.includes(":") && values[data.at.row * columns + data.at.column];
    if (typeof there === "number") {
      textAgrees(drawn.said, [null, ": ", there, null], within, `${what}, the chosen cell`);
    }
  },

  chart(shown, expected, what) {
    const { data } = shown;
    assert.equal(data.lines.length, expected.lines.length, `${what}: lines`);
    expected.lines.forEach(({ x, y, ...own }, k) => {
      numbersNear(data.lines[k].x, x, 1e-12 * largest(x), `${what}, x of line ${k}`);
      numbersNear(data.lines[k].y, y, tolerance(shown, { ...expected, ...own }, y), `${what}, line ${k}`);
    });
    chartAgrees(shown, what);
  },

  circles(shown, expected, what) {
    const { data, drawn } = shown;
    assert.equal(data.circles.length, expected.circles.length, `${what}: circles`);
    expected.circles.forEach(({ hands, arcs, labels = [] }, k) => {
      const circle = data.circles[k];
      const within = tolerance(shown, { scale: 1, ...expected }, []);
      pointsNear(circle.hands, hands, ["x", "y", "fromX", "fromY"], within, `${what}, hands of circle ${k}`);
      assert.deepEqual(drawn.circles[k].labels, labels, `${what}: texts in circle ${k}`);
      if (arcs) {
        pointsNear(circle.arcs, arcs, ["x", "y", "toX", "toY", "turn"], within, `${what}, arcs of circle ${k}`);
      }
      circleAgrees(drawn.circles[k], circle, `${what}, circle ${k}`);
    });
    assert.equal(drawn.circles.length, data.circles.length, `${what}: circles drawn`);
  },

  grid(shown, { cells, ...expected }, what) {
    const { data, drawn } = shown;
    assert.deepEqual(drawn.head, data.head.map(String), `${what}: its head`);
    const size = (table) => table.map((row) => row.length);
    assert.deepEqual(size(drawn.rows), size(cells), `${what}: rows and cells drawn`);
    assert.deepEqual(size(data.rows), size(cells), `${what}: rows and cells`);
    cells.forEach((row, i) => row.forEach((cell, j) =>
      cellAgrees(data.rows[i][j], drawn.rows[i][j], cell, tolerance(shown, expected, [typeof cell === "number" ? cell : 0]), `${what}, row ${i}, column ${j}`)));
  },

  tokens({ data, drawn }, { words, below, notes = [] }, what) {
    assert.deepEqual(data.words, words, `${what}: words`);
    assert.deepEqual(drawn.tokens.map(({ word }) => word), words, `${what}: words drawn`);
    assert.equal(below.length, words.length, `${what}: the reference's texts below`);
    drawn.tokens.forEach((token, i) => {
      textAgrees(token.below, below[i], 0, `${what}, below word ${i}`);
      const place = { say: all.page.token, values: { i: i + 1, n: words.length } };
      textAgrees(token.spoken, [", ", place, notes[i] ? [", ", notes[i]] : ""], 0, `${what}, said of word ${i}`);
    });
  },

  flow({ data, drawn }, { boxes, links }, what) {
    assert.deepEqual(data.links, links, `${what}: links`);
    linksAgree(drawn, links, what);
    assert.equal(data.boxes.length, boxes.length, `${what}: boxes`);
    boxes.forEach((texts, i) => texts.forEach((text, j) => {
      textAgrees(data.boxes[i][j ? "text" : "name"], text, 0, `${what}, box ${i}`);
      const [whole, seen] = [data.boxes[i][j ? "text" : "name"], drawn.boxes[i][j]];
      const right = seen.endsWith("\u2026") ? whole.startsWith(seen.slice(0, -1)) : seen === whole;
      assert.ok(right, `${what}: box ${i} shows "${seen}"`);
    }));
  },
};

/** Each arrow leads from the lower edge of one box to the upper edge of another. */
function linksAgree({ frames, links: drawn }, links, what) {
  assert.equal(drawn.length, links.length, `${what}: links drawn`);
  drawn.forEach(([x, start, end], k) => {
    const [[left, top, wide, high], [left2, top2, wide2]] = links[k].map((i) => frames[i]);
    const inside = x >= Math.max(left, left2) && x <= Math.min(left + wide, left2 + wide2);
    const meets = Math.abs(start - top - high) < 1 && Math.abs(end - top2) < 4;
    assert.ok(inside && meets, `${what}: link ${k} goes from ${x}, ${start} to ${end}, not from box ${links[k].join(" to ")}`);
  });
}

const textOfNumber = (text, v) => same(readNumber(text), v, halfUnit(text));

/** Each cell shown has the colour of its number, or of one that is as near to it as numbers are compared. */
function coloursAgree({ view, colours: seen }, theme, { columns, values, domain }, within, what) {
  const map = colours(theme);
  assert.equal(seen.length, view.rows.n * view.columns.n, `${what}: a pixel for each number`);
  seen.forEach((colour, k) => {
    const [i, j] = [Math.floor(k / view.columns.n), k % view.columns.n];
    const v = values[(view.rows.from + i) * columns + view.columns.from + j];
    const right = [v - within, v, v + within].map((near) => map[colourOf(near, domain)]);
    assert.ok(right.includes(colour), `${what}: cell ${k} is ${colour}, its number's colour ${right[1]}`);
  });
}

function pointsNear(got, wanted, names, within, what) {
  for (const name of names) {
    numbersNear(got.map((point) => point[name] ?? 0), wanted.map((point) => point[name] ?? 0), within, `${what}, ${name}`);
  }
}

/** A number that is kept beside its text is the number; a text that stands for it is compared as it is shown. */
function cellAgrees(got, shown, cell, within, what) {
  const value = got?.value ?? got;
  if (typeof cell === "number") {
    assert.ok(same(Number(value), cell, within), `${what}: ${value}, the reference's ${cell}`);
  }
  if (cell?.holds === undefined) {
    textAgrees(shown, cell, within, what);
    return;
  }
  assert.equal(got.holds, cell.holds, `${what}: holds`);
  assert.ok(same(got.number, cell.number, 1e-12 * Math.abs(cell.number) + within), `${what}: ${got.number}, the reference's ${cell.number}`);
  const verdict = cell.holds ? `\u2713 ${all.page.yes}` : `\u2717 ${all.page.no}`;
  textAgrees(shown, [verdict, ...(cell.text === "" ? [] : [": ", cell.text])], within, what);
}

// ---- Charts: pixels through ticks ---------------------------------------------------------------------------------

const RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

/** What a tick says: "0.5", "\u22122e\u22125" or "10\u207b\u00b9\u2078". */
function tickNumber(text) {
  const power = /^10(\u207b?)([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+)$/.exec(text);
  if (power) {
    const size = Number([...power[2]].map((digit) => RAISED.indexOf(digit)).join(""));
    return 10 ** (power[1] ? -size : size);
  }
  return readNumber(text);
}

/** Of ticks with names the lab says where they are; other names begin with their number: "3 \u2192 4". */
const tickValue = (text, given) => (Number.isNaN(tickNumber(text)) ? given ?? tickNumber(text.split(" ")[0]) : tickNumber(text));

/** Where a value lies, in pixels: by the first and the last tick; what is outside an axis lies at its end. */
function scaleOf(ticks, axis, what) {
  const values = ticks.map(({ text }, k) => tickValue(text, axis.ticks?.[k]));
  if (axis.ticks?.length === 1) { // a single word
    return (v) => (v === axis.ticks[0] ? ticks[0].at : NaN);
  }
  assert.ok(values.length >= 2 && values.every(Number.isFinite), `${what}: two ticks at least that are numbers: ${values}`);
  const go = axis.log ? Math.log10 : (v) => v;
  const [low, high] = [go(values[0]), go(values.at(-1))];
  const [from, to] = [ticks[0].at, ticks.at(-1).at];
  const place = (v) => from + ((go(Math.min(axis.max, Math.max(axis.min, v))) - low) / (high - low)) * (to - from);
  ticks.forEach(({ at }, k) => assert.ok(Math.abs(place(values[k]) - at) < 0.5, `${what}: tick ${ticks[k].text} is at ${at}`));
  return place;
}

/** Points are where their numbers say, to half a pixel. */
function placesAgree(points, x, y, { X, Y, shift = 0 }, what) {
  assert.equal(points.length, y.length, `${what}: points drawn`);
  points.forEach(([px, py], i) => {
    const [wx, wy] = [X(x[i]) + shift, Y(y[i])];
    assert.ok(Math.hypot(px - wx, py - wy) <= 0.5, `${what}: point ${i} (${x[i]}, ${y[i]}) is at ${px}, ${py}, not ${wx}, ${wy}`);
  });
}

/** An axis is as long as its plate, and up is more. */
function endsAgree({ x: ticks, wide, high }, data, { X, Y }, what) {
  const ends = (axis, place) => [place(axis.min), place(axis.max)];
  if (ticks.length > 1) {
    numbersNear(wide, ends(data.x, X), 0.5, `${what}, the ends of x`);
  }
  numbersNear(high, high.length ? ends(data.y, Y) : [], 0.5, `${what}, the ends of y`);
  assert.ok(Y(data.y.max) < Y(data.y.min), `${what}: up is less`);
}

function chartAgrees({ data, drawn, named }, what) {
  drawn.y.forEach(({ off, text }) => assert.ok(Math.abs(off - 4) < 1, `${what}: tick ${text} stands beside its rule`));
  const X = scaleOf(drawn.x, data.x, `${what}, x`);
  const Y = scaleOf(drawn.y, data.y, `${what}, y`);
  endsAgree(drawn, data, { X, Y }, what);
  const points = new Set(data.lines.flatMap(({ x }) => x));
  (named ? drawn.x : []).forEach(({ text }, k) =>
    assert.ok(points.has(tickValue(text, data.x.ticks?.[k])), `${what}: tick ${text} is no x that is drawn`));
  assert.deepEqual(drawn.legend, data.lines.map(({ name }) => name), `${what}: the legend`);
  assert.equal(drawn.lines.length, data.lines.length, `${what}: lines drawn`);
  data.lines.forEach((line, k) => lineAgrees(drawn.lines[k], line, { X, Y, floor: Y(data.y.min) }, `${what}, line ${k}`));
  numbersNear(drawn.marks, (data.y.marks ?? []).map(({ at }) => Y(at)), 0.5, `${what}, heights with names`);
  if (data.at === undefined) {
    return;
  }
  numbersNear(drawn.at, [X(data.at)], 0.5, `${what}, the chosen x`);
  const there = data.lines.filter(({ x }) => x.includes(data.at)); // a line that has no point there says nothing
  const values = (there.length ? there : data.lines).flatMap(({ name, x, y }, k) => [k ? "; " : "", `${name} `, y[nearest(x, data.at)]]);
  textAgrees(drawn.said, [null, ": ", ...values], 0, `${what}, the chosen values`);
}

const nearest = (list, x) => list.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(list[best] - x) ? i : best), 0);

function lineAgrees({ path, dots, bars }, line, { X, Y, floor }, what) {
  const { x, y, each = 1, shift } = line;
  placesAgree(path, line.bare ? [] : x, line.bare ? [] : y, { X, Y }, `${what}, path`);
  const marked = (list) => (line.dots ? list.filter((_, i) => i % each === 0) : []);
  placesAgree(dots, marked(x), marked(y), { X, Y, shift }, `${what}, dots`);
  const tops = bars.map(([left, top, wide]) => [left + wide / 2, top]);
  placesAgree(tops, line.bars ? x : [], line.bars ? y : [], { X, Y, shift }, `${what}, bars`);
  bars.forEach(([, top, , high], i) => assert.ok(Math.abs(top + high - floor) < 0.5, `${what}: bar ${i} stands on the axis`));
}

// ---- Circles ------------------------------------------------------------------------------------------------------

/** Right is more, and so is up, although pixels go down. */
function circleAgrees({ R, hands, arcs, texts }, circle, what) {
  assert.deepEqual(texts, [circle.title, circle.line].filter(Boolean), `${what}: its texts`);
  assert.equal(hands.length, circle.hands.length, `${what}: hands drawn`);
  circle.hands.forEach(({ x, y, fromX = 0, fromY = 0, kind }, i) => {
    numbersNear(hands[i].end, [x * R, -y * R], 0.5, `${what}, end of hand ${i}`);
    const line = kind === "ring" ? [] : [[fromX * R, -fromY * R, x * R, -y * R]];
    numbersNear(hands[i].line.flat(), line.flat(), 0.5, `${what}, line of hand ${i}`);
  });
  const given = circle.arcs ?? [];
  assert.equal(arcs.length, given.length, `${what}: arcs drawn`);
  given.forEach(({ x, y, toX, toY, turn }, i) => {
    const [startX, startY, r, , , large, sweep, endX, endY] = arcs[i];
    numbersNear([startX, startY, endX, endY], [x * r, -y * r, toX * r, -toY * r], 0.5, `${what}, ends of arc ${i}`);
    const by = (turn * (Math.atan2(toY, toX) - Math.atan2(y, x)) + 4 * Math.PI) % (2 * Math.PI);
    assert.equal(sweep, turn > 0 ? 0 : 1, `${what}: which way arc ${i} goes`);
    const either = [0, Math.PI, 2 * Math.PI].some((turned) => Math.abs(by - turned) < 1e-6);
    assert.ok(either || large === (by > Math.PI ? 1 : 0), `${what}: which part of the circle arc ${i} is`);
  });
}

// ---- A figure -----------------------------------------------------------------------------------------------------

/** All that a figure shows is what its reference expects; words: those of the figure. */
export function figureAgrees(shown, expected, words, what) {
  kinds[shown.kind](shown, expected, what);
  if (expected.at !== undefined) {
    assert.deepEqual(shown.data.at, expected.at, `${what}: what is chosen`);
  }
  const facts = { ...shown.state, ...expected.facts };
  const within = tolerance(shown, expected, expected.values ?? expected.lines?.flatMap(({ y }) => Array.from(y)) ?? [1]);
  textAgrees(shown.text, { say: words.text, values: facts }, within, `${what}, the text`);
}
