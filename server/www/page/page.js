// The state of a page: the values of its lab's fields, kept in the address so that every picture has a link.

import { effect, signal } from "@preact/signals-core";
import { fieldsQuery, fieldsRead, fieldText, fieldValue } from "./fields.js";
import { say, words } from "./words.js";

/** The rows that every lab has besides its own: names of fields whose controls a link hides, or locks. */
const teacherFields = (fields) =>
  ["v.hide", "v.lock"].map((name) => ({ name, kind: "names", choices: fields.map((field) => field.name), def: [] }));

export const hidden = (page, name) => page.state.value["v.hide"].includes(name);
export const locked = (page, name) => page.state.value["v.lock"].includes(name);

/** { lab, state, theme, set, link(changes) } of a lab whose page this is; set(changes) says whether anything changed. */
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

/**
 * Values that rows do not allow become the nearest that they do. What a link locks stays: a change is not made at all
 * if what is locked would have to follow it. The state is a new one in any case, so that controls show it again.
 */
function pageSet(page, changes) {
  const old = page.state.value;
  const wished = Object.fromEntries(Object.entries(changes).filter(([name]) => !old["v.lock"].includes(name)));
  const values = { ...old };
  for (const [name, value] of Object.entries(wished)) {
    values[name] = fieldValue(fieldOf(page.lab, name), value, old[name]);
  }
  const settled = settle(page.lab, values, wished);
  const moved = old["v.lock"].filter((name) => !sameValue(page.lab, name, settled, old));
  const next = moved.length ? { ...old } : settled;
  const changed = page.lab.fields.some(({ name }) => !sameValue(page.lab, name, next, old));
  if (moved.length) {
    tell(say(words.page.held, { names: moved.map((name) => words.lab.fields[name]?.label ?? name).join(", ") }));
  }
  if (changed) {
    page.notes.value = []; // of a link, which is not what is shown any more
  }
  page.state.value = next;
  return changed;
}

const fieldOf = (lab, name) => lab.fields.find((row) => row.name === name);

const sameValue = (lab, name, a, b) => a[name] === b[name] || fieldText(fieldOf(lab, name), a[name]) === fieldText(fieldOf(lab, name), b[name]);

/**
 * The address follows the state, a little behind: browsers refuse hundreds of changes a second. It catches up when the
 * reader leaves. Who only goes to another place of the page keeps the state.
 */
function watchAddress(page) {
  let waiting = 0;
  let first = true;
  let known = location.search;
  const write = () => {
    clearTimeout(waiting);
    waiting = 0;
    history.replaceState(history.state, "", `?${fieldsQuery(page.lab.fields, page.state.peek())}${location.hash}`);
    known = location.search;
  };
  effect(() => {
    page.state.value;
    clearTimeout(waiting);
    waiting = first ? 0 : setTimeout(write, 150);
    first = false;
  });
  const leave = () => waiting && write();
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", leave);
  addEventListener("popstate", () => {
    if (location.search !== known) {
      known = location.search;
      addressRead(page);
    }
  });
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
