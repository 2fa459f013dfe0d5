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

const KEPT = 64; // replies, so that figures which share a call share its reply
const replies = new Map();

async function fetchCall(call) {
  const format = callFormat(call);
  const reply = await fetch(callTarget(call, format), callRequest(call));
  if (!reply.ok) {
    throw new ServiceError(await reply.json().catch(() => ({})), reply.status);
  }
  if (format === "json") {
    return reply.json();
  }
  const bytes = await reply.arrayBuffer();
  return { ...npyRead(bytes), bytes, timing: reply.headers.get("Server-Timing") ?? "" };
}

/** { shape, data, bytes } of an npy reply, or the JSON. The same call twice is one request. */
export function callReply(call) {
  const key = callTarget(call, callFormat(call)) + (call.body ? JSON.stringify(call.body) : "");
  const kept = replies.get(key);
  if (kept) {
    replies.delete(key);
    replies.set(key, kept);
    return kept;
  }
  const reply = fetchCall(call);
  replies.set(key, reply);
  reply.catch(() => replies.delete(key));
  if (replies.size > KEPT) {
    replies.delete(replies.keys().next().value);
  }
  return reply;
}

/**
 * Answers to the newest of many wishes: while some calls are under way the next are only remembered, and of those
 * the last is made. To abort at every input would starve the picture while a slider is drawn.
 */
export class Newest {
  #busy = false;
  #next = null;

  /** done(replies) or failed(error), unless a newer wish came before the calls began. */
  async ask(calls, done, failed) {
    if (this.#busy) {
      this.#next = [calls, done, failed];
      return;
    }
    this.#busy = true;
    try {
      done(await Promise.all(calls.map(callReply)));
    } catch (error) {
      failed(error);
    }
    this.#busy = false;
    if (this.#next) {
      const next = this.#next;
      this.#next = null;
      this.ask(...next);
    }
  }
}
