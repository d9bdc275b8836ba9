"""Which modules may import which, and where randomness may come from."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
KERNEL = sorted((SOURCE / "kernel").glob("*.py"))
EVERYTHING = sorted(SOURCE.rglob("*.py"))
STANDARD = {
    "collections", "dataclasses", "datetime", "decimal", "hashlib", "json", "enum", "fractions", "functools",
    "math", "operator", "os", "re", "statistics", "sys", "threading", "typing", "weakref",
}  # fmt: skip
BELOW = {"catalog", "kernel", "number_arguments", "errors"}
TEXTS = {"canonical_text", "private_files", "shown_amounts"}
ANSWERING = {"accuracy", "answers", "drawing", "planning", "query", "engines", "ingest", "ledger", *TEXTS, *BELOW}
ROOT = {"curator", "opening", "folder_ledger", "shared_ledgers", "arguments"}
MAY_IMPORT = {  # a package of ours, or a module at the root -> what of ours it may import besides its own package
    "kernel": {"errors", "noise_guesses", "number_arguments"},
    "number_arrays": {"kernel", "errors"},
    "accuracy": {"kernel", "number_arguments", "errors"},
    "standalone": {"accuracy", "kernel", "number_arguments", "number_arrays", "errors"},
    "catalog": {"kernel", "number_arguments", "errors"},
    "row_meanings": {"catalog", "kernel"},
    "query": {"row_meanings", *BELOW},
    "ingest": {"extras", "private_files", *BELOW},
    "planning": {"query", *BELOW},
    "engines": {"extras", "ingest", "private_files", "row_meanings", *BELOW},
    "ledger": {"extras", "signing", *TEXTS, *BELOW},
    "answers": {
        "accuracy",
        "canonical_text",
        "drawing",
        "planning",
        "query",
        "kernel",
        "number_arguments",
        "errors",
        "extras",
        "arguments",
        "private_files",
        "shown_amounts",
        "signing",
    },
    "answering": ANSWERING,
    "local": {"drawing", "kernel", "number_arguments", "number_arrays", "ledger", "answering", "errors", "signing"},
    "drawing": set(),
    "lab": {"drawing", "local", "standalone", "answering", "number_arrays", "extras", "signing", *ROOT, *ANSWERING},
    "learning": {"answering", "curator", "drawing", "extras", *ANSWERING},
    "remote": {"answering", "json_values", *ANSWERING},
    "service": {
        "lab",
        "local",
        "signing",
        "remote",
        "extras",
        "json_values",
        "private_files",
        "answering",
        *ROOT,
        *ANSWERING,
    },
    "cli": {
        "drawing",
        "extras",
        "lab",
        "learning",
        "local",
        "service",
        "signing",
        "json_values",
        "answering",
        *ROOT,
        *ANSWERING,
        "",
    },
    # modules at the root
    "__init__": {
        "lab",
        "learning",
        "local",
        "standalone",
        "answering",
        "curator",
        "opening",
        "folder_ledger",
        "remote",
        *ANSWERING,
        "",
    },
    "json_values": set(),
    "__main__": {"cli"},
    "curator": {"answering", *ANSWERING},
    "opening": {"answering", "curator", "arguments", "folder_ledger", "shared_ledgers", *ANSWERING},
    "folder_ledger": {"arguments", "ledger", "private_files", *BELOW},
    "shared_ledgers": {"ledger", *BELOW},
    "arguments": {"kernel", "errors"},
    "private_files": {"errors"},
    "number_arguments": {"kernel", "errors"},
    "signing": {"kernel"},
    "extras": {"errors"},
    "canonical_text": set(),
    "noise_guesses": set(),
    "shown_amounts": set(),
    "errors": set(),
}


def imports(path):
    """The modules that a file names, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.name)
def test_the_kernel_imports_nothing_else_of_ours(path):
    for module in imports(path):
        top = module.split(".")[0]
        if top == "sfumato":
            reads_amounts = (path.name, module) == ("losses.py", "sfumato.number_arguments")
            allowed = reads_amounts or module in ("sfumato.errors", "sfumato.noise_guesses")
            assert allowed or module.startswith("sfumato.kernel."), module
        elif top == "cryptography":
            assert path.name == "entropy.py", module
        else:
            assert top in STANDARD | {"numpy"}, module


def name_of(path):
    """The package of a file, or the name of a module at the root."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: str(path.relative_to(SOURCE)))
def test_packages_import_only_what_they_may(path):
    name = name_of(path)
    assert name in MAY_IMPORT, f"add {name} to MAY_IMPORT"
    for module in imports(path):
        if module.split(".")[0] == "sfumato":
            imported = module.split(".")[1] if "." in module else ""
            assert imported in MAY_IMPORT[name] | {name}, f"{path.name} imports {module}"


def import_graph(files):
    """Module -> the modules of ours that it names: at the top, in functions, and for type checkers only.

    `from package import name` names the module package.name where there is one.
    """
    graph = {module: set() for module in files}
    for module, text in files.items():
        for node in ast.walk(ast.parse(text)):
            named = []
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [name if name in files else node.module for name in inner]
            graph[module] |= {name for name in named if name in files and name != module}
    return graph


def find_cycle(graph):
    """Modules that import each other in a circle, or an empty list."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        path.append(module)
        for imported in sorted(graph[module]):
            if found := visit(imported):
                return found
        path.pop()
        done.add(module)
        return []

    for module in sorted(graph):
        if found := visit(module):
            return found
    return []


def module_name(path):
    parts = ["sfumato", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_import_cycle_anywhere():
    graph = import_graph({module_name(path): path.read_text() for path in EVERYTHING})
    assert sum(map(len, graph.values())) > 500  # it found the imports
    assert find_cycle(graph) == []


def test_the_search_for_cycles_finds_them():
    """Negative control: at the top, for type checkers only, inside a function, and through three modules."""
    for text in ("import b", "from b import f", "if TYPE_CHECKING:\n    from b import f", "def f():\n    import b"):
        assert find_cycle(import_graph({"a": text, "b": "import a"})) == ["a", "b", "a"]
    assert find_cycle(import_graph({"a": "import b", "b": "import c", "c": "from a import x"})) == ["a", "b", "c", "a"]
    assert find_cycle(import_graph({"p": "", "p.a": "from p import b", "p.b": "from p import a"})) == [
        "p.a", "p.b", "p.a",
    ]  # fmt: skip
    assert find_cycle(import_graph({"a": "import b\nimport c", "b": "import c", "c": "import os"})) == []


def test_one_file_charges_and_releases():
    """`charge_and_release` is written once; that file, the start of a watch and `prepay` charge the ledger."""
    texts = {module_name(path): path.read_text() for path in EVERYTHING}
    assert [name for name, text in texts.items() if "def charge_and_release" in text] == [
        "sfumato.answering.charged_draws"
    ]
    charging = {name for name, text in texts.items() if re.search(r"ledger\.charge\(", text)}
    assert charging == {
        "sfumato.answering.charged_draws", "sfumato.answering.prepaid_ledger", "sfumato.answering.watch",
    }  # fmt: skip
    storing = {name for name, text in texts.items() if re.search(r"ledger\.store\(", text)}
    assert storing == {"sfumato.answering.charged_draws", "sfumato.answering.watch"}
    assert not [name for name in texts if name.startswith("sfumato.answering") and "import Curator" in texts[name]]


def test_public_names_are_listed_and_loaded_on_use():
    """dir(sf) and completion show every public name; to list them loads nothing."""
    code = "import sys, sfumato as sf; assert set(sf.__all__) <= set(dir(sf)); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


ASKS = """
import sys, tempfile, pathlib, sfumato as sf
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "t.csv").write_text("age\\n20\\n30\\n")
columns, budget = {"age": sf.Integer(0, 120)}, sf.Budget(epsilon=9)
with sf.protect(folder / "t.csv", name="t", unit=sf.ROW, columns=columns, budget=budget) as t:
    t.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    print("pyarrow" in sys.modules)
    t.ask("SELECT SUM(n) OVER () AS m FROM (SELECT COUNT(*) AS n FROM t) AS s", epsilon=2)
    print("pyarrow" in sys.modules)
"""


def test_pinning_a_file_and_asking_load_no_arrow(tmp_path):
    """pyarrow takes 25 MiB: only frames, and SQL over results, load it. The last question is the negative control."""
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"SFUMATO_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    )
    assert done.stdout.split() == ["False", "True"]


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
    if name_of(path) != "lab":  # it generates data and naive noise to attack; test_packages_import_only_what_they_may
        assert found <= ({"urandom"} if path.name == "entropy.py" else set())


def test_only_the_command_line_and_the_root_import_the_lab():
    """The lab has its own randomness, which must never reach an answer. In the service, one page shows the lab."""
    assert {name for name, imported in MAY_IMPORT.items() if "lab" in imported} == {"cli", "__init__", "service"}
    importing = {path.name for path in (SOURCE / "service").glob("*.py") if "sfumato.lab" in path.read_text()}
    assert importing == {"site_lab.py"}


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
        for function in [thing, *(getattr(thing, method) for method in dir(thing) if not method.startswith("_"))]:
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


def test_no_two_modules_share_a_name():
    names = [path.name for path in EVERYTHING if path.name not in ("__init__.py", "__main__.py")]
    assert sorted(names) == sorted(set(names))
