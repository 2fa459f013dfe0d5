// Files of what a figure shows: its numbers as npy, its table as CSV, and the drawing as PNG.

import { npyWritten } from "./npy.js";
import { callTarget, PATIENCE } from "./service.js";

function save(bytes, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const nameOf = (figure, ending) => `posenc-${figure.page.lab.name}-${figure.name}.${ending}`;

/** Is what is drawn the first reply itself, number by number? Or has the figure no numbers, but words? */
export const repliesDrawn = ({ kind, spec, data, replies: [first] }) =>
  Boolean(first.bytes) && (Boolean(spec.still) || !kind.numbers || data.values === first.data);

/** The reply's own bytes, where they are what is drawn, else the numbers that are. */
export function saveNpy(figure) {
  const { kind, data, replies } = figure;
  const bytes = repliesDrawn(figure) ? replies[0].bytes : npyWritten(kind.numbers(data));
  save(bytes, nameOf(figure, "npy"), "application/x-npy");
}

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));

/** A text that a spreadsheet would take for a formula begins with an apostrophe, also behind what may divide cells. */
const harmless = (cell) =>
  (typeof cell === "string" && !isNumber(cell) ? cell.replace(/(^|[;\t\r\n])(?=[=+\-@])|^(?=[\t\r])/g, "$1'") : String(cell));

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function saveCsv(figure) {
  const { head, rows } = figure.kind.table(figure.data);
  const text = [head, ...rows].map((row) => row.map((cell) => quoted(harmless(cell))).join(",")).join("\n");
  save(`${text}\n`, nameOf(figure, "csv"), "text/csv");
}

/** The service's picture of the first call, in the figure's colours. */
async function servicePng({ calls: [{ op, query }], data, page }) {
  const look = { "png.domain": data.domain, "png.theme": page.theme.value };
  const reply = await fetch(callTarget({ op, query: { ...query, ...look } }, "png"), { signal: AbortSignal.timeout(1000 * PATIENCE) });
  return reply.ok && reply.blob();
}

/** By the service where it draws the same, else as it is on the page. */
export async function savePng(figure) {
  const picture = figure.spec.still && !figure.calls[0].body && (await servicePng(figure).catch(() => false));
  if (picture) {
    save(picture, nameOf(figure, "png"), "image/png");
    return;
  }
  const canvas = await stagePicture(figure.stage);
  canvas.toBlob((blob) => save(blob, nameOf(figure, "png"), "image/png"));
}

// ---- What stands on a stage, as a picture ------------------------------------------------------------------------

const SHARP = 2; // pixels of the picture to one of the page

/** Boxes, then pictures, then words, each where it is seen. */
async function stagePicture(stage) {
  const box = stage.getBoundingClientRect();
  const canvas = Object.assign(document.createElement("canvas"), { width: SHARP * box.width, height: SHARP * box.height });
  const pen = canvas.getContext("2d");
  pen.scale(SHARP, SHARP);
  pen.fillStyle = getComputedStyle(stage.closest("figure")).backgroundColor;
  pen.fillRect(0, 0, box.width, box.height);
  pen.translate(-box.left, -box.top);
  pen.imageSmoothingEnabled = false;
  stage.querySelectorAll("button, td, th, input").forEach((element) => drawBox(pen, element));
  for (const element of stage.querySelectorAll("canvas, svg")) {
    const { left, top, width, height } = element.getBoundingClientRect();
    pen.drawImage(element.localName === "svg" ? await drawn(element) : element, left, top, width, height);
  }
  drawWords(pen, stage);
  stage.querySelectorAll("input").forEach((input) => drawText(pen, input, input.value, input.getBoundingClientRect()));
  return canvas;
}

function drawBox(pen, element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(left, top, width, height);
  pen.lineWidth = Number.parseFloat(style.borderTopWidth);
  pen.strokeStyle = style.borderTopColor;
  if (pen.lineWidth > 0) {
    pen.strokeRect(left, top, width, height);
  }
}

/** Each word of HTML by itself, as lines break where they like; an SVG brings its own. */
function drawWords(pen, stage) {
  const range = document.createRange();
  const texts = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (parentElement.closest("svg, .spoken")) {
      continue;
    }
    for (const { 0: word, index } of data.matchAll(/\S+/g)) {
      range.setStart(texts.currentNode, index);
      range.setEnd(texts.currentNode, index + word.length);
      drawText(pen, parentElement, word, range.getBoundingClientRect());
    }
  }
}

/** A text in the middle of a box, as the element has it. */
function drawText(pen, element, text, { left, top, width, height }) {
  const style = getComputedStyle(element);
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  pen.fillStyle = style.color;
  pen.save();
  pen.translate(left + width / 2, top + height / 2);
  pen.rotate(style.writingMode === "horizontal-tb" ? 0 : -Math.PI / 2);
  pen.fillText(text, 0, 0);
  pen.restore();
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor", "opacity", "paint-order"];

/** An SVG as a canvas, with the styles that it has on the page. */
async function drawn(svg) {
  const copy = svg.cloneNode(true);
  const from = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of STYLES) {
      element.setAttribute(name, style.getPropertyValue(name));
    }
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  const image = new Image(width, height);
  image.src = url;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SHARP * width, height: SHARP * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return canvas;
}
