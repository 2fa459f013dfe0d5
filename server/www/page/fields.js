// What a lab lets its reader change: rows of fields, read from a query and written to one. The query of a page is the
// query of the call that it is about, so names are the service's; what only the page knows begins with "v.".
//
// A value outside its row is never passed on: it is moved to the nearest one allowed, and a note says so.
//
//     { name, kind, def, min, max, step, choices, symbol, fixed }
//
// integer, number    min..max by step
// choice             one of choices
// flag               "1" or "0"
// count              an integer n, in the query as positions "0:n"
// words              a list of texts, by comma, at most max of them, each of at most 24 characters

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** A field row's value from text; undefined where it cannot be read at all. */
const readers = {
  integer: (text, field) => (/^[+-]?\d{1,15}$/.test(text) ? clamp(Number(text), field.min, field.max) : undefined),
  number: (text, field) =>
    text.trim() !== "" && Number.isFinite(Number(text)) ? clamp(Number(text), field.min, field.max) : undefined,
  choice: (text, field) => (field.choices.includes(text) ? text : undefined),
  flag: (text) => (text === "1" || text === "true" ? true : text === "0" || text === "false" ? false : undefined),
  count: (text, field) =>
    /^0:\d{1,15}$/.test(text) ? clamp(Number(text.slice(2)), field.min, field.max) : undefined,
  words: (text, field) => {
    const words = text.split(",").map((word) => word.trim().slice(0, 24)).filter(Boolean).slice(0, field.max);
    return words.length >= field.min ? words : undefined;
  },
};

const writers = {
  flag: (value) => (value ? "1" : "0"),
  count: (value) => `0:${value}`,
  words: (value) => value.join(","),
};

/** The text of a value, as queries have it. */
export const fieldText = (field, value) => (writers[field.kind] ?? String)(value);

/** The nearest value that the row allows, or its default. */
export function fieldValue(field, value) {
  return readers[field.kind](fieldText(field, value), field) ?? field.def;
}

/**
 * The values that a query says, and what had to be changed: { values: {name: value}, notes: [{name, got, used}] }.
 * A name that no row has is noted, too, with used undefined.
 */
export function fieldsRead(fields, search) {
  const query = new URLSearchParams(search);
  const values = {};
  const notes = [];
  for (const field of fields) {
    const text = query.get(field.name);
    const read = text === null ? field.def : readers[field.kind](text, field);
    values[field.name] = read ?? field.def;
    if (text !== null && fieldText(field, values[field.name]) !== text && !sameNumber(field, text, read)) {
      notes.push({ name: field.name, got: text.slice(0, 40), used: fieldText(field, values[field.name]) });
    }
  }
  for (const name of new Set(query.keys())) {
    if (!fields.some((field) => field.name === name)) {
      notes.push({ name: name.slice(0, 40), got: query.get(name).slice(0, 40) });
    }
  }
  return { values, notes };
}

/** "1e4" is 10000: no change to speak of. */
const sameNumber = (field, text, read) =>
  field.kind === "flag" ? read !== undefined : field.kind === "number" && read === Number(text);

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
