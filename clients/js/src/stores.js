/** Where a device keeps its books. A store has `update(change)`: read, change, keep, one at a time. */

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

/** In a browser's localStorage, one tab at a time where the browser can lock. */
export class WebStore {
  #last = Promise.resolve();

  constructor(name = "sfumato-device", storage = globalThis.localStorage, locks = globalThis.navigator?.locks) {
    this.name = name;
    this.storage = storage;
    this.locks = locks;
  }

  update(change) {
    const whole = async () => {
      const [text, result] = await change(this.storage.getItem(this.name));
      this.storage.setItem(this.name, text);
      return result;
    };
    const next = this.#last.then(() => (this.locks ? this.locks.request(this.name, whole) : whole()));
    this.#last = next.catch(() => {});
    return next;
  }
}
