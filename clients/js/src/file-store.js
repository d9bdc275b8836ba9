/** A device's books in a file, for Node: written beside it, to the disk, and put in its place whole. */

import { open, readFile, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

import { Refused } from "./refusals.js";

const PATIENCE = 10_000;

export class FileStore {
  #last = Promise.resolve();

  constructor(path, patience = PATIENCE) {
    this.path = path;
    this.patience = patience;
  }

  update(change) {
    const next = this.#last.then(() => this.#alone(change));
    this.#last = next.catch(() => {});
    return next;
  }

  async #alone(change) {
    const lock = `${this.path}.lock`; // left behind by a crash, it is for a person to remove
    await this.#acquire(lock);
    try {
      const before = await readFile(this.path, "utf8").catch((error) => {
        if (error.code === "ENOENT") return null;
        throw new Refused("device-ledger");
      });
      const [text, result] = await change(before);
      const fresh = `${this.path}.new`;
      const file = await open(fresh, "w", 0o600);
      await file.writeFile(text);
      await file.sync();
      await file.close();
      await rename(fresh, this.path);
      const folder = await open(dirname(this.path), "r");
      await folder.sync();
      await folder.close();
      return result;
    } finally {
      await unlink(lock);
    }
  }

  async #acquire(lock) {
    for (const start = Date.now(); ; ) {
      try {
        return await (await open(lock, "wx", 0o600)).close();
      } catch (error) {
        if (error.code !== "EEXIST" || Date.now() - start > this.patience) throw new Refused("device-ledger");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }
}
