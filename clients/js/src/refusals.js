/** Constant texts of refusals: a message never quotes a document or an answer. */

export const REFUSALS = {
  "survey-size": ["The survey is larger than 4 MiB.", "Ask for a shorter survey."],
  "survey-form": [
    "This is not a signed survey in canonical JSON (RFC 8785).",
    "Load the file exactly as it was published; any change of its format breaks the signature.",
  ],
  "survey-version": ["This survey has another format version.", "This program reads version 1."],
  "survey-signature": [
    "The signature does not match the survey.",
    "The survey was changed after it was signed. Do not answer it; fetch it again from the team that asks.",
  ],
  "survey-key": [
    "The survey is signed with another key than the one that you gave.",
    "Do not answer it, or check the key with the team that asks.",
  ],
  "survey-id": ["The survey's id does not match its content.", "The document is wrong. Do not answer it."],
  "survey-field": [
    "A field of the survey is missing, unknown or invalid.",
    "docs/local.md lists the fields of a survey.",
  ],
  "survey-table": [
    "The survey's table is invalid.",
    "Every probability must be above zero, the truth must be most likely, and the table must fit the answers.",
  ],
  "survey-epsilon": [
    "The survey's table costs more epsilon than the survey states.",
    "This follows from the table's own integers. Do not answer it.",
  ],
  "survey-cap": [
    "One answer to this survey costs more epsilon than your own cap.",
    "Nothing was sent, and no budget was spent.",
  ],
  "survey-early": ["The survey has not begun.", "Nothing was sent, and no budget was spent."],
  "survey-over": ["The survey has ended.", "Nothing was sent, and no budget was spent."],
};

const MORE = {
  "survey-unreachable": ["The survey could not be fetched.", "Check the address and the network."],
  "survey-address": [
    "Over http, anyone on the network can replace the survey.",
    "Use https, or pass the public key of the team that asks.",
  ],
  "survey-value": ["The value is not an answer to this survey.", "The survey's domain lists the possible answers."],
  "survey-number": ["A cap must be a decimal number above zero.", "For example '0.5'."],
  "budget-exceeded": ["This costs more epsilon than is left.", "Nothing was sent, and no budget was spent."],
  "device-missing": [
    "No place was given for the person's own ledger.",
    "Pass a device, such as new Device(new FileStore(folder)).",
  ],
  "device-ledger": [
    "The device's own ledger cannot be read or written, or has another format version.",
    "Nothing was sent. Restore the file from a backup; a new file would lose the record of what was spent.",
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
