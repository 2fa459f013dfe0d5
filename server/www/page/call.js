// "Show the call": the text of the calls that drew a figure, for a shell and for programs, ready to be copied.

import { html, render } from "lit-html";
import { copyText } from "./copy.js";
import { callFormat, callRequest, callTarget } from "./service.js";
import { say, shown, words } from "./words.js";

const origin = () => location.origin;
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const nth = (i) => (i ? String(i + 1) : ""); // of several calls each has names of its own
const file = (call, i) => `${call.op.replaceAll("/", "-")}${nth(i)}.${callFormat(call)}`;
const bodyOf = (call) => callRequest(call).body;

/** What a shell runs; exactly these bytes were drawn. */
export const callCurl = (call, i = 0) =>
  `curl ${quote(origin() + callTarget(call, callFormat(call)))}${call.body ? ` -d ${quote(bodyOf(call))}` : ""} -o ${file(call, i)}`;

function callPython(call, i) {
  const url = `"${origin()}${callTarget(call, callFormat(call))}"`;
  const open = call.body ? `Request(${url}, ${JSON.stringify(bodyOf(call))}.encode())` : url;
  const imports = call.body ? "from urllib.request import Request, urlopen" : "from urllib.request import urlopen";
  return callFormat(call) === "npy"
    ? `import io, numpy\n${imports}\nx${nth(i)} = numpy.load(io.BytesIO(urlopen(${open}).read()))`
    : `import json\n${imports}\nreply${nth(i)} = json.load(urlopen(${open}))`;
}

function callFetch(call, i) {
  const url = JSON.stringify(origin() + callTarget(call, "json"));
  const more = call.body ? `, { method: "POST", body: ${JSON.stringify(bodyOf(call))} }` : "";
  return `const reply${nth(i)} = await (await fetch(${url}${more})).json();`;
}

const languages = { curl: callCurl, Python: callPython, fetch: callFetch };

/** The texts of a figure's calls by language; PyTorch where the lab knows it. */
export function callTexts(figure) {
  const texts = Object.entries(languages).map(([name, text]) => [name, figure.calls.map(text).join("\n")]);
  const torch = figure.spec.torch?.(figure.state);
  return torch ? [...texts, ["PyTorch", torch]] : texts;
}

/** Names of parameters in a text become the symbols that they are. */
function marked(text, figure) {
  const symbols = new Map(figure.page.lab.fields.filter((field) => field.symbol).map((field) => [field.name, field.symbol]));
  if (!symbols.size) {
    return text;
  }
  const names = [...symbols.keys()].map((name) => name.replaceAll(".", "\\."));
  return text.split(new RegExp(`((?:${names.join("|")})=[^&'"\\s]*)`)).map((part, i) =>
    i % 2 ? html`<span class=${`sym-${symbols.get(part.split("=")[0])}`}>${part}</span>` : part,
  );
}

/** Into a drawer that is open. */
export function callMount(host, figure) {
  const texts = callTexts(figure);
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
