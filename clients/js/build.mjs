/**
 * Put the modules into one file without dependencies, and print its size and its integrity hash.
 *
 * Each module becomes a function of the modules that it imports. Names stay as they are, so that people can read the file.
 *
 *   node build.mjs [FILE ...]    default: dist/sfumato-survey.js
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { gzipSync } from "node:zlib";

const SOURCE = new URL("./src/", import.meta.url);
const { version } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8"));
const done = new Map();

const variable = (file) => file.replace(/\.js$/, "").replace(/-(\w)/g, (_, letter) => letter.toUpperCase()) + "Module";

function add(file) {
  if (done.has(file)) return;
  let text = readFileSync(new URL(file, SOURCE), "utf8");
  const exported = [];
  text = text.replace(/^(import|export) \{([^}]*)\} from "\.\/([^"]+)";\n/gm, (_, kind, names, from) => {
    add(from);
    const wanted = names.split(",").map((name) => name.trim()).filter(Boolean);
    if (kind === "export") exported.push(...wanted);
    return `const { ${wanted.join(", ")} } = ${variable(from)};\n`;
  });
  text = text.replace(/^export \{([^}]*)\};\n/gm, (_, names) => {
    exported.push(...names.split(",").map((name) => name.trim()));
    return "";
  });
  text = text.replace(/^export ((?:async )?function|const|let|class) (\w+)/gm, (_, kind, name) => {
    exported.push(name);
    return `${kind} ${name}`;
  });
  if (/^\s*(import|export)\s/m.test(text)) throw new Error(`${file} has an import or export that this program cannot read`);
  done.set(file, { text, exported });
}

export function bundle() {
  add("index.js");
  const parts = [...done].map(([file, { text, exported }]) =>
    `// ${file}\nconst ${variable(file)} = (() => {\n${text}\nreturn { ${exported.join(", ")} };\n})();\n`,
  );
  const names = done.get("index.js").exported;
  const end = `export const { ${names.join(", ")} } = ${variable("index.js")};\n`;
  return `/*! sfumato-survey ${version}, Apache-2.0 */\n${parts.join("\n")}\n${end}`;
}

const text = bundle();
for (const place of process.argv.length > 2 ? process.argv.slice(2) : [new URL("./dist/sfumato-survey.js", import.meta.url).pathname]) {
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, text);
  const hash = createHash("sha384").update(text).digest("base64");
  console.log(`${place}: ${text.length} bytes, ${gzipSync(text).length} compressed`);
  console.log(`integrity="sha384-${hash}"`);
}
