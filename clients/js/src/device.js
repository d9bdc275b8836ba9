/**
 * A person's own books: what each survey has cost them, their caps, and the permanent reports that they keep.
 *
 * A charge, the permanent report and the report are kept together, before the report leaves.
 */

import { canonical } from "./canonical.js";
import { add, compare, decimal, decimalText, negative, ratio } from "./exact.js";
import { periodAt } from "./manifest.js";
import { Exhausted, fromHex, Given, memoBytes, system, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";

const FORMAT = "sfumato-device 1";
const PURPOSE = "sfumato permanent report 1";
const DAY = 86_400_000;
const DAYS_A_MONTH = 30;
const FIRST_BLOCKS = 64;
const ZERO = ratio(0n);

/** The most epsilon that a person gives: to one survey, in any thirty days, and ever. */
export const DEFAULT_CAPS = Object.freeze({ perSurvey: "4", perMonth: "8", lifetime: "32" });

export class Device {
  constructor(store) {
    this.store = store;
  }

  /** The caps of this person; with `changes`, after changing some. */
  caps(changes = {}) {
    for (const value of Object.values(changes)) positive(value);
    return this.#books((books) => {
      for (const name of Object.keys(DEFAULT_CAPS)) if (name in changes) books.caps[name] = String(changes[name]);
      return { ...books.caps };
    });
  }

  /** What was charged so far, as decimal texts. */
  spent(manifest, at = new Date()) {
    return this.#books((books) => {
      const found = spent(books, manifest.digest, at);
      return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, decimalText(value)]));
    });
  }

  /** The report for the period of this moment. Asked again in the same period, it is the same one, and free. */
  report(manifest, answer, at) {
    const period = periodAt(manifest, at);
    return this.#books(async (books) => {
      const made = (books.reports[manifest.digest] ??= {});
      if (made[period]) return { ...made[period], epsilon: "0", repeated: true };
      let price = manifest.price.text;
      let report;
      if (manifest.memo) {
        const kept = await this.#permanent(books, manifest, answer, period, at);
        if (!kept.charged) price = "0";
        report = manifest.memo.instantaneous ? manifest.memo.instantaneous.again(kept.report, system) : kept.report;
      } else {
        charge(books, manifest, period, at);
        report = manifest.permanent.draw(answer, system);
      }
      made[period] = { survey: manifest.id, period, id: toHex(system.take(16)), report };
      return { ...made[period], epsilon: price, repeated: false };
    });
  }

  /** The first answer of a renewal is the one that is kept: reports must not show that an answer changed. */
  async #permanent(books, manifest, answer, period, at) {
    const renewal = Math.floor(period / manifest.memo.periods);
    const kept = (books.permanent[manifest.digest] ??= {});
    if (renewal in kept) return { report: kept[renewal], charged: false };
    charge(books, manifest, period, at);
    kept[renewal] = await permanentReport(manifest, answer, fromHex(books.secret), renewal);
    return { report: kept[renewal], charged: true };
  }

  #books(change) {
    return this.store.update(async (text) => {
      const books = text === null ? fresh() : read(text);
      const result = await change(books);
      return [JSON.stringify(books), result];
    });
  }
}

/** The report that this secret always draws for this survey, renewal and answer. */
export async function permanentReport(manifest, answer, secret, renewal) {
  const about = { purpose: PURPOSE, survey: manifest.digest, renewal, answer };
  const message = new TextEncoder().encode(canonical(about));
  for (let blocks = FIRST_BLOCKS; ; blocks *= 2) {
    try {
      return manifest.permanent.draw(answer, new Given(await memoBytes(secret, message, blocks)));
    } catch (error) {
      if (!(error instanceof Exhausted)) throw error; // else again, from the same beginning, with more to read
    }
  }
}

function charge(books, manifest, period, at) {
  const so = spent(books, manifest.digest, at);
  const own = positive(books.caps.perSurvey);
  const limits = [
    [compare(own, manifest.lifetime) < 0 ? own : manifest.lifetime, so.survey],
    [positive(books.caps.perMonth), so.month],
    [positive(books.caps.lifetime), so.lifetime],
  ];
  for (const [limit, already] of limits) {
    if (compare(manifest.price, add(limit, negative(already))) > 0) throw new Refused("budget-exceeded");
  }
  books.charges.push({ survey: manifest.digest, period, day: dayOf(at), epsilon: decimalText(manifest.price) });
}

/**
 * Charges are in the order in which they were made, and time only moves on: what was charged after a charge of the last
 * thirty days is of these thirty days too, whatever day the clock said.
 */
function spent(books, digest, at) {
  const recent = books.charges.findIndex((each) => each.day > dayOf(at) - DAYS_A_MONTH);
  const total = (charges) => charges.map((each) => decimalOf(each.epsilon)).reduce(add, ZERO);
  return {
    survey: total(books.charges.filter((each) => each.survey === digest)),
    month: total(recent < 0 ? [] : books.charges.slice(recent)),
    lifetime: total(books.charges),
  };
}

function decimalOf(text) {
  const found = decimal(text);
  if (!found || found.n < 0n) throw new Refused("device-ledger");
  return found;
}

function positive(value) {
  const found = decimal(String(value));
  if (!found || found.n <= 0n) throw new Refused("survey-number");
  return found;
}

const dayOf = (at) => Math.floor(at.getTime() / DAY);

function fresh() {
  const secret = toHex(system.take(32));
  return { format: FORMAT, secret, caps: { ...DEFAULT_CAPS }, charges: [], permanent: {}, reports: {} };
}

/** Books that cannot be read are never replaced by new ones: those would forget what was spent. */
function read(text) {
  let books;
  try {
    books = JSON.parse(text);
  } catch {
    throw new Refused("device-ledger");
  }
  const { format, secret, caps, charges, permanent, reports } = books ?? {};
  const whole =
    format === FORMAT &&
    typeof secret === "string" &&
    /^[0-9a-f]{64}$/.test(secret) &&
    [caps, permanent, reports].every(isPlain) &&
    Object.keys(DEFAULT_CAPS).every((name) => decimal(caps[name])?.n > 0n) &&
    [...Object.values(permanent), ...Object.values(reports)].every(isPlain) &&
    Object.values(permanent).every((each) => Object.values(each).every(isReport)) &&
    Object.values(reports).every((each) => Object.values(each).every((made) => isPlain(made) && isReport(made.report))) &&
    Array.isArray(charges) &&
    charges.every((each) => isPlain(each) && typeof each.survey === "string" && Number.isSafeInteger(each.day));
  if (!whole) throw new Refused("device-ledger");
  return books;
}

const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isReport = (value) => typeof value === "string" || Number.isSafeInteger(value);
