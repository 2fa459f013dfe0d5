// Words in a row that can be put into another order: by dragging, by two presses, or by keys.
//
//     data { words: [text], field, values: [text], below: [text], marks: [class or ""], notes: [text or ""] }
//
// The lab's field `field` is set to the new order of `values`, what the field holds for each word (the words). below:
// what stands under each (its place, from 0); notes: what is said of it aloud, as marks are only seen.
//
// A word is pressed, then the place where it should go. With a word in focus left and right go to its neighbours, and
// with Shift they take it along. Where a link has locked the field words stay.

import { html, render } from "lit-html";
import { plainKey } from "../page/keys.js";
import { locked } from "../page/page.js";
import { isFirst } from "../page/pointer.js";
import { say, words } from "../page/words.js";

const FAR = 6; // pixels that a pointer moves before a press is a drag

const moved = (list, from, to) => {
  const order = [...list];
  order.splice(to, 0, ...order.splice(from, 1));
  return order;
};

/** What the field holds, as it is drawn. */
const drawn = ({ values, words }) => values ?? words;

/** The words are seen in their new order at once; what the service has to say of it, marks and notes, comes later. */
function put(stage, figure, from, to) {
  const { data, page } = figure;
  const isOld = drawn(data).join() !== page.state.value[data.field].join();
  if (from === to || isOld || !page.set({ [data.field]: moved(drawn(data), from, to) })) {
    return;
  }
  const words = moved(data.words, from, to);
  figure.data = { title: data.title, field: data.field, words, values: data.values && moved(data.values, from, to) };
  draw(stage, figure.data, figure);
  page.probe(words.join(" "));
}

/** A first press takes word i up, a second one says where it goes. */
function press(stage, figure, i) {
  const from = stage.held;
  stage.held = from === undefined ? i : undefined;
  if (from !== undefined) {
    put(stage, figure, from, i);
  }
  draw(stage, figure.data, figure);
}

function key(event, stage, figure, i) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[plainKey(event)];
  const to = i + by;
  if (!by || to < 0 || to >= figure.data.words.length) {
    return;
  }
  event.preventDefault();
  if (event.shiftKey) {
    put(stage, figure, i, to);
  }
  stage.querySelectorAll("button")[to].focus();
}

/** The place whose middle is nearest to a point of the window. */
function placeAt(stage, x, y) {
  const far = [...stage.querySelectorAll("li")].map((item) => {
    const box = item.getBoundingClientRect();
    return Math.hypot(x - box.left - box.width / 2, y - box.top - box.height / 2);
  });
  return far.indexOf(Math.min(...far));
}

/** Follows a pointer that went down on word i; what does not move far is left to be a press. */
function drag(down, stage, figure, i) {
  if (!isFirst(down)) {
    return;
  }
  const button = down.currentTarget;
  let far = false;
  button.setPointerCapture(down.pointerId);
  const move = (event) => {
    const x = event.clientX - down.clientX;
    const y = event.clientY - down.clientY;
    far ||= Math.hypot(x, y) > FAR;
    button.style.transform = far ? `translate(${x}px,${y}px)` : "";
  };
  const up = (event) => {
    button.style.transform = "";
    stage.dragged = far;
    if (far && event.type === "pointerup") {
      put(stage, figure, i, placeAt(stage, event.clientX, event.clientY));
    }
    button.removeEventListener("pointermove", move);
    button.removeEventListener("pointerup", up);
    button.removeEventListener("pointercancel", up);
  };
  button.addEventListener("pointermove", move);
  button.addEventListener("pointerup", up);
  button.addEventListener("pointercancel", up);
}

/** A drag ends in a click, too, which is none. */
function click(event, stage, figure, i) {
  const dragged = stage.dragged && event.detail > 0;
  stage.dragged = false;
  if (!dragged) {
    press(stage, figure, i);
  }
}

/** What is said after the word itself. */
const spoken = (data, i) =>
  [say(words.page.token, { i: i + 1, n: data.words.length }), data.notes?.[i]].filter(Boolean).map((text) => `, ${text}`).join("");

function draw(stage, data, figure) {
  if (stage.list !== data.words.join()) {
    stage.list = data.words.join();
    stage.held = undefined; // another word stands there now
  }
  const held = locked(figure.page, data.field);
  render(
    html`<ol class="tokens" aria-label=${data.title}>${data.words.map(
      (word, i) => html`<li><button type="button" class=${data.marks?.[i] ?? ""} ?disabled=${held}
        aria-pressed=${stage.held === i ? "true" : "false"}
        @keydown=${(event) => key(event, stage, figure, i)}
        @pointerdown=${(event) => drag(event, stage, figure, i)}
        @click=${(event) => click(event, stage, figure, i)}>${word}<span class="spoken">${spoken(data, i)}</span><span class="small" aria-hidden="true">${data.below?.[i] ?? i}</span></button></li>`,
    )}</ol><p class="small">${held ? `(${words.page.locked})` : words.page.tokenKeys}</p>`,
    stage,
  );
}

const table = (data) => ({
  head: [words.page.place, data.title],
  rows: data.words.map((word, i) => [String(i), [word, data.notes?.[i]].filter(Boolean).join(", ")]),
});

export const tokens = { draw, table, cell: String };
