import type { Store } from "./index.js";

/** Node: a folder in which every change is a new file with the next number. */
export class FileStore implements Store {
  constructor(folder: string);
  update<Result>(change: (text: string | null) => Promise<[string, Result]>): Promise<Result>;
}
