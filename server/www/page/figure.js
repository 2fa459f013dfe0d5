// A figure: calls of the service that follow from the page's state, a kind of drawing, and beneath it the call that
// drew it, the same as a table, in words, and as files.
//
// The page's query is that of the first call of the first figure, or of the one that the lab names as what it is `about`.
//
// A lab says of a figure { kind, calls(s), data(replies, s), facts(data, s), probe(at, s) }: which calls a
// state takes, what to draw of their replies (figures/KIND.js says in which form), what of it the words speak of, and
// which values follow from a cell or point that is chosen. What of data() is heavy is kept() while only the probe moves:
// see page/kept.js.

import { effect, signal } from "@preact/signals-core";
import { html, render } from "lit-html";
import { chart } from "../figures/chart.js";
import { circles } from "../figures/circles.js";
import { flow } from "../figures/flow.js";
import { grid } from "../figures/grid.js";
import { heatmap } from "../figures/heatmap.js";
import { tokens } from "../figures/tokens.js";
import { callMount } from "./call.js";
import { copyText } from "./copy.js";
import { probeOf } from "./probe.js";
import { repliesDrawn, saveCsv, saveNpy, savePng } from "./save.js";
import { Newest, PATIENCE } from "./service.js";
import { toolbarFocus, toolbarKey, toolbarStop } from "./toolbar.js";
import { say, words } from "./words.js";

const kinds = { heatmap, chart, circles, flow, grid, tokens };

const tries = signal(0); // counts up when a reader wants calls that failed to be made again

export function figureMount(host, page) {
  const name = host.dataset.figure;
  const figure = { host, page, name, spec: page.lab.figures[name], words: words.lab.figures[name] };
  figure.kind = kinds[figure.spec.kind];
  host.figure = figure; // whoever looks from the console, or tests, sees what is drawn: calls, replies, data
  figure.stage = host.querySelector(".stage");
  figure.before = [...figure.stage.childNodes]; // stays until there is a drawing
  figure.below = host.appendChild(document.createElement("div"));
  figure.below.className = "below";
  toolsMount(figure);
  resizeWatch(figure);
  const newest = new Newest();
  effect(() => {
    const state = page.state.value;
    page.theme.value; // colours are drawn anew
    tries.value;
    host.setAttribute("aria-busy", "true");
    careful(figure, state, undefined, () => {
      const calls = figure.spec.calls(state);
      newest.ask(
        calls,
        (replies) => careful(figure, state, calls, () => figureDraw(figure, state, calls, replies)),
        (error) => figureFail(figure, state, calls, say(words.page.failed, { why: reason(error) })),
      );
    });
  });
}

/** A mistake of the page is told as such where the figure would be, and to the console; other figures go on. */
function careful(figure, state, calls, run) {
  try {
    run();
  } catch (error) {
    reportError(error);
    figureFail(figure, state, calls, words.page.broken);
  }
}

function figureDraw(figure, state, calls, replies) {
  const { host, kind, spec, stage } = figure;
  const data = { title: figure.words.title, ...figure.words.axes, ...spec.data(replies, state, figure.words) };
  Object.assign(figure, { calls, replies, state, data });
  figure.probe = probeOf(figure);
  const first = figure.before.length > 0;
  figure.before.splice(0).forEach((node) => node.remove());
  kind.draw(stage, data, figure);
  const text = say(figure.words.text, { ...state, ...spec.facts?.(data, state, replies) });
  host.querySelector(".text").textContent = spec.probe && !figure.probe ? `${text} (${words.page.locked})` : text;
  rest(figure, state);
  figure.show(first);
}

/**
 * In a window that became wider or narrower the same is drawn anew, as it fits there. Drawings take figure.width: to
 * ask the stage while others draw would lay out the page once for each figure.
 */
function resizeWatch(figure) {
  const { kind, stage } = figure;
  figure.width = stage.clientWidth;
  const watch = new ResizeObserver(() => {
    const width = stage.clientWidth;
    if (width === figure.width) {
      return;
    }
    figure.width = width;
    if (figure.data && !stage.querySelector(".failed")) {
      kind.draw(stage, figure.data, figure);
    }
  });
  watch.observe(stage);
}

/** Once what is drawn is what the page's state asks for. What a reader's own probe found is said. */
function rest(figure, state) {
  if (state !== figure.page.state.peek()) {
    return;
  }
  figure.host.removeAttribute("aria-busy");
  if (figure.asked) {
    figure.asked = false;
    figure.page.probe(figure.kind.said(figure.data));
  }
}

/** Why a call failed, as a reader can understand it. */
function reason(error) {
  if (error.name === "TimeoutError") {
    return say(words.page.late, { seconds: PATIENCE });
  }
  if (error instanceof TypeError) { // of fetch: no connection, or one that broke off
    return words.page.gone;
  }
  const why = error.message.replace(/\.$/, "");
  return error.field ? `${error.field}: ${why}` : why;
}

/** Calls that failed are made again, for all figures, as they fail together. The focus stays in the figure. */
function tryAgain(figure) {
  figure.host.tabIndex = -1;
  figure.host.focus({ preventScroll: true });
  tries.value += 1;
}

/** There is no drawing: its place says so, and one voice for all figures. */
function figureFail(figure, state, calls, text) {
  Object.assign(figure, { calls, replies: [], data: undefined, asked: false });
  const again = html` <button type="button" @click=${() => tryAgain(figure)}>${words.page.again}</button>`;
  render(html`<p class="failed">${text}${text === words.page.broken ? "" : again}</p>`, figure.stage);
  figure.page.probe(text);
  rest(figure, state);
  figure.show();
}

// ---- Beneath it --------------------------------------------------------------------------------------------------

function toolsMount(figure) {
  let open = null;
  const toggle = (what) => {
    open = open === what ? null : what;
    figure.show();
  };
  const button = (what, text, there) => html`<button type="button" aria-expanded=${open === what ? "true" : "false"}
    ?disabled=${!there} @click=${() => toggle(what)}>${text}</button>`;
  figure.show = (first) => {
    const { calls, data } = figure;
    render(
      html`<div class="tools" role="toolbar" aria-label=${say(words.page.tools, { title: figure.words.title })}
          @keydown=${toolbarKey} @focusin=${toolbarFocus}>
          ${button("call", words.page.call, calls)} ${button("table", words.page.table, data)} ${button("save", words.page.save, data)}
          ${open === "save" && data ? html`<span class="files" role="group" aria-label=${words.page.save}>
            <button type="button" title=${repliesDrawn(figure) ? words.page.npyReply : words.page.npyDrawn}
              @click=${() => saveNpy(figure)}>.npy</button>
            <button type="button" @click=${() => saveCsv(figure)}>CSV</button>
            <button type="button" @click=${() => savePng(figure)}>PNG</button></span>` : ""}
          <button type="button" aria-label=${words.page.copyLink} @click=${(event) => copyLink(figure, event.currentTarget)}>${words.page.link}</button>
        </div>
        <div class="drawer" ?hidden=${open !== "call"}></div>
        <div class="drawer table" ?hidden=${open !== "table"} tabindex="0" role="region"
          aria-label=${say(words.page.tableOf, { title: figure.words.title })}>${open === "table" && data ? tableOf(figure) : ""}</div>`,
      figure.below,
    );
    toolbarStop(figure.below.querySelector(".tools"), first ? null : undefined);
    const [drawer] = figure.below.querySelectorAll(".drawer");
    if (open === "call" && calls) {
      callMount(drawer, figure);
    }
  };
  figure.show();
}

/** The page's link, leading to the figure; where it cannot be copied it is shown and selected. */
function copyLink(figure, button) {
  const link = `${figure.page.link()}#${figure.name}`;
  copyText(link, button, () => {
    const place = figure.below.querySelector(".link") ?? figure.below.appendChild(document.createElement("code"));
    place.className = "link";
    place.textContent = link;
    return place;
  });
}

const SHOWN = 64; // rows and columns of a table, which is for reading: files have all

function tableOf(figure) {
  const { head, rows } = figure.kind.table(figure.data, SHOWN + 1); // one more tells that there are more
  const cut = rows.length > SHOWN || head.length > SHOWN + 1;
  return html`<table>
      <caption>${figure.words.title}${cut ? ` (${say(words.page.cut, { n: SHOWN })})` : ""}</caption>
      <thead><tr>${head.slice(0, SHOWN + 1).map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, SHOWN).map(
        (row) => html`<tr>${row.slice(0, SHOWN + 1).map((cell, j) =>
          j ? html`<td>${figure.kind.cell(cell)}</td>` : html`<th scope="row">${cell}</th>`)}</tr>`,
      )}</tbody>
    </table>`;
}
