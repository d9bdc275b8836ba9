"""Who may import whom, and where randomness may come from."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
KERNEL = sorted((SOURCE / "kernel").glob("*.py"))
EVERYTHING = sorted(SOURCE.rglob("*.py"))
STANDARD = {
    "collections", "dataclasses", "datetime", "decimal", "hashlib", "json", "enum", "fractions", "functools",
    "math", "os", "re", "statistics", "sys", "threading", "typing", "weakref",
}  # fmt: skip
MAY_IMPORT = {  # a package of ours -> the packages of ours that it may import
    "kernel": {"kernel", "errors"},
    "catalog": {"catalog", "kernel", "errors"},
    "query": {"query", "catalog", "kernel", "errors"},
    "planning": {"planning", "query", "catalog", "kernel", "errors"},
    "ingest": {"ingest", "catalog", "kernel", "errors"},
    "engines": {"private_files", "engines", "ingest", "catalog", "kernel", "errors"},
    "ledger": {"ledger", "catalog", "kernel", "errors", "private_files"},
    "answers": {"answers", "planning", "query", "kernel", "errors", "extras", "arguments", "private_files"},
    "answering": {
        "answering", "answers", "planning", "query", "engines", "ingest", "ledger", "catalog", "kernel", "errors",
        "curator",
    },
    "local": {"local", "kernel", "errors"},
    "cli": {
        "private_files", "folder_ledger", "cli", "local", "catalog", "curator", "opening", "answers", "answering",
        "engines", "ingest", "ledger", "kernel", "errors", "",
    },
}  # fmt: skip


def imports(path):
    """The modules that a file names, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.name)
def test_the_kernel_imports_nothing_else_of_ours(path):
    for module in imports(path):
        top = module.split(".")[0]
        if top == "sfumato":
            assert module == "sfumato.errors" or module.startswith("sfumato.kernel."), module
        elif top == "cryptography":
            assert path.name == "entropy.py", module
        else:
            assert top in STANDARD | {"numpy"}, module


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: str(path.relative_to(SOURCE)))
def test_packages_keep_to_their_neighbours(path):
    package = path.relative_to(SOURCE).parts[0]
    if package not in MAY_IMPORT:
        assert path.parent == SOURCE, f"add {package} to MAY_IMPORT"
        return
    for module in imports(path):
        if module.split(".")[0] == "sfumato":
            imported = module.split(".")[1] if "." in module else ""
            assert imported in MAY_IMPORT[package], f"{path.name} imports {module}"


LOCAL_MAY_IMPORT = {  # a folder of local -> the folders of local that it may import
    "mechanisms": {"mechanisms"},
    "randomisers": {"randomisers", "mechanisms"},
    "survey": {"survey", "randomisers", "mechanisms"},
    "collect": {"collect", "survey", "randomisers", "mechanisms"},
}
LOCAL = sorted((SOURCE / "local").glob("*/*.py"))


def imports_within_local(path):
    """The folders of local whose modules a file imports."""
    return {module.split(".")[2] for module in imports(path) if module.startswith("sfumato.local.")}


@pytest.mark.parametrize("path", LOCAL, ids=lambda path: str(path.relative_to(SOURCE)))
def test_folders_of_local_import_only_what_stands_before_them(path):
    assert imports_within_local(path) <= LOCAL_MAY_IMPORT[path.parent.name]
    assert "sfumato.local" not in imports(path), "import the module, not the package: the package imports every folder"


def test_the_folder_rule_of_local_can_fail(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from sfumato.local.collect.collector import Collector")
    assert not imports_within_local(wrong) <= LOCAL_MAY_IMPORT["survey"]


# arrow.uuid is the name of a type of columns
FORBIDDEN = re.compile(
    r"\bimport random\b|\bfrom random\b|\b(?:numpy|np)\.random\b|"
    r"\b(?:default_rng|secrets|(?<!arrow[.])uuid|urandom|getrandom)\b"
)


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_other_randomness(path):
    found = set(FORBIDDEN.findall(path.read_text()))
    assert found <= ({"urandom"} if path.name == "entropy.py" else set())


def test_the_search_can_find_something():
    for text in (
        "import random",
        "x = np.random.default_rng()",
        "from random import choice",
        "numpy.random.laplace",
        "os.urandom(3)",
    ):
        assert FORBIDDEN.search(text)


def test_no_public_function_takes_entropy():
    import inspect

    import sfumato as sf

    for name in sf.__all__:
        thing = getattr(sf, name)
        if not callable(thing):
            continue
        for function in [thing, *(getattr(thing, each) for each in dir(thing) if not each.startswith("_"))]:
            if callable(function):
                try:
                    parameters = inspect.signature(function).parameters
                except ValueError:
                    continue
                assert not {"entropy", "seed", "rng", "random_state"} & set(parameters), (name, function)


def test_no_two_test_files_share_a_name():
    """pytest imports a test file by its name alone: two of one name fail when they are collected together."""
    names = [path.name for path in Path(__file__).parents[1].rglob("*.py") if path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))
