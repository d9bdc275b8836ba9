"""Write docs/attacks.md and its figures: `make figures`. Everything in them comes from the results of the attacks."""

from pathlib import Path

from sfumato.lab.attack_names import ATTACKS
from sfumato.lab.attack_result import AttackResult
from sfumato.lab.success_rate import show_share

DOCS = Path(__file__).parents[2] / "docs"
SEED = 7
INTRODUCTION = (Path(__file__).parent / "attacks_introduction.md").read_text(encoding="utf-8")


def run_attacks() -> list[AttackResult]:
    """All results, with the seed of the document."""
    return [attack.load()(seed=SEED) for attack in ATTACKS]


def make_document(results: list[AttackResult]) -> str:
    """The text of docs/attacks.md."""
    rows = [
        f"| [{result.name}](#{result.name}) | {show_share(result.naive.share)} | {result.protected} | "
        f"{show_share(result.limit)} |"
        for result in results
    ]
    table = ["| Attack | Naive release | Sfumato (95 % interval) | Limit |", "|---|---|---|---|", *rows]
    return "\n".join([INTRODUCTION, *table, "", *(line for result in results for line in _describe(result))])


def _describe(result: AttackResult) -> list[str]:
    alt = " ".join(panel.alt for panel in result.figure.panels)
    story = result.story
    return [
        f"## {result.name}",
        f"**{result.title}.** Run it with `sfumato lab {result.name}`.",
        "",
        f"![{alt}](attacks/{result.name}.svg)",
        "",
        f"- **What the attacker knows.** {story.knows}",
        f"- **What the attacker does.** {story.does}",
        f"- **What the attacker learns.** {story.learns}",
        f"- **A success.** {result.success}",
        f"- **The limit.** {show_share(result.limit)} = {result.formula}.",
        *(f"- {note}" for note in result.notes),
        "",
    ]


def write_document(results: list[AttackResult], docs: Path) -> None:
    """Write the page and one SVG file for each attack."""
    (docs / "attacks").mkdir(exist_ok=True)
    for result in results:
        result.figure.save(docs / "attacks" / f"{result.name}.svg")
    (docs / "attacks.md").write_text(make_document(results), encoding="utf-8")


if __name__ == "__main__":
    write_document(run_attacks(), DOCS)
    print(f"Wrote {DOCS / 'attacks.md'} and {len(ATTACKS)} figures.")
