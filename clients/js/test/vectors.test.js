/** The same bytes as the Python client, from the same scripted randomness; the same refusals of the same documents. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readAnnouncement } from "../src/announcement.js";
import { canonical, NotCanonical, parseCanonical } from "../src/canonical.js";
import { permanentReport } from "../src/device.js";
import { decimal, lossOfRatio, ratio } from "../src/exact.js";
import { KeyRing } from "../src/key-ring.js";
import { readManifest } from "../src/manifest.js";
import { fromHex, Given } from "../src/randomness.js";
import { REFUSALS } from "../src/refusals.js";
import { Survey } from "../src/survey.js";
import { rebuild, staged } from "../src/tables.js";
import { wordBits, wordCode } from "../src/words.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/local/vectors.json", import.meta.url), "utf8"));

test("canonical texts are told from others", () => {
  for (const { hex, canonical: expected } of vectors.canonical) {
    const data = fromHex(hex);
    if (!expected) {
      assert.throws(() => parseCanonical(data), NotCanonical, hex);
    } else {
      assert.equal(canonical(parseCanonical(data)), new TextDecoder().decode(data));
    }
  }
  assert.ok(vectors.canonical.some((each) => each.canonical) && vectors.canonical.some((each) => !each.canonical));
});

test("losses are the same thirty digits, rounded up", () => {
  for (const { numerator, denominator, epsilon } of vectors.losses) {
    const loss = lossOfRatio(ratio(BigInt(numerator), BigInt(denominator)));
    assert.equal(loss.text, epsilon);
    assert.deepEqual(decimal(epsilon), { n: loss.n, d: loss.d });
  }
});

test("numbers have the same positions", () => {
  for (const { lower, upper, value, position } of vectors.positions) {
    const manifest = { domain: { kind: "numbers" }, permanent: { lower: Number(lower), upper: Number(upper) } };
    assert.equal(new Survey(manifest, null).read(value), position);
  }
});

test("every table costs the same and draws the same reports", () => {
  const names = new Set();
  for (const { description, epsilon, delta, draws } of vectors.reports) {
    const table = rebuild(description);
    names.add(description.mechanism);
    assert.equal(table.epsilon.text, epsilon);
    assert.equal(table.delta?.text ?? "0", delta);
    assert.ok(draws.length > 3);
    for (const { answer, script, report } of draws) {
      const source = new Given(fromHex(script));
      assert.equal(table.draw(answer, source), report, JSON.stringify(description));
      assert.equal(source.used, source.bytes.length, "every byte is read");
    }
  }
  assert.deepEqual(
    [...names].sort(),
    ["duchi", "gaussian", "hadamard", "hybrid", "krr", "laplace", "olh", "oue", "pem", "piecewise", "questions", "rr", "subset", "sue"],
  );
});

test("words have the same bits, or are refused", () => {
  for (const { length, alphabet, word, bits } of vectors.words) {
    const code = wordCode(length, alphabet);
    if (bits === null) assert.throws(() => wordBits(word, code), { code: "survey-value" }, word);
    else assert.equal(wordBits(word, code), bits, word);
  }
});

test("two stages cost the same, and fresh coins fall the same", () => {
  for (const each of vectors.stages) {
    const [first, second] = [rebuild(each.permanent), rebuild(each.instantaneous)];
    assert.equal(staged(first, second).epsilon.text, each.epsilon);
    assert.equal(first.epsilon.text, each.longitudinal_epsilon);
    for (const { kept, script, report } of each.draws) {
      const source = new Given(fromHex(script));
      assert.equal(second.again(kept, source), report);
      assert.equal(source.used, source.bytes.length);
    }
  }
});

test("a secret draws the same permanent reports", async () => {
  for (const { secret, digest, renewal, answer, description, report } of vectors.memos) {
    const manifest = { digest, permanent: rebuild(description) };
    assert.equal(await permanentReport(manifest, answer, fromHex(secret), renewal), report);
  }
});

test("the same surveys are taken and refused, for the same reasons", async () => {
  for (const { name, text, hex, spaces, code, ...expected } of vectors.manifests) {
    const data = text !== undefined ? new TextEncoder().encode(text) : hex ? fromHex(hex) : new Uint8Array(spaces).fill(32);
    if (code !== null) {
      await assert.rejects(readManifest(data), { name: "Refused", code }, name);
      continue;
    }
    const found = await readManifest(data);
    assert.equal(found.publicKey, vectors.public_key);
    assert.equal(found.id, expected.id);
    assert.equal(found.digest, expected.digest);
    assert.equal(found.table.epsilon.text, expected.epsilon);
    assert.equal(found.price.text, expected.longitudinal_epsilon);
  }
  const codes = new Set(vectors.manifests.map((each) => each.code));
  for (const code of ["size", "form", "version", "signature", "id", "field", "table", "epsilon"]) {
    assert.ok(codes.has(`survey-${code}`), code);
  }
});

test("refusals have the same words", () => {
  assert.deepEqual(REFUSALS, vectors.refusals);
});

test("the same announcements are taken and refused", async () => {
  const { text } = vectors.manifests.find((each) => each.name === "weekly");
  const manifest = await readManifest(new TextEncoder().encode(text));
  for (const { text: announcement, code, period } of vectors.announcements) {
    const read = readAnnouncement(announcement, manifest);
    if (code) await assert.rejects(read, { name: "Refused", code }, announcement);
    else assert.equal((await read).period, period);
  }
  assert.ok(vectors.announcements.filter((each) => each.period === 3).length > 1);
});

test("the same rings of keys are taken and refused", async () => {
  const read = async (text) => readManifest(new TextEncoder().encode(vectors.manifests.find((each) => each.name === text).text));
  const manifest = await read("weekly");
  for (const { ring, text, code, serial } of vectors.rings) {
    const present = await KeyRing.read(ring);
    assert.equal(present.trusts(manifest), true);
    if (code) {
      await assert.rejects(present.update(text), { name: "Refused", code }, text);
    } else {
      const updated = await present.update(text);
      assert.equal(updated.serial, serial);
      const own = updated.keys.find(({ publicKey }) => publicKey === manifest.publicKey);
      assert.equal(updated.trusts(manifest), !own.revoked);
    }
  }
  assert.ok(vectors.rings.filter((each) => each.serial).length > 1);
  const present = await KeyRing.read(vectors.rings[0].ring);
  for (const created of [present.keys[0].from - 1, present.keys[0].until]) {
    assert.equal(present.trusts({ ...manifest, created }), false); // outside the key's time
  }
});
