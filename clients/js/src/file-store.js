/**
 * A device's ledger in a folder, for Node: every change is a new file with the next number.
 *
 * There is no lock that a killed process could leave behind. A file is written to disk under another name and then gets
 * its number, which fails if the number is taken. Of two processes that change the same ledger, one is first, and the
 * other reads again. The charges of both count, or one of them is refused.
 */

import { link, mkdir, open, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";

import { system, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";

const NAME = /^([0-9]{1,15})\.json$/;

export class FileStore {
  #last = Promise.resolve();

  constructor(folder) {
    this.folder = folder;
  }

  update(change) {
    const next = this.#last.then(() => this.#changed(change));
    this.#last = next.catch(() => {});
    return next;
  }

  async #changed(change) {
    for (;;) {
      const before = await this.#ledger(() => this.#latest());
      if (!before) continue; // another process was faster
      const [text, result] = await change(before.text);
      if (text === before.text || (await this.#ledger(() => this.#kept(before.number + 1, text)))) return result;
    }
  }

  /** The ledger with the greatest number; null if it was replaced while it was read. */
  async #latest() {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const number = Math.max(0, ...(await this.#numbers()));
    if (!number) return { number, text: null };
    const text = await readFile(this.#path(number), "utf8").catch((error) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    return text === null ? null : { number, text };
  }

  /** Whether this became the latest ledger. If not, nothing was changed. */
  async #kept(number, text) {
    const fresh = join(this.folder, `${toHex(system.take(8))}.new`);
    const file = await open(fresh, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    try {
      await link(fresh, this.#path(number));
    } catch (error) {
      if (error.code === "EEXIST") return false;
      throw error;
    } finally {
      await unlink(fresh);
    }
    const numbers = await this.#numbers();
    if (numbers.some((other) => other > number)) {
      await this.#remove(number); // the number was free only because a later ledger removed its file
      return false;
    }
    const folder = await open(this.folder, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    for (const earlier of numbers) if (earlier < number) await this.#remove(earlier);
    return true;
  }

  async #numbers() {
    return (await readdir(this.folder)).map((name) => Number(NAME.exec(name)?.[1] ?? 0));
  }

  async #remove(number) {
    await unlink(this.#path(number)).catch((error) => {
      if (error.code !== "ENOENT") throw error;
    });
  }

  #path(number) {
    return join(this.folder, `${number}.json`);
  }

  async #ledger(work) {
    try {
      return await work();
    } catch {
      throw new Refused("device-ledger");
    }
  }
}
