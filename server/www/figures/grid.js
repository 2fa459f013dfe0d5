// A small table that is itself the figure: arithmetic by hand, or a scorecard.
//
//     data { head: [text], rows: [[text or number or {holds, text}]], at: {row, column}, caption }
//
// {holds: true|false, text}: a verdict, told by a sign and in words as well as by colour.

import { html, render } from "lit-html";
import { shown, words } from "../page/words.js";

const text = (value) => (value?.holds === undefined ? shown(value ?? "") :
  `${value.holds ? words.page.yes : words.page.no}${value.text ? `: ${value.text}` : ""}`);

const cell = (value, i, data) => html`<td class=${`${value?.holds === undefined ? "" : value.holds ? "holds" : "fails"} ${data.at?.row === i ? "lit" : ""} ${value?.symbol ? `sym-${value.symbol}` : ""}`}>
  ${value?.holds === undefined ? "" : html`<span aria-hidden="true">${value.holds ? "\u2713" : "\u2717"} </span>`}${text(value?.value ?? value)}</td>`;

function draw(stage, data) {
  render(
    html`<div class="scroll" tabindex="0" role="region" aria-label=${data.title}><table class="grid">
      <thead><tr>${data.head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${data.rows.map((row, i) => html`<tr>${row.map((value, j) =>
        j ? cell(value, i, data) : html`<th scope="row">${value}</th>`)}</tr>`)}</tbody></table></div>`,
    stage,
  );
}

const table = (data) => ({
  head: data.head,
  rows: data.rows.map((row) => row.map((value) => (value?.holds === undefined ? value?.value ?? value : text(value)))),
});

export const grid = { draw, table, cell: shown };
