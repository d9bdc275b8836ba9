/** Check the document of a survey: size, form, version, signature, fields, table, epsilon, in this order. */

import { canonical, hasExactly, NotCanonical, parseCanonical } from "./canonical.js";
import { compare, decimal } from "./exact.js";
import { fromHex, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";
import { rebuild, staged } from "./tables.js";
import { MOST_BITS, wordCode } from "./words.js";

const FORMAT = "sfumato-survey";
const VERSIONS = [1, 2, 3];
const DELTA_FIELDS = ["delta", "lifetime_delta"]; // of version 3
const NO_DELTA = { n: 0n, d: 1n, text: "0" };
const MOST_ALPHABET = 2 ** 12;
export const MOST_BYTES = 2 ** 22;
const MOST_PERIODS = 100_000;
const MOST_LABELS = 100_000; // a device checks and answers a survey within a second
const MOST_ROW_BITS = 2 ** 14; // of a report with one bit for each label
const DAY = 86_400;
const STAGED = ["rr", "krr", "oue", "sue"];
const FIELDS = [
  "created", "domain", "endpoint", "epsilon", "expires", "format", "id", "lifetime_epsilon", "mechanism",
  "memoise", "minimum_batch", "period_days", "question", "version",
];
const TIME = /^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/;
// https, or http to this machine itself, for trials
const ENDPOINT = /^(https:\/\/[!-~]{1,2000}|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?(\/[!-~]{0,1900})?)?$/;
const encoder = new TextEncoder();

/** Check a document of unknown origin. The stated epsilon is not trusted: it is computed from the table. */
export async function readManifest(data) {
  if (data.length > MOST_BYTES) throw new Refused("survey-size");
  let document;
  try {
    document = parseCanonical(data.at(-1) === 10 ? data.subarray(0, -1) : data);
  } catch (error) {
    if (error instanceof NotCanonical) throw new Refused("survey-form");
    throw error;
  }
  const whole = hasExactly(document, ["survey", "public_key", "signature"]);
  const { survey: statement, public_key: publicKey, signature } = whole ? document : {};
  if (typeof publicKey !== "string" || typeof signature !== "string") throw new Refused("survey-form");
  if (statement === null || typeof statement !== "object" || Array.isArray(statement)) throw new Refused("survey-form");
  if (own(statement, "format") !== FORMAT) throw new Refused("survey-form");
  if (!VERSIONS.includes(own(statement, "version"))) throw new Refused("survey-version");
  const signed = encoder.encode(canonical(statement)); // once: it may have 100,000 labels
  if (!(await fits(signed, publicKey, signature))) throw new Refused("survey-signature");
  return { ...(await checked(statement, signed)), statement, publicKey, signature };
}

export function signatureFits(statement, publicKey, signature) {
  return fits(encoder.encode(canonical(statement)), publicKey, signature);
}

async function fits(signed, publicKey, signature) {
  if (!/^[0-9a-f]{64}$/.test(publicKey) || !/^[0-9a-f]{128}$/.test(signature)) return false;
  const { subtle } = globalThis.crypto;
  try {
    const key = await subtle.importKey("raw", fromHex(publicKey), "Ed25519", false, ["verify"]);
    return await subtle.verify("Ed25519", key, fromHex(signature), signed);
  } catch (error) {
    if (error?.name === "NotSupportedError") throw error; // an old browser, not a forged signature
    return false;
  }
}

/** The number of the period at a time, from 0. */
export function periodAt(manifest, moment) {
  const since = moment.getTime() - manifest.created;
  if (!(since >= 0)) throw new Refused("survey-early");
  if (moment.getTime() >= manifest.expires) throw new Refused("survey-over");
  return manifest.periodDays ? Math.floor(Math.floor(since / 1000) / (manifest.periodDays * DAY)) : 0;
}

async function checked(statement, signed) {
  const withDelta = statement.version >= 3;
  if (!hasExactly(statement, withDelta ? [...FIELDS, ...DELTA_FIELDS] : FIELDS)) throw new Refused("survey-field");
  const { id, ...rest } = statement;
  if (id !== (await digestOf(encoder.encode(canonical(rest)))).slice(0, 32)) throw new Refused("survey-id");
  const question = text(statement.question, 4000);
  const [epsilon, lifetime] = [loss(statement.epsilon), loss(statement.lifetime_epsilon)];
  const periodDays = whole(statement.period_days, 0, 3660);
  whole(statement.minimum_batch, 1, 10 ** 9);
  const [created, expires] = [readTime(statement.created), readTime(statement.expires)];
  const { endpoint } = statement;
  if (typeof endpoint !== "string" || !ENDPOINT.test(endpoint) || created >= expires) throw new Refused("survey-field");
  const [delta, lifetimeDelta] = withDelta ? [share(statement.delta), share(statement.lifetime_delta)] : [NO_DELTA, NO_DELTA];
  const domain = domainOf(statement.domain, statement.version);
  const permanent = tableOf(statement.mechanism, domain);
  const memo = memoOf(statement.memoise, periodDays);
  const table = memo?.instantaneous ? staged(permanent, memo.instantaneous) : permanent;
  const periods = periodDays ? Math.ceil((expires - created) / 1000 / (periodDays * DAY)) : 1;
  if (periods > MOST_PERIODS) throw new Refused("survey-field");
  const price = permanent.epsilon;
  const stated = memo ? memo.epsilon : epsilon;
  if (compare(table.epsilon, epsilon) > 0 || compare(price, stated) > 0 || compare(price, lifetime) > 0) {
    throw new Refused("survey-epsilon");
  }
  const priceDelta = permanent.delta ?? NO_DELTA;
  if (compare(priceDelta, delta) > 0 || compare(priceDelta, lifetimeDelta) > 0) {
    throw new Refused(withDelta ? "survey-delta" : "survey-table");
  }
  const digest = await digestOf(signed);
  return {
    id, question, domain, permanent, table, memo, price, lifetime, periodDays, endpoint, created, expires, digest,
    priceDelta, lifetimeDelta,
    minimumBatch: statement.minimum_batch,
  };
}

function domainOf(value, version) {
  if (hasExactly(value, ["kind", "labels"]) && ["categories", "questions"].includes(value.kind)) {
    if (!Array.isArray(value.labels)) throw new Refused("survey-field");
    if (value.labels.length > MOST_LABELS) throw new Refused("survey-limits");
    const labels = value.labels.map((label) => text(label, 400));
    if (new Set(labels).size !== labels.length) throw new Refused("survey-field");
    return { kind: value.kind, labels };
  }
  if (hasExactly(value, ["kind", "lower", "upper"]) && value.kind === "numbers") {
    const [low, high] = [decimal(value.lower), decimal(value.upper)];
    if (low && high) return { kind: "numbers", lower: value.lower, upper: value.upper, low, high };
  }
  const isText = hasExactly(value, ["kind", "length", "alphabet"]) && value.kind === "words" && typeof value.alphabet === "string";
  if (isText && version >= 2) {
    if (Array.from(value.alphabet).length > MOST_ALPHABET) throw new Refused("survey-limits");
    const length = whole(value.length, 1, MOST_BITS);
    wordCode(length, value.alphabet);
    return { kind: "words", length, alphabet: value.alphabet };
  }
  throw new Refused("survey-field");
}

function tableOf(value, domain) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const name of ["lower", "upper"]) {
      if (Object.hasOwn(value, name) && !decimal(value[name])) throw new Refused("survey-field");
    }
  }
  const table = rebuild(value);
  if (table.kind === "categories" && table.form.kind === "bits" && table.form.width > MOST_ROW_BITS) {
    throw new Refused("survey-limits");
  }
  const isFitting =
    table.kind === domain.kind &&
    (table.kind === "numbers"
      ? compare(table.low, domain.low) === 0 && compare(table.high, domain.high) === 0
      : table.kind === "words"
        ? table.code.length === domain.length && table.code.alphabet === domain.alphabet
        : table.size === domain.labels.length);
  if (!isFitting) throw new Refused("survey-table");
  return table;
}

function memoOf(value, periodDays) {
  if (value === null) return null;
  if (!hasExactly(value, ["periods", "epsilon", "instantaneous"]) || !periodDays) throw new Refused("survey-field");
  const second = value.instantaneous;
  if (second !== null && (typeof second !== "object" || Array.isArray(second))) throw new Refused("survey-field");
  if (second !== null && !STAGED.includes(own(second, "mechanism"))) throw new Refused("survey-table");
  const instantaneous = second === null ? null : rebuild(second);
  return { periods: whole(value.periods, 1, MOST_PERIODS), epsilon: loss(value.epsilon), instantaneous };
}

async function digestOf(bytes) {
  return toHex(new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", bytes)));
}

function own(value, name) {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function text(value, mostBytes) {
  const length = typeof value === "string" ? encoder.encode(value).length : 0;
  if (length < 1 || length > mostBytes) throw new Refused("survey-field");
  return value;
}

function whole(value, least, most) {
  if (!Number.isSafeInteger(value) || value < least || value > most) throw new Refused("survey-field");
  return value;
}

function loss(value) {
  const found = decimal(value);
  if (!found || found.n <= 0n) throw new Refused("survey-field");
  return found;
}

function share(value) {
  const found = loss(value);
  if (found.n >= found.d) throw new Refused("survey-field");
  return found;
}

export function readTime(value) {
  const moment = typeof value === "string" && TIME.test(value) ? Date.parse(value) : NaN;
  if (!Number.isFinite(moment) || new Date(moment).toISOString() !== value.replace("Z", ".000Z")) {
    throw new Refused("survey-field");
  }
  return moment;
}
