// Boxes with arrows from one to the next, from top to bottom: what goes in where, and of which shape it is.
//
//     data { boxes: [{ name, text, row, column, symbol, tone }], links: [[from, to]], columns, step, shape }
//
// A box without a column is as wide as all of them. name and text: its two lines, cut where they do not fit; tone 0..7: the colour of its edge; links: between places in the list of boxes; step, shape: what
// name and text are, for the table.

import { html, render, svg } from "lit-html";
import { cutText } from "../page/fields.js";

const HIGH = 48; // a box
const DOWN = 84; // from one row to the next
const GAP = 12; // between columns
const WIDE = 520; // at most

const frame = (box, width, columns) => {
  const each = (width - (columns - 1) * GAP) / columns;
  const x = box.column === undefined ? 0 : box.column * (each + GAP);
  return { x, y: 2 + box.row * DOWN, width: box.column === undefined ? width : each };
};

const cut = (text, width) => {
  const fits = Math.floor((width - 12) / 6.5);
  return text.length > fits ? `${cutText(text, fits - 1)}\u2026` : text;
};

const drawBox = (box, { x, y, width }) => svg`<g
  class=${`box line-${box.tone ?? 7} ${box.symbol ? `sym-${box.symbol}` : ""}`}>
  <rect x=${x + 1} y=${y} width=${width - 2} height=${HIGH} rx="6" />
  <text class="title" x=${x + width / 2} y=${y + 20} text-anchor="middle">${cut(box.name, width)}</text>
  <text class="tick" x=${x + width / 2} y=${y + 38} text-anchor="middle">${cut(box.text, width)}</text></g>`;

/** From the lower edge of one to the upper edge of another, in the middle of the narrower. */
function drawLink(from, to) {
  const middle = ({ x, width }) => x + width / 2;
  const x = from.width < to.width ? middle(from) : middle(to);
  const end = to.y - 3;
  const tip = `M${x - 5} ${end - 6}L${x} ${end}L${x + 5} ${end - 6}`;
  return svg`<path class="link" d=${`M${x} ${from.y + HIGH}V${end}${tip}`} />`;
}

const spoken = (data) => `${data.title}: ${data.boxes.map(({ name, text }) => `${name}, ${text}`).join("; ")}`;

function draw(stage, data, figure) {
  const width = Math.min(WIDE, Math.max(200, figure.width));
  const frames = data.boxes.map((box) => frame(box, width, data.columns));
  const height = Math.max(...frames.map(({ y }) => y)) + HIGH + 2;
  render(
    html`<div class="flow" role="img" aria-label=${spoken(data)}>
      <svg viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} aria-hidden="true">
        ${data.links.map(([from, to]) => drawLink(frames[from], frames[to]))}
        ${data.boxes.map((box, i) => drawBox(box, frames[i]))}
      </svg></div>`,
    stage,
  );
}

const table = (data) => ({ head: [data.step, data.shape], rows: data.boxes.map(({ name, text }) => [name, text]) });

export const flow = { draw, table, cell: String };
