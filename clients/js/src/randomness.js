/** Random bytes: from the system, or bytes that a device can derive again. A report reads them in a fixed order. */

const MOST_AT_ONCE = 65536; // of one call of getRandomValues

export class Exhausted extends Error {}

/** Fresh bytes of the system's own generator. */
export const system = {
  take(count) {
    const bytes = new Uint8Array(count);
    for (let start = 0; start < count; start += MOST_AT_ONCE) {
      globalThis.crypto.getRandomValues(bytes.subarray(start, Math.min(count, start + MOST_AT_ONCE)));
    }
    return bytes;
  },
};

/** Given bytes, in order. */
export class Given {
  constructor(bytes) {
    this.bytes = bytes;
    this.used = 0;
  }

  take(count) {
    if (this.used + count > this.bytes.length) throw new Exhausted();
    this.used += count;
    return this.bytes.subarray(this.used - count, this.used);
  }
}

/** A little-endian whole number of up to four bytes. */
export function number(source, width) {
  return source.take(width).reduceRight((total, byte) => total * 256 + byte, 0);
}

/** Heads with probability units / 2**32, exactly. */
export function coin(source, units) {
  return number(source, 4) < units;
}

/** A uniform whole number below `bound`: a word outside a whole multiple of the range is read again. */
export function even(source, bound) {
  const width = [1, 2, 4].find((bytes) => 256 ** bytes >= bound);
  const most = Math.floor(256 ** width / bound) * bound;
  for (;;) {
    const word = number(source, width);
    if (word < most) return word % bound;
  }
}

/** Bytes of HMAC-SHA256(key, 0), HMAC(key, 1), ... with key = HMAC(secret, purpose). */
export async function memoBytes(secret, about, blocks) {
  const key = await hmac(secret, about);
  const bytes = new Uint8Array(32 * blocks);
  const imported = await hmacKey(key);
  for (let index = 0; index < blocks; index += 1) {
    const counter = new Uint8Array(8);
    new DataView(counter.buffer).setUint32(4, index);
    bytes.set(new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", imported, counter)), 32 * index);
  }
  return bytes;
}

async function hmac(secret, message) {
  return new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", await hmacKey(secret), message));
}

function hmacKey(bytes) {
  return globalThis.crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
