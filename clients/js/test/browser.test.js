/** The module runs where there is no Node: it imports nothing but its own files, and uses the web's own names only. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const SOURCE = new URL("../src/", import.meta.url);
const FOR_NODE = "file-store.js";

test("only the file store is for Node", () => {
  const files = readdirSync(SOURCE);
  assert.ok(files.includes(FOR_NODE) && files.length > 8);
  for (const file of files) {
    const text = readFileSync(new URL(file, SOURCE), "utf8");
    const imported = [...text.matchAll(/from "([^"]+)"/g)].map((each) => each[1]);
    for (const name of imported) {
      assert.ok(name.startsWith("./") || (file === FOR_NODE && name.startsWith("node:")), `${file} imports ${name}`);
      assert.ok(name !== `./${FOR_NODE}`, `${file} imports the file store`);
    }
    assert.doesNotMatch(text, /\bprocess\.|\bBuffer\b|\brequire\(["']/, file);
  }
});

test("randomness is the system's own", () => {
  for (const file of readdirSync(SOURCE)) {
    const text = readFileSync(new URL(file, SOURCE), "utf8");
    assert.doesNotMatch(text, /Math\.random/, file);
    if (file !== "randomness.js") assert.doesNotMatch(text, /getRandomValues/, file);
  }
});
