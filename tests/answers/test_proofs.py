"""Lines of an explanation cite claims, and every claim has its proof."""

import re
from pathlib import Path

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answers.proofs import PROOFS, TITLES, cite, link_proofs, list_proofs

ROOT = Path(__file__).parents[2]


def read_title(claim):
    return re.match(rf"# {claim}: (.*)", (ROOT / PROOFS / f"{claim}.md").read_text())[1]


@pytest.mark.parametrize("claim", TITLES)
def test_titles_are_those_of_the_proofs(claim):
    assert TITLES[claim] == read_title(claim)


@pytest.fixture(scope="module")
def people():
    data = pd.DataFrame({"id": list(range(40)) * 2, "age": [20, 60] * 40, "job": ["a", "b"] * 40})
    columns = {"id": sf.Id(), "age": sf.Integer(0, 120), "job": sf.Text()}
    budget = sf.Budget(epsilon=100, delta="1e-3")
    with sf.protect(data, name="people", unit="id", columns=columns, budget=budget, max_rows_per_unit=2) as curator:
        yield curator


@pytest.mark.parametrize(
    ("sql", "claims"),
    [
        ("SELECT COUNT(*) AS n FROM people", ("K-25", "K-18", "K-09")),
        ("SELECT AVG(age) AS a FROM people", ("K-25", "K-37", "K-18", "K-09")),
        ("SELECT MEDIAN(age) AS a FROM people", ("K-25", "K-31")),
        ("SELECT MAX(age) AS a FROM people", ("K-25", "K-32")),
        ("SELECT job, COUNT(DISTINCT id) AS n FROM people GROUP BY job", ("K-25", "K-21", "K-18", "K-09")),
    ],
)
def test_each_measurement_cites_its_claims(people, sql, claims):
    preview = people.preview(sql, epsilon=1)
    assert preview.measurements[0].claims == claims
    lines = preview.explain().splitlines()
    measured = lines[lines.index("Measurements:") + 1]
    assert measured.endswith(f"[{', '.join(claims)}]")
    assert next(line for line in lines if line.startswith("Privacy loss")).endswith("[K-27, K-17, K-15]")
    assert next(line for line in lines if line.startswith("Contribution bound: 2 rows")).endswith("[K-35]")
    for claim in claims:
        assert f"{claim} ({read_title(claim)})" in lines[-1]


def test_gaussian_noise_cites_its_own_claims():
    data = pd.DataFrame({"age": [20, 60]})
    with sf.protect(
        data, name="people", unit=sf.ROW, columns={"age": sf.Integer(0, 120)},
        budget=sf.Budget(epsilon=1, delta="1e-6", accounting="zcdp"),
    ) as curator:  # fmt: skip
        preview = curator.preview("SELECT COUNT(*) AS n FROM people", rho="0.01")
        assert preview.measurements[0].claims == ("K-25", "K-19", "K-10")


def test_answers_link_to_files_that_exist(people):
    answer = people.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
    page = answer.explain_html()
    links = re.findall(r'<a href="([^"]+)"', page)
    assert {Path(link).stem for link in links} >= {"K-25", "K-18", "K-09", "K-27", "K-35"}
    assert all((ROOT / link).exists() for link in links)
    assert 'href="https://example.org/claims/K-25.md"' in answer.explain_html(proofs="https://example.org/claims")
    assert people.preview("SELECT COUNT(*) AS n FROM people", epsilon=1).explain_html().count("<a href") == len(links)


def test_only_known_claims_are_linked():
    """A text that only looks like a claim stays text, and letters are escaped."""
    assert link_proofs("K-99 <b>") == "<p>K-99 &lt;b&gt;</p>"
    assert "<a" in link_proofs("K-25")
    assert cite("A line.", ()) == "A line."
    assert list_proofs("A line. [K-25]\nK-31 in the text") == f"Proofs in {PROOFS}: K-25 ({TITLES['K-25']})."
