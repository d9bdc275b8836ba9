/**
 * A person's own ledger: what each survey has cost, the person's caps, and the permanent reports.
 *
 * A charge, the permanent report and the report are stored together, before the report is returned.
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

/** The most epsilon that a person allows: for one survey, in any thirty days, and in total. */
export const DEFAULT_CAPS = Object.freeze({ perSurvey: "4", perMonth: "8", lifetime: "32" });

export class Device {
  constructor(store) {
    this.store = store;
  }

  /** Return the person's caps, after the given changes. */
  caps(changes = {}) {
    for (const value of Object.values(changes)) positive(value);
    return this.#ledger((ledger) => {
      for (const name of Object.keys(DEFAULT_CAPS)) if (name in changes) ledger.caps[name] = String(changes[name]);
      return { ...ledger.caps };
    });
  }

  /** Return the epsilon that was charged so far, as decimal texts. */
  spent(manifest, at = new Date()) {
    return this.#ledger((ledger) => {
      const found = spent(ledger, manifest.digest, at);
      return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, decimalText(value)]));
    });
  }

  /** Make the report for the period of this time. A second call in the period returns the same report, for free. */
  report(manifest, answer, at) {
    const period = periodAt(manifest, at);
    return this.#ledger(async (ledger) => {
      const made = (ledger.reports[manifest.digest] ??= {});
      if (made[period]) return { ...made[period], epsilon: "0", repeated: true };
      let price = manifest.price.text;
      let report;
      if (manifest.memo) {
        const kept = await this.#permanent(ledger, manifest, answer, period, at);
        if (!kept.charged) price = "0";
        report = manifest.memo.instantaneous ? manifest.memo.instantaneous.again(kept.report, system) : kept.report;
      } else {
        charge(ledger, manifest, period, at);
        report = manifest.permanent.draw(answer, system);
      }
      made[period] = { survey: manifest.id, period, id: toHex(system.take(16)), report };
      return { ...made[period], epsilon: price, repeated: false };
    });
  }

  /** The first answer of a renewal is kept: reports must not reveal that an answer changed. */
  async #permanent(ledger, manifest, answer, period, at) {
    const renewal = Math.floor(period / manifest.memo.periods);
    const kept = (ledger.permanent[manifest.digest] ??= {});
    if (renewal in kept) return { report: kept[renewal], charged: false };
    charge(ledger, manifest, period, at);
    kept[renewal] = await permanentReport(manifest, answer, fromHex(ledger.secret), renewal);
    return { report: kept[renewal], charged: true };
  }

  #ledger(change) {
    return this.store.update(async (text) => {
      const ledger = text === null ? fresh() : read(text);
      const result = await change(ledger);
      return [JSON.stringify(ledger), result];
    });
  }
}

/** The report that this secret determines for this survey, renewal and answer. */
export async function permanentReport(manifest, answer, secret, renewal) {
  const about = { purpose: PURPOSE, survey: manifest.digest, renewal, answer };
  const message = new TextEncoder().encode(canonical(about));
  for (let blocks = FIRST_BLOCKS; ; blocks *= 2) {
    try {
      return manifest.permanent.draw(answer, new Given(await memoBytes(secret, message, blocks)));
    } catch (error) {
      if (!(error instanceof Exhausted)) throw error; // otherwise start again with more bytes
    }
  }
}

function charge(ledger, manifest, period, at) {
  const so = spent(ledger, manifest.digest, at);
  const own = positive(ledger.caps.perSurvey);
  const limits = [
    [compare(own, manifest.lifetime) < 0 ? own : manifest.lifetime, so.survey],
    [positive(ledger.caps.perMonth), so.month],
    [positive(ledger.caps.lifetime), so.lifetime],
  ];
  for (const [limit, already] of limits) {
    if (compare(manifest.price, add(limit, negative(already))) > 0) throw new Refused("budget-exceeded");
  }
  ledger.charges.push({ survey: manifest.digest, period, day: dayOf(at), epsilon: decimalText(manifest.price) });
}

/**
 * Charges are in the order in which they were made. A charge that was made after a charge of the last thirty days also
 * counts for these thirty days, whatever date it carries.
 */
function spent(ledger, digest, at) {
  const recent = ledger.charges.findIndex((charged) => charged.day > dayOf(at) - DAYS_A_MONTH);
  const total = (charges) => charges.map((charged) => decimalOf(charged.epsilon)).reduce(add, ZERO);
  return {
    survey: total(ledger.charges.filter((charged) => charged.survey === digest)),
    month: total(recent < 0 ? [] : ledger.charges.slice(recent)),
    lifetime: total(ledger.charges),
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

/** A ledger that cannot be read is never replaced by a new one, which would lose the record of what was spent. */
function read(text) {
  let ledger;
  try {
    ledger = JSON.parse(text);
  } catch {
    throw new Refused("device-ledger");
  }
  const { format, secret, caps, charges, permanent, reports } = ledger ?? {};
  const whole =
    format === FORMAT &&
    typeof secret === "string" &&
    /^[0-9a-f]{64}$/.test(secret) &&
    [caps, permanent, reports].every(isPlain) &&
    Object.keys(DEFAULT_CAPS).every((name) => decimal(caps[name])?.n > 0n) &&
    [...Object.values(permanent), ...Object.values(reports)].every(isPlain) &&
    Object.values(permanent).every((renewals) => Object.values(renewals).every(isReport)) &&
    Object.values(reports).every((made) => Object.values(made).every((one) => isPlain(one) && isReport(one.report))) &&
    Array.isArray(charges) &&
    charges.every((one) => isPlain(one) && typeof one.survey === "string" && Number.isSafeInteger(one.day));
  if (!whole) throw new Refused("device-ledger");
  return ledger;
}

const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isReport = (value) => typeof value === "string" || Number.isSafeInteger(value);
