/**
 * A device's ledger in a browser: IndexedDB with strict durability, under a Web Lock, for pages and workers.
 *
 * The lock lets one tab or worker at a time change the ledger, and a killed one leaves no lock behind. The change is
 * written only if the ledger is still the one that was read. It is on the disk, and in a second copy, before a report is
 * returned. Every change has the next number: if the copy has a greater one, the browser dropped its database.
 *
 * localStorage is not safe: each process has its own copy of it, and writes it to disk seconds later.
 */

import { mergedLedgers, readLedger } from "./ledger.js";
import { LedgerCopy } from "./ledger-copy.js";
import { Refused } from "./refusals.js";

const TABLE = "ledger";
const KEY = "device";
const COUNT = "changes";
const LOST = JSON.stringify({ format: "sfumato-device lost by the browser" }); // refused: a new ledger would forget what was spent
const NONE = { text: null, count: -1 };
const MOVED = JSON.stringify({ format: "sfumato-device moved to IndexedDB" }); // earlier versions refuse this text

export class BrowserStore {
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
