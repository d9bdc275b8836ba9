"""Read a notebook in the percent format: cells of text and of code."""

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    kind: str  # "markdown" or "code"
    text: str
    line: int  # of the file, for messages


def read_cells(path: Path) -> list[Cell]:
    """The cells in order. What comes before the first one is the header."""
    cells: list[Cell] = []
    start, kind, lines = 0, "", [""]
    for number, line in enumerate([*path.read_text().splitlines(), "# %%"], 1):
        if line.startswith("# %%"):
            if kind:
                cells.append(Cell(kind, "\n".join(lines).strip("\n"), start))
            kind = "markdown" if "[markdown]" in line else "code"
            start, lines = number, []
        elif kind == "markdown":
            if line and not line.startswith("#"):
                raise ValueError(f"{path.name}:{number} is no text")
            lines.append(line.removeprefix("#").removeprefix(" "))
        else:
            lines.append(line)
    return cells


def run_cell(cell: Cell, names: dict[str, object], name: str) -> object:
    """Execute a cell; the value of its last expression, as a notebook shows it, or None."""
    tree = ast.parse(cell.text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    where = f"{name}, line {cell.line}"
    exec(compile(ast.Module(tree.body, []), where, "exec"), names)
    return eval(compile(ast.Expression(last.value), where, "eval"), names) if isinstance(last, ast.Expr) else None
