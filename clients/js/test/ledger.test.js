/** The text of a device's ledger: every charge can be read back, permissions are for one survey, and merging loses nothing. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Device, MemoryStore, Survey } from "../src/index.js";
import { freshLedger, mergedLedgers, readLedger } from "../src/ledger.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/local/vectors.json", import.meta.url), "utf8"));
const at = { at: new Date(Date.parse("2026-01-02T00:00:00Z")) };
const refused = (code) => ({ name: "Refused", code });
const ANSWERS = { categories: 0, numbers: 8, words: "a" };

const read = (text, device) => Survey.load(new TextEncoder().encode(text), { device });
const load = (name, device) => read(vectors.manifests.find((each) => each.name === name).text, device);

test("every survey that is taken leaves a ledger that can be read", async () => {
  let tried = 0;
  for (const { name, text, code } of vectors.manifests) {
    if (code !== null || text === undefined) continue;
    const device = new Device(new MemoryStore());
    await device.caps({ perSurvey: "1000", perMonth: "1000", lifetime: "1000", delta: "0.999" });
    const survey = await read(text, device);
    const { kind, labels } = survey.domain;
    await survey.report(kind === "questions" ? labels.map(() => true) : ANSWERS[kind], at);
    const { lifetime, delta } = await device.spent(survey.manifest);
    assert.ok(Number(lifetime) > 0, name);
    assert.equal(Number(delta), Number(survey.delta), name);
    tried += 1;
  }
  assert.ok(tried > 40);
});

test("a charge that could not be read again is not stored", async () => {
  const store = new MemoryStore();
  const survey = await load("categories", new Device(store));
  const long = `0.${"0".repeat(70)}1`;
  survey.manifest.price = { n: 1n, d: 10n ** 71n, text: long };
  await assert.rejects(survey.report("a", at), refused("device-ledger"));
  assert.equal(await store.update(async (text) => [text, text]), null);
});

test("a permission for a delta is for one answer to one survey", async () => {
  const device = new Device(new MemoryStore());
  await device.caps({ perSurvey: "100", perMonth: "100", lifetime: "100" });
  const [one, other] = [await load("delta", device), await load("delta 4", device)];
  assert.notEqual(one.manifest.digest, other.manifest.digest);
  assert.equal(await device.allowDelta(one.manifest), one.delta);
  assert.equal((await device.caps()).delta, "0"); // the cap for all surveys stays
  await assert.rejects(other.report(8, at), refused("budget-delta"));
  assert.equal((await one.report(8, at)).delta, one.delta);
  await assert.rejects(other.report(8, at), refused("budget-delta"));
  await device.allowDelta(other.manifest);
  await device.caps({ delta: 0 }); // ends every permission
  await assert.rejects(other.report(8, at), refused("budget-delta"));
  await device.caps({ delta: "0.5" });
  assert.equal((await other.report(8, at)).repeated, false);
});

test("no permission helps beyond the survey's own limit on delta", async () => {
  const store = new MemoryStore();
  const device = new Device(store);
  const survey = await load("delta", device);
  await device.caps({ perSurvey: "1000", perMonth: "1000", lifetime: "1000", delta: "0.9" });
  survey.manifest.lifetime = { n: 1000n, d: 1n };
  survey.manifest.lifetimeDelta = survey.manifest.priceDelta;
  survey.manifest.periodDays = 1;
  await survey.report(8, at);
  const next = { at: new Date(at.at.getTime() + 2 * 86_400_000) };
  await assert.rejects(survey.report(8, next), refused("survey-lifetime-delta"));
  await assert.rejects(device.allowDelta(survey.manifest), refused("survey-lifetime-delta"));
  assert.equal((await device.left(survey.manifest)).surveyDelta, "0");
});

test("caps that are no caps are refused", () => {
  const device = new Device(new MemoryStore());
  for (const changes of [{ delta: 1 }, { delta: "1" }, { delta: 2 }, { delta: "-0.1" }, { delta: null }, { perWeek: 1 }, { lifetime: "" }]) {
    assert.throws(() => device.caps(changes), refused("survey-number"), JSON.stringify(changes));
  }
});

const charged = (survey, period, epsilon = "0.5") => ({ survey, period, day: 20_000, epsilon });
const record = (id, period = 0) => ({ survey: "s", period, id, report: 1, state: "made" });

function ledgerOf(charges, reports, more = {}) {
  return readLedger(JSON.stringify({ ...freshLedger(), charges, reports, ...more }));
}

test("merging two ledgers keeps every charge and the stricter caps", () => {
  const caps = { perSurvey: "4", perMonth: "20", lifetime: "5", delta: "0" };
  const own = ledgerOf([charged("x", 0), charged("y", 0)], { x: { 0: record("aa") }, y: { 0: record("bb") } }, { caps });
  const earlier = ledgerOf(
    [charged("x", 0), charged("z", 3)],
    { x: { 0: record("cc") }, z: { 3: record("dd", 3) } },
    { caps: { perSurvey: "3", perMonth: "30", lifetime: "32", delta: "0.1" }, surveys: { x: { endpoint: "", ends: 1, floor: 2, renewal: 1 } } },
  );
  const merged = mergedLedgers(structuredClone(own), structuredClone(earlier));
  assert.deepEqual(merged.charges.map((one) => one.survey).sort(), ["x", "x", "y", "z"]); // x was reported twice
  assert.deepEqual(merged.caps, { perSurvey: "3", perMonth: "20", lifetime: "5", delta: "0" });
  assert.equal(merged.reports.x[0].id, "aa");
  assert.equal(merged.surveys.x.floor, 2);
  assert.deepEqual(readLedger(JSON.stringify(merged)), merged);
});

test("merging the same ledger again changes nothing", () => {
  const earlier = ledgerOf([charged("x", 0), charged("z", 3)], { x: { 0: record("cc") } });
  const own = structuredClone(earlier);
  own.charges.push(charged("y", 0));
  assert.deepEqual(mergedLedgers(structuredClone(own), structuredClone(earlier)), own);
});

test("a report that an earlier version handed out is withdrawn at the collector, or not at all", async () => {
  const store = new MemoryStore();
  const survey = await load("categories", new Device(store));
  await survey.report("a", at);
  await store.update(async (text) => [text.replace('"state":"made"', '"state":"handed"'), null]);
  await assert.rejects(survey.withdraw({ endpoint: "http://127.0.0.1:9/reports" }), refused("survey-withdrawal"));
  assert.equal((await survey.device.latest(survey.manifest)).state, "handed");
});
