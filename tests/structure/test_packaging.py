"""What the packages promise: every import is declared, every dependency has a lower bound, every extra is tried out."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = [name for name in EXTRAS if name not in ("test", "bench", "docs")]
NAMES = {  # of packages whose module has another name
    "scikit-learn": "sklearn", "vl-convert-python": "vl_convert", "argon2-cffi": "argon2",
    "python-multipart": "python_multipart", "psycopg[binary]": "psycopg", "sqlglot[c]": "sqlglot",
}  # fmt: skip
NOT_DECLARED = {
    "starlette": "fastapi",
    "py4j": "pyspark",
    "google": "pyspark",
    "pydantic": "fastapi",
    "markupsafe": "jinja2",
    "scipy": "scikit-learn",
}


def read_name(requirement):
    return re.split(r"[<>=!~;]", requirement)[0].strip()


def list_imports():
    """The packages of others that the source names anywhere."""
    found = set()
    for path in (ROOT / "src" / "sfumato").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"sfumato"}


def test_every_import_is_declared():
    declared = [*PROJECT["dependencies"], *(one for extra in FOR_USERS for one in EXTRAS[extra])]
    known = {NAMES.get(read_name(one), read_name(one)) for one in declared}
    strange = {
        name for name in list_imports() if name not in known and NOT_DECLARED.get(name) not in map(read_name, declared)
    }
    assert not strange


@pytest.mark.parametrize("extra", ["", *FOR_USERS])
def test_every_dependency_has_a_lower_bound(extra):
    for requirement in EXTRAS[extra] if extra else PROJECT["dependencies"]:
        assert re.search(r">=\d", requirement), requirement


def test_what_is_installed_here_is_allowed():
    """The tests run with versions that the bounds allow."""
    for requirement in PROJECT["dependencies"]:
        name, least = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement).groups()
        here = [int(part) for part in re.findall(r"\d+", metadata.version(name))]
        assert here >= [int(part) for part in least.split(".")], requirement


def test_every_extra_is_tried_out():
    text = (ROOT / "tests" / "packages" / "smoke_test.py").read_text()
    for extra in FOR_USERS:
        assert f"def check_{extra}(" in text


def test_extras_for_tests_allow_no_older_versions():
    """The tests' own list repeats the extras' packages, with the same bounds."""
    bounds = {read_name(one): one for extra in FOR_USERS for one in EXTRAS[extra]}
    for requirement in EXTRAS["test"]:
        name = read_name(requirement)
        assert bounds.get(name, requirement) == requirement


def test_the_pythons_are_those_that_are_tried_out():
    text = (ROOT / "tests" / "packages" / "try_packages.py").read_text()
    versions = re.search(r"PYTHONS = \((.*)\)", text)[1].replace('"', "").split(", ")
    listed = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert versions == listed
    assert PROJECT["requires-python"] == f">={versions[0]}"
