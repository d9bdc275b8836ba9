/** Words without a list of candidates: their bits, and reports on the hash of a prefix (the mechanism "pem"). */

import { hasExactly } from "./canonical.js";
import { compare, lossOfRatio, ratio } from "./exact.js";
import { coin, even, fromHex, toHex } from "./randomness.js";
import { Refused } from "./refusals.js";
import { moveOn, require, unit, UNITS, whole } from "./units.js";

export const MOST_BITS = 512;
const MOST_STEP = 20;
const MOST_HASH_BITS = 8;
const MOST_GROUPS = 128;

/** How a text becomes bits: `width` for each of the first `length` characters, counted from 1, or bytes of UTF-8. */
export function wordCode(length, alphabet) {
  whole(length, 1, MOST_BITS);
  require(typeof alphabet === "string");
  const characters = Array.from(alphabet);
  require(new Set(characters).size === characters.length);
  const width = characters.length ? 32 - Math.clz32(characters.length) : 8;
  require(length * width <= MOST_BITS);
  return { length, alphabet, characters, width, bits: length * width };
}

/** The bits of a text in hex, the first bit highest. A longer text is cut. */
export function wordBits(text, { length, characters, width, bits }) {
  if (typeof text !== "string" || text === "" || text.includes("\0") || /\p{Surrogate}/u.test(text)) {
    throw new Refused("survey-value");
  }
  const codes = characters.length
    ? Array.from(text).slice(0, length).map((character) => characters.indexOf(character) + 1)
    : Array.from(new TextEncoder().encode(text).subarray(0, length));
  if (codes.includes(0)) throw new Refused("survey-value");
  const bytes = new Uint8Array(Math.ceil(bits / 8));
  codes.forEach((code, place) => {
    for (let bit = 0; bit < width; bit += 1) {
      const at = place * width + bit;
      if ((code >> (width - 1 - bit)) & 1) bytes[at >> 3] |= 128 >> (at & 7);
    }
  });
  return toHex(bytes);
}

/** The part of a text that is reported: its first characters, or the whole characters of its first bytes. */
export function wordKept(text, { length, characters }) {
  if (characters.length) return Array.from(text).slice(0, length).join("");
  let [kept, left] = ["", length];
  for (const character of text) {
    left -= new TextEncoder().encode(character).length;
    if (left < 0) break;
    kept += character;
  }
  return kept;
}

/** A uniform group says how long the prefix is; its hash under a uniform seed is reported by k-ary response. */
export function prefixes(description) {
  require(hasExactly(description, ["mechanism", "length", "alphabet", "lengths", "hash_bits", "coins"]));
  require(hasExactly(description.coins, ["keep"]) && Array.isArray(description.lengths));
  const code = wordCode(description.length, description.alphabet);
  const { lengths } = description;
  require(lengths.length >= 1 && lengths.length <= MOST_GROUPS);
  lengths.forEach((length, group) => {
    require(Number.isSafeInteger(length));
    whole(length - (group ? lengths[group - 1] : 0), 1, MOST_STEP);
  });
  require(lengths.at(-1) === code.bits);
  const hashBits = whole(description.hash_bits, 1, MOST_HASH_BITS);
  const keep = unit(description.coins.keep);
  const buckets = 2 ** hashBits;
  require(compare(ratio(BigInt(keep), BigInt(UNITS)), ratio(1n, BigInt(buckets))) > 0);
  const width = Math.ceil(code.bits / 8);
  const draw = (answer, source) => {
    const bits = fromHex(answer);
    const group = even(source, lengths.length);
    const seeds = Uint8Array.from(source.take(hashBits * width), (byte, place) => byte & mask(lengths[group], place % width));
    const kept = coin(source, keep);
    let hash = 0;
    for (let row = 0; row < hashBits; row += 1) {
      let selected = 0;
      for (let place = 0; place < width; place += 1) selected ^= seeds[row * width + place] & bits[place];
      hash |= oddOnes(selected) << row;
    }
    return toHex(Uint8Array.of(group, moveOn(hash, kept, buckets, source), ...seeds));
  };
  const loss = ratio(BigInt(keep) * BigInt(buckets - 1), BigInt(UNITS) - BigInt(keep));
  const form = { kind: "rows", bytes: 2 + hashBits * width };
  return { kind: "words", code, epsilon: lossOfRatio(loss), form, draw };
}

/** The bits of a byte of a prefix with this number of bits. */
function mask(length, place) {
  const inside = Math.min(Math.max(length - 8 * place, 0), 8);
  return 256 - (1 << (8 - inside));
}

function oddOnes(byte) {
  let folded = byte ^ (byte >> 4);
  folded ^= folded >> 2;
  return (folded ^ (folded >> 1)) & 1;
}
