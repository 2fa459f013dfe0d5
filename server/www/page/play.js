// Plays a field: its value goes on by one step, some four times a second, to its largest. It never begins by itself, and
// ends at a touch, at Escape, or where the page is not looked at. Whoever wants no motion is not offered it.

import { signal } from "@preact/signals-core";

const WAIT = 250; // milliseconds from one step to the next

const playing = signal(""); // the name of a field
let timer = 0;

export const plays = (name) => playing.value === name;
export const playOffered = ({ play }) => Boolean(play) && !matchMedia("(prefers-reduced-motion: reduce)").matches;

function stop() {
  clearInterval(timer);
  playing.value = "";
}

/** One step on; where that changes nothing, as at the end, it is over. */
function next(page, { name, step = 1 }) {
  if (!page.set({ [name]: page.state.value[name] + step })) {
    stop();
  }
}

/** Begins or ends it. From its end a field begins anew. */
export function playToggle(page, field, last) {
  const on = plays(field.name);
  stop();
  if (on) {
    return;
  }
  if (page.state.value[field.name] >= last) {
    page.set({ [field.name]: field.min });
  }
  playing.value = field.name;
  timer = setInterval(next, WAIT, page, field);
}

/** To be called once. */
export function playWatch() {
  const own = (event) => event.target.closest?.(".play"); // which ends it by itself
  addEventListener("pointerdown", (event) => own(event) || stop());
  addEventListener("keydown", (event) => event.key === "Escape" && stop());
  document.addEventListener("visibilitychange", stop);
}
