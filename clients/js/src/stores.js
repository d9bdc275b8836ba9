/** Stores for a device's ledger. A store has `update(change)`: read, change and store, one at a time. */

import { Refused } from "./refusals.js";

/** Keeps the ledger as long as the page or process lives. */
export class MemoryStore {
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

/** Keeps the ledger in a browser's localStorage, one tab at a time: with the browser's locks, which https pages have. */
export class WebStore {
  #last = Promise.resolve();

  constructor(name = "sfumato-device", storage = globalThis.localStorage, locks = globalThis.navigator?.locks) {
    this.name = name;
    this.storage = storage;
    this.locks = locks;
  }

  update(change) {
    const whole = async () => {
      const [text, result] = await change(stored(() => this.storage.getItem(this.name)));
      stored(() => this.storage.setItem(this.name, text));
      return result;
    };
    const next = this.#last.then(() => {
      if (!this.locks) throw new Refused("device-ledger"); // two tabs could both spend what is left
      return this.locks.request(this.name, whole);
    });
    this.#last = next.catch(() => {});
    return next;
  }
}

/** If storage is full or forbidden, nothing is reported. */
function stored(work) {
  try {
    return work();
  } catch {
    throw new Refused("device-ledger");
  }
}
