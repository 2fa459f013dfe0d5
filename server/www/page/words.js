// The words of this page, put into it when it was built: JSON, which no script policy minds.

export const words = typeof document === "undefined" ? {} : JSON.parse(document.getElementById("words").textContent);

/** "row {p} of {n}" with the values put in; numbers in three digits. */
export const say = (text, values) =>
  text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(values[name]) : whole));

/** A number as readers want it; other values as they are. */
export function shown(value) {
  if (typeof value !== "number") {
    return String(value);
  }
  if (Number.isInteger(value) && Math.abs(value) < 1e7) {
    return String(value).replace("-", "\u2212");
  }
  const size = Math.abs(value);
  const text = size >= 1e7 || size < 1e-3 ? value.toExponential(2) : size >= 100 ? value.toFixed(0) : value.toPrecision(3);
  return text.replace("-", "\u2212");
}
