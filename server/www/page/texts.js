// The texts of the calls that drew a figure: for a shell, for programs, and for PyTorch where it can make the same.

import { callFormat, callRequest, callTarget } from "./service.js";
import { torchProgram } from "./torch.js";

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const nth = (i) => (i ? String(i + 1) : ""); // of several calls each has names of its own
const file = (call, i) => `${call.op.replaceAll("/", "-")}${nth(i)}.${callFormat(call)}`;
const bodyOf = (call) => callRequest(call).body;

/** What a shell runs; exactly these bytes were drawn. */
const curl = (origin) => (call, i) =>
  `curl ${quote(origin + callTarget(call, callFormat(call)))}${call.body ? ` -d ${quote(bodyOf(call))}` : ""} -o ${file(call, i)}`;

/** Python with numpy: the same numbers, as an array or, where calls are answered so, as JSON. */
const python = (origin) => (call, i) => {
  const url = `"${origin}${callTarget(call, callFormat(call))}"`;
  const open = call.body ? `Request(${url}, ${JSON.stringify(bodyOf(call))}.encode())` : url;
  return callFormat(call) === "npy"
    ? `x${nth(i)} = numpy.load(io.BytesIO(urlopen(${open}).read()))`
    : `reply${nth(i)} = json.load(urlopen(${open}))`;
};

function pythonProgram(calls, origin) {
  const lines = calls.map(python(origin));
  const uses = (name) => lines.some((line) => line.includes(`${name}.`));
  const request = calls.some((call) => call.body) ? "Request, " : "";
  return [
    ...["io", "json", "numpy"].filter(uses).map((name) => `import ${name}`),
    `from urllib.request import ${request}urlopen`, ...lines,
  ].join("\n");
}

/** An object as programs write it: names without quotes where they need none. */
const literal = (value) =>
  typeof value === "string" ? JSON.stringify(value)
    : `{ ${Object.entries(value).map(([name, part]) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}: ${literal(part)}`).join(", ")} }`;

/** A browser's or node's own: the same numbers, as JSON, which needs nothing else. */
const fetched = (origin) => (call, i) => {
  const url = JSON.stringify(origin + callTarget(call, "json"));
  const more = call.body ? `, ${literal(callRequest(call))}` : "";
  return `const reply${nth(i)} = await (await fetch(${url}${more})).json();`;
};

/** [[language, text]] of some calls. */
export function callTexts(calls, origin) {
  const lines = (text) => calls.map(text(origin)).join("\n");
  const torch = torchProgram(calls, origin);
  return [
    ["curl", lines(curl)], ["Python", pythonProgram(calls, origin)], ["fetch", lines(fetched)],
    ...(torch ? [["PyTorch", torch.text]] : []),
  ];
}
