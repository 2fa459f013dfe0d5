// SPDX-License-Identifier: MIT
//
// What the pages show, made once more without a line of theirs: npy and PNG read, colours computed.

import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";

// ---- npy: magic, version, a header that is a Python dict, the numbers ---------------------------------------------

const NUMBERS = {
  "<f4": [4, (view, at) => view.getFloat32(at, true)],
  "<f8": [8, (view, at) => view.getFloat64(at, true)],
  "<i4": [4, (view, at) => view.getInt32(at, true)],
  "<i8": [8, (view, at) => Number(view.getBigInt64(at, true))],
};

/** { shape, data } of a file's bytes. */
export function npyNumbers(bytes) {
  assert.equal(bytes.subarray(0, 6).toString("latin1"), "\x93NUMPY");
  const start = bytes[6] === 1 ? 10 : 12;
  const length = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const header = bytes.subarray(start, start + length).toString("latin1");
  assert.match(header, /'fortran_order': False/);
  const shape = header.match(/'shape': \(([^)]*)\)/)[1].split(",").map((n) => n.trim()).filter(Boolean).map(Number);
  const [size, read] = NUMBERS[header.match(/'descr': '([^']*)'/)[1]];
  const n = shape.reduce((product, side) => product * side, 1);
  assert.equal(bytes.length, start + length + n * size, "npy: as many numbers as its shape says");
  const view = new DataView(bytes.buffer, bytes.byteOffset + start + length);
  return { shape, data: Array.from({ length: n }, (_, i) => read(view, i * size)) };
}

// ---- PNG: chunks; inflated, each line begins with its filter ------------------------------------------------------

const paeth = (a, b, c) => {
  const [da, db, dc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return da <= db && da <= dc ? a : db <= dc ? b : c;
};

const FILTERS = [() => 0, (a) => a, (_, b) => b, (a, b) => (a + b) >> 1, paeth];

/** { width, height, pixels } of 8 bits a pixel with a palette; a pixel is its colour, "#rrggbb". */
export function pngPixels(bytes) {
  assert.equal(bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  const chunks = {};
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const name = bytes.subarray(at + 4, at + 8).toString("latin1");
    const data = bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at));
    chunks[name] = chunks[name] ? Buffer.concat([chunks[name], data]) : data;
  }
  const [width, height] = [chunks.IHDR.readUInt32BE(0), chunks.IHDR.readUInt32BE(4)];
  assert.deepEqual([...chunks.IHDR.subarray(8)], [8, 3, 0, 0, 0], "8 bits, a palette, nothing interlaced");
  const lines = inflateSync(chunks.IDAT);
  let above = new Uint8Array(width);
  const pixels = [];
  for (let y = 0; y < height; y++) {
    const from = y * (width + 1);
    const line = Uint8Array.from(lines.subarray(from + 1, from + 1 + width));
    for (let x = 0; x < width; x++) {
      line[x] += FILTERS[lines[from]](x ? line[x - 1] : 0, above[x], x ? above[x - 1] : 0);
      pixels.push(`#${chunks.PLTE.subarray(3 * line[x], 3 * line[x] + 3).toString("hex")}`);
    }
    above = line;
  }
  return { width, height, pixels };
}

// ---- The colour map -----------------------------------------------------------------------------------------------
//
// As server/wire/picture.c says: in OKLab, lightness and chroma go linearly from the middle to the ends; chroma is made
// smaller, alike on both sides, where a colour is none that a screen has.

const THEMES = { light: { middle: 0.97, end: 0.42, chroma: 0.145 }, dark: { middle: 0.22, end: 0.86, chroma: 0.15 } };

// Björn Ottosson's matrices (https://bottosson.github.io/posts/oklab/): OKLab to cone responses' cube roots, and these
// cubed to linear sRGB.
const CONES = [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]];
const SCREEN = [
  [4.0767416621, -3.3077115913, 0.2309699292],
  [-1.2684380046, 2.6097574011, -0.3413193965],
  [-0.0041960863, -0.7034186147, 1.707614701],
];

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, m, i) => sum + m * vector[i], 0));

const screen = (L, chroma, degrees) => {
  const hue = (degrees * Math.PI) / 180;
  return times(SCREEN, times(CONES, [L, chroma * Math.cos(hue), chroma * Math.sin(hue)]).map((v) => v ** 3));
};

const shows = (L, chroma) => [255, 50].every((hue) => screen(L, chroma, hue).every((v) => v >= 0 && v <= 1));

function chromaShown(L, wanted) {
  let [low, high] = [0, wanted];
  if (shows(L, wanted)) {
    return wanted;
  }
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    [low, high] = shows(L, middle) ? [middle, high] : [low, middle];
  }
  return low;
}

const byte = (v) => Math.floor(255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055) + 0.5);

/** The 256 colours of a theme, "#rrggbb", from blue to orange. */
export const colours = (theme) =>
  Array.from({ length: 256 }, (_, i) => {
    const { middle, end, chroma } = THEMES[theme];
    const size = Math.abs((2 * i) / 255 - 1);
    const L = middle + (end - middle) * size;
    const rgb = screen(L, chromaShown(L, chroma * size), i < 128 ? 255 : 50).map(byte);
    return `#${Buffer.from(rgb).toString("hex")}`;
  });

/** Which of them a number in -domain..domain has. */
export const colourOf = (v, domain) => Math.min(255, Math.max(0, Math.floor(((v + domain) / (2 * domain)) * 255 + 0.5)));

// ---- The service, for numbers that only it has ---------------------------------------------------------------------

/** ask(op, query, body): { shape, data } in float64, or with format "json" that; once for the same words. */
export function askFrom(origin) {
  const kept = new Map();
  return (op, query = {}, body = undefined) => {
    const wide = { dtype: "float64", ...(query.format === "json" ? {} : { format: "npy" }) };
    const posted = body && JSON.stringify({ ...(op === "attention" ? { dtype: "float64" } : {}), ...body });
    const address = `${origin}/v1/${op}?${new URLSearchParams({ ...(posted && op === "attention" ? { format: "npy" } : wide), ...query })}`;
    const key = `${address} ${posted}`;
    if (!kept.has(key)) {
      kept.set(key, asked(address, posted));
    }
    return kept.get(key);
  };
}

async function asked(address, posted) {
  const request = posted ? { method: "POST", headers: { "Content-Type": "application/json" }, body: posted } : {};
  const response = await fetch(address, request);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, 200, `${address} ${posted ?? ""}: ${bytes}`);
  return /json/.test(response.headers.get("Content-Type")) ? JSON.parse(bytes) : npyNumbers(bytes);
}
