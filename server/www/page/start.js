// Wakes the page: what stands in it as plain figures, questions and numbers becomes live.

import { effect } from "@preact/signals-core";
import { controlsMount, numberMount } from "./controls.js";
import { figureMount } from "./figure.js";
import { pageOpen } from "./page.js";
import { paperWatch } from "./paper.js";
import { playWatch } from "./play.js";
import { predictMount } from "./predict.js";
import { symbolsWatch } from "./symbols.js";
import { teacherMount } from "./teacher.js";

const each = (selector, mount) => document.querySelectorAll(selector).forEach(mount);

export function start(lab) {
  const page = pageOpen(lab);
  const notes = document.getElementById("notes");
  effect(() => {
    notes.hidden = page.notes.value.length === 0;
    notes.textContent = page.notes.value.join(" ");
  });
  each(".controls", (host) => controlsMount(host, page));
  each(".number", (host) => numberMount(host, page));
  each("figure[data-figure]", (host) => figureMount(host, page));
  each("details.predict", (host) => predictMount(host));
  teacherMount(page, document.querySelector(".next"));
  symbolsWatch();
  paperWatch(page);
  playWatch();
  targetFind();
  document.documentElement.dataset.ready = "";
}

const OWN = ["wheel", "touchstart", "pointerdown", "keydown"];

/** A link to a figure leads there once those above it have their heights, unless the reader went elsewhere meanwhile. */
function targetFind() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) {
    return;
  }
  const until = performance.now() + 5000;
  const gone = new AbortController();
  OWN.forEach((name) => addEventListener(name, () => gone.abort(), { signal: gone.signal, passive: true }));
  const find = () => {
    if (gone.signal.aborted || performance.now() > until) {
      return;
    }
    if (document.querySelector("[aria-busy]")) {
      requestAnimationFrame(find);
      return;
    }
    gone.abort();
    target.scrollIntoView({ behavior: "instant" });
  };
  find();
}
