"""The code that an estimator's scores on arrays depend on: stored scores are valid for this code only."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# The estimators, and the noise and the sensitivities that they use. The other packages that they name check arguments,
# open ledgers or read protected datasets, as THROUGH_CURATOR does: they do not change a score on arrays.
PACKAGES = ("learning", "kernel")
THROUGH_CURATOR = ("curator_statistics.py", "engine_rows.py", "release.py")


@cache
def read_estimator_code(source: Path, estimator: str) -> tuple[str, ...]:
    """The statements of the module that defines the estimator and of every module of PACKAGES that it imports."""
    first = find_module(source, estimator)
    found, left = {first}, [first]
    while left:
        new = set(find_imports(left.pop(), source)) - found
        found |= new
        left += new
    return tuple(f"{path.relative_to(source).as_posix()}\n{read_statements(path)}" for path in sorted(found))


def find_module(source: Path, estimator: str) -> Path:
    """Where the public name is imported from."""
    public = source / "sfumato" / "learning" / "__init__.py"
    for node in ast.walk(ast.parse(public.read_text())):
        if isinstance(node, ast.ImportFrom) and estimator in [alias.name for alias in node.names]:
            return find_path(source, str(node.module))
    raise LookupError(estimator)


def find_path(source: Path, module: str) -> Path:
    return (source / module.replace(".", "/")).with_suffix(".py")


def find_imports(path: Path, source: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for module in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                found = find_path(source, module)
                if found.parent.name in PACKAGES and found.name not in THROUGH_CURATOR and found.exists():
                    yield found


def read_statements(path: Path) -> str:
    """The code without comments, layout and docstrings: they change no score."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
