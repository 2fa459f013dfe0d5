// The state of a page: the values of its lab's fields, kept in the address so that every picture has a link.

import { effect, signal } from "@preact/signals-core";
import { fieldsQuery, fieldsRead, fieldValue } from "./fields.js";
import { say, words } from "./words.js";

/** The rows that every lab has besides its own: names of fields whose controls a link hides, or locks. */
const teacherFields = (fields) =>
  ["v.hide", "v.lock"].map((name) => ({ name, kind: "names", choices: fields.map((field) => field.name), def: [] }));

export const hidden = (page, name) => page.state.value["v.hide"].includes(name);
export const locked = (page, name) => page.state.value["v.lock"].includes(name);

/** { lab, state, theme, set, link(changes) } of a lab whose page this is. */
export function pageOpen(own) {
  const lab = { ...own, fields: [...own.fields, ...teacherFields(own.fields)] };
  const page = { lab, state: signal({}), theme: signal(themeNow()), notes: signal([]) };
  addressRead(page);
  page.set = (changes) => pageSet(page, changes);
  page.link = (changes) =>
    `${location.origin}${location.pathname}?${fieldsQuery(lab.fields, { ...page.state.value, ...changes })}`;
  page.probe = (text) => tell(text);
  watchAddress(page);
  themeWatch(page);
  return page;
}

/** The state that the address says, and notes of what in it cannot be. */
function addressRead(page) {
  const { values, notes } = fieldsRead(page.lab.fields, location.search, (read) => settle(page.lab, read, {}));
  page.state.value = values;
  page.notes.value = notes.map(noteText);
}

const noteText = ({ name, got, used }) =>
  used === undefined ? say(words.page.unknown, { name }) : say(words.page.changed, { name, got, used });

/** Values that agree with each other: what the lab makes of them, knowing which were just changed. */
const settle = (lab, values, changes) => (lab.settle ? { ...values, ...lab.settle(values, changes) } : values);

/** Values that rows do not allow become the nearest that they do; those that are locked stay. */
function pageSet(page, changes) {
  const values = { ...page.state.value };
  for (const [name, value] of Object.entries(changes).filter(([name]) => !values["v.lock"].includes(name))) {
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
  addEventListener("popstate", () => addressRead(page));
}

// ---- Light and dark ----------------------------------------------------------------------------------------------

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

const themeNow = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");

/** What page/theme.js changes. */
const themeWatch = (page) =>
  document.addEventListener("themechange", () => {
    page.theme.value = themeNow();
  });

// ---- What is said aloud ------------------------------------------------------------------------------------------

let spoken = 0;

/** To the page's live region, once the reader has come to rest. */
export function tell(text) {
  clearTimeout(spoken);
  spoken = setTimeout(() => {
    document.getElementById("live").textContent = text;
  }, 250);
}
