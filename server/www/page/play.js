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

/** One step on; at the end, or where the page does not go along, it is over. */
function step(page, { name, step: by = 1 }, most) {
  const value = page.state.value[name] + by;
  if (value > most(page) || !page.set({ [name]: value })) {
    stop();
  }
}

/** Begins or ends it. From its end a field begins anew. */
export function playToggle(page, field, most) {
  const on = plays(field.name);
  stop();
  if (on) {
    return;
  }
  if (page.state.value[field.name] >= most(page)) {
    page.set({ [field.name]: field.min });
  }
  playing.value = field.name;
  timer = setInterval(() => step(page, field, most), WAIT);
}

/** To be called once. */
export function playWatch() {
  const own = (event) => event.target.closest?.(".play"); // which ends it by itself
  addEventListener("pointerdown", (event) => own(event) || stop());
  addEventListener("keydown", (event) => event.key === "Escape" && stop());
  document.addEventListener("visibilitychange", stop);
}
