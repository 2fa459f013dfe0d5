// Reads npy files, and writes them: magic, version, a header that is a Python dict, then the numbers.

const KINDS = { "<f4": Float32Array, "<f8": Float64Array, "<i8": BigInt64Array, "<i4": Int32Array };

/** { shape, data } of a little-endian file in C order. */
export function npyRead(bytes) {
  const view = new DataView(bytes);
  if (bytes.byteLength < 12 || view.getUint32(0) !== 0x934e554d) {
    throw new Error("what came is no npy file");
  }
  const wide = view.getUint8(6) > 1;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder().decode(new Uint8Array(bytes, start, length));
  const kind = KINDS[/'descr': '([^']*)'/.exec(header)?.[1]];
  const shape = /'shape': \(([^)]*)\)/.exec(header)?.[1].split(",").filter((n) => n.trim()).map(Number);
  if (!kind || !shape) {
    throw new Error(`npy: cannot read ${header.trim()}`);
  }
  const at = start + length; // a multiple of 64, unless somebody else wrote the file
  return { shape, data: at % kind.BYTES_PER_ELEMENT ? new kind(bytes.slice(at)) : new kind(bytes, at) };
}

/** The bytes of rows of numbers, as float64 [rows, columns]. */
export function npyWritten(rows) {
  const dict = `{'descr': '<f8', 'fortran_order': False, 'shape': (${rows.length}, ${rows[0]?.length ?? 0}), }`;
  const header = `${dict.padEnd(Math.ceil((dict.length + 11) / 64) * 64 - 11)}\n`;
  const start = new Uint8Array([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  return new Blob([start, header, Float64Array.from(rows.flat())]);
}
