/** Why something is refused, in constant words: a document or an answer is never quoted. */

export const REFUSALS = {
  "survey-size": ["The survey is larger than 4 MiB.", "No survey needs that; ask for a shorter one."],
  "survey-form": [
    "This is not a signed survey in canonical JSON (RFC 8785).",
    "Load the file exactly as it was published; reformatting it breaks it.",
  ],
  "survey-version": ["This survey is of another version.", "This program knows version 1."],
  "survey-signature": [
    "The signature does not fit the survey.",
    "It was changed after it was signed. Do not answer it; fetch it again from whoever asks.",
  ],
  "survey-key": [
    "The survey is signed with another key than the one you trust.",
    "Do not answer it, or check the key with whoever asks.",
  ],
  "survey-id": ["The survey's id is not that of its content.", "It was put together wrongly. Do not answer it."],
  "survey-field": [
    "A field of the survey is missing, unknown, or breaks its rule.",
    "docs/local.md says what a survey holds.",
  ],
  "survey-table": [
    "The survey's table is not one that keeps a secret and tells something.",
    "Every entry is above zero, the truth is likelier than the rest, and the table fits the answers.",
  ],
  "survey-epsilon": [
    "The survey's table costs more epsilon than the survey states.",
    "Its own integers say so. Do not answer it.",
  ],
  "survey-cap": ["One answer to this survey costs more epsilon than your own cap.", "Nothing was sent or spent."],
  "survey-early": ["The survey has not begun.", "Nothing was sent or spent."],
  "survey-over": ["The survey is over.", "Nothing was sent or spent."],
};

const MORE = {
  "survey-unreachable": ["The survey could not be fetched.", "Check the address and the network."],
  "survey-address": [
    "Over http anyone on the way can put another survey in its place.",
    "Use https, or pass the public key of whoever asks.",
  ],
  "survey-value": ["The value is not an answer to this survey.", "The survey's domain says what may be answered."],
  "survey-number": ["A cap must be a decimal number above zero.", "For example '0.5'."],
  "budget-exceeded": ["This costs more epsilon than is left.", "Nothing was sent or spent."],
  "device-missing": [
    "There is nowhere to keep the person's own books.",
    "Pass a device, such as new Device(new FileStore(folder)).",
  ],
  "device-ledger": [
    "The device's own ledger cannot be read or written, or is of another version.",
    "Nothing was sent. Put it back from a copy; a new one would forget what was spent.",
  ],
};

export class Refused extends Error {
  constructor(code, message = (REFUSALS[code] ?? MORE[code])[0]) {
    super(message);
    this.name = "Refused";
    this.code = code;
    this.hint = (REFUSALS[code] ?? MORE[code])[1];
  }
}
