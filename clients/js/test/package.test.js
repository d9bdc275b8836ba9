/** The package is ready for npm: types for every export, files that exist, no dependencies. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import * as client from "../src/index.js";

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const description = JSON.parse(read("package.json"));

test("every export has a type, and every type that is a value is exported", () => {
  const typed = [...read("index.d.ts").matchAll(/^export (?:class|function|const) (\w+)/gm)].map((found) => found[1]);
  assert.deepEqual(typed.sort(), Object.keys(client).sort());
});

test("methods in the types exist", () => {
  for (const [, name, body] of read("index.d.ts").matchAll(/^export class (\w+)[^{]*\{([\s\S]*?)^\}/gm)) {
    for (const [, isStatic, method] of body.matchAll(/^ {2}(static )?(\w+)(?:<\w+>)?\(/gm)) {
      if (method === "constructor") continue;
      const owner = isStatic ? client[name] : client[name].prototype;
      assert.equal(typeof owner[method], "function", `${name}.${method}`);
    }
  }
});

test("the package has no dependencies, and its files exist", () => {
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies", "private"]) assert.ok(!(kind in description));
  assert.equal(description.type, "module");
  assert.equal(description.license, "Apache-2.0");
  const { "./bundle": bundle, ...kept } = description.exports;
  assert.equal(bundle, "./dist/sfumato-survey.js"); // made by `npm pack`
  for (const { types, default: main } of Object.values(kept)) {
    for (const file of [types, main]) assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), file);
  }
});
