/** Constant texts of refusals: a message never quotes a document or an answer. */

export const REFUSALS = {
  "survey-size": ["The survey is larger than 4 MiB.", "Ask for a shorter survey."],
  "survey-form": [
    "This is not a signed survey in canonical JSON (RFC 8785).",
    "Load the file exactly as it was published; any change of its format breaks the signature.",
  ],
  "survey-version": ["This survey has another format version.", "This program reads versions 1 to 3. Update it, or ask for a survey of an older version."],
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
  "survey-limits": [
    "The survey has more answers than a device can check within a second.",
    "At most 100,000 labels are possible, 16,384 if a report has one bit for each, or 4,096 characters of words.",
  ],
  "survey-ring": [
    "The list of trusted keys is invalid, older than the present one, or not signed by one of its keys.",
    "Nothing was changed. Get the list from the team that asks.",
  ],
  "survey-table": [
    "The survey's table is invalid.",
    "Every probability must be above zero, the truth must be most likely, and the table must fit the answers.",
  ],
  "survey-epsilon": [
    "The survey's table costs more epsilon than the survey states.",
    "This follows from the table's own integers. Do not answer it.",
  ],
  "survey-delta": [
    "The survey's table has a greater delta than the survey states.",
    "This follows from the table's own integers. Do not answer it.",
  ],
  "survey-cap": [
    "One answer to this survey costs more epsilon than your own cap.",
    "Nothing was sent, and no budget was spent.",
  ],
  "survey-early": ["The survey has not begun.", "Nothing was sent, and no budget was spent."],
  "survey-over": ["The survey has ended.", "Nothing was sent, and no budget was spent."],
  "survey-past": [
    "The device has already reported for later periods, and its record of this period was removed.",
    "Nothing was sent, and no budget was spent. Check the device's clock.",
  ],
  "survey-announcement": [
    "The period was not announced by the team that asks.",
    "Pass the announcement of the period, signed with the survey's key.",
  ],
};

const MORE = {
  "survey-unreachable": ["The survey could not be fetched.", "Check the address and the network."],
  "survey-address": [
    "Over http, anyone on the network can replace the survey.",
    "Use https, or pass the public key of the team that asks.",
  ],
  "survey-value": ["The value is not an answer to this survey.", "The survey's domain lists the possible answers."],
  "survey-number": [
    "A cap must be a decimal number above zero; a cap on delta is from 0 to below 1.",
    "For example { lifetime: '0.5' }. The caps are perSurvey, perMonth, lifetime and delta.",
  ],
  "budget-exceeded": ["This costs more epsilon than is left.", "Nothing was sent, and no budget was spent."],
  "budget-delta": [
    "This survey's guarantee has a delta that your caps do not allow.",
    "Nothing was sent, and no budget was spent. Only you can allow a delta.",
  ],
  "survey-lifetime-delta": [
    "One more answer would exceed this survey's own limit on delta.",
    "Nothing was sent, and no budget was spent.",
  ],
  "device-missing": [
    "No place was given for the person's own ledger.",
    "Pass a device, such as new Device(new FileStore(folder)).",
  ],
  "store-insecure": [
    "This page cannot keep the person's own ledger: it was not loaded over https.",
    "Use https, or localhost for trials. Nothing was sent, and no budget was spent.",
  ],
  "store-locks": [
    "This browser cannot keep two tabs from spending the same budget (no Web Locks).",
    "Use a newer browser. Nothing was sent, and no budget was spent.",
  ],
  "store-blocked": [
    "This browser does not let the page store the person's own ledger (IndexedDB is blocked or missing).",
    "Allow this site to store data, or leave private browsing. Nothing was sent, and no budget was spent.",
  ],
  "store-durability": [
    "This browser cannot write the person's own ledger to disk before a report leaves (strict durability).",
    "Use a newer browser. Nothing was sent, and no budget was spent.",
  ],
  "survey-endpoint": ["The survey has no address for reports.", "Pass the address: survey.send({ endpoint })."],
  "survey-withdrawal": [
    "The report was not withdrawn: it is part of a published result, or the collector did not answer.",
    "A report can be withdrawn until the batch that contains it is published.",
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
