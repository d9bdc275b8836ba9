"""A loop variable, parameter or local variable is named after what it holds: `each` says nothing about it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("src", "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
EMPTY_NAMES = {"each"}


def find_empty_names(text):
    """The lines in which a name is bound that does not say what it holds."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    lines = [name.lineno for name in bound if name.id in EMPTY_NAMES]
    return lines + [node.lineno for node in nodes if isinstance(node, ast.arg) and node.arg in EMPTY_NAMES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_hold(path):
    assert find_empty_names(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "for each in rows: print(each)",
        "total = sum(each for each in rows)",
        "for name, (each, last) in pairs: pass",
        "key = lambda each: each.name",
        "def show(*each): pass",
        "each = rows[0]",
        "if (each := rows[0]): pass",
    ],
)
def test_every_way_to_bind_an_empty_name_is_found(text):
    """Negative control."""
    assert find_empty_names(text) == [1]
