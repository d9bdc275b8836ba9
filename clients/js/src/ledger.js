/** The text of a device's ledger: a new one, reading, upgrading, merging and pruning. */

import { compare, decimal } from "./exact.js";
import { system, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";

const FORMAT = "sfumato-device 3";
const SECOND_FORMAT = "sfumato-device 2";
const FIRST_FORMAT = "sfumato-device 1";
const KEPT_PERIODS = 4; // reports of earlier periods are removed
const KEPT_UNSENT = 52; // unsent reports of earlier periods are given up
const DAY = 86_400_000;
const KEPT_DAYS_AFTER_END = 60;
const OVER = Number.MAX_SAFE_INTEGER;
const STATES = ["made", "sent", "unconfirmed", "refused", "withdrawn", "handed"];

/** The most epsilon that a person allows, for one survey, in any thirty days and in total; and the most delta. */
export const DEFAULT_CAPS = Object.freeze({ perSurvey: "4", perMonth: "8", lifetime: "32", delta: "0" });

export function freshLedger() {
  const secret = toHex(system.take(32));
  return { format: FORMAT, secret, caps: { ...DEFAULT_CAPS }, charges: [], permanent: {}, reports: {}, surveys: {}, allowed: {} };
}

/** A ledger that cannot be read is never replaced by a new one, which would lose the record of what was spent. */
export function readLedger(text) {
  let ledger;
  try {
    ledger = JSON.parse(text);
  } catch {
    throw new Refused("device-ledger");
  }
  const { format, secret, caps, charges, permanent, reports } = ledger ?? {};
  const whole =
    [FORMAT, SECOND_FORMAT, FIRST_FORMAT].includes(format) &&
    typeof secret === "string" &&
    /^[0-9a-f]{64}$/.test(secret) &&
    [caps, permanent, reports].every(isPlain) &&
    Object.keys(DEFAULT_CAPS).every((name) => (name === "delta" ? isDelta(format, caps) : decimal(caps[name])?.n > 0n)) &&
    [...Object.values(permanent), ...Object.values(reports)].every(isPlain) &&
    Object.values(permanent).every((renewals) => Object.values(renewals).every(isReport)) &&
    Object.values(reports).every((made) => Object.values(made).every(isRecord)) &&
    Array.isArray(charges) &&
    charges.every(isCharge);
  if (!whole) throw new Refused("device-ledger");
  return format === FIRST_FORMAT ? upgraded(ledger) : checked(withDelta(ledger));
}

function checked(ledger) {
  const known = isPlain(ledger.surveys) && Object.values(ledger.surveys).every(isAbout);
  const states = Object.values(ledger.reports).every((made) =>
    Object.values(made).every((one) => STATES.includes(one.state)),
  );
  const allowed = ledger.allowed ?? {};
  if (!known || !states || !isPlain(allowed) || !Object.values(allowed).every(isAmount)) throw new Refused("device-ledger");
  return { ...ledger, allowed };
}

/** In the first format, the application sent the reports itself: "handed". */
function upgraded(ledger) {
  for (const made of Object.values(ledger.reports)) for (const one of Object.values(made)) one.state = "handed";
  return { ...withDelta(ledger), surveys: {}, allowed: {} };
}

/** Before the third format, no survey had a delta. */
function withDelta(ledger) {
  return { ...ledger, format: FORMAT, caps: { ...ledger.caps, delta: ledger.caps.delta ?? "0" } };
}

const isDelta = (format, { delta }) => (format === FORMAT ? decimal(delta)?.n >= 0n : delta === undefined);

/**
 * One ledger of two: that of this store, and the one that an earlier version kept in localStorage.
 *
 * Every charge of both counts, and of two caps the stricter one. A report or permanent report that both have is the one
 * of this store. Merging the same ledger again changes nothing.
 */
export function mergedLedgers(own, earlier) {
  const idOf = (ledger, { survey, period }) => ledger.reports[survey]?.[period]?.id;
  const isKnown = (one) => {
    if (!own.charges.some(({ survey, period }) => survey === one.survey && period === one.period)) return false;
    const [ours, theirs] = [idOf(own, one), idOf(earlier, one)];
    return ours && theirs ? ours === theirs : own.secret === earlier.secret; // two reports are two charges
  };
  const charges = earlier.charges.filter((one) => !isKnown(one));
  const caps = Object.fromEntries(
    Object.entries(own.caps).map(([name, cap]) => [name, compare(decimal(cap), decimal(earlier.caps[name])) <= 0 ? cap : earlier.caps[name]]),
  );
  const surveys = { ...earlier.surveys, ...own.surveys };
  for (const [digest, { floor }] of Object.entries(earlier.surveys)) {
    surveys[digest] = { ...surveys[digest], floor: Math.max(floor, surveys[digest].floor) };
  }
  const union = (ours, theirs) => {
    for (const [digest, entries] of Object.entries(theirs)) ours[digest] = { ...entries, ...ours[digest] };
    return ours;
  };
  return {
    ...own,
    caps,
    surveys,
    charges: [...charges, ...own.charges],
    permanent: union(own.permanent, earlier.permanent),
    reports: union(own.reports, earlier.reports),
  };
}

/**
 * Remove reports of old periods. A removed period cannot be reported again (`floor`): a new report for it would be a
 * second one. Charges stay.
 */
export function prune(ledger, now) {
  for (const [digest, about] of Object.entries(ledger.surveys)) {
    const over = about.ends + KEPT_DAYS_AFTER_END * DAY < now.getTime();
    const made = ledger.reports[digest] ?? {};
    const latest = Math.max(...Object.keys(made).map(Number));
    for (const period of Object.keys(made).map(Number)) {
      const most = made[period].state === "made" ? KEPT_UNSENT : KEPT_PERIODS;
      if (!over && period > latest - most) continue;
      delete made[period];
      about.floor = Math.max(about.floor, period + 1);
    }
    if (over) about.floor = OVER;
    for (const renewal of Object.keys(ledger.permanent[digest] ?? {})) {
      if ((Number(renewal) + 1) * about.renewal <= about.floor) delete ledger.permanent[digest][renewal];
    }
  }
}

const isAmount = (value) => decimal(value)?.n >= 0n;
const isCharge = (value) =>
  isPlain(value) &&
  typeof value.survey === "string" &&
  Number.isSafeInteger(value.day) &&
  isAmount(value.epsilon) &&
  (value.delta === undefined || isAmount(value.delta));
const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isReport = (value) => typeof value === "string" || Number.isSafeInteger(value);
const isRecord = (value) => isPlain(value) && isReport(value.report) && typeof value.id === "string";
const isAbout = (value) =>
  isPlain(value) &&
  typeof value.endpoint === "string" &&
  [value.ends, value.floor, value.renewal].every((number) => Number.isSafeInteger(number) && number >= 0);
