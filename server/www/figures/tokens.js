// Words in a row that can be put into another order, by dragging or by keys.
//
//     data { words: [text], marks: [class or ""], field } -> the lab's field `field` is set to the new order
//
// With a word in focus: left and right go to its neighbours, and with Alt they take the word along.

import { html, render } from "lit-html";
import { say, words } from "../page/words.js";

function draw(stage, data, figure) {
  const put = (from, to) => {
    const order = [...data.words];
    order.splice(to, 0, ...order.splice(from, 1));
    figure.page.set({ [data.field]: order });
    figure.page.probe(order.join(" "));
  };
  const key = (event, i) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const to = i + by;
    if (!by || to < 0 || to >= data.words.length) {
      return;
    }
    event.preventDefault();
    if (event.altKey) {
      put(i, to);
    }
    stage.querySelectorAll("button")[to].focus();
  };
  render(
    html`<ol class="tokens" aria-label=${data.title}>${data.words.map(
      (word, i) => html`<li><button type="button" draggable="true" class=${data.marks?.[i] ?? ""}
        aria-label=${say(words.page.token, { word, i: i + 1, n: data.words.length })}
        @keydown=${(event) => key(event, i)}
        @dragstart=${(event) => event.dataTransfer.setData("text/plain", String(i))}
        @dragover=${(event) => event.preventDefault()}
        @drop=${(event) => {
          event.preventDefault();
          put(Number(event.dataTransfer.getData("text/plain")), i);
        }}>${word}<span class="small" aria-hidden="true">${i}</span></button></li>`,
    )}</ol><p class="small">${words.page.tokenKeys}</p>`,
    stage,
  );
}

const table = (data) => ({ head: ["", data.title], rows: data.words.map((word, i) => [String(i), word]) });

export const tokens = { draw, table, cell: String };
