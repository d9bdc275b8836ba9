/**
 * A device's ledger in a browser: IndexedDB with strict durability, under a Web Lock, for pages and workers.
 *
 * The lock lets one tab or worker at a time change the ledger, and a killed one leaves no lock behind. The change is
 * written only if the ledger is still the one that was read. It is on the disk before a report is returned.
 *
 * localStorage is not safe: each process has its own copy of it, and writes it to disk seconds later.
 */

import { mergedLedgers, readLedger } from "./ledger.js";
import { Refused } from "./refusals.js";

const TABLE = "ledger";
const KEY = "device";
const MOVED = JSON.stringify({ format: "sfumato-device moved to IndexedDB" }); // earlier versions refuse this text

export class BrowserStore {
  #database = null;
  #migrated = false;

  constructor(name = "sfumato-device") {
    this.name = name;
  }

  async update(change) {
    const locks = lockManager();
    return locks.request(this.name, async () => {
      if (!this.#migrated) await this.#migrate();
      for (;;) {
        const before = await this.#read();
        const [text, result] = await change(before);
        if (text === before || (await this.#replaced(before, text))) return result;
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
        const before = await this.#read();
        const whole = before === null ? old : mergedLedgers(readLedger(before), old);
        if (await this.#replaced(before, JSON.stringify(whole))) break;
      }
      globalThis.localStorage.setItem(this.name, MOVED);
    }
    this.#migrated = true;
  }

  async #read() {
    const transaction = await this.#transaction("readonly");
    const found = await resultOf(transaction.objectStore(TABLE).get(KEY));
    return found === undefined ? null : found;
  }

  /** Whether the ledger was still `before`, and is now `text`, on the disk. */
  async #replaced(before, text) {
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
        same = (current.result ?? null) === before;
        if (same) table.put(text, KEY);
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
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
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
