"""Read a lesson in the percent format: cells of text and of code."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    kind: str  # "markdown" or "code"
    text: str
    line: int  # of the file, for messages


def read_cells(path):
    """The cells in order. What comes before the first one is the header."""
    cells, start, kind, lines = [], 0, None, []
    for number, line in enumerate([*path.read_text().splitlines(), "# %%"], 1):
        if line.startswith("# %%"):
            if kind is not None:
                cells.append(Cell(kind, "\n".join(lines).strip("\n"), start))
            kind = "markdown" if "[markdown]" in line else "code"
            start, lines = number, []
        elif kind == "markdown":
            assert not line or line.startswith("#"), f"{path.name}:{number} is no text"
            lines.append(line.removeprefix("#").removeprefix(" "))
        else:
            lines.append(line)
    return cells


def run_cell(cell, names, name):
    """Execute a cell; the value of its last expression, as a notebook shows it, or None."""
    tree = ast.parse(cell.text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(ast.Module(tree.body, []), f"{name}, line {cell.line}", "exec"), names)
    return (
        None if last is None else eval(compile(ast.Expression(last.value), f"{name}, line {cell.line}", "eval"), names)
    )
