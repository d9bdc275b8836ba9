/**
 * A second copy of the device's ledger, in the origin's private file system.
 *
 * A browser may drop its whole IndexedDB. Chromium does so after two kills: if the first kill cuts a record of its log in
 * two, the next session writes behind that half, and the session after it finds a corrupt log and deletes the database.
 * Strict durability does not help. The two stores share no file, so one kill does not damage both.
 *
 * Closing a file replaces it as a whole: it has the old text or the new one.
 */

import { Refused } from "./refusals.js";

const COPY = /^([0-9]{1,15}) /;

export class LedgerCopy {
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
