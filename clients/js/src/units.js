/** Whole numbers of a published table, and the step that every k-ary response takes. */

import { even } from "./randomness.js";
import { Refused } from "./refusals.js";

export const UNITS = 2 ** 32;

export function require(holds) {
  if (!holds) throw new Refused("survey-table");
}

export function whole(value, least, most) {
  require(Number.isSafeInteger(value) && value >= least && value <= most);
  return value;
}

export const unit = (value) => whole(value, 1, UNITS - 1);

/** Return the value if kept, otherwise one of the k - 1 others, uniformly. */
export function moveOn(value, kept, k, source) {
  if (k === 2) return kept ? value : 1 - value;
  const step = even(source, k - 1) + 1;
  return kept ? value : (value + step) % k;
}
