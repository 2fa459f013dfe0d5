// Unit circles with hands: angles as they turn.
//
//     data { circles: [{ title, line, hands, arcs }], size, x: {title}, y: {title}, at, note }
//     hands: [{ name, x, y, fromX, fromY, kind, label, side, symbol, drag }]
//     arcs: [{ x, y, toX, toY, turn, label }]
//
// line: a line of text under the title; size: of a circle in pixels, where two need not stand side by side on a phone;
// at: what is chosen; note: the same in words.
//
// A hand goes from (fromX, fromY), which is the middle where nothing is said, to (x, y), to the right and up. kind: how
// it is drawn, "from", "to", "ring" (a ring around its end), "ghost", "along", "across", "sine" or "cosine"; name: what
// the legend and the table call it; label: what stands beside it, on its left or (side -1) right. An arc goes from one
// hand to another, turn 1 counter-clockwise or -1.
//
// A hand that has `drag` can be turned: the lab's probe gets { circle, hand, turn, from }, its `drag`, by how many
// radians it went counter-clockwise, and the state in which it was taken. Arrow keys give it { right, up }.

import { html, render, svg } from "lit-html";
import { plainKey } from "../page/keys.js";
import { isFirst } from "../page/pointer.js";
import { probeFree } from "../page/probe.js";
import { shown, words } from "../page/words.js";

const SIZE = 148;
const MARGIN = 16;

const END = {
  from: svg`<circle class="end" r="5" />`,
  to: svg`<path class="end" d="M-5 -5H5V5H-5Z" />`,
  ring: svg`<circle class="open" r="9" />`,
  ghost: svg`<circle class="open" r="4" />`,
};

const moved = (x, y) => `translate(${x.toFixed(2)} ${y.toFixed(2)})`;

/** A label beyond the end of a hand, or beside the middle of a leg, to its left or (side -1) right. */
function label({ label: text, x, y, fromX, fromY, side = 1 }, R) {
  if (fromX === undefined) {
    return named(text, x * 1.16, y * 1.16, R);
  }
  const away = (side * 0.18) / (Math.hypot(x - fromX, y - fromY) || 1);
  return named(text, (x + fromX) / 2 - away * (y - fromY), (y + fromY) / 2 + away * (x - fromX), R);
}

const named = (text, x, y, R) =>
  svg`<text class="tick" text-anchor="middle" dy=".35em" transform=${moved(x * R, -y * R)}>${text}</text>`;

const stroke = ({ x, y, fromX = 0, fromY = 0 }, R) => svg`<line
  x1=${(fromX * R).toFixed(2)} y1=${(-fromY * R).toFixed(2)} x2=${(x * R).toFixed(2)} y2=${(-y * R).toFixed(2)} />`;

const hand = (h, R, free) => svg`<g class=${`hand ${h.kind ?? ""} ${h.symbol ? `sym-${h.symbol}` : ""}`}>
  ${h.kind === "ring" ? "" : stroke(h, R)}
  <g transform=${moved(h.x * R, -h.y * R)}>${END[h.kind] ?? ""}
    ${free?.(h) ? svg`<circle class="grip" r="14" data-hand=${h.drag} />` : ""}</g>
  ${h.label ? label(h, R) : ""}</g>`;

/** Part of a small circle; 1 of SVG's flags is clockwise, as its y goes down. */
function arc({ x, y, toX, toY, turn, label: text }, R) {
  const r = R * 0.36;
  const start = Math.atan2(y, x);
  const by = (turn * (Math.atan2(toY, toX) - start) + 4 * Math.PI) % (2 * Math.PI);
  const middle = start + (turn * by) / 2;
  const flags = `${by > Math.PI ? 1 : 0} ${turn > 0 ? 0 : 1}`;
  return svg`<path class="arc" d=${`M${x * r} ${-y * r}A${r} ${r} 0 ${flags} ${toX * r} ${-toY * r}`} />
    ${text ? svg`<g class="hand">${named(text, 0.5 * Math.cos(middle), 0.5 * Math.sin(middle), R)}</g>` : ""}`;
}

const handText = (h) => `${h.name} (${shown(h.x)}, ${shown(h.y)})`;

const circleText = ({ title, hands }) => `${title}: ${hands.map(handText).join("; ")}`;

function circleDrawn(circle, k, given, free) {
  const size = given ?? SIZE;
  const R = size / 2 - MARGIN;
  const box = `${-size / 2} ${-size / 2} ${size} ${size}`;
  return html`<li class=${given ? "" : "many"} .style=${`width:${size}px`}><svg viewBox=${box}
      width=${size} height=${size} role="img" data-circle=${k} aria-label=${circleText(circle)}>
    <line class="rule" x1=${-R - 8} x2=${R + 8} y1="0" y2="0" />
    <line class="rule" y1=${-R - 8} y2=${R + 8} x1="0" x2="0" />
    <circle class="rule" r=${R} />
    ${(circle.arcs ?? []).map((one) => arc(one, R))}${circle.hands.map((h) => hand(h, R, free))}</svg>
    <p class="small">${circle.title}</p>${circle.line ? html`<p class="small line">${circle.line}</p>` : ""}</li>`;
}

/** A hand as the legend shows it. */
const sample = (kind) => hand({ kind, x: 0, y: 0, fromX: -22 }, 1);

/** Each name once, as the first hand has it that is called so. */
function legend(data) {
  const all = data.circles.flatMap(({ hands }) => hands);
  const hands = all.filter((h, i) => all.findIndex(({ name }) => name === h.name) === i);
  return html`<ul class="legend">${hands.map((h) => html`<li class=${h.symbol ? `sym-${h.symbol}` : ""}>
    <svg width="34" height="20" viewBox="-23 -10 34 20" aria-hidden="true">${sample(h.kind)}</svg>${h.name}</li>`)}
  </ul>`;
}

// ---- Turning -----------------------------------------------------------------------------------------------------

const angleAt = (event, svgBox) =>
  Math.atan2(svgBox.top + svgBox.height / 2 - event.clientY, event.clientX - svgBox.left - svgBox.width / 2);

/** The same angle within half a turn of 0. */
const within = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

/** Follows a hand that was taken: how far it was turned since, over more than one round. */
function turn(down, plate, figure) {
  const circle = down.target.closest("svg");
  const box = circle.getBoundingClientRect();
  const taken = { circle: Number(circle.dataset.circle), hand: down.target.dataset.hand, from: figure.state };
  let last = angleAt(down, box);
  let far = 0;
  const move = (event) => {
    const angle = angleAt(event, box);
    far += within(angle - last);
    last = angle;
    figure.probe({ ...taken, turn: far });
  };
  plate.setPointerCapture(down.pointerId);
  plate.addEventListener("pointermove", move);
  plate.addEventListener("lostpointercapture", () => plate.removeEventListener("pointermove", move), { once: true });
}

const KEYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function listen(plate, figure) {
  plate.addEventListener("keydown", (event) => {
    const step = figure.probe && KEYS[plainKey(event)];
    if (step) {
      event.preventDefault();
      const by = event.shiftKey ? 10 : 1;
      figure.probe({ right: step[0] * by, up: step[1] * by });
    }
  });
  plate.addEventListener("pointerdown", (event) => {
    if (figure.probe && event.target.dataset.hand && isFirst(event)) {
      event.preventDefault(); // no text is selected on the way
      plate.focus({ preventScroll: true });
      turn(event, plate, figure);
    }
  });
  // a finger on a hand does not scroll: browsers do not ask what is inside an SVG for its touch-action
  const hold = (event) => figure.probe && event.target.dataset.hand && event.preventDefault();
  plate.addEventListener("touchstart", hold, { passive: false });
}

// ---- The drawing -------------------------------------------------------------------------------------------------

function draw(stage, data, figure) {
  const free = (k) => (h) => h.drag && figure.probe && probeFree(figure, { circle: k, hand: h.drag, turn: 0, from: figure.state });
  const all = data.circles.map((circle, k) => circleDrawn(circle, k, data.size, free(k)));
  const list = html`<ul class="circles">${all}</ul>`;
  render(
    html`${legend(data)}
      ${figure.probe ? html`<div class="plate" tabindex="0" role="application"
        aria-roledescription=${words.page.circles} aria-label=${`${data.title}. ${said(data)}`}>${list}</div>` : list}
      <p class="axis">\u2192 ${data.x.title}, \u2191 ${data.y.title}</p>
      ${data.note ? html`<p class="small">${data.note}</p>` : ""}`,
    stage,
  );
  const plate = stage.querySelector(".plate");
  if (plate && !plate.listening) {
    plate.listening = true;
    listen(plate, figure);
  }
}

const table = (data) => ({
  head: [data.title, data.x.title, data.y.title],
  rows: data.circles.flatMap((circle) => circle.hands.map((h) => [`${circle.title}, ${h.name}`, h.x, h.y])),
});

/** What a file of numbers holds: the ends of all hands. */
const numbers = (data) => data.circles.flatMap(({ hands }) => hands.map(({ x, y }) => [x, y]));

const said = (data) => data.note ?? "";

export const circles = { draw, table, numbers, said, cell: shown };
