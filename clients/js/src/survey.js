/** A survey on a person's device: load it, check it, and report. */

import { BrowserStore } from "./browser-store.js";
import { Device } from "./device.js";
import { compare, decimal } from "./exact.js";
import { MOST_BYTES, readManifest, signatureFits } from "./manifest.js";
import { lineOf, posted, sendWaiting } from "./outbox.js";
import { Refused } from "./refusals.js";
import { row } from "./tables.js";
import { wordBits, wordKept } from "./words.js";

const TIMEOUT = 20_000;
const UNITS = 2 ** 32;

export class Survey {
  /** @private: use `Survey.load`. */
  constructor(manifest, device) {
    this.manifest = manifest;
    this.device = device;
  }

  /**
   * Read a survey from an https address or from its bytes, and refuse it if anything about it is not as it says.
   *
   * `publicKey` is the key of whoever asks, from somewhere else than the survey; without it, the signature only shows
   * that the survey is as somebody signed it. `trusted` is the `KeyRing` of a team that has several keys. `cap` is the most epsilon that one answer may cost. `device` holds the
   * person's own ledger: in the browser's IndexedDB by default; in Node, pass `new Device(new FileStore(folder))`.
   */
  static async load(source, { publicKey = null, trusted = null, cap = null, device = null } = {}) {
    const data = typeof source === "string" || source instanceof URL ? await fetched(String(source), publicKey !== null || trusted !== null) : bytes(source);
    const survey = new Survey(await readManifest(data), device ?? defaultDevice());
    if (publicKey !== null && !(await survey.verify(publicKey))) throw new Refused("survey-key");
    if (trusted !== null && !trusted.trusts(survey.manifest)) throw new Refused("survey-key");
    if (cap !== null) {
      const most = decimal(String(cap));
      if (!most || most.n <= 0n) throw new Refused("survey-number");
      if (compare(survey.manifest.price, most) > 0) throw new Refused("survey-cap");
    }
    return survey;
  }

  /** Whether the holder of this key signed this survey, and it was not changed since. */
  async verify(publicKey) {
    const { statement, publicKey: own, signature } = this.manifest;
    const known = typeof publicKey === "string" && publicKey.trim().toLowerCase() === own;
    return known && (await signatureFits(statement, own, signature));
  }

  /**
   * A report on this answer, charged to the person's own ledger before it is returned: `{ survey, period, id, report,
   * epsilon, repeated, state }`. Asked again in the same period it is the same report, and free.
   *
   * `at` is the time that chooses the period. With an `announcement` of the team that asks, the announced period is
   * used, whatever the device's clock says.
   */
  async report(value, options = {}) {
    const answer = this.read(value);
    return this.#own().report(this.manifest, answer, options);
  }

  /**
   * Send this survey's reports that were not sent yet: `{ sent, unconfirmed, refused, waiting }`. No credentials and no
   * referrer are sent. What waits is kept in the ledger: call this again later, also after a restart.
   */
  async send({ endpoint = null } = {}) {
    if (!(endpoint ?? this.manifest.endpoint)) throw new Refused("survey-endpoint");
    return sendWaiting(this.#own(), { digest: this.manifest.digest, endpoint });
  }

  /**
   * Take the latest report back: an unsent one is never sent; a sent one is withdrawn at the collector by its id, until
   * the batch that contains it is published. The charge stays, because the collector has seen the report.
   */
  async withdraw({ endpoint = null } = {}) {
    const made = await this.#own().latest(this.manifest);
    if (!made || made.state === "withdrawn") return made;
    if (made.tried || made.state !== "made") { // it may have arrived, also if the ledger does not say so
      const address = endpoint ?? this.manifest.endpoint;
      if (!address) throw new Refused("survey-endpoint");
      const body = JSON.stringify({ survey: made.survey, id: made.id });
      const response = await posted(`${address}/withdraw`, body, "cors", "error").catch(() => null);
      if (!response?.ok) throw new Refused("survey-withdrawal");
    }
    await this.device.settle(this.manifest.digest, made.period, "withdrawn");
    return { ...made, state: "withdrawn" };
  }

  /** The line that is sent to the collector. */
  static line(report) {
    return lineOf(report);
  }

  #own() {
    if (!this.device) throw new Refused("device-missing");
    return this.device;
  }

  /** The input of the table: a category, a position between the bounds, or a row of bits. */
  read(value) {
    const { domain, permanent } = this.manifest;
    if (domain.kind === "categories") return category(value, domain.labels);
    if (domain.kind === "numbers") return position(value, permanent);
    if (domain.kind === "words") return wordBits(value, permanent.code);
    return answers(value, domain.labels);
  }

  /** The part of a word that is reported: a longer word is cut. */
  kept(word) {
    return wordKept(word, this.manifest.permanent.code);
  }

  get id() {
    return this.manifest.id;
  }

  get question() {
    return this.manifest.question;
  }

  get domain() {
    return this.manifest.domain;
  }

  /** The privacy loss of a single report, computed from the table: a decimal text. */
  get epsilon() {
    return this.manifest.table.epsilon.text;
  }

  /** The delta of a new answer, computed from the table: "0", unless the mechanism has one. */
  get delta() {
    return this.manifest.priceDelta.text;
  }

  /** The privacy loss of all reports on one answer. */
  get longitudinalEpsilon() {
    return this.manifest.price.text;
  }
}

function category(value, labels) {
  if (typeof value === "string" && labels.includes(value)) return labels.indexOf(value);
  if (typeof value === "boolean" && labels.length === 2) return Number(value);
  if (Number.isSafeInteger(value) && value >= 0 && value < labels.length) return value === 0 ? 0 : value;
  throw new Refused("survey-value");
}

/** Computed in doubles by every client: the same number has the same position everywhere. */
function position(value, { lower, upper }) {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Refused("survey-value");
  const inside = Math.min(Math.max(value, lower), upper);
  const place = Math.floor(((inside - lower) / (upper - lower)) * UNITS + 0.5);
  return Math.min(Math.max(place, 0), UNITS);
}

function answers(value, labels) {
  let given = value;
  if (given !== null && typeof given === "object" && !Array.isArray(given)) {
    const known = Object.keys(given).length === labels.length && labels.every((label) => Object.hasOwn(given, label));
    given = known ? labels.map((label) => given[label]) : null;
  }
  const whole = Array.isArray(given) && given.length === labels.length;
  if (!whole || !given.every((answer) => typeof answer === "boolean")) throw new Refused("survey-value");
  return row(labels.length, (place) => given[place]);
}

let shared = null;

function defaultDevice() {
  if (!globalThis.indexedDB && !globalThis.document) return null; // not a browser: no storage is the person's own
  shared ??= new Device(new BrowserStore());
  return shared;
}

function bytes(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  throw new Refused("survey-form");
}

async function fetched(address, knowsKey) {
  if (!knowsKey && !address.toLowerCase().startsWith("https://")) throw new Refused("survey-address");
  let response;
  try {
    const redirect = knowsKey ? "follow" : "error"; // a page cannot see whether each step was over https
    response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT), credentials: "omit", referrerPolicy: "no-referrer", redirect });
    if (!response.ok || !response.body) throw new Refused("survey-unreachable");
    const parts = [];
    let length = 0;
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
      if (length > MOST_BYTES) {
        await reader.cancel();
        throw new Refused("survey-size");
      }
    }
    const whole = new Uint8Array(length);
    parts.reduce((start, part) => (whole.set(part, start), start + part.length), 0);
    return whole;
  } catch (error) {
    throw error instanceof Refused ? error : new Refused("survey-unreachable");
  }
}
