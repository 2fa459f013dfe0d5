// A small table that is itself the figure: arithmetic by hand, or a scorecard.
//
//     data { head: [text], rows: [[text, number, verdict, or cell]], at: {row}, pick }
//
// A verdict {holds: true|false, text, number} is told by a sign and in words as well as by colour; number is what it
// rests on, for files. A cell {value, symbol} lights
// up with its symbol, {value, text} is shown as the text, which may be rounded; {value, field, index} is a number that the
// reader can change: that of the list which is the lab's field. pick: so many rows, the first, can be chosen by their
// names, if the figure has a probe; at: the one that is.

import { html, render } from "lit-html";
import { locked } from "../page/page.js";
import { shown, words } from "../page/words.js";

const text = (value) => (value?.holds === undefined ? value?.text ?? shown(value?.value ?? value ?? "") :
  `${value.holds ? words.page.yes : words.page.no}${value.text ? `: ${value.text}` : ""}`);

/** A number in a cell; what is no number leaves it as it was. */
function input({ value, field, index }, label, { page }) {
  const row = page.lab.fields.find(({ name }) => name === field);
  const change = ({ target }) => {
    const number = Number(target.value);
    if (target.value.trim() === "" || !Number.isFinite(number)) {
      target.value = value;
      return;
    }
    page.set({ [field]: page.state.value[field].map((v, i) => (i === index ? number : v)) });
    target.value = page.state.value[field][index];
  };
  return html`<input type="number" aria-label=${label} min=${row.min} max=${row.max} step=${row.step ?? "any"}
    ?disabled=${locked(page, field)} .value=${String(value)} @change=${change}>`;
}

const SIGNS = { holds: "\u2713 ", fails: "\u2717 " };

function cell(value, i, j, data, figure) {
  const verdict = value?.holds === undefined ? "" : value.holds ? "holds" : "fails";
  const label = () => `${text(data.rows[i][0])}, ${data.head[j]}`;
  return html`<td class=${`${verdict} ${data.at?.row === i ? "at" : ""} ${value?.symbol ? `sym-${value.symbol}` : ""}`}>
    ${value?.field ? input(value, label(), figure) : `${SIGNS[verdict] ?? ""}${text(value)}`}</td>`;
}

/** The name of a row; a button where it can be chosen. */
const name = (value, i, data, figure) => html`<th scope="row" class=${data.at?.row === i ? "at" : ""}>${
  figure.probe && i < data.pick ? html`<button type="button" aria-pressed=${data.at?.row === i ? "true" : "false"}
    @click=${() => figure.probe({ row: i })}>${value}</button>` : value}</th>`;

const lockedIn = ({ rows }, { page }) => rows.some((row) => row.some((value) => value?.field && locked(page, value.field)));

function draw(stage, data, figure) {
  render(
    html`<div class="scroll" tabindex="0" role="region" aria-label=${data.title}><table class="grid">
      <thead><tr>${data.head.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${data.rows.map((row, i) => html`<tr>${row.map((value, j) =>
        j ? cell(value, i, j, data, figure) : name(value, i, data, figure))}</tr>`)}</tbody></table></div>
      ${lockedIn(data, figure) ? html`<p class="small">(${words.page.locked})</p>` : ""}`,
    stage,
  );
}

const table = (data) => ({
  head: data.head,
  rows: data.rows.map((row) => row.map((value) => (value?.holds === undefined ? value?.value ?? value : text(value)))),
});

/** What a cell is in a file of numbers; words are NaN. */
function number(cell) {
  const value = cell?.number ?? cell?.value ?? cell?.holds ?? cell;
  return typeof value === "number" || typeof value === "boolean" ? Number(value) : NaN;
}

/** What a file of numbers holds: all cells but the rows' names. */
const numbers = (data) => data.rows.map((row) => row.slice(1).map(number));

/** The chosen row, read from left to right. */
const said = (data) => (data.at ? data.rows[data.at.row].map(text).filter(Boolean).join("; ") : "");

export const grid = { draw, table, numbers, said, cell: shown };
