// What a lab lets its reader change: rows of fields, read from a query and written to one. The query of a page is the
// query of the call that it is about, so names are the service's; what only the page knows begins with "v.".
//
// A value outside its row is never passed on: it is moved to the nearest one allowed, and a note says so. So is what
// settle(values) changes, where values depend on each other.
//
//     { name, kind, def, min, max, step, choices, symbol, most(values), play }
//
// play: true has a button that lets the value run from the least to the largest.
//
// integer, number    min..max by step; most(values): where other values leave less than max, what a slider goes to
// choice             one of choices
// flag               "1" or "0"
// count              an integer n, in the query as positions "0:n"
// numbers            a list of numbers in min..max by comma, as many as the default has
// names              a list of choices by comma, which may be empty; what is no choice is left out
// words              a list of texts, by comma, at most max of them, each of at most 24 characters, all of which are seen
//                    and none a straight double quote; those, and brackets around the list, the service takes away

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** The nearest value on the row's steps, which begin at its lowest. */
const stepped = (value, { min, max, step = 1 }) => {
  const last = min + Math.floor((max - min) / step) * step;
  return clamp(min + Math.round((value - min) / step) * step, min, last);
};

/** Controls, what has no width, and what turns texts round: words that look the same are to be the same. */
const UNSEEN = /(?![\u200d\ufe0f])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]|(?<!\p{Emoji})\ufe0f|\u200d(?!\p{Extended_Pictographic})/gu;

const signs = globalThis.Intl?.Segmenter && new Intl.Segmenter();

/** Of a text the signs, as readers count them, that take at most n units; of one that takes more by itself a part. */
export function cutText(text, n) {
  const all = signs ? Array.from(signs.segment(text), ({ segment }) => segment) : Array.from(text);
  const [first = ""] = all;
  let cut = "";
  for (const sign of first.length > n ? first : all) {
    if (cut.length + sign.length > n) {
      break;
    }
    cut += sign;
  }
  return cut;
}

/** A text of which nothing is hidden: what is not seen is written as its number. */
const visible = (text) =>
  text.replace(UNSEEN, (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);

/** A field row's value from text; undefined where it cannot be read at all. */
const readers = {
  integer: (text, field) => (/^[+-]?\d{1,15}$/.test(text) ? stepped(Number(text), field) : undefined),
  number: (text, field) =>
    text.trim() !== "" && Number.isFinite(Number(text)) ? clamp(Number(text), field.min, field.max) : undefined,
  choice: (text, field) => (field.choices.includes(text) ? text : undefined),
  flag: (text) => (text === "1" || text === "true" ? true : text === "0" || text === "false" ? false : undefined),
  count: (text, field) =>
    /^0:\d{1,15}$/.test(text) ? stepped(Number(text.slice(2)), field) : undefined,
  numbers: (text, field) => {
    const list = text.split(",").map((part) => readers.number(part, field));
    return list.length === field.def.length && list.every((v) => v !== undefined) ? list : undefined;
  },
  names: (text, field) => [...new Set(text.split(","))].filter((name) => field.choices.includes(name)),
  words: (text, field) => {
    const list = text.replace(UNSEEN, "").replaceAll('"', "").trim().replace(/^\[(.*)\]$/u, "$1");
    const words = list.split(",").map((word) => cutText(word.trim(), 24)).filter(Boolean).slice(0, field.max);
    return words.length >= field.min ? words : undefined;
  },
};

const writers = {
  flag: (value) => (value ? "1" : "0"),
  count: (value) => `0:${value}`,
  numbers: (value) => value.join(","),
  names: (value) => value.join(","),
  words: (value) => value.join(","),
};

/** The text of a value, as queries have it. */
export const fieldText = (field, value) => (writers[field.kind] ?? String)(value);

/** The nearest value that the row allows; where it is none at all, what it was. */
export function fieldValue(field, value, old) {
  return readers[field.kind](fieldText(field, value), field) ?? old;
}

/** Each field's value as a query has it, or its default. */
const valuesRead = (fields, query) =>
  Object.fromEntries(
    fields.map((field) => {
      const text = query.get(field.name);
      return [field.name, (text === null ? undefined : readers[field.kind](text, field)) ?? field.def];
    }),
  );

/**
 * The values that a query says, and what had to be changed: { values: {name: value}, notes: [{name, got, used}] }.
 * A name that no row has is noted, too, with used undefined; of a name that comes twice the first is used.
 */
export function fieldsRead(fields, search, settle) {
  const query = new URLSearchParams(search);
  const read = valuesRead(fields, query);
  const values = settle?.(read) ?? read;
  const notes = [];
  for (const name of new Set(query.keys())) {
    const field = fields.find((row) => row.name === name);
    const got = query.getAll(name).join(", ");
    if (!field || !sameText(field, got, values[name])) {
      notes.push({ name: cutText(visible(name), 40), got: cutText(visible(got), 40), used: field && fieldText(field, values[name]) });
    }
  }
  return { values, notes };
}

/** "1e4" is 10000, and "true" is 1: no change to speak of. */
const sameText = (field, text, value) =>
  text === fieldText(field, value) ||
  (field.kind === "number" && text.trim() !== "" && Number(text) === value) ||
  (field.kind === "numbers" && text.split(",").map((part) => part.trim() && Number(part)).join() === value.join()) ||
  (field.kind === "flag" && readers.flag(text) === value);

/** The query of some values: all of the service's names in the order of rows, of the page's own those that differ. */
export function fieldsQuery(fields, values) {
  const query = new URLSearchParams();
  for (const field of fields) {
    const text = fieldText(field, values[field.name]);
    if (!field.name.startsWith("v.") || text !== fieldText(field, field.def)) {
      query.set(field.name, text);
    }
  }
  return queryText(query);
}

/** Readable: what need not be escaped is not. */
export const queryText = (query) => query.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
