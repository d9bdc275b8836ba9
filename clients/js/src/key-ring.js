/** The keys that a team signs with: several at a time, each with a time of validity, and revoked ones. */

import { hasExactly, NotCanonical, parseCanonical } from "./canonical.js";
import { readTime, signatureFits } from "./manifest.js";
import { Refused } from "./refusals.js";

const FORMAT = "sfumato-keys";
const MOST_KEYS = 64;
const MOST_BYTES = 2 ** 16;

/** The trusted keys of a team. A ring with a greater serial number replaces this one. */
export class KeyRing {
  /** @private: use `KeyRing.read`. */
  constructor(serial, keys) {
    this.serial = serial;
    this.keys = keys;
  }

  /** Read a ring that comes with the application: its signature shows that it was not changed, not by whom it is. */
  static async read(source) {
    return (await readRing(source)).ring;
  }

  /** Whether one of these keys may have signed this survey. A revoked key signs nothing. */
  trusts(manifest) {
    return this.keys.some(
      ({ publicKey, from, until, revoked }) =>
        publicKey === manifest.publicKey && !revoked && from <= manifest.created && manifest.created < until,
    );
  }

  /** The newer ring of this document. It must be signed with a key of this ring that is not revoked in either. */
  async update(source) {
    const { ring, signer } = await readRing(source);
    const own = this.keys.find(({ publicKey }) => publicKey === signer);
    const revoked = ring.keys.some(({ publicKey, revoked: gone }) => publicKey === signer && gone);
    if (!own || own.revoked || revoked || ring.serial <= this.serial) throw new Refused("survey-ring");
    return ring;
  }
}

async function readRing(source) {
  const data = typeof source === "string" ? new TextEncoder().encode(source) : source;
  try {
    const document = data.length > MOST_BYTES ? null : parseCanonical(data.at(-1) === 10 ? data.subarray(0, -1) : data);
    const { ring: statement, public_key: signer, signature } = document ?? {};
    const whole =
      hasExactly(document, ["ring", "public_key", "signature"]) &&
      hasExactly(statement, ["format", "keys", "serial", "version"]) &&
      statement.format === FORMAT &&
      statement.version === 1 &&
      Number.isSafeInteger(statement.serial) &&
      statement.serial >= 0 &&
      Array.isArray(statement.keys) &&
      statement.keys.length >= 1 &&
      statement.keys.length <= MOST_KEYS &&
      typeof signer === "string" &&
      typeof signature === "string";
    if (whole) {
      const keys = statement.keys.map(readKey);
      const different = new Set(keys.map(({ publicKey }) => publicKey)).size === keys.length;
      if (different && (await signatureFits(statement, signer, signature))) {
        return { ring: new KeyRing(statement.serial, keys), signer };
      }
    }
  } catch (error) {
    if (!(error instanceof NotCanonical) && !(error instanceof Refused)) throw error;
  }
  throw new Refused("survey-ring");
}

function readKey(value) {
  const whole =
    hasExactly(value, ["from", "public_key", "revoked", "until"]) &&
    typeof value.public_key === "string" &&
    /^[0-9a-f]{64}$/.test(value.public_key) &&
    typeof value.revoked === "boolean";
  if (!whole) throw new Refused("survey-ring");
  const [from, until] = [readTime(value.from), readTime(value.until)];
  if (from >= until) throw new Refused("survey-ring");
  return { publicKey: value.public_key, from, until, revoked: value.revoked };
}
