/** Where a device keeps its books. A store has `update(change)`: read, change, keep, one at a time. */

import { Refused } from "./refusals.js";

/** For as long as the page or process lives. */
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

/** In a browser's localStorage, one tab at a time: through the browser's locks, which every page over https has. */
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

/** Storage may be full, or forbidden by the person: then nothing is reported. */
function stored(work) {
  try {
    return work();
  } catch {
    throw new Refused("device-ledger");
  }
}
