// "Show the call": the texts of the calls that drew a figure, ready to be copied.

import { html, render } from "lit-html";
import { copyText } from "./copy.js";
import { callTexts } from "./texts.js";
import { say, shown, words } from "./words.js";

/** Names of parameters in a text become the symbols that they are. */
function marked(text, figure) {
  const symbols = new Map(figure.page.lab.fields.filter((field) => field.symbol).map((field) => [field.name, field.symbol]));
  if (!symbols.size) {
    return text;
  }
  const names = [...symbols.keys()].map((name) => name.replaceAll(".", "\\."));
  return text.split(new RegExp(`((?:${names.join("|")})=[^&'"\\s)]*)`)).map((part, i) =>
    i % 2 ? html`<span class=${`sym-${symbols.get(part.split("=")[0])}`}>${part}</span>` : part,
  );
}

/** Into a drawer that is open. */
export function callMount(host, figure) {
  const texts = callTexts(figure.calls, location.origin);
  host.language ??= "curl";
  const [, text] = texts.find(([name]) => name === host.language) ?? texts[0];
  const bytes = figure.replies.reduce((sum, reply) => sum + (reply.bytes?.byteLength ?? 0), 0);
  const choose = (name) => {
    host.language = name;
    callMount(host, figure);
  };
  render(
    html`<div class="tools">${texts.map(
        ([name]) => html`<button type="button" aria-pressed=${name === host.language ? "true" : "false"}
          @click=${() => choose(name)}>${name}</button>`,
      )}
      <button type="button" class="copy" @click=${(event) => copyText(text, event.target, () => host.querySelector("code"))}>${words.page.copy}</button></div>
      <pre tabindex="0" role="region" aria-label=${say(words.page.callOf, { title: figure.words.title })}><code>${marked(text, figure)}</code></pre>
      ${bytes ? html`<p class="small">${say(words.page.bytes, { bytes: shown(bytes) })}</p>` : ""}`,
    host,
  );
}
