"""Write a table of the benchmark into a page, between its marks. The words around it are written by hand."""

from collections.abc import Sequence
from pathlib import Path


def write_table(
    page: Path, name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> None:
    """Replace what is between `<!-- name -->` and `<!-- /name -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = page.read_text().partition(begin)
    ruled = [heads, ["---"] * len(heads), *rows]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in ruled)
    added = "".join(f"\n\n{note}" for note in notes)
    page.write_text(f"{before}{begin}\n{text}{added}\n{end}{rest.partition(end)[2]}")
