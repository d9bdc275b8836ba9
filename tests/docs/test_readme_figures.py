"""The README's figures are those of the pages that it names as their source."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RATIOS = [
    (cells[1].strip(), float(cells[8]))
    for line in (ROOT / "docs" / "accuracy.md").read_text().splitlines()
    if len(cells := line.split("|")) == 12 and re.fullmatch(r" \d+\.\d+ ", cells[8])
]


def write_range(pattern):
    found = [ratio for name, ratio in RATIOS if re.fullmatch(pattern, name)]
    low, high = (f"{abs(end(found) - 1e-9):.2f}" for end in (min, max))  # 0.985 is 0.98, as in the page's own summary
    return low if low == high else f"{low} to {high}"


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("means {}", r"Mean [a-z]+"), ("rows {}", r"Mean .*, n public"), ("variances {}", r"Variance of [a-z]+"),
        ("({})", r"Variance .*, n public"), ("counts and sums {}", r"(Count|Sum|Histogram).*"),
        ("medians {}", r"Median .*"),
    ],
)  # fmt: skip
def test_ratios_are_those_of_the_page(words, pattern):
    assert words.format(write_range(pattern)) in README


@pytest.mark.parametrize(
    ("figures", "page"),
    [
        (("1,392", "892"), "accuracy.md"), (("79,000 reports per second",), "deploy-a-survey.md"),
    ],
)  # fmt: skip
def test_other_figures_are_on_their_page(figures, page):
    source = (ROOT / "docs" / page).read_text()
    for figure in figures:
        assert figure in README
        assert re.search(rf"\b{re.escape(figure)}\b", source)


def test_scores_of_learners_are_those_of_the_page():
    learned = (ROOT / "docs" / "learning-accuracy.md").read_text()
    rows, better, ties = re.search(
        r"Of (\d+) rows, (\d+) are better, (\d+) are ties and none is worse", learned
    ).groups()
    assert f"{better} of {rows} rows better, {ties} ties, none worse" in README


def test_every_row_of_figures_names_its_source():
    rows = [line for line in README.splitlines() if line.startswith("| **")]
    assert len(rows) >= 8
    for row in rows:
        assert "](docs/" in row or "`bench/" in row, row


def test_it_is_two_screens_before_more():
    """A screen has about 50 lines of 120 letters."""
    shown = README.partition("\n## More")[0].splitlines()
    assert sum(1 + len(re.sub(r"\]\([^)]*\)", "]", line)) // 120 for line in shown) <= 100
