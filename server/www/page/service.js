// Calls of the service. A call is { op, query } or, where something is posted, { op, query, body }; its target is what
// stands behind the host, and the same text is shown to the reader. One tensor comes as npy, bit by bit as the service
// sends it; replies of several fields come as JSON.

import { npyRead } from "./npy.js";
import { queryText } from "./fields.js";

/** Of a call in some format: "/v1/encode?type=sinusoidal&d_model=8&positions=0:4&format=npy". */
export function callTarget(call, format) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    query.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  if (format) {
    query.set("format", format);
  }
  const text = queryText(query);
  return `/v1/${call.op}${text ? `?${text}` : ""}`;
}

/** How calls are answered: as the tensor they return, or where they say so, as JSON. */
export const callFormat = (call) => call.format ?? "npy";

/** Its method and headers, for fetch and for the texts that show the call. */
export function callRequest(call) {
  if (!call.body) {
    return { method: "GET" };
  }
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(call.body) };
}

/** What the service has to say against a call. */
export class ServiceError extends Error {
  constructor(problem, status) {
    super(problem.detail ?? `status ${status}`);
    this.field = problem.field;
    this.status = status;
  }
}

export const PATIENCE = 15; // seconds until a call that is not answered has failed

// ---- Replies that are kept, so that figures which share a call share its reply -----------------------------------

const KEPT = 16 * 2 ** 20; // bytes
const EACH = 1024; // bytes of what is kept beside a reply's own
const replies = new Map(); // { reply, bytes } by call, that which was used last at the end

/** What was not used for longest goes, until the others fit; the newest stays, however large it is. */
function repliesTrim() {
  let all = [...replies.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  for (const [key, { bytes }] of replies) {
    if (all <= KEPT || replies.size === 1) {
      return;
    }
    replies.delete(key);
    all -= bytes;
  }
}

/** Room is made as soon as the size is known, which is before all of the reply has come. */
function replySized(entry, bytes) {
  entry.bytes = EACH + bytes;
  repliesTrim();
}

async function fetchCall(call, entry) {
  const format = callFormat(call);
  const signal = AbortSignal.timeout(1000 * PATIENCE);
  const reply = await fetch(callTarget(call, format), { ...callRequest(call), signal });
  if (!reply.ok) {
    throw new ServiceError(await reply.json().catch(() => ({})), reply.status);
  }
  replySized(entry, Number(reply.headers.get("Content-Length")));
  if (format === "json") {
    const text = await reply.text();
    replySized(entry, 2 * text.length);
    return JSON.parse(text);
  }
  const bytes = await reply.arrayBuffer();
  replySized(entry, bytes.byteLength);
  return { ...npyRead(bytes), bytes, timing: reply.headers.get("Server-Timing") ?? "" };
}

/** { shape, data, bytes } of an npy reply, or the JSON. The same call twice is one request. */
export function callReply(call) {
  const key = callTarget(call, callFormat(call)) + (call.body ? JSON.stringify(call.body) : "");
  const entry = replies.get(key) ?? { bytes: EACH };
  replies.delete(key);
  replies.set(key, entry);
  if (!entry.reply) {
    entry.reply = fetchCall(call, entry);
    entry.reply.catch(() => replies.get(key) === entry && replies.delete(key));
  }
  return entry.reply;
}

/**
 * Answers to the newest of many wishes: while some calls are under way the next are only remembered, and of those
 * the last is made. To abort at every input would starve the picture while a slider is drawn.
 */
export class Newest {
  #busy = false;
  #next = null;

  /** done(replies) or failed(error), which throw nothing, unless a newer wish came before the calls began. */
  async ask(calls, done, failed) {
    if (this.#busy) {
      this.#next = [calls, done, failed];
      return;
    }
    this.#busy = true;
    await Promise.all(calls.map(callReply)).then(done, failed);
    this.#busy = false;
    if (this.#next) {
      const next = this.#next;
      this.#next = null;
      this.ask(...next);
    }
  }
}
