// Sliders, choices and switches of a lab's fields, and numbers in prose that can be changed where they stand.

import { effect } from "@preact/signals-core";
import { html, render } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { fieldText } from "./fields.js";
import { plainKey } from "./keys.js";
import { hidden, locked } from "./page.js";
import { isFirst } from "./pointer.js";
import { playOffered, playToggle, plays } from "./play.js";
import { say, words } from "./words.js";

const fieldOf = (page, name) => page.lab.fields.find((field) => field.name === name);
export const labelOf = (field) => words.lab.fields[field.name]?.label ?? field.name;
const symbolClass = (field) => (field.symbol ? `sym-${field.symbol}` : "");

/** The row's largest value, or where the row says so, the largest that other values leave. */
const largest = (field, page) => field.most?.(page.state.value) ?? field.max;

// What a reader did to a control may be no value of the field: live() puts the state back where the control differs.
const playButton = (field, page) => html`<button type="button" class="play"
    aria-label=${say(plays(field.name) ? words.page.stopOf : words.page.playOf, { name: labelOf(field) })}
    @click=${() => playToggle(page, field, largest(field, page))}>${plays(field.name) ? words.page.stop : words.page.play}</button>`;

const range = (field, value, page, id) => html`
  <input type="range" id=${id} min=${field.scale ? 0 : field.min} max=${field.scale ? 1000 : largest(field, page)}
    step=${field.scale ? 1 : field.step ?? 1} .value=${live(String(field.scale ? scaleTo(field, value) : value))}
    aria-valuetext=${fieldText({ ...field, kind: "number" }, value)}
    @input=${(event) => page.set({ [field.name]: field.scale ? scaleFrom(field, event.target.value) : Number(event.target.value) })}>
  <input type="number" aria-label=${say(words.page.asNumber, { name: labelOf(field) })} min=${field.min} max=${largest(field, page)} step=${field.step ?? "any"}
    .value=${live(String(value))} @change=${(event) => page.set({ [field.name]: event.target.valueAsNumber })}>
  ${playOffered(field) ? playButton(field, page) : ""}`;

// scale: "log": the slider's way is the logarithm's
const scaleTo = (field, value) => Math.round((1000 * Math.log(value / field.min)) / Math.log(field.max / field.min));
const scaleFrom = (field, at) => {
  const value = field.min * (field.max / field.min) ** (Number(at) / 1000);
  return field.kind === "number" ? Number(value.toPrecision(3)) : Math.round(value);
};

const choice = (field, value, page, id) => html`
  <select id=${id} @change=${(event) => page.set({ [field.name]: event.target.value })}>
    ${field.choices.map((name) => html`<option value=${name} .selected=${live(name === value)}>${words.lab.fields[field.name]?.choices?.[name] ?? name}</option>`)}
  </select>`;

const flag = (field, value, page, id) => html`
  <input type="checkbox" id=${id} .checked=${live(value)} @change=${(event) => page.set({ [field.name]: event.target.checked })}>`;

const list = (field, value, page, id) => html`
  <input type="text" id=${id} .value=${live(value.join(" "))} maxlength="200" autocomplete="off" spellcheck="false"
    @change=${(event) => page.set({ [field.name]: event.target.value.split(/[\s,]+/).filter(Boolean) })}>`;

const kinds = { integer: range, number: range, count: range, choice, flag, numbers: list, words: list };

const control = (field, value, page, id) => html`
  <fieldset class="control ${symbolClass(field)}" ?disabled=${locked(page, field.name)}>
    <label for=${id}>${labelOf(field)}${locked(page, field.name) ? html` <span class="small">(${words.page.locked})</span>` : ""}</label>${kinds[field.kind](field, value, page, id)}
  </fieldset>`;

/** <div class="controls" data-fields="d_model base">: a control of each. */
export function controlsMount(host, page) {
  const fields = host.dataset.fields.split(" ").map((name) => fieldOf(page, name));
  const prefix = `c${[...document.querySelectorAll(".controls")].indexOf(host)}`;
  effect(() => {
    const state = page.state.value;
    render(
      fields.filter(({ name }) => !hidden(page, name)).map((field, i) => control(field, state[field.name], page, `${prefix}-${i}`)),
      host,
    );
  });
}

/** <span class="number" data-field="d_model">: a number in a sentence, changed by arrow keys or by dragging. */
export function numberMount(host, page) {
  const field = fieldOf(page, host.dataset.field);
  if (hidden(page, field.name) || locked(page, field.name)) {
    host.textContent = fieldText({ ...field, kind: "number" }, page.state.value[field.name]);
    return;
  }
  const step = field.step ?? 1;
  const add = (n) => page.set({ [field.name]: page.state.value[field.name] + n * step });
  host.textContent = "";
  host.tabIndex = 0;
  host.setAttribute("role", "spinbutton");
  host.setAttribute("aria-label", labelOf(field));
  host.setAttribute("aria-valuemin", field.min);
  host.classList.add(...[symbolClass(field)].filter(Boolean));
  const keys = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 };
  host.addEventListener("keydown", (event) => {
    const by = keys[plainKey(event)];
    if (by) {
      event.preventDefault();
      add(by);
    }
  });
  host.addEventListener("pointerdown", (event) => {
    if (!isFirst(event)) {
      return;
    }
    const from = event.clientX;
    const first = page.state.value[field.name];
    host.setPointerCapture(event.pointerId);
    const move = (at) => page.set({ [field.name]: first + Math.round((at.clientX - from) / 4) * step });
    host.addEventListener("pointermove", move);
    host.addEventListener("lostpointercapture", () => host.removeEventListener("pointermove", move), { once: true });
  });
  effect(() => {
    const value = page.state.value[field.name];
    host.textContent = String(value);
    host.setAttribute("aria-valuenow", value);
    host.setAttribute("aria-valuemax", largest(field, page));
  });
}
