/** A ledger in memory. A store has `update(change)`: read, change and store, one at a time. */

/** Keeps the ledger as long as the page or process lives: for tests. */
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
