/** Canonical JSON (RFC 8785) for documents with whole numbers only: every client computes the same text. */

const MOST_DEPTH = 16;
const HALF_A_PAIR = /\p{Surrogate}/u;

export class NotCanonical extends Error {}

/** Write a value as its canonical text. */
export function canonical(value, depth = 0) {
  if (depth > MOST_DEPTH) throw new NotCanonical();
  if (value === null || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "string") {
    if (HALF_A_PAIR.test(value)) throw new NotCanonical();
    return JSON.stringify(value);
  }
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new NotCanonical();
    return String(value);
  }
  if (Array.isArray(value) && depth < MOST_DEPTH && value.every((item) => typeof item === "string")) {
    if (HALF_A_PAIR.test(value.join("\n"))) throw new NotCanonical(); // long lists of labels: faster than one by one
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  if (typeof value !== "object") throw new NotCanonical();
  const names = Object.keys(value).sort(); // by UTF-16 units, as the standard requires
  return `{${names.map((name) => `${canonical(name, depth)}:${canonical(value[name], depth + 1)}`).join(",")}}`;
}

/** Read the value of a canonical text in UTF-8. Any other text of the same value is refused. */
export function parseCanonical(bytes) {
  let text, value;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new NotCanonical();
  }
  if (canonical(value) !== text) throw new NotCanonical();
  return value;
}

/** Whether this is a plain object with exactly these names. */
export function hasExactly(value, names) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  const own = Object.keys(value);
  return own.length === names.length && names.every((name) => Object.hasOwn(value, name));
}
