// Unit circles with hands: angles as they turn.
//
//     data { circles: [{ title, hands: [{ name, x, y, symbol, kind }] }], x: {title}, y: {title} }
//
// kind: "from", "to" or "ghost": how a hand is drawn; x, y: its point, to the right and up.

import { html, render, svg } from "lit-html";
import { shown } from "../page/words.js";

const SIZE = 148;
const R = 58;

const hand = (h) => svg`<g class=${`hand ${h.kind ?? ""} ${h.symbol ? `sym-${h.symbol}` : ""}`}>
  <line x1="0" y1="0" x2=${(h.x * R).toFixed(2)} y2=${(-h.y * R).toFixed(2)} />
  <circle cx=${(h.x * R).toFixed(2)} cy=${(-h.y * R).toFixed(2)} r="4" /></g>`;

const handText = (h) => `${h.name} (${shown(h.x)}, ${shown(h.y)})`;

function draw(stage, data) {
  render(
    html`<ul class="circles">${data.circles.map(
      (circle) => html`<li><svg viewBox=${`${-SIZE / 2} ${-SIZE / 2} ${SIZE} ${SIZE}`} width=${SIZE} height=${SIZE} role="img"
          aria-label=${`${circle.title}: ${circle.hands.map(handText).join("; ")}`}>
        <line class="rule" x1=${-R - 8} x2=${R + 8} y1="0" y2="0" /><line class="rule" y1=${-R - 8} y2=${R + 8} x1="0" x2="0" />
        <circle class="rule" r=${R} />${circle.hands.map(hand)}</svg>
        <p class="small">${circle.title}</p></li>`,
    )}</ul><p class="axis">\u2192 ${data.x.title}, \u2191 ${data.y.title}</p>`,
    stage,
  );
}

const table = (data) => ({
  head: ["", data.x.title, data.y.title],
  rows: data.circles.flatMap((circle) => circle.hands.map((h) => [`${circle.title}, ${h.name}`, h.x, h.y])),
});

export const circles = { draw, table, cell: shown };
