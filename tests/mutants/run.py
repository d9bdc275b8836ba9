"""Break the trusted perimeter, one line at a time, and print the faults that no test of the broken claim notices.

Run by `make mutants`. Each fault is in a file `*.toml` beside this one:

    [[mutant]]
    file = "src/sfumato/kernel/keys.py"       # what is broken
    text = "count >= threshold]"              # occurs once in that file
    becomes = "count > threshold]"
    claim = "K-21"                            # what is no longer true
    tests = ["tests/kernel/test_keys.py::test_equality_at_the_threshold_is_released"]   # one of them must fail
    survives = "why no test can see it"       # only for a fault that changes nothing
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
SECONDS = 300  # for the tests of one mutant
AT_ONCE = 2
ALL_PASSED, SOME_FAILED = 0, 1  # pytest's exit codes; every other one is no verdict


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and the tests of the claim that it breaks."""

    area: str
    file: str
    text: str
    becomes: str
    claim: str
    tests: tuple[str, ...]
    survives: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.text.strip()!r} -> {self.becomes.strip()!r} ({self.claim})"

    def problem(self, root: Path = ROOT) -> str | None:
        """Why it is no mutant of the code as it is now; None if it is one."""
        source = (root / self.file).read_text()
        found = source.count(self.text)
        if found != 1:
            return f"its text occurs {found} times in the file, not once"
        try:
            compile(self.applied(source), self.file, "exec")
        except SyntaxError:
            return "it is not Python"
        return "it changes nothing" if self.text == self.becomes else None

    def applied(self, source: str) -> str:
        """The source with the fault."""
        return source.replace(self.text, self.becomes)


def all_mutants(folder: Path = Path(__file__).parent) -> Iterator[Mutant]:
    """Every mutant of every file, in order."""
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            yield Mutant(path.stem, **entry | {"tests": tuple(entry["tests"])})


class Copy:
    """A copy of the sources in which one file at a time is broken. The tests are those of this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # bytecode is matched by time and size: a fault could hide behind it
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        }
        where = self.run([sys.executable, "-c", "import sfumato; print(sfumato.__file__)"]).stdout
        if not where.startswith(str(folder)):
            raise SystemExit(f"The tests would import {where.strip()}, not the broken copy.")

    def run(self, command: list[str], seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
        """The command in this checkout, importing this copy."""
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def outcome(self, tests: tuple[str, ...], seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
        """What pytest says of these tests."""
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-m", ""]
        return self.run([sys.executable, "-m", "pytest", *options, *tests], seconds)

    def verdict(self, mutant: Mutant) -> str:
        """'killed', 'survived', or why there is no verdict."""
        path = self.folder / mutant.file
        sound = path.read_text()
        path.write_text(mutant.applied(sound))
        try:
            done = self.outcome(mutant.tests)
        except subprocess.TimeoutExpired:
            return f"no verdict: its tests take over {SECONDS} s"
        finally:
            path.write_text(sound)
        if done.returncode == ALL_PASSED:
            return "survived"
        if done.returncode == SOME_FAILED:
            return "killed"
        return f"no verdict: pytest ended with {done.returncode}\n{done.stdout[-2000:]}"


def main() -> int:
    """Print every mutant's fate; 0 if all are killed, or survive with a reason."""
    options = argparse.ArgumentParser(description="Break the trusted perimeter, one line at a time.")
    options.add_argument("areas", nargs="*", help="only these files of mutants, for example: kernel")
    options.add_argument("--only", default="", help="only mutants whose description contains this text")
    chosen = options.parse_args()
    mutants = [mutant for mutant in all_mutants() if not chosen.areas or mutant.area in chosen.areas]
    mutants = [mutant for mutant in mutants if chosen.only in str(mutant)]
    stale = [f"{mutant}: {problem}" for mutant in mutants if (problem := mutant.problem())]
    if stale or not mutants:
        print("\n".join(stale) or "There is no such mutant.")
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(AT_ONCE):
            copies.put(Copy(Path(folder) / str(number)))

        def judge(mutant: Mutant) -> str:
            copy = copies.get()
            try:
                return copy.verdict(mutant)
            finally:
                copies.put(copy)

        sound = copies.get()
        done = sound.outcome(tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests)), 10 * SECONDS)
        copies.put(sound)
        if done.returncode != ALL_PASSED:
            print(f"Without a fault, these tests must pass:\n{done.stdout[-4000:]}")
            return 1
        bad = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for mutant, verdict in zip(mutants, pool.map(judge, mutants), strict=True):
                wanted = "survived" if mutant.survives else "killed"
                reason = f" because {mutant.survives}" if mutant.survives else ""
                print(f"{verdict.splitlines()[0]:<9} {mutant}{reason}", flush=True)
                if verdict != wanted:
                    bad.append(f"{mutant}\n    {verdict}, though it should be {wanted}")
    explained = sum(bool(mutant.survives) for mutant in mutants)
    print(f"\n{len(mutants)} mutants, {explained} of them explained survivors; {len(bad)} unexplained.", *bad, sep="\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
