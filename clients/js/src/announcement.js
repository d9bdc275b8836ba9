/** A statement of the team that asks, signed with the survey's key: this period has begun, and this is the time. */

import { hasExactly, NotCanonical, parseCanonical } from "./canonical.js";
import { periodAt, readTime, signatureFits } from "./manifest.js";
import { Refused } from "./refusals.js";

const FORMAT = "sfumato-period";
const FIELDS = ["at", "format", "period", "survey", "version"];

/** Check the bytes or text of an announcement for this survey. */
export async function readAnnouncement(source, manifest) {
  const data = typeof source === "string" ? new TextEncoder().encode(source) : source;
  let document;
  try {
    document = parseCanonical(data.at(-1) === 10 ? data.subarray(0, -1) : data);
  } catch (error) {
    if (error instanceof NotCanonical) throw new Refused("survey-announcement");
    throw error;
  }
  const { announcement: statement, public_key: publicKey, signature } = document ?? {};
  const whole =
    hasExactly(document, ["announcement", "public_key", "signature"]) &&
    hasExactly(statement, FIELDS) &&
    statement.format === FORMAT &&
    statement.version === 1 &&
    statement.survey === manifest.id &&
    publicKey === manifest.publicKey &&
    typeof signature === "string";
  if (!whole || !(await signatureFits(statement, publicKey, signature))) throw new Refused("survey-announcement");
  try {
    const at = readTime(statement.at);
    if (periodAt(manifest, new Date(at)) === statement.period) return { period: statement.period, at };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  throw new Refused("survey-announcement");
}
