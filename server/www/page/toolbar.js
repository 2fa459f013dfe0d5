// A row of buttons that is one stop of the Tab key: within it arrows lead on, and Tab leads out. A page full of figures
// would have a hundred stops otherwise.

import { plainKey } from "./keys.js";

const buttonsOf = (bar) => [...bar.querySelectorAll("button")].filter((button) => !button.disabled);

/** Tab reaches the button that had the focus last, or the first; to be called whenever buttons come or go. */
export function toolbarStop(bar, wanted = bar.querySelector('button[tabindex="0"]')) {
  const all = buttonsOf(bar);
  const stop = all.includes(wanted) ? wanted : all[0];
  for (const button of bar.querySelectorAll("button")) {
    button.tabIndex = button === stop ? 0 : -1;
  }
}

const GO = { ArrowRight: (i, n) => (i + 1) % n, ArrowLeft: (i, n) => (i + n - 1) % n, Home: () => 0, End: (i, n) => n - 1 };

export function toolbarKey(event) {
  const go = GO[plainKey(event)];
  const all = buttonsOf(event.currentTarget);
  if (go && all.includes(event.target)) {
    event.preventDefault();
    all[go(all.indexOf(event.target), all.length)].focus();
  }
}

export const toolbarFocus = (event) => toolbarStop(event.currentTarget, event.target);
