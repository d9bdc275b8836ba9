/*! sfumato-survey 0.1.0, Apache-2.0 */
// exact.js
const exactModule = (() => {
/** Exact numbers: ratios of BigInts, and logarithms rounded up. No loss is computed with floats. */

const SIGNIFICANT_DIGITS = 30;
const BITS = 256n;
const DECIMAL = /^(-?)([0-9]{1,40})(?:\.([0-9]{1,60}))?(?:e([+-]?[0-9]{1,3}))?$/;

function ratio(numerator, denominator = 1n) {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b) [a, b] = [b, a % b];
  return { n: numerator / a, d: denominator / a };
}

function compare(left, right) {
  const difference = left.n * right.d - right.n * left.d;
  return difference > 0n ? 1 : difference < 0n ? -1 : 0;
}

const add = (left, right) => ratio(left.n * right.d + right.n * left.d, left.d * right.d);
const negative = (value) => ({ n: -value.n, d: value.d });
const times = (left, right) => ratio(left.n * right.n, left.d * right.d);
const greater = (left, right) => (compare(left, right) >= 0 ? left : right);

/** The number of a decimal text, or null if it is no number. */
function decimal(text) {
  const found = typeof text === "string" ? DECIMAL.exec(text) : null;
  if (!found) return null;
  const [, sign, whole, digits = "", exponent = "0"] = found;
  const places = BigInt(exponent) - BigInt(digits.length);
  const number = BigInt(`${sign}${whole}${digits}`);
  return places >= 0n ? ratio(number * 10n ** places) : ratio(number, 10n ** -places);
}

/** All digits of a number whose denominator divides a power of ten. */
function decimalText({ n, d }) {
  let places = 0;
  for (let power = 1n; (n * power) % d; power *= 10n) places += 1;
  const digits = ((n < 0n ? -n : n) * 10n ** BigInt(places)) / d;
  const padded = digits.toString().padStart(places + 1, "0");
  const text = places ? `${padded.slice(0, -places)}.${padded.slice(-places)}` : padded;
  return n < 0n ? `-${text}` : text;
}

/**
 * The loss of a table whose greatest ratio between two answers is `value`: ln of it (or of its inverse), rounded up at
 * the thirtieth digit. `{ n, d, text }`.
 */
function lossOfRatio(value) {
  const above = value.n >= value.d ? value : { n: value.d, d: value.n };
  const [, high] = logEnclosure(above, BITS);
  return roundedUp(high > 0n ? high : 0n, 1n << BITS);
}

/** [low, high] with low <= 2**bits * ln(value) <= high, for a reduced value > 0. */
function logEnclosure(value, bits) {
  const power = bitLength(value.n) - bitLength(value.d);
  const [n, d] = power >= 0 ? [value.n, value.d << BigInt(power)] : [value.n << BigInt(-power), value.d];
  const work = bits + BigInt(bitLength(BigInt(Math.abs(power)))) + 32n;
  let [low, high] = twiceArtanh(n - d, n + d, work);
  const [lowTwo, highTwo] = twiceArtanh(1n, 3n, work);
  const times = BigInt(power);
  [low, high] = power >= 0 ? [low + times * lowTwo, high + times * highTwo] : [low + times * highTwo, high + times * lowTwo];
  return [low >> (work - bits), -(-high >> (work - bits))];
}

function twiceArtanh(numerator, denominator, work) {
  const small = ((numerator < 0n ? -numerator : numerator) << work) / denominator;
  const square = (small * small) >> work;
  let [power, total, count] = [small, 0n, 0n];
  while (power) {
    total += power / (2n * count + 1n);
    power = (power * square) >> work;
    count += 1n;
  }
  const slack = 4n * count + 8n;
  const [low, high] = [2n * (total - slack), 2n * (total + slack)];
  return numerator >= 0n ? [low, high] : [-high, -low];
}

/** The least decimal of thirty digits that is not below n / d, as a ratio and as a text. */
function roundedUp(n, d) {
  if (n === 0n) return { n: 0n, d: 1n, text: "0" };
  let places = SIGNIFICANT_DIGITS - (n.toString().length - d.toString().length); // exact, or one too many
  const scaled = (count) => (count >= 0 ? [n * 10n ** BigInt(count), d] : [n, d * 10n ** BigInt(-count)]);
  let [top, bottom] = scaled(places);
  if (top / bottom >= 10n ** BigInt(SIGNIFICANT_DIGITS)) [top, bottom] = scaled((places -= 1));
  let digits = (top + bottom - 1n) / bottom;
  while (digits % 10n === 0n) [digits, places] = [digits / 10n, places - 1];
  const value = places >= 0 ? ratio(digits, 10n ** BigInt(places)) : ratio(digits * 10n ** BigInt(-places));
  const text = digits.toString();
  const adjusted = text.length - 1 - places;
  if (adjusted >= -6 && adjusted <= 20) return { ...value, text: decimalText(value) };
  const mantissa = text.length > 1 ? `${text[0]}.${text.slice(1)}` : text;
  return { ...value, text: `${mantissa}e${adjusted < 0 ? "-" : "+"}${Math.abs(adjusted)}` };
}

function bitLength(value) {
  return value === 0n ? 0 : value.toString(2).length;
}

return { ratio, compare, add, negative, times, greater, decimal, decimalText, lossOfRatio, logEnclosure, roundedUp };
})();

// randomness.js
const randomnessModule = (() => {
/** Random bytes: from the system, or bytes that a device can derive again. A report reads them in a fixed order. */

const MOST_AT_ONCE = 65536; // of one call of getRandomValues

class Exhausted extends Error {}

/** Fresh bytes of the system's own generator. */
const system = {
  take(count) {
    const bytes = new Uint8Array(count);
    for (let start = 0; start < count; start += MOST_AT_ONCE) {
      globalThis.crypto.getRandomValues(bytes.subarray(start, Math.min(count, start + MOST_AT_ONCE)));
    }
    return bytes;
  },
};

/** Given bytes, in order. */
class Given {
  constructor(bytes) {
    this.bytes = bytes;
    this.used = 0;
  }

  take(count) {
    if (this.used + count > this.bytes.length) throw new Exhausted();
    this.used += count;
    return this.bytes.subarray(this.used - count, this.used);
  }
}

/** A little-endian whole number of up to four bytes. */
function number(source, width) {
  return source.take(width).reduceRight((total, byte) => total * 256 + byte, 0);
}

/** Heads with probability units / 2**32, exactly. */
function coin(source, units) {
  return number(source, 4) < units;
}

/** A uniform whole number below `bound`: a word outside a whole multiple of the range is read again. */
function even(source, bound) {
  const width = [1, 2, 4].find((bytes) => 256 ** bytes >= bound);
  const most = Math.floor(256 ** width / bound) * bound;
  for (;;) {
    const word = number(source, width);
    if (word < most) return word % bound;
  }
}

/** Bytes of HMAC-SHA256(key, 0), HMAC(key, 1), ... with key = HMAC(secret, purpose). */
async function memoBytes(secret, about, blocks) {
  const key = await hmac(secret, about);
  const bytes = new Uint8Array(32 * blocks);
  const imported = await hmacKey(key);
  for (let index = 0; index < blocks; index += 1) {
    const counter = new Uint8Array(8);
    new DataView(counter.buffer).setUint32(4, index);
    bytes.set(new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", imported, counter)), 32 * index);
  }
  return bytes;
}

async function hmac(secret, message) {
  return new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", await hmacKey(secret), message));
}

function hmacKey(bytes) {
  return globalThis.crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

return { Exhausted, system, Given, number, coin, even, memoBytes, fromHex, toHex };
})();

// refusals.js
const refusalsModule = (() => {
/** Constant texts of refusals: a message never quotes a document or an answer. */

const REFUSALS = {
  "survey-size": ["The survey is larger than 4 MiB.", "Ask for a shorter survey."],
  "survey-form": [
    "This is not a signed survey in canonical JSON (RFC 8785).",
    "Load the file exactly as it was published; any change of its format breaks the signature.",
  ],
  "survey-version": ["This survey has another format version.", "This program reads versions 1 to 3. Update it, or ask for a survey of an older version."],
  "survey-signature": [
    "The signature does not match the survey.",
    "The survey was changed after it was signed. Do not answer it; fetch it again from the team that asks.",
  ],
  "survey-key": [
    "The survey is signed with another key than the one that you gave.",
    "Do not answer it, or check the key with the team that asks.",
  ],
  "survey-id": ["The survey's id does not match its content.", "The document is wrong. Do not answer it."],
  "survey-field": [
    "A field of the survey is missing, unknown or invalid.",
    "docs/local.md lists the fields of a survey.",
  ],
  "survey-limits": [
    "The survey has more answers than a device can check within a second.",
    "At most 100,000 labels are possible, 16,384 if a report has one bit for each, or 4,096 characters of words.",
  ],
  "survey-ring": [
    "The list of trusted keys is invalid, older than the present one, or not signed by one of its keys.",
    "Nothing was changed. Get the list from the team that asks.",
  ],
  "survey-table": [
    "The survey's table is invalid.",
    "Every probability must be above zero, the truth must be most likely, and the table must fit the answers.",
  ],
  "survey-epsilon": [
    "The survey's table costs more epsilon than the survey states.",
    "This follows from the table's own integers. Do not answer it.",
  ],
  "survey-delta": [
    "The survey's table has a greater delta than the survey states.",
    "This follows from the table's own integers. Do not answer it.",
  ],
  "survey-cap": [
    "One answer to this survey costs more epsilon than your own cap.",
    "Nothing was sent, and no budget was spent.",
  ],
  "survey-early": ["The survey has not begun.", "Nothing was sent, and no budget was spent."],
  "survey-over": ["The survey has ended.", "Nothing was sent, and no budget was spent."],
  "survey-past": [
    "The device has already reported for later periods, and its record of this period was removed.",
    "Nothing was sent, and no budget was spent. Check the device's clock.",
  ],
  "survey-announcement": [
    "The period was not announced by the team that asks.",
    "Pass the announcement of the period, signed with the survey's key.",
  ],
};

const MORE = {
  "survey-unreachable": ["The survey could not be fetched.", "Check the address and the network."],
  "survey-address": [
    "Over http, anyone on the network can replace the survey.",
    "Use https, or pass the public key of the team that asks.",
  ],
  "survey-value": ["The value is not an answer to this survey.", "The survey's domain lists the possible answers."],
  "survey-number": [
    "A cap must be a decimal number above zero; a cap on delta is from 0 to below 1.",
    "For example { lifetime: '0.5' }. The caps are perSurvey, perMonth, lifetime and delta.",
  ],
  "budget-exceeded": ["This costs more epsilon than is left.", "Nothing was sent, and no budget was spent."],
  "budget-delta": [
    "This survey's guarantee has a delta that your caps do not allow.",
    "Nothing was sent, and no budget was spent. Only you can allow a delta.",
  ],
  "survey-lifetime-delta": [
    "One more answer would exceed this survey's own limit on delta.",
    "Nothing was sent, and no budget was spent.",
  ],
  "device-missing": [
    "No place was given for the person's own ledger.",
    "Pass a device, such as new Device(new FileStore(folder)).",
  ],
  "store-insecure": [
    "This page cannot keep the person's own ledger: it was not loaded over https.",
    "Use https, or localhost for trials. Nothing was sent, and no budget was spent.",
  ],
  "store-locks": [
    "This browser cannot keep two tabs from spending the same budget (no Web Locks).",
    "Use a newer browser. Nothing was sent, and no budget was spent.",
  ],
  "store-blocked": [
    "This browser does not let the page store the person's own ledger (IndexedDB is blocked or missing).",
    "Allow this site to store data, or leave private browsing. Nothing was sent, and no budget was spent.",
  ],
  "store-durability": [
    "This browser cannot write the person's own ledger to disk before a report leaves (strict durability).",
    "Use a newer browser. Nothing was sent, and no budget was spent.",
  ],
  "survey-endpoint": ["The survey has no address for reports.", "Pass the address: survey.send({ endpoint })."],
  "survey-withdrawal": [
    "The report was not withdrawn: it is part of a published result, or the collector did not answer.",
    "A report can be withdrawn until the batch that contains it is published.",
  ],
  "device-ledger": [
    "The device's own ledger cannot be read or written, or has another format version.",
    "Nothing was sent. Restore the file from a backup; a new file would lose the record of what was spent.",
  ],
};

class Refused extends Error {
  constructor(code, message = (REFUSALS[code] ?? MORE[code])[0]) {
    super(message);
    this.name = "Refused";
    this.code = code;
    this.hint = (REFUSALS[code] ?? MORE[code])[1];
  }
}

return { REFUSALS, Refused };
})();

// ledger.js
const ledgerModule = (() => {
/** The text of a device's ledger: a new one, reading, upgrading, merging and pruning. */

const { compare, decimal } = exactModule;
const { system, toHex } = randomnessModule;
const { Refused } = refusalsModule;

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
const DEFAULT_CAPS = Object.freeze({ perSurvey: "4", perMonth: "8", lifetime: "32", delta: "0" });

function freshLedger() {
  const secret = toHex(system.take(32));
  return { format: FORMAT, secret, caps: { ...DEFAULT_CAPS }, charges: [], permanent: {}, reports: {}, surveys: {}, allowed: {} };
}

/** A ledger that cannot be read is never replaced by a new one, which would lose the record of what was spent. */
function readLedger(text) {
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
function mergedLedgers(own, earlier) {
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
function prune(ledger, now) {
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

return { DEFAULT_CAPS, freshLedger, readLedger, mergedLedgers, prune };
})();

// ledger-copy.js
const ledgerCopyModule = (() => {
/**
 * A second copy of the device's ledger, in the origin's private file system.
 *
 * A browser may drop its whole IndexedDB. Chromium does so after two kills: if the first kill cuts a record of its log in
 * two, the next session writes behind that half, and the session after it finds a corrupt log and deletes the database.
 * Strict durability does not help. The two stores share no file, so one kill does not damage both.
 *
 * Closing a file replaces it as a whole: it has the old text or the new one.
 */

const { Refused } = refusalsModule;

const COPY = /^([0-9]{1,15}) /;

class LedgerCopy {
  #folder;

  constructor(name) {
    this.name = `${name}.txt`;
  }

  /** `{ text, count }`, or null: there is none, or this browser has no such file system. */
  async read() {
    const folder = await this.#opened();
    try {
      const file = await (await folder?.getFileHandle(this.name))?.getFile();
      const found = (await file?.text()) ?? "";
      const count = COPY.exec(found)?.[1];
      return count ? { count: Number(count), text: found.slice(count.length + 1) } : null;
    } catch (error) {
      if (error?.name === "NotFoundError") return null;
      throw new Refused("device-ledger");
    }
  }

  async write({ text, count }) {
    const folder = await this.#opened();
    try {
      const file = await folder?.getFileHandle(this.name, { create: true });
      const writing = await file?.createWritable();
      await writing?.write(`${count} ${text}`);
      await writing?.close();
    } catch {
      throw new Refused("device-ledger");
    }
  }

  /** Null where pages cannot write such files: then IndexedDB holds the only ledger. */
  async #opened() {
    if (this.#folder === undefined) {
      const isPossible = globalThis.FileSystemFileHandle?.prototype.createWritable && globalThis.navigator?.storage?.getDirectory;
      this.#folder = isPossible ? await globalThis.navigator.storage.getDirectory().catch(() => null) : null;
    }
    return this.#folder;
  }
}

return { LedgerCopy };
})();

// browser-store.js
const browserStoreModule = (() => {
/**
 * A device's ledger in a browser: IndexedDB with strict durability, under a Web Lock, for pages and workers.
 *
 * The lock lets one tab or worker at a time change the ledger, and a killed one leaves no lock behind. The change is
 * written only if the ledger is still the one that was read. It is on the disk, and in a second copy, before a report is
 * returned. Every change has the next number: if the copy has a greater one, the browser dropped its database.
 *
 * localStorage is not safe: each process has its own copy of it, and writes it to disk seconds later.
 */

const { mergedLedgers, readLedger } = ledgerModule;
const { LedgerCopy } = ledgerCopyModule;
const { Refused } = refusalsModule;

const TABLE = "ledger";
const KEY = "device";
const COUNT = "changes";
const LOST = JSON.stringify({ format: "sfumato-device lost by the browser" }); // refused: a new ledger would forget what was spent
const NONE = { text: null, count: -1 };
const MOVED = JSON.stringify({ format: "sfumato-device moved to IndexedDB" }); // earlier versions refuse this text

class BrowserStore {
  #database = null;
  #migrated = false;

  constructor(name = "sfumato-device") {
    this.name = name;
    this.copy = new LedgerCopy(name);
  }

  async update(change) {
    const locks = lockManager();
    return locks.request(this.name, async () => {
      if (!this.#migrated) await this.#migrate();
      for (;;) {
        const before = await this.#latest();
        const [text, result] = await change(before.text);
        if (text === before.text || (await this.#replaced(before, text))) return result;
      }
    });
  }

  /** Run this work unless another tab or worker runs it; then return null. */
  async alone(work) {
    return lockManager().request(`${this.name} sending`, { ifAvailable: true }, (lock) => (lock ? work() : null));
  }

  /** Take over the ledger that an earlier version kept in localStorage, which workers do not have. */
  async #migrate() {
    const earlier = legacyText(this.name);
    if (earlier !== null && earlier !== MOVED) {
      const old = readLedger(earlier);
      for (;;) {
        const before = await this.#latest();
        const whole = before.text === null ? old : mergedLedgers(readLedger(before.text), old);
        if (await this.#replaced(before, JSON.stringify(whole))) break;
      }
      globalThis.localStorage.setItem(this.name, MOVED);
    }
    this.#migrated = true;
  }

  /** The ledger, after the database or the copy was repaired from the other one. */
  async #latest() {
    for (;;) {
      const [main, copy] = [await this.#read(), await this.copy.read()];
      if (copy && copy.count > main.count) {
        readLedger(copy.text); // a copy that cannot be read replaces nothing
        if (await this.#stored(main, copy)) return copy;
      } else {
        if (main.count >= 0 && copy?.text !== main.text) await this.copy.write(main);
        return main;
      }
    }
  }

  /** Whether the ledger was still `before`, and is now `text`: on the disk, and in the copy. */
  async #replaced(before, text) {
    const after = { text, count: Math.max(before.count, 0) + 1 };
    if (!(await this.#stored(before, after))) return false;
    await this.copy.write(after);
    return true;
  }

  async #read() {
    const table = (await this.#transaction("readonly")).objectStore(TABLE);
    const [text, count] = await Promise.all([resultOf(table.get(KEY)), resultOf(table.get(COUNT))]);
    if (text === undefined) return NONE;
    return { text, count: text === LOST ? -1 : (count ?? 0) };
  }

  /** Whether the database had `before`, and has `after` now, on the disk. */
  async #stored(before, after) {
    const transaction = await this.#transaction("readwrite");
    if (transaction.durability !== "strict") {
      transaction.abort();
      throw new Refused("store-durability");
    }
    return new Promise((resolve, reject) => {
      let same = false;
      const table = transaction.objectStore(TABLE);
      const current = table.get(KEY);
      current.onsuccess = () => {
        same = (current.result ?? null) === before.text;
        if (!same) return;
        table.put(after.text, KEY);
        table.put(after.count, COUNT);
      };
      transaction.oncomplete = () => resolve(same);
      transaction.onabort = () => reject(new Refused("device-ledger"));
    });
  }

  async #transaction(mode) {
    for (let tries = 0; ; tries += 1) {
      this.#database ??= await opened(this.name);
      try {
        return this.#database.transaction(TABLE, mode, { durability: "strict" });
      } catch {
        this.#database = null; // the browser closed it
        if (tries) throw new Refused("device-ledger");
      }
    }
  }
}

function lockManager() {
  if (globalThis.isSecureContext === false) throw new Refused("store-insecure");
  if (!globalThis.navigator?.locks) throw new Refused("store-locks");
  return globalThis.navigator.locks;
}

function opened(name) {
  return new Promise((resolve, reject) => {
    const refuse = () => reject(new Refused("store-blocked"));
    let request;
    try {
      request = globalThis.indexedDB.open(name, 1); // a missing indexedDB is a TypeError
    } catch {
      refuse();
      return;
    }
    request.onupgradeneeded = (event) => {
      const table = request.result.createObjectStore(TABLE);
      if (event.dataLoss === "total") table.put(LOST, KEY); // Chromium says so when it deleted a damaged database
    };
    request.onerror = refuse;
    request.onblocked = refuse;
    request.onsuccess = () => {
      const database = request.result;
      database.onversionchange = () => database.close();
      resolve(database);
    };
  });
}

function resultOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new Refused("device-ledger"));
  });
}

function legacyText(name) {
  try {
    return globalThis.localStorage?.getItem(name) ?? null;
  } catch {
    return null; // storage is forbidden here: an earlier version could not use it either
  }
}

return { BrowserStore };
})();

// canonical.js
const canonicalModule = (() => {
/** Canonical JSON (RFC 8785) for documents with whole numbers only: every client computes the same text. */

const MOST_DEPTH = 16;
const HALF_A_PAIR = /\p{Surrogate}/u;

class NotCanonical extends Error {}

/** Write a value as its canonical text. */
function canonical(value, depth = 0) {
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
function parseCanonical(bytes) {
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
function hasExactly(value, names) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  const own = Object.keys(value);
  return own.length === names.length && names.every((name) => Object.hasOwn(value, name));
}

return { NotCanonical, canonical, parseCanonical, hasExactly };
})();

// fields.js
const fieldsModule = (() => {
/** The field of 2**m elements, m up to 20: whole numbers, added by exclusive or, multiplied modulo a polynomial. */

function product(left, right, polynomial) {
  const top = 1 << (31 - Math.clz32(polynomial));
  let total = 0;
  for (let shifted = left, rest = right; rest; rest >>>= 1) {
    if (rest & 1) total ^= shifted;
    shifted <<= 1;
    if (shifted & top) shifted ^= polynomial;
  }
  return total;
}

function parity(value) {
  let odd = 0;
  for (let rest = value; rest; rest &= rest - 1) odd ^= 1;
  return odd;
}

/** Whether a polynomial is irreducible and of this degree. Ben-Or's test: no common factor with x**(2**i) - x for i up to half the degree. */
function irreducible(polynomial, degree) {
  if (!Number.isSafeInteger(polynomial) || polynomial < 2 ** degree || polynomial >= 2 ** (degree + 1)) return false;
  if (degree === 1) return true;
  let power = 2;
  for (let index = 0; index < Math.floor(degree / 2); index += 1) {
    power = product(power, power, polynomial);
    let [left, right] = [polynomial, power ^ 2];
    while (right) [left, right] = [right, remainder(left, right)];
    if (left !== 1) return false;
  }
  return true;
}

function remainder(value, divisor) {
  const length = 32 - Math.clz32(divisor);
  let rest = value;
  while (rest && 32 - Math.clz32(rest) >= length) rest ^= divisor << (32 - Math.clz32(rest) - length);
  return rest;
}

return { product, parity, irreducible };
})();

// units.js
const unitsModule = (() => {
/** Whole numbers of a published table, and the step that every k-ary response takes. */

const { even } = randomnessModule;
const { Refused } = refusalsModule;

const UNITS = 2 ** 32;

function require(holds) {
  if (!holds) throw new Refused("survey-table");
}

function whole(value, least, most) {
  require(Number.isSafeInteger(value) && value >= least && value <= most);
  return value;
}

const unit = (value) => whole(value, 1, UNITS - 1);

/** Return the value if kept, otherwise one of the k - 1 others, uniformly. */
function moveOn(value, kept, k, source) {
  if (k === 2) return kept ? value : 1 - value;
  const step = even(source, k - 1) + 1;
  return kept ? value : (value + step) % k;
}

return { UNITS, require, whole, unit, moveOn };
})();

// noise.js
const noiseModule = (() => {
/** Noise of a published law on a grid (the mechanism "gaussian"): its delta by enumeration, and draws. */

const { hasExactly } = canonicalModule;
const { compare, decimal, decimalText, ratio, roundedUp } = exactModule;
const { coin, number } = randomnessModule;
const { require, unit, UNITS, whole } = unitsModule;

const MOST_STEPS = 32;
const MOST_REACH = 2 ** 13;
const MOST_EPSILON = ratio(64n);
const BITS = 192n;

/** `{ outputs, epsilon, delta, draw }`: epsilon is the point at which delta is computed. */
function shiftedNoise(description) {
  require(hasExactly(description, ["steps", "noise", "epsilon"]) && Array.isArray(description.noise));
  const { noise } = description;
  const steps = whole(description.steps, 1, MOST_STEPS);
  require((steps & (steps - 1)) === 0);
  require(noise.length >= 2 && noise.length <= MOST_REACH + 1);
  noise.forEach(unit);
  require(noise[0] + 2 * noise.slice(1).reduce((total, units) => total + units, 0) === UNITS);
  const epsilon = decimal(description.epsilon);
  require(epsilon && epsilon.n > 0n && compare(epsilon, MOST_EPSILON) <= 0);
  require(decimal(decimalText(epsilon))); // a ledger must be able to hold the charge: at most 60 decimals
  const units = [...noise.slice(1).reverse(), ...noise];
  const draw = (position, source) => {
    const scaled = position * steps;
    const step = Math.floor(scaled / UNITS) + (coin(source, scaled % UNITS) ? 1 : 0);
    const word = number(source, 4);
    let [end, column] = [units[0], 0];
    while (end <= word) end += units[(column += 1)];
    return step + column;
  };
  const outputs = steps + units.length;
  return { outputs, epsilon: { ...epsilon, text: decimalText(epsilon) }, delta: shiftDelta(units, steps, epsilon), draw };
}

/** The greatest sum of max(0, P(r | j) - e**epsilon * P(r | j')) over two steps, rounded up at the thirtieth digit. */
function shiftDelta(units, steps, epsilon) {
  const growth = growthOf(epsilon);
  const own = units.map((value) => BigInt(value) << BITS);
  const grown = units.map((value) => BigInt(value) * growth);
  let worst = 0n;
  for (let distance = 1; distance <= steps; distance += 1) {
    let total = 0n;
    for (let place = 0; place < own.length; place += 1) {
      const left = place < distance ? own[place] : own[place] - grown[place - distance];
      if (left > 0n) total += left;
    }
    if (total > worst) worst = total;
  }
  return roundedUp(worst, BigInt(UNITS) << BITS);
}

/** e**epsilon in units of 2**-192, rounded down. */
function growthOf({ n, d }) {
  let [term, total, count] = [1n << BITS, 0n, 0n];
  while (term) {
    [total, count] = [total + term, count + 1n];
    term = (term * n) / (d * count);
  }
  return total;
}

return { shiftedNoise };
})();

// words.js
const wordsModule = (() => {
/** Words without a list of candidates: their bits, and reports on the hash of a prefix (the mechanism "pem"). */

const { hasExactly } = canonicalModule;
const { compare, lossOfRatio, ratio } = exactModule;
const { coin, even, fromHex, toHex } = randomnessModule;
const { Refused } = refusalsModule;
const { moveOn, require, unit, UNITS, whole } = unitsModule;

const MOST_BITS = 512;
const MOST_STEP = 20;
const MOST_HASH_BITS = 8;
const MOST_GROUPS = 128;

/** How a text becomes bits: `width` for each of the first `length` characters, counted from 1, or bytes of UTF-8. */
function wordCode(length, alphabet) {
  whole(length, 1, MOST_BITS);
  require(typeof alphabet === "string");
  const characters = Array.from(alphabet);
  require(new Set(characters).size === characters.length);
  const width = characters.length ? 32 - Math.clz32(characters.length) : 8;
  require(length * width <= MOST_BITS);
  return { length, alphabet, characters, width, bits: length * width };
}

/** The bits of a text in hex, the first bit highest. A longer text is cut. */
function wordBits(text, { length, characters, width, bits }) {
  if (typeof text !== "string" || text === "" || text.includes("\0") || /\p{Surrogate}/u.test(text)) {
    throw new Refused("survey-value");
  }
  const codes = characters.length
    ? Array.from(text).slice(0, length).map((character) => characters.indexOf(character) + 1)
    : Array.from(new TextEncoder().encode(text).subarray(0, length));
  if (codes.includes(0)) throw new Refused("survey-value");
  const bytes = new Uint8Array(Math.ceil(bits / 8));
  codes.forEach((code, place) => {
    for (let bit = 0; bit < width; bit += 1) {
      const at = place * width + bit;
      if ((code >> (width - 1 - bit)) & 1) bytes[at >> 3] |= 128 >> (at & 7);
    }
  });
  return toHex(bytes);
}

/** The part of a text that is reported: its first characters, or the whole characters of its first bytes. */
function wordKept(text, { length, characters }) {
  if (characters.length) return Array.from(text).slice(0, length).join("");
  let [kept, left] = ["", length];
  for (const character of text) {
    left -= new TextEncoder().encode(character).length;
    if (left < 0) break;
    kept += character;
  }
  return kept;
}

/** A uniform group says how long the prefix is; its hash under a uniform seed is reported by k-ary response. */
function prefixes(description) {
  require(hasExactly(description, ["mechanism", "length", "alphabet", "lengths", "hash_bits", "coins"]));
  require(hasExactly(description.coins, ["keep"]) && Array.isArray(description.lengths));
  const code = wordCode(description.length, description.alphabet);
  const { lengths } = description;
  require(lengths.length >= 1 && lengths.length <= MOST_GROUPS);
  lengths.forEach((length, group) => {
    require(Number.isSafeInteger(length));
    whole(length - (group ? lengths[group - 1] : 0), 1, MOST_STEP);
  });
  require(lengths.at(-1) === code.bits);
  const hashBits = whole(description.hash_bits, 1, MOST_HASH_BITS);
  const keep = unit(description.coins.keep);
  const buckets = 2 ** hashBits;
  require(compare(ratio(BigInt(keep), BigInt(UNITS)), ratio(1n, BigInt(buckets))) > 0);
  const width = Math.ceil(code.bits / 8);
  const draw = (answer, source) => {
    const bits = fromHex(answer);
    const group = even(source, lengths.length);
    const seeds = Uint8Array.from(source.take(hashBits * width), (byte, place) => byte & mask(lengths[group], place % width));
    const kept = coin(source, keep);
    let hash = 0;
    for (let row = 0; row < hashBits; row += 1) {
      let selected = 0;
      for (let place = 0; place < width; place += 1) selected ^= seeds[row * width + place] & bits[place];
      hash |= oddOnes(selected) << row;
    }
    return toHex(Uint8Array.of(group, moveOn(hash, kept, buckets, source), ...seeds));
  };
  const loss = ratio(BigInt(keep) * BigInt(buckets - 1), BigInt(UNITS) - BigInt(keep));
  const form = { kind: "rows", bytes: 2 + hashBits * width };
  return { kind: "words", code, epsilon: lossOfRatio(loss), form, draw };
}

/** The bits of a byte of a prefix with this number of bits. */
function mask(length, place) {
  const inside = Math.min(Math.max(length - 8 * place, 0), 8);
  return 256 - (1 << (8 - inside));
}

function oddOnes(byte) {
  let folded = byte ^ (byte >> 4);
  folded ^= folded >> 2;
  return (folded ^ (folded >> 1)) & 1;
}

return { MOST_BITS, wordCode, wordBits, wordKept, prefixes };
})();

// tables.js
const tablesModule = (() => {
/**
 * The published tables, in whole units of 2**-32: checks, the loss of one report, and draws.
 *
 * A table is `{ kind, size, epsilon, form, draw(answer, source) }`. The answer of "categories" is a place from 0; of
 * "numbers" a position from 0 to 2**32 between the bounds; of "questions" the hex of a row of bits; of "words" the hex of
 * the text's bits.
 */

const { hasExactly } = canonicalModule;
const { add, compare, decimal, greater, lossOfRatio, ratio, times } = exactModule;
const { irreducible, parity, product } = fieldsModule;
const { coin, even, number } = randomnessModule;
const { shiftedNoise } = noiseModule;
const { moveOn, require, unit, UNITS, whole } = unitsModule;
const { prefixes } = wordsModule;

const WHOLE = 1n << 32n;
const MOST_CATEGORIES = 2 ** 20;
const MOST_HASH_BITS = 20;
const MOST_STEPS = 2 ** 16;
const MOST_ROWS = 33;
const MOST_QUESTIONS = 2 ** 12;

/** The table of a description. Any other document is refused. A stated epsilon is never read. */
function rebuild(description) {
  const make = description !== null && typeof description === "object" && MADE[description.mechanism];
  require(typeof description?.mechanism === "string" && Object.hasOwn(MADE, description.mechanism) && make);
  return make(description);
}

const share = (units) => ratio(BigInt(units), WHOLE);
const rest = (value) => ratio(value.d - value.n, value.d);
const over = (left, right) => ratio(left.n * right.d, left.d * right.n);
const codes = (count) => ({ kind: "codes", count });
const bits = (width, ones = null) => ({ kind: "bits", width, ones });

/** A table over categories: a report supports its own category with p, and another given one with q. */
function categories(k, [own, other], loss, form, draw, more = {}) {
  require(compare(own, other) > 0);
  return { kind: "categories", size: k, epsilon: lossOfRatio(loss), form, draw, ...more };
}

function kary({ mechanism, ...description }) {
  require(hasExactly(description, ["k", "coins"]) && hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, mechanism === "rr" ? 2 : MOST_CATEGORIES);
  const keep = unit(description.coins.keep);
  const own = share(keep);
  const support = [own, spread(own, k)];
  const draw = (value, source) => moveOn(value, coin(source, keep), k, source);
  return categories(k, support, over(own, support[1]), codes(k), draw, { staged: "kary", support, again: draw });
}

/** The rest of a probability, shared equally by the others. */
function spread(own, k) {
  return times(rest(own), ratio(1n, BigInt(k - 1)));
}

function unary(description) {
  require(hasExactly(description, ["mechanism", "k", "coins"]) && hasExactly(description.coins, ["one", "zero"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const [one, zero] = [unit(description.coins.one), unit(description.coins.zero)];
  const support = [share(one), share(zero)];
  const draw = (value, source) => row(k, (place) => coin(source, place === value ? one : zero));
  const again = (kept, source) => row(k, (place) => coin(source, bitOf(kept, place) ? one : zero));
  return categories(k, support, oddsRatio(support), bits(k), draw, { staged: "unary", support, again });
}

/** Two answers differ in two bits, and their two ratios multiply. */
function oddsRatio([own, other]) {
  return over(times(own, rest(other)), times(other, rest(own)));
}

/** The table of one report after a permanent table and an instantaneous one of the same kind. */
function staged(permanent, fresh) {
  require(permanent.staged && permanent.staged === fresh.staged && permanent.size === fresh.size);
  const [own, other] = permanent.support;
  const [one, zero] = fresh.support;
  const through = (first) => add(times(first, one), times(rest(first), zero));
  const support = [through(own), through(other)];
  if (permanent.staged === "unary") return categories(permanent.size, support, oddsRatio(support), permanent.form, null);
  const truth = add(times(own, one), times(rest(own), spread(one, permanent.size)));
  const twice = [truth, spread(truth, permanent.size)];
  return categories(permanent.size, twice, over(twice[0], twice[1]), permanent.form, null);
}

function subset(description) {
  require(hasExactly(description, ["mechanism", "k", "size", "coins"]) && hasExactly(description.coins, ["include"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const size = whole(description.size, 1, k - 1);
  const include = unit(description.coins.include);
  const own = share(include);
  const filled = add(times(own, ratio(BigInt(size - 1))), times(rest(own), ratio(BigInt(size))));
  const loss = ratio(BigInt(include) * BigInt(k - size), (WHOLE - BigInt(include)) * BigInt(size));
  const draw = (value, source) => {
    const included = coin(source, include);
    const places = [...evenSubset(k - 1, size, included, source), false];
    places[k - 1] = places[value % (k - 1)];
    places[value] = included;
    return row(k, (place) => places[place]);
  };
  return categories(k, [own, times(filled, ratio(1n, BigInt(k - 1)))], loss, bits(k, size), draw);
}

/** A uniform set of `chosen` places, or of one fewer: those of the least words; drawn again if words tie. */
function evenSubset(places, chosen, fewer, source) {
  for (;;) {
    const bytes = source.take(4 * places);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const words = Float64Array.from({ length: places }, (_, place) => view.getUint32(4 * place, true));
    const order = words.slice().sort();
    const last = order[chosen - 1];
    const tied = (chosen > 1 && order[chosen - 2] === last) || (chosen < places && order[chosen] === last);
    if (!tied) return Array.from(words, (word) => word < last || (word === last && !fewer));
  }
}

function hashing(description) {
  require(hasExactly(description, ["mechanism", "k", "hash_bits", "polynomial", "coins"]));
  require(hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const hashBits = whole(description.hash_bits, 1, MOST_HASH_BITS);
  const seedBits = Math.max(32 - Math.clz32(k - 1), hashBits);
  const { polynomial } = description;
  require(irreducible(polynomial, seedBits));
  const [buckets, seeds] = [2 ** hashBits, 2 ** seedBits];
  const keep = unit(description.coins.keep);
  const loss = ratio(BigInt(keep) * BigInt(buckets - 1), WHOLE - BigInt(keep));
  const draw = (value, source) => {
    const kept = coin(source, keep);
    const seed = number(source, 4) % seeds;
    const hash = product(seed, value, polynomial) & (buckets - 1);
    return seed * buckets + moveOn(hash, kept, buckets, source);
  };
  return categories(k, [share(keep), ratio(1n, BigInt(buckets))], loss, codes(seeds * buckets), draw);
}

function hadamard(description) {
  require(hasExactly(description, ["mechanism", "k", "coins"]) && hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const keep = unit(description.coins.keep);
  const columns = 2 ** (32 - Math.clz32(k));
  const draw = (value, source) => {
    const plus = coin(source, keep);
    const column = number(source, 4) % columns;
    const line = value + 1;
    return parity(column & line) === (plus ? 0 : 1) ? column : column ^ (line & -line);
  };
  return categories(k, [share(keep), ratio(1n, 2n)], ratio(BigInt(keep), WHOLE - BigInt(keep)), codes(columns), draw);
}

/** A table for numbers: `draw` takes a position from 0 to 2**32. */
function means({ mechanism, lower, upper, ...description }) {
  const [low, high] = [decimal(lower), decimal(upper)];
  require(low && high);
  const bounds = { lower: Number(lower), upper: Number(upper) };
  require(bounds.upper - bounds.lower > 0 && bounds.upper - bounds.lower < Infinity);
  const { outputs, epsilon, delta, draw } = MEANS[mechanism](description);
  return { kind: "numbers", low, high, ...bounds, epsilon, delta, form: codes(outputs), draw };
}

/** Round up or down to a step at random. */
function roundToSteps(position, steps, source) {
  const scaled = position * steps;
  return Math.floor(scaled / UNITS) + (coin(source, scaled % UNITS) ? 1 : 0);
}

function ends(value) {
  const keep = unit(value);
  require(2 * keep > UNITS);
  const draw = (position, source) => {
    const end = roundToSteps(position, 1, source);
    return coin(source, keep) ? end : 1 - end;
  };
  return { outputs: 2, epsilon: lossOfRatio(ratio(BigInt(keep), WHOLE - BigInt(keep))), draw };
}

function window_({ steps, width, coins: { inside } }) {
  whole(steps, 1, MOST_STEPS);
  whole(width, 1, steps);
  unit(inside);
  require((steps & (steps - 1)) === 0);
  const loss = ratio(BigInt(inside) * BigInt(steps), (WHOLE - BigInt(inside)) * BigInt(width));
  require(loss.n > loss.d);
  const draw = (position, source) => {
    const step = roundToSteps(position, steps, source);
    const isInside = coin(source, inside);
    const within = even(source, width);
    const beyond = even(source, steps) + width;
    return (step + (isInside ? within : beyond)) % (steps + width);
  };
  return { outputs: steps + width, epsilon: lossOfRatio(loss), draw };
}

function hybrid(description) {
  require(hasExactly(description, ["steps", "width", "coins"]));
  require(hasExactly(description.coins, ["piecewise", "inside", "keep"]));
  const windowed = whole(description.coins.piecewise, 0, UNITS);
  const [window, two] = [window_(description), ends(description.coins.keep)];
  const draw = (position, source) => {
    const first = coin(source, windowed);
    const inWindow = window.draw(position, source);
    const atEnds = two.draw(position, source) + window.outputs;
    return first ? inWindow : atEnds;
  };
  return { outputs: window.outputs + 2, epsilon: greater(window.epsilon, two.epsilon), draw };
}

function fullTable(description) {
  require(hasExactly(description, ["table"]) && Array.isArray(description.table));
  const { table } = description;
  const size = table.length;
  require(size >= 2 && size <= MOST_ROWS && ((size - 1) & (size - 2)) === 0);
  for (const line of table) {
    require(Array.isArray(line) && line.length === size);
    line.forEach(unit);
    require(line.reduce((total, units) => total + units, 0) === UNITS);
  }
  require(tellsApart(table));
  let loss = ratio(1n);
  for (let column = 0; column < size; column += 1) {
    const entries = table.map((line) => line[column]);
    loss = greater(loss, ratio(BigInt(Math.max(...entries)), BigInt(Math.min(...entries))));
  }
  const draw = (position, source) => {
    const line = table[roundToSteps(position, size - 1, source)];
    const word = number(source, 4);
    let [end, column] = [line[0], 0];
    while (end <= word) end += line[(column += 1)];
    return column;
  };
  return { outputs: size, epsilon: lossOfRatio(loss), draw };
}

/** Whether the determinant is not zero. Elimination without fractions. */
function tellsApart(table) {
  const rows = table.map((line) => line.map(BigInt));
  let before = 1n;
  for (let column = 0; column < rows.length - 1; column += 1) {
    const pivot = rows.findIndex((line, index) => index >= column && line[column] !== 0n);
    if (pivot < 0) return false;
    [rows[column], rows[pivot]] = [rows[pivot], rows[column]];
    const lead = rows[column];
    for (let index = column + 1; index < rows.length; index += 1) {
      const line = rows[index];
      for (let place = rows.length - 1; place >= column; place -= 1) {
        line[place] = (line[place] * lead[column] - line[column] * lead[place]) / before;
      }
    }
    before = lead[column];
  }
  return rows.at(-1).at(-1) !== 0n;
}

function questions(description) {
  require(hasExactly(description, ["mechanism", "method", "count", "coins"]) && hasExactly(description.coins, ["keep"]));
  const { method } = description;
  require(method === "split" || method === "sample");
  const count = whole(description.count, 1, MOST_QUESTIONS);
  const keep = unit(description.coins.keep);
  require(2 * keep > UNITS);
  const power = method === "split" ? BigInt(count) : 1n;
  const { n, d } = ratio(BigInt(keep), WHOLE - BigInt(keep));
  const loss = { n: n ** power, d: d ** power }; // reduced, because n / d is: reducing it again takes seconds
  const split = (answers, source) => row(count, (place) => bitOf(answers, place) === coin(source, keep));
  const sample = (answers, source) => {
    const asked = even(source, count);
    return 2 * asked + (bitOf(answers, asked) === coin(source, keep) ? 1 : 0);
  };
  const whole_ = method === "split" ? { form: bits(count), draw: split } : { form: codes(2 * count), draw: sample };
  return { kind: "questions", size: count, epsilon: lossOfRatio(loss), ...whole_ };
}

/** A row of bits in hex: bit i in byte i // 8 at place i % 8. */
function row(width, isSet) {
  const bytes = new Uint8Array(Math.ceil(width / 8));
  for (let place = 0; place < width; place += 1) if (isSet(place)) bytes[place >> 3] |= 1 << (place & 7);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bitOf(hex, place) {
  const byte = Number.parseInt(hex.slice(2 * (place >> 3), 2 * (place >> 3) + 2), 16);
  return ((byte >> (place & 7)) & 1) === 1;
}

const MEANS = {
  duchi: (description) => {
    require(hasExactly(description, ["coins"]) && hasExactly(description.coins, ["keep"]));
    return ends(description.coins.keep);
  },
  piecewise: (description) => {
    require(hasExactly(description, ["steps", "width", "coins"]) && hasExactly(description.coins, ["inside"]));
    return window_(description);
  },
  hybrid,
  laplace: fullTable,
  gaussian: shiftedNoise,
};

const MADE = {
  rr: kary,
  krr: kary,
  oue: unary,
  sue: unary,
  subset,
  olh: hashing,
  hadamard,
  duchi: means,
  piecewise: means,
  hybrid: means,
  laplace: means,
  gaussian: means,
  questions,
  pem: prefixes,
};

return { rebuild, staged, row, bitOf };
})();

// manifest.js
const manifestModule = (() => {
/** Check the document of a survey: size, form, version, signature, fields, table, epsilon, in this order. */

const { canonical, hasExactly, NotCanonical, parseCanonical } = canonicalModule;
const { compare, decimal } = exactModule;
const { fromHex, toHex } = randomnessModule;
const { Refused } = refusalsModule;
const { rebuild, staged } = tablesModule;
const { MOST_BITS, wordCode } = wordsModule;

const FORMAT = "sfumato-survey";
const VERSIONS = [1, 2, 3];
const DELTA_FIELDS = ["delta", "lifetime_delta"]; // of version 3
const NO_DELTA = { n: 0n, d: 1n, text: "0" };
const MOST_ALPHABET = 2 ** 12;
const MOST_BYTES = 2 ** 22;
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
async function readManifest(data) {
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

function signatureFits(statement, publicKey, signature) {
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
function periodAt(manifest, moment) {
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

function readTime(value) {
  const moment = typeof value === "string" && TIME.test(value) ? Date.parse(value) : NaN;
  if (!Number.isFinite(moment) || new Date(moment).toISOString() !== value.replace("Z", ".000Z")) {
    throw new Refused("survey-field");
  }
  return moment;
}

return { MOST_BYTES, readManifest, signatureFits, periodAt, readTime };
})();

// announcement.js
const announcementModule = (() => {
/** A statement of the team that asks, signed with the survey's key: this period has begun, and this is the time. */

const { hasExactly, NotCanonical, parseCanonical } = canonicalModule;
const { periodAt, readTime, signatureFits } = manifestModule;
const { Refused } = refusalsModule;

const FORMAT = "sfumato-period";
const FIELDS = ["at", "format", "period", "survey", "version"];

/** Check the bytes or text of an announcement for this survey. */
async function readAnnouncement(source, manifest) {
  const data = typeof source === "string" ? new TextEncoder().encode(source) : source;
  let document;
  try {
    document = parseCanonical(data.at(-1) === 10 ? data.subarray(0, -1) : data);
  } catch (error) {
    if (error instanceof NotCanonical) throw new Refused("survey-announcement");
    throw error;
  }
  const { announcement: statement, public_key: publicKey, signature } = document ?? {};
  const whole =
    hasExactly(document, ["announcement", "public_key", "signature"]) &&
    hasExactly(statement, FIELDS) &&
    statement.format === FORMAT &&
    statement.version === 1 &&
    statement.survey === manifest.id &&
    publicKey === manifest.publicKey &&
    typeof signature === "string";
  if (!whole || !(await signatureFits(statement, publicKey, signature))) throw new Refused("survey-announcement");
  try {
    const at = readTime(statement.at);
    if (periodAt(manifest, new Date(at)) === statement.period) return { period: statement.period, at };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  throw new Refused("survey-announcement");
}

return { readAnnouncement };
})();

// device-clock.js
const deviceClockModule = (() => {
/**
 * The clock of the thirty-day cap. A device has no trusted clock. While this page or process runs, this clock advances at
 * most as fast as time passes, whatever the system's clock is set to. Time asleep may not count.
 */

let last = { wall: Date.now(), running: performance.now() };

/** The system's time, but not later than the time that was read before plus the time that has passed since. */
function deviceClock() {
  const running = performance.now();
  last = { wall: Math.min(Date.now(), last.wall + (running - last.running)), running };
  return new Date(last.wall);
}

return { deviceClock };
})();

// device.js
const deviceModule = (() => {
/**
 * A person's own ledger: what each survey has cost, the person's caps, the permanent reports, and the reports to send.
 *
 * A charge, the permanent report and the report are stored together, before the report is returned.
 */

const { readAnnouncement } = announcementModule;
const { canonical } = canonicalModule;
const { deviceClock } = deviceClockModule;
const { add, compare, decimal, decimalText, negative, ratio } = exactModule;
const { DEFAULT_CAPS, freshLedger, prune, readLedger } = ledgerModule;
const { periodAt } = manifestModule;
const { Exhausted, fromHex, Given, memoBytes, system, toHex } = randomnessModule;
const { Refused } = refusalsModule;


const PURPOSE = "sfumato permanent report 1";
const DAY = 86_400_000;
const DAYS_A_MONTH = 30;
const FIRST_BLOCKS = 64;
const ZERO = ratio(0n);

class Device {
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
async function permanentReport(manifest, answer, secret, renewal) {
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

return { DEFAULT_CAPS, Device, permanentReport };
})();

// outbox.js
const outboxModule = (() => {
/** Send the reports that wait in the ledger. What is sent is the stored report: sending again never makes a second one. */

const TIMEOUT = 20_000;
const MOST_KEEPALIVE = 60_000; // browsers refuse more with keepalive
const LONGEST_WAIT = 86_400_000;
const TRY_LATER = [408, 425, 429, 500, 502, 503, 504];
const FIRST_PAUSE = 15_000;
const LONGEST_PAUSE = 3_600_000;

/** The line that is sent to the collector. */
const lineOf = ({ survey, period, id, report }) => JSON.stringify({ survey, period, id, report });

/**
 * Send what waits, of one survey or of all: `{ sent, unconfirmed, refused, waiting }`.
 *
 * Only one tab or worker sends at a time. A report whose fate is unknown is sent again later; the collector counts it once.
 */
async function sendWaiting(device, { digest = null, endpoint = null } = {}) {
  const found = { sent: 0, unconfirmed: 0, refused: 0, waiting: 0 };
  const work = async () => {
    for (const one of await device.waiting(digest)) {
      const address = endpoint ?? one.endpoint;
      const wait = (one.after ?? 0) - Date.now();
      const early = wait > 0 && wait <= LONGEST_WAIT; // otherwise the clock was changed
      const skip = !address || early;
      if (!skip) await device.settle(one.digest, one.period, "made"); // marks it as tried, before it leaves
      const { state, after } = skip ? { state: "waiting" } : await deliver(address, lineOf(one));
      found[state] += 1;
      if (state !== "waiting") await device.settle(one.digest, one.period, state);
      else if (after) await device.settle(one.digest, one.period, "made", after);
    }
    return found;
  };
  const done = device.store.alone ? await device.store.alone(work) : await work();
  return done ?? { ...found, waiting: (await device.waiting(digest)).length };
}

/** Send again after each pause, and when the device is online again, until the returned function is called. */
function keepSending(device, { firstPause = FIRST_PAUSE } = {}) {
  let [pause, timer, stopped] = [firstPause, null, false];
  const attempt = async () => {
    const { waiting } = await sendWaiting(device).catch(() => ({ waiting: 1 }));
    pause = waiting ? Math.min(2 * pause, LONGEST_PAUSE) : firstPause;
    if (!stopped) timer = setTimeout(attempt, pause);
  };
  const online = () => {
    clearTimeout(timer);
    pause = firstPause;
    attempt();
  };
  globalThis.addEventListener?.("online", online);
  attempt();
  return () => {
    stopped = true;
    clearTimeout(timer);
    globalThis.removeEventListener?.("online", online);
  };
}

/**
 * Post one line: without credentials, referrer or cache.
 *
 * The body is plain text, so no preflight request is needed. A collector on another origin that has no CORS headers gives
 * an error although the report arrived. Then the line is sent once more without looking at the response: only a network
 * failure can be seen, and the outcome is "unconfirmed".
 */
async function deliver(address, line) {
  try {
    return outcome(await posted(address, line, "cors", "error"));
  } catch {
    try {
      const response = await posted(address, line, "no-cors", "follow"); // no-cors allows no other redirect mode
      return response.type === "opaque" ? { state: "unconfirmed" } : outcome(response);
    } catch {
      return { state: "waiting" };
    }
  }
}

function posted(address, body, mode, redirect) {
  return fetch(address, {
    method: "POST",
    body,
    mode,
    redirect,
    credentials: "omit",
    referrer: "",
    referrerPolicy: "no-referrer",
    cache: "no-store",
    keepalive: body.length < MOST_KEEPALIVE,
    signal: AbortSignal.timeout(TIMEOUT),
  });
}

function outcome(response) {
  if (response.ok) return { state: "sent" };
  if (!TRY_LATER.includes(response.status)) return { state: "refused" };
  const seconds = Number(response.headers.get("Retry-After"));
  const wait = Number.isFinite(seconds) && seconds > 0 ? Math.min(1000 * seconds, LONGEST_WAIT) : 0;
  return { state: "waiting", after: wait ? Date.now() + wait : null };
}

return { lineOf, sendWaiting, keepSending, posted };
})();

// survey.js
const surveyModule = (() => {
/** A survey on a person's device: load it, check it, and report. */

const { BrowserStore } = browserStoreModule;
const { Device } = deviceModule;
const { compare, decimal } = exactModule;
const { MOST_BYTES, readManifest, signatureFits } = manifestModule;
const { lineOf, posted, sendWaiting } = outboxModule;
const { Refused } = refusalsModule;
const { row } = tablesModule;
const { wordBits, wordKept } = wordsModule;

const TIMEOUT = 20_000;
const UNITS = 2 ** 32;

class Survey {
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

return { Survey };
})();

// key-ring.js
const keyRingModule = (() => {
/** The keys that a team signs with: several at a time, each with a time of validity, and revoked ones. */

const { hasExactly, NotCanonical, parseCanonical } = canonicalModule;
const { readTime, signatureFits } = manifestModule;
const { Refused } = refusalsModule;

const FORMAT = "sfumato-keys";
const MOST_KEYS = 64;
const MOST_BYTES = 2 ** 16;

/** The trusted keys of a team. A ring with a greater serial number replaces this one. */
class KeyRing {
  /** @private: use `KeyRing.read`. */
  constructor(serial, keys) {
    this.serial = serial;
    this.keys = keys;
  }

  /** Read a ring that comes with the application: its signature shows that it was not changed, not by whom it is. */
  static async read(source) {
    return (await readRing(source)).ring;
  }

  /** Whether one of these keys may have signed this survey. A revoked key signs nothing. */
  trusts(manifest) {
    return this.keys.some(
      ({ publicKey, from, until, revoked }) =>
        publicKey === manifest.publicKey && !revoked && from <= manifest.created && manifest.created < until,
    );
  }

  /** The newer ring of this document. It must be signed with a key of this ring that is not revoked in either. */
  async update(source) {
    const { ring, signer } = await readRing(source);
    const own = this.keys.find(({ publicKey }) => publicKey === signer);
    const revoked = ring.keys.some(({ publicKey, revoked: gone }) => publicKey === signer && gone);
    if (!own || own.revoked || revoked || ring.serial <= this.serial) throw new Refused("survey-ring");
    return ring;
  }
}

async function readRing(source) {
  const data = typeof source === "string" ? new TextEncoder().encode(source) : source;
  try {
    const document = data.length > MOST_BYTES ? null : parseCanonical(data.at(-1) === 10 ? data.subarray(0, -1) : data);
    const { ring: statement, public_key: signer, signature } = document ?? {};
    const whole =
      hasExactly(document, ["ring", "public_key", "signature"]) &&
      hasExactly(statement, ["format", "keys", "serial", "version"]) &&
      statement.format === FORMAT &&
      statement.version === 1 &&
      Number.isSafeInteger(statement.serial) &&
      statement.serial >= 0 &&
      Array.isArray(statement.keys) &&
      statement.keys.length >= 1 &&
      statement.keys.length <= MOST_KEYS &&
      typeof signer === "string" &&
      typeof signature === "string";
    if (whole) {
      const keys = statement.keys.map(readKey);
      const different = new Set(keys.map(({ publicKey }) => publicKey)).size === keys.length;
      if (different && (await signatureFits(statement, signer, signature))) {
        return { ring: new KeyRing(statement.serial, keys), signer };
      }
    }
  } catch (error) {
    if (!(error instanceof NotCanonical) && !(error instanceof Refused)) throw error;
  }
  throw new Refused("survey-ring");
}

function readKey(value) {
  const whole =
    hasExactly(value, ["from", "public_key", "revoked", "until"]) &&
    typeof value.public_key === "string" &&
    /^[0-9a-f]{64}$/.test(value.public_key) &&
    typeof value.revoked === "boolean";
  if (!whole) throw new Refused("survey-ring");
  const [from, until] = [readTime(value.from), readTime(value.until)];
  if (from >= until) throw new Refused("survey-ring");
  return { publicKey: value.public_key, from, until, revoked: value.revoked };
}

return { KeyRing };
})();

// memory-store.js
const memoryStoreModule = (() => {
/** A ledger in memory. A store has `update(change)`: read, change and store, one at a time. */

/** Keeps the ledger as long as the page or process lives: for tests. */
class MemoryStore {
  #text = null;
  #last = Promise.resolve();

  update(change) {
    const next = this.#last.then(async () => {
      const [text, result] = await change(this.#text);
      this.#text = text;
      return result;
    });
    this.#last = next.catch(() => {});
    return next;
  }
}

return { MemoryStore };
})();

// index.js
const indexModule = (() => {
/** Answer surveys: load one, check it, report, send. The same bytes as the Python client, from the same randomness. */

const { Survey } = surveyModule;
const { Device, DEFAULT_CAPS } = deviceModule;
const { KeyRing } = keyRingModule;
const { keepSending, sendWaiting } = outboxModule;
const { BrowserStore } = browserStoreModule;
const { MemoryStore } = memoryStoreModule;
const { Refused } = refusalsModule;

return { Survey, Device, DEFAULT_CAPS, KeyRing, keepSending, sendWaiting, BrowserStore, MemoryStore, Refused };
})();

export const { Survey, Device, DEFAULT_CAPS, KeyRing, keepSending, sendWaiting, BrowserStore, MemoryStore, Refused } = indexModule;
