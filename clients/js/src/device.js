/**
 * A person's own ledger: what each survey has cost, the person's caps, the permanent reports, and the reports to send.
 *
 * A charge, the permanent report and the report are stored together, before the report is returned.
 */

import { readAnnouncement } from "./announcement.js";
import { canonical } from "./canonical.js";
import { deviceClock } from "./device-clock.js";
import { add, compare, decimal, decimalText, negative, ratio } from "./exact.js";
import { DEFAULT_CAPS, freshLedger, prune, readLedger } from "./ledger.js";
import { periodAt } from "./manifest.js";
import { Exhausted, fromHex, Given, memoBytes, system, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";

export { DEFAULT_CAPS };

const PURPOSE = "sfumato permanent report 1";
const DAY = 86_400_000;
const DAYS_A_MONTH = 30;
const FIRST_BLOCKS = 64;
const ZERO = ratio(0n);

export class Device {
  /**
   * `clock` is the time of the thirty-day cap. With `announced`, a report needs an announcement of its period, signed by
   * the team that asks.
   */
  constructor(store, { clock = deviceClock, announced = false } = {}) {
    this.store = store;
    this.clock = clock;
    this.announced = announced;
  }

  /** Return the person's caps, after the given changes. */
  caps(changes = {}) {
    for (const [name, value] of Object.entries(changes)) {
      if (!Object.hasOwn(DEFAULT_CAPS, name)) throw new Refused("survey-number");
      const cap = name === "delta" ? decimalOf(String(value), "survey-number") : positive(value);
      if (name === "delta" && cap.n >= cap.d) throw new Refused("survey-number");
    }
    return this.#ledger((ledger) => {
      for (const [name, value] of Object.entries(changes)) ledger.caps[name] = String(value);
      if ("delta" in changes) ledger.allowed = {}; // the new cap replaces what was allowed before
      return { ...ledger.caps };
    });
  }

  /** Where this ledger is. Browsers keep one for each origin: another site, port or profile has its own caps. */
  async where() {
    const kept = (await globalThis.navigator?.storage?.persisted?.()) ?? false;
    return { store: this.store.constructor.name, origin: globalThis.location?.origin ?? null, persisted: kept };
  }

  /** Return the epsilon that was charged so far, as decimal texts. */
  spent(manifest) {
    return this.#ledger((ledger) => {
      const found = spent(ledger, manifest.digest, this.clock());
      return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, decimalText(value)]));
    });
  }

  /** Return the epsilon that this device would still spend on this survey, and what one more answer costs. */
  left(manifest) {
    return this.#ledger((ledger) => {
      const remaining = limits(ledger, manifest, this.clock()).map(([limit, already]) => add(limit, negative(already)));
      const least = remaining.reduce(lesser);
      const { survey, person } = deltaLeft(ledger, manifest, this.clock());
      return {
        epsilon: textOfLeft(least),
        price: manifest.price.text,
        delta: textOfLeft(lesser(survey, person)),
        priceDelta: manifest.priceDelta.text,
        surveyDelta: textOfLeft(survey),
      };
    });
  }

  /**
   * Allow the delta of one more answer to this survey, and of no other one; return the delta that this survey may have
   * in total. Only the person may decide this. A new cap (`caps({ delta })`) ends it.
   */
  allowDelta(manifest) {
    return this.#ledger((ledger) => {
      if (compare(manifest.priceDelta, deltaLeft(ledger, manifest, this.clock()).survey) > 0) throw new Refused("survey-lifetime-delta");
      const wanted = add(spent(ledger, manifest.digest, this.clock()).surveyDelta, manifest.priceDelta);
      return (ledger.allowed[manifest.digest] = decimalText(wanted));
    });
  }

  /** Make the report for a period. A second call in the period returns the same report, for free. */
  async report(manifest, answer, { at, announcement = null } = {}) {
    if (announcement === null && this.announced) throw new Refused("survey-announcement");
    const announced = announcement === null ? null : await readAnnouncement(announcement, manifest);
    const period = announced ? announced.period : periodAt(manifest, at ?? new Date());
    const now = new Date(Math.min(this.clock().getTime(), announced?.at ?? Infinity));
    return this.#ledger(async (ledger) => {
      const about = (ledger.surveys[manifest.digest] ??= { endpoint: "", ends: 0, floor: 0, renewal: 1 });
      Object.assign(about, {
        endpoint: manifest.endpoint,
        ends: manifest.expires,
        renewal: manifest.memo?.periods ?? 1,
      });
      const made = (ledger.reports[manifest.digest] ??= {});
      if (made[period]) return { ...made[period], epsilon: "0", delta: "0", repeated: true };
      if (period < about.floor) throw new Refused("survey-past");
      let [epsilon, delta] = [manifest.price.text, manifest.priceDelta.text];
      let report;
      if (manifest.memo) {
        const kept = await this.#permanent(ledger, manifest, answer, period, now);
        if (!kept.charged) [epsilon, delta] = ["0", "0"];
        report = manifest.memo.instantaneous ? manifest.memo.instantaneous.again(kept.report, system) : kept.report;
      } else {
        charge(ledger, manifest, period, now);
        report = manifest.permanent.draw(answer, system);
      }
      made[period] = { survey: manifest.id, period, id: toHex(system.take(16)), report, state: "made" };
      const found = { ...made[period], epsilon, delta, repeated: false };
      prune(ledger, now);
      return found;
    });
  }

  /** The report of the latest period, or null: nothing is made or charged. */
  latest(manifest) {
    return this.#ledger((ledger) => {
      const made = ledger.reports[manifest.digest] ?? {};
      const period = Math.max(-1, ...Object.keys(made).map(Number));
      return period < 0 ? null : { ...made[period] };
    });
  }

  /** The reports that wait to be sent: of one survey, or of all. */
  waiting(digest = null) {
    return this.#ledger((ledger) =>
      Object.entries(ledger.reports)
        .filter(([survey]) => digest === null || survey === digest)
        .flatMap(([survey, made]) =>
          Object.values(made)
            .filter((one) => one.state === "made")
            .map((one) => ({ digest: survey, endpoint: ledger.surveys[survey]?.endpoint ?? "", ...one })),
        ),
    );
  }

  /** Record that a report was tried to send, and what became of it. `after`: a time before which the collector wants no other attempt. */
  settle(digest, period, state, after = null) {
    return this.#ledger((ledger) => {
      const one = ledger.reports[digest]?.[period];
      if (!one || one.state === "withdrawn") return;
      one.state = state;
      one.tried = true;
      if (after === null) delete one.after;
      else one.after = after;
    });
  }

  /** The first answer of a renewal is kept: reports must not reveal that an answer changed. */
  async #permanent(ledger, manifest, answer, period, now) {
    const renewal = Math.floor(period / manifest.memo.periods);
    const kept = (ledger.permanent[manifest.digest] ??= {});
    if (renewal in kept) return { report: kept[renewal], charged: false };
    charge(ledger, manifest, period, now);
    kept[renewal] = await permanentReport(manifest, answer, fromHex(ledger.secret), renewal);
    return { report: kept[renewal], charged: true };
  }

  #ledger(change) {
    return this.store.update(async (text) => {
      const ledger = text === null ? freshLedger() : readLedger(text);
      const result = await change(ledger);
      const after = JSON.stringify(ledger);
      if (after !== text) readLedger(after); // a ledger that could not be read again is not stored
      return [after, result];
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

function charge(ledger, manifest, period, now) {
  for (const [limit, already] of limits(ledger, manifest, now)) {
    if (compare(manifest.price, add(limit, negative(already))) > 0) throw new Refused("budget-exceeded");
  }
  const left = deltaLeft(ledger, manifest, now);
  if (compare(manifest.priceDelta, left.survey) > 0) throw new Refused("survey-lifetime-delta");
  if (compare(manifest.priceDelta, left.person) > 0) throw new Refused("budget-delta");
  const delta = manifest.priceDelta.n ? { delta: decimalText(manifest.priceDelta) } : {};
  ledger.charges.push({ survey: manifest.digest, period, day: dayOf(now), epsilon: decimalText(manifest.price), ...delta });
}

/** The delta that is left of the survey's own limit, and of what the person allows: for all surveys, or for this one. */
function deltaLeft(ledger, manifest, now) {
  const so = spent(ledger, manifest.digest, now);
  const [inAll, here] = [
    add(decimalOf(ledger.caps.delta), negative(so.delta)),
    add(decimalOf(ledger.allowed[manifest.digest] ?? "0"), negative(so.surveyDelta)),
  ];
  return { survey: add(manifest.lifetimeDelta, negative(so.surveyDelta)), person: compare(inAll, here) > 0 ? inAll : here };
}

const lesser = (left, right) => (compare(left, right) < 0 ? left : right);
const textOfLeft = (amount) => (amount.n > 0n ? decimalText(amount) : "0");

function limits(ledger, manifest, now) {
  const so = spent(ledger, manifest.digest, now);
  const own = positive(ledger.caps.perSurvey);
  return [
    [compare(own, manifest.lifetime) < 0 ? own : manifest.lifetime, so.survey],
    [positive(ledger.caps.perMonth), so.month],
    [positive(ledger.caps.lifetime), so.lifetime],
  ];
}

/**
 * Charges are in the order in which they were made. A charge that was made after a charge of the last thirty days also
 * counts for these thirty days, whatever date it carries.
 */
function spent(ledger, digest, now) {
  const recent = ledger.charges.findIndex((charged) => charged.day > dayOf(now) - DAYS_A_MONTH);
  const total = (charges) => charges.map((charged) => decimalOf(charged.epsilon)).reduce(add, ZERO);
  const deltas = (charges) => charges.map((charged) => decimalOf(charged.delta ?? "0")).reduce(add, ZERO);
  return {
    surveyDelta: deltas(ledger.charges.filter((charged) => charged.survey === digest)),
    delta: deltas(ledger.charges),
    survey: total(ledger.charges.filter((charged) => charged.survey === digest)),
    month: total(recent < 0 ? [] : ledger.charges.slice(recent)),
    lifetime: total(ledger.charges),
  };
}

function decimalOf(text, code = "device-ledger") {
  const found = decimal(text);
  if (!found || found.n < 0n) throw new Refused(code);
  return found;
}

function positive(value) {
  const found = decimal(String(value));
  if (!found || found.n <= 0n) throw new Refused("survey-number");
  return found;
}

const dayOf = (moment) => Math.floor(moment.getTime() / DAY);
