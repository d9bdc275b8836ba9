/** A survey on a device: what it reads, charges, keeps, repeats and refuses. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { FileStore } from "../src/file-store.js";
import { Device, MemoryStore, Survey } from "../src/index.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/local/vectors.json", import.meta.url), "utf8"));
const DAY = 86_400_000;
const BEGIN = Date.parse("2026-01-01T00:00:00Z");
const at = (days) => ({ at: new Date(BEGIN + days * DAY) });

function bytes(name) {
  return new TextEncoder().encode(vectors.manifests.find((each) => each.name === name).text);
}

function load(name, options = {}) {
  return Survey.load(bytes(name), { device: new Device(new MemoryStore()), ...options });
}

const refused = (code) => ({ name: "Refused", code });

test("a report is charged once for its period, and repeated for free", async () => {
  const survey = await load("categories");
  const first = await survey.report("c", at(1));
  assert.equal(first.epsilon, survey.epsilon);
  assert.equal(first.repeated, false);
  const again = await survey.report("d", at(2));
  assert.deepEqual({ ...again }, { ...first, epsilon: "0", delta: "0", repeated: true });
  assert.deepEqual(await survey.device.spent(survey.manifest), {
    survey: survey.epsilon,
    month: survey.epsilon,
    lifetime: survey.epsilon,
    surveyDelta: "0",
    delta: "0",
  });
  assert.deepEqual(JSON.parse(Survey.line(first)), {
    survey: survey.id,
    period: 0,
    id: first.id,
    report: first.report,
  });
  assert.equal(first.state, "made");
  assert.match(first.id, /^[0-9a-f]{32}$/);
});

test("a survey with a delta is refused until the person allows it", async () => {
  const survey = await load("delta");
  assert.ok(Number(survey.delta) > 0 && Number(survey.delta) <= 0.01);
  await assert.rejects(survey.report(8, at(1)), refused("budget-delta"));
  assert.equal((await survey.device.spent(survey.manifest)).lifetime, "0"); // the refusal cost nothing
  const before = await survey.device.left(survey.manifest);
  assert.deepEqual([before.delta, before.priceDelta], ["0", survey.delta]);
  assert.equal((await survey.device.caps({ delta: "0.000001" })).delta, "0.000001");
  await assert.rejects(survey.report(8, at(1)), refused("budget-delta"));
  await survey.device.allowDelta(survey.manifest);
  const made = await survey.report(8, at(1));
  assert.equal(made.repeated, false);
  assert.equal((await survey.device.spent(survey.manifest)).delta, survey.delta);
  assert.equal((await survey.device.left(survey.manifest)).delta, "0");
  for (const cap of ["-1", "x", NaN]) assert.throws(() => survey.device.caps({ delta: cap }), refused("survey-number"));
  assert.equal((await survey.device.caps({ delta: 0 })).delta, "0");
});

test("ledgers of earlier formats have no delta, and keep their charges", async () => {
  const store = new MemoryStore();
  const device = new Device(store);
  const survey = await load("categories", { device });
  const made = await survey.report("a", at(1));
  const older = (change) => store.update(async (text) => [JSON.stringify(change(JSON.parse(text))), null]);
  const { delta, ...caps } = await device.caps();
  assert.equal(delta, "0");
  await older((ledger) => ({ ...ledger, format: "sfumato-device 2", caps }));
  assert.deepEqual(await device.caps(), { ...caps, delta: "0" });
  assert.equal((await survey.report("b", at(1))).id, made.id);
  assert.equal((await device.spent(survey.manifest)).lifetime, survey.epsilon);
  await older((ledger) => ({ ...ledger, caps })); // the present format without a cap on delta is damaged
  await assert.rejects(device.caps(), refused("device-ledger"));
});

test("before it begins and after its end nothing is reported", async () => {
  const survey = await load("categories");
  await assert.rejects(survey.report("a", at(-1)), refused("survey-early"));
  await assert.rejects(survey.report("a", at(366)), refused("survey-over"));
  await assert.rejects(survey.report("a", { at: new Date(NaN) }), refused("survey-early"));
  assert.equal((await survey.device.spent(survey.manifest)).lifetime, "0");
});

test("a kept answer costs once for a renewal, whatever is answered later", async () => {
  const survey = await load("two stages, k-ary"); // 10 periods of 7 days; a lifetime for one renewal
  const reports = [];
  for (let week = 0; week < 10; week += 1) reports.push(await survey.report(week % 4, at(7 * week + 1)));
  assert.deepEqual(
    reports.map((each) => each.epsilon),
    [survey.longitudinalEpsilon, ...Array(9).fill("0")],
  );
  assert.equal(new Set(reports.map((each) => each.id)).size, 10);
  await assert.rejects(survey.report(0, at(71)), refused("budget-exceeded"));
  assert.equal((await survey.report(3, at(64))).repeated, true);
});

test("a permanent report that is sent as it is stays the same", async () => {
  const survey = await load("repeated");
  const reports = [];
  for (let week = 0; week < 4; week += 1) reports.push((await survey.report(week, at(7 * week))).report);
  assert.equal(new Set(reports).size, 1);
});

test("the person's own caps hold, and can be changed", async () => {
  let day = 1;
  const device = new Device(new MemoryStore(), { clock: () => at(day).at });
  await device.caps({ perSurvey: "0.4" });
  const survey = await load("yes or no", { device });
  await assert.rejects(survey.report(true, at(1)), refused("budget-exceeded"));
  assert.deepEqual(await device.caps({ perSurvey: 4, perMonth: "0.6" }), { perSurvey: "4", perMonth: "0.6", lifetime: "32", delta: "0" });
  await survey.report(true, at(1));
  const other = await load("two stages, rows", { device });
  await assert.rejects(other.report(0, at(2)), refused("budget-exceeded"));
  await device.caps({ perMonth: "3" });
  await assert.rejects(other.report(0, at(2)), refused("budget-exceeded"));
  await assert.rejects(other.report(0, at(32)), refused("budget-exceeded")); // a time that the caller gives is no month
  day = 32;
  await other.report(0, at(32)); // the month of the first is over
  await device.caps({ lifetime: "3.5" });
  const third = await load("categories", { device });
  await assert.rejects(third.report(0, at(90)), refused("budget-exceeded"));
  for (const cap of ["0", "-1", "x", NaN]) assert.throws(() => device.caps({ lifetime: cap }), refused("survey-number"));
});

test("a cap and a key are checked when a survey is loaded", async () => {
  await load("categories", { cap: "1", publicKey: vectors.public_key });
  await assert.rejects(load("categories", { cap: "0.99" }), refused("survey-cap"));
  await assert.rejects(load("categories", { cap: "none" }), refused("survey-number"));
  await assert.rejects(load("categories", { publicKey: "0".repeat(64) }), refused("survey-key"));
});

test("what is no answer is refused, and costs nothing", async () => {
  const wrong = {
    categories: ["g", 6, -1, 1.5, null, undefined, true, NaN, {}, [], ["a"]],
    numbers: ["1", null, NaN, Infinity, true, [1]],
    questions: [[true, false], [1, 0, 1], "110", null, { ä: true, b: false }, { ä: true, b: true, c: 1 }],
  };
  for (const [name, values] of Object.entries(wrong)) {
    const survey = await load(name);
    for (const value of values) await assert.rejects(survey.report(value, at(1)), refused("survey-value"));
    assert.equal((await survey.device.spent(survey.manifest)).lifetime, "0");
  }
  const questions = await load("questions");
  assert.equal(questions.read({ c: true, ä: true, b: false }), questions.read([true, false, true]));
});

test("reports have the form that the collector takes", async () => {
  for (const name of ["categories", "yes or no", "numbers", "questions", "two stages, k-ary", "two stages, rows"]) {
    for (let round = 0; round < 20; round += 1) {
      const survey = await load(name);
      const value = { numbers: 3.5, questions: [true, true, false] }[name] ?? 1;
      const { report } = await survey.report(value, at(1));
      const { form } = survey.manifest.table;
      if (form.kind === "codes") {
        assert.ok(Number.isSafeInteger(report) && report >= 0 && report < form.count);
      } else {
        assert.match(report, new RegExp(`^[0-9a-f]{${2 * Math.ceil(form.width / 8)}}$`));
      }
    }
  }
});

test("randomness is fresh: other people draw other reports", async () => {
  const drawn = new Set();
  for (let person = 0; person < 8; person += 1) drawn.add((await (await load("two stages, rows")).report(0, at(1))).report);
  assert.equal(drawn.size, 8);
});

async function booksIn(folder) {
  const [name, ...others] = await readdir(folder);
  assert.deepEqual(others, []);
  return join(folder, name);
}

test("books in a folder outlive the process, and are never silently replaced", async () => {
  const folder = join(await mkdtemp(join(tmpdir(), "sfumato-")), "device");
  const survey = await load("two stages, k-ary", { device: new Device(new FileStore(folder)) });
  const first = await survey.report("a", at(1));
  const later = await load("two stages, k-ary", { device: new Device(new FileStore(folder)) });
  assert.equal((await later.report("b", at(2))).id, first.id);
  assert.equal((await later.report("b", at(8))).epsilon, "0");
  const path = await booksIn(folder);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  const kept = await readFile(path, "utf8");
  const changed = (change) => {
    const books = JSON.parse(kept);
    change(books);
    return JSON.stringify(books);
  };
  const digest = Object.keys(JSON.parse(kept).permanent)[0];
  for (const damaged of [
    "",
    "{",
    "null",
    '{"format":"other"}',
    kept.slice(0, -5),
    changed((books) => delete books.secret),
    changed((books) => (books.secret = "00")),
    changed((books) => delete books.caps.lifetime),
    changed((books) => (books.caps.perMonth = "-1")),
    changed((books) => (books.charges[0].epsilon = "-1")),
    changed((books) => (books.charges[0].epsilon = 1)),
    changed((books) => (books.charges[0].day = null)),
    changed((books) => (books.charges = {})),
    changed((books) => (books.permanent = [])),
    changed((books) => (books.permanent[digest][0] = null)),
    changed((books) => (books.reports[digest] = 1)),
    changed((books) => (books.reports[digest][0] = {})),
  ]) {
    await writeFile(path, damaged);
    await assert.rejects(later.report("a", at(75)), refused("device-ledger"), damaged);
    assert.equal(await readFile(path, "utf8"), damaged);
  }
});

test("a change that fails leaves the books as they were", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sfumato-"));
  const device = new Device(new FileStore(folder));
  const survey = await load("categories", { device });
  await device.caps({ perSurvey: "0.1" });
  const before = await readFile(await booksIn(folder), "utf8");
  await assert.rejects(survey.report("a", at(1)), refused("budget-exceeded"));
  assert.equal(await readFile(await booksIn(folder), "utf8"), before);
  await writeFile(join(folder, "file"), "");
  const nowhere = await load("categories", { device: new Device(new FileStore(join(folder, "file"))) });
  await assert.rejects(nowhere.report("a", at(1)), refused("device-ledger"));
});

test("a clock that was set back and is right again buys nothing", async () => {
  const device = new Device(new MemoryStore());
  const books = { ...JSON.parse(await textOf(device)), charges: [50, 3].map((day) => charge(day, "1")) };
  const store = { update: async (change) => (await change(JSON.stringify(books)))[1] };
  const { manifest } = await load("categories");
  assert.equal((await new Device(store, { clock: () => at(57).at }).spent(manifest)).month, "2");
  assert.equal((await new Device(store, { clock: () => at(81).at }).spent(manifest)).month, "0");
});

test("a clock that is set forward buys no month, and neither does a time that the caller gives", async (t) => {
  const survey = await load("weekly");
  await survey.device.caps({ perMonth: "0.6", perSurvey: "30" });
  const real = Date.now;
  const begun = real();
  let made = 0;
  for (let week = 0; week < 40; week += 1) {
    t.mock.method(Date, "now", () => begun + week * 35 * DAY);
    await survey.report("a", at(7 * week)).then(() => (made += 1), (error) => assert.equal(error.code, "budget-exceeded"));
  }
  assert.equal(made, 1);
});

test("an announced period is used, and bounds the month", async () => {
  const { text } = vectors.announcements[0]; // of the fourth week
  const device = new Device(new MemoryStore(), { announced: true });
  const survey = await load("weekly", { device });
  await assert.rejects(survey.report("a", at(1)), refused("survey-announcement"));
  assert.equal((await survey.report("a", { announcement: text })).period, 3);
  const [charged] = JSON.parse(await textOf(device)).charges;
  assert.equal(charged.day, Math.floor(BEGIN / DAY) + 21);
});

test("old reports are removed, and their periods cannot be reported again", async () => {
  let day = 0;
  const device = new Device(new MemoryStore(), { clock: () => at(day).at });
  const survey = await load("two stages, k-ary", { device }); // 10 periods of 7 days in a renewal
  const ids = [];
  for (let week = 0; week < 9; week += 1) {
    const { period, id } = await survey.report("a", at(7 * week));
    ids.push(id);
    await device.settle(survey.manifest.digest, period, week === 2 ? "made" : "sent");
  }
  const kept = Object.keys(JSON.parse(await textOf(device)).reports[survey.manifest.digest]);
  assert.deepEqual(kept, ["2", "5", "6", "7", "8"]); // what was not sent is kept longer
  assert.equal((await survey.report("b", at(14))).id, ids[2]);
  await assert.rejects(survey.report("a", at(7)), refused("survey-past"));
  assert.equal((await survey.report("a", at(63))).epsilon, "0"); // the permanent report is still there
  day = 1000;
  await (await load("weekly", { device })).report("a", at(1));
  const later = JSON.parse(await textOf(device));
  assert.deepEqual([later.reports[survey.manifest.digest], later.permanent[survey.manifest.digest]], [{}, {}]);
  assert.equal(later.charges.length, 2);
  await assert.rejects(survey.report("a", at(7)), refused("survey-past"));
});

test("a report is withdrawn at the collector, and never sent again", async (t) => {
  const survey = await load("weekly");
  const asked = [];
  let status = 409;
  t.mock.method(globalThis, "fetch", async (address, options) => {
    asked.push([address, options.body, options.credentials, options.referrerPolicy]);
    return new Response(null, { status });
  });
  const endpoint = "https://collector.test/reports";
  assert.equal(await survey.withdraw({ endpoint }), null);
  const { id } = await survey.report("a", at(1));
  await assert.rejects(survey.send(), refused("survey-endpoint"));
  status = 503;
  assert.equal((await survey.send({ endpoint })).waiting, 1); // it may have arrived
  status = 409;
  await assert.rejects(survey.withdraw(), refused("survey-endpoint"));
  await assert.rejects(survey.withdraw({ endpoint }), refused("survey-withdrawal"));
  status = 200;
  assert.equal((await survey.withdraw({ endpoint })).state, "withdrawn");
  assert.deepEqual(asked.at(-1), [
    `${endpoint}/withdraw`, JSON.stringify({ survey: survey.id, id }), "omit", "no-referrer",
  ]); // prettier-ignore
  assert.deepEqual(await survey.send({ endpoint }), { sent: 0, unconfirmed: 0, refused: 0, waiting: 0 });
  assert.equal((await survey.report("b", at(2))).id, id);
  const before = asked.length;
  await survey.report("a", at(9));
  assert.equal((await survey.withdraw()).state, "withdrawn"); // it was never sent: nobody is asked
  assert.equal(asked.length, before);
  assert.equal((await survey.device.left(survey.manifest)).price, survey.longitudinalEpsilon);
});

const charge = (day, epsilon) => ({ survey: "s", period: 0, day: Math.floor(BEGIN / DAY) + day, epsilon });

async function textOf(device) {
  await device.caps();
  return device.store.update((text) => [text, text]);
}

test("processes that race for the cap do not spend more than there is, and one that is killed locks nobody out", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sfumato-"));
  const source = (name) => JSON.stringify(new URL(`../src/${name}`, import.meta.url).href);
  const program = `
    import { readFileSync } from "node:fs";
    import { FileStore } from ${source("file-store.js")};
    import { Device, Survey } from ${source("index.js")};
    const device = new Device(new FileStore(process.argv[1]));
    const survey = await Survey.load(new Uint8Array(readFileSync(process.argv[2])), { device });
    const made = [];
    for (let day = 0; day < 364; day += 7) {
      const at = new Date(${BEGIN} + day * ${DAY});
      try {
        made.push(await survey.report("a", { at }));
        console.log(JSON.stringify(made.at(-1)));
      } catch (error) {
        if (error.code !== "budget-exceeded") throw error;
      }
    }`;
  const document = join(folder, "survey.json");
  await writeFile(document, bytes("weekly"));
  const books = join(folder, "books");
  const started = () => spawn(process.execPath, ["--input-type=module", "-e", program, books, document]);
  const killed = started();
  await new Promise((resolve) => killed.stdout.once("data", resolve)); // in the middle of its work
  killed.kill("SIGKILL");
  const outputs = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = started();
      const [out, err] = [[], []];
      child.stdout.on("data", (part) => out.push(part));
      child.stderr.on("data", (part) => err.push(part));
      const code = await new Promise((resolve) => child.on("close", resolve));
      assert.equal(code, 0, Buffer.concat(err).toString());
      return Buffer.concat(out).toString().trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
    }),
  );
  const survey = await load("weekly", { device: new Device(new FileStore(books)) });
  const { lifetime } = await survey.device.spent(survey.manifest);
  assert.ok(Number(lifetime) <= Number(survey.manifest.statement.lifetime_epsilon), lifetime);
  const periods = new Map();
  for (const { period, id } of outputs.flat()) {
    assert.equal(periods.get(period) ?? id, id, "one period, two reports");
    periods.set(period, id);
  }
  assert.equal(periods.size, Math.floor(Number(survey.manifest.statement.lifetime_epsilon) / Number(survey.epsilon)));
});

test("two reports at once are one charge", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sfumato-"));
  const device = () => new Device(new FileStore(join(folder, "device")));
  const surveys = await Promise.all(Array.from({ length: 6 }, () => load("categories", { device: device() })));
  const reports = await Promise.all(surveys.map((survey) => survey.report("a", at(1))));
  assert.equal(new Set(reports.map((each) => each.id)).size, 1);
  assert.equal(reports.filter((each) => !each.repeated).length, 1);
});

test("without books there is no report", async () => {
  const survey = await Survey.load(bytes("categories"));
  await assert.rejects(survey.report("a", at(1)), refused("device-missing"));
});

test("surveys are fetched, with a limit, and over http only with a key", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/survey") return response.end(bytes("categories"));
    if (request.url === "/huge") return response.end(new Uint8Array(5 * 2 ** 20).fill(32));
    response.statusCode = 404;
    return response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const address = `http://127.0.0.1:${server.address().port}`;
  const publicKey = vectors.public_key;
  assert.equal((await Survey.load(`${address}/survey`, { publicKey })).question, "Which?");
  await assert.rejects(Survey.load(`${address}/survey`), refused("survey-address"));
  await assert.rejects(Survey.load(`${address}/huge`, { publicKey }), refused("survey-size"));
  await assert.rejects(Survey.load(`${address}/none`, { publicKey }), refused("survey-unreachable"));
  await assert.rejects(Survey.load("http://127.0.0.1:1/", { publicKey }), refused("survey-unreachable"));
});

test("without a key nothing leads elsewhere, and what drips is not waited for", async (t) => {
  const asked = [];
  t.mock.method(globalThis, "fetch", async (address, options) => {
    asked.push([address, options.redirect, options.credentials]);
    return new Response(bytes("categories"));
  });
  assert.equal((await Survey.load("https://example.org/s")).question, "Which?");
  await Survey.load("HTTPS://example.org/s");
  await Survey.load("http://example.org/s", { publicKey: vectors.public_key });
  await assert.rejects(Survey.load("HTTP://example.org/s"), refused("survey-address"));
  assert.deepEqual(asked, [
    ["https://example.org/s", "error", "omit"],
    ["HTTPS://example.org/s", "error", "omit"],
    ["http://example.org/s", "follow", "omit"],
  ]);
  t.mock.restoreAll();
  t.mock.method(AbortSignal, "timeout", () => AbortSignal.any([t.signal, soon(300)]));
  const server = createServer((request, response) => {
    const drip = setInterval(() => response.write(" "), 50);
    response.on("close", () => clearInterval(drip));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const address = `http://127.0.0.1:${server.address().port}`;
  await assert.rejects(Survey.load(address, { publicKey: vectors.public_key }), refused("survey-unreachable"));
});

function soon(milliseconds) {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), milliseconds);
  return controller.signal;
}

test("altered bytes are never taken", async () => {
  const data = bytes("categories");
  for (let place = 0; place < data.length; place += 1) {
    const other = data.slice();
    other[place] ^= 1;
    await assert.rejects(Survey.load(other), (error) => error.name === "Refused", `byte ${place}`);
  }
});
