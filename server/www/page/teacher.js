// "Make a link for your class": which controls a lecturer leaves to the class, hides or locks. It is part of the link,
// as v.hide=base,layout and v.lock=d_model, and nothing else knows of it.

import { effect } from "@preact/signals-core";
import { html, render } from "lit-html";
import { labelOf } from "./controls.js";
import { copyText } from "./copy.js";
import { hidden, locked } from "./page.js";
import { words } from "./words.js";

/** Names of the fields that the lab's text has controls for. */
const offered = () =>
  [...new Set([...document.querySelectorAll(".controls, .number")].flatMap(({ dataset }) => (dataset.fields ?? dataset.field).split(" ")))];

const WAYS = ["free", "v.lock", "v.hide"];

const choice = (name, way, choose) => html`<select aria-label=${labelOf({ name })} @change=${(event) => choose(name, event.target.value)}>
  ${WAYS.map((one) => html`<option value=${one} ?selected=${one === way}>${words.page.teacher[one]}</option>`)}</select>`;

/** Before the links to other labs, closed. */
export function teacherMount(page, before) {
  const host = document.createElement("details");
  host.className = "teacher";
  before.before(host);
  const ways = new Map(offered().map((name) => [name, locked(page, name) ? "v.lock" : hidden(page, name) ? "v.hide" : "free"]));
  const named = (way) => [...ways].filter(([, chosen]) => chosen === way).map(([name]) => name);
  const link = () => page.link({ "v.hide": named("v.hide"), "v.lock": named("v.lock") });
  const choose = (name, way) => {
    ways.set(name, way);
    show();
  };
  const show = () => render(
    html`<summary>${words.page.teacher.title}</summary><p>${words.page.teacher.lead}</p>
      <ul>${[...ways].map(([name, way]) => html`<li>${choice(name, way, choose)} ${labelOf({ name })}</li>`)}</ul>
      <p><code class="link">${link()}</code></p>
      <p><button type="button" @click=${(event) => copyText(link(), event.target, () => host.querySelector("code"))}>${words.page.copyLink}</button></p>`,
    host,
  );
  show();
  host.addEventListener("toggle", show);
  effect(() => {
    page.state.value; // the link says what the page shows
    if (host.open) {
      show();
    }
  });
}
