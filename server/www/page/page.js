// The state of a page: the values of its lab's fields, kept in the address so that every picture has a link.

import { effect, signal } from "@preact/signals-core";
import { fieldsQuery, fieldsRead, fieldText, fieldValue } from "./fields.js";
import { say, words } from "./words.js";

/** { lab, state, theme, set, link } of a lab whose page this is. */
export function pageOpen(lab) {
  const { values, notes } = fieldsOpen(lab, location.search);
  const page = { lab, state: signal(values), theme: signal(themeNow()), notes: signal(notes.map(noteText)) };
  page.set = (changes) => pageSet(page, changes);
  page.link = () => `${location.origin}${location.pathname}?${fieldsQuery(lab.fields, page.state.value)}`;
  page.probe = (text) => tell(text);
  watchAddress(page);
  return page;
}

const noteText = ({ name, got, used }) =>
  used === undefined ? say(words.page.unknown, { name }) : say(words.page.changed, { name, got, used });

/** What a query says, made to agree; what the query itself said and had to change for that is noted. */
function fieldsOpen(lab, search) {
  const { values, notes } = fieldsRead(lab.fields, search);
  const settled = settle(lab, values, {});
  const said = new URLSearchParams(search);
  const moved = lab.fields
    .filter((field) => said.has(field.name) && !notes.some((note) => note.name === field.name))
    .map((field) => ({ name: field.name, got: fieldText(field, values[field.name]).slice(0, 40), used: fieldText(field, settled[field.name]) }))
    .filter(({ got, used }) => got !== used.slice(0, 40));
  return { values: settled, notes: [...notes, ...moved] };
}

/** Values that agree with each other: what the lab makes of them, knowing which were just changed. */
const settle = (lab, values, changes) => (lab.settle ? { ...values, ...lab.settle(values, changes) } : values);

/** Values that rows do not allow become the nearest that they do. */
function pageSet(page, changes) {
  const values = { ...page.state.value };
  for (const [name, value] of Object.entries(changes)) {
    const field = page.lab.fields.find((row) => row.name === name);
    values[name] = fieldValue(field, value);
  }
  page.state.value = settle(page.lab, values, changes);
}

/** The address follows the state, a little behind: browsers refuse hundreds of changes a second. */
function watchAddress(page) {
  let waiting = 0;
  let first = true;
  effect(() => {
    const query = fieldsQuery(page.lab.fields, page.state.value);
    clearTimeout(waiting);
    if (first) {
      first = false;
      return;
    }
    waiting = setTimeout(() => history.replaceState(null, "", `?${query}`), 150);
  });
  addEventListener("popstate", () => {
    page.state.value = fieldsOpen(page.lab, location.search).values;
  });
}

// ---- Light and dark ----------------------------------------------------------------------------------------------

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

const themeNow = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");

/** The button that changes it, and the system's own changes. */
export function themeWatch(page, button) {
  const show = () => {
    page.theme.value = themeNow();
  };
  button.addEventListener("click", () => {
    const next = themeNow() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // a browser that keeps nothing: the choice lasts as long as the page
    }
    show();
  });
  dark.addEventListener("change", show);
}

// ---- What is said aloud ------------------------------------------------------------------------------------------

let spoken = 0;

/** To the page's live region, once the reader has come to rest. */
export function tell(text) {
  clearTimeout(spoken);
  spoken = setTimeout(() => {
    document.getElementById("live").textContent = text;
  }, 250);
}
