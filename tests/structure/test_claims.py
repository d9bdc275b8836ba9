"""Every function that a proof depends on states its claim and the test that checks it; the number names the proof."""

import ast
import re
from pathlib import Path

import pytest
from count_trusted import DOCUMENT, ROOT, list_trusted

LISTED = list(list_trusted(DOCUMENT.read_text()))
PERIMETER = [trusted.path for trusted in LISTED if trusted.claims == "by function"]
NOT_TRUSTED = [  # margins, reading of numbers, and what a question says of its values: claims, but no privacy proof
    *sorted((ROOT / "src" / "sfumato" / "accuracy").glob("*.py")),
    ROOT / "src" / "sfumato" / "standalone" / "grid_margins.py",
    ROOT / "src" / "sfumato" / "number_arguments.py",
    ROOT / "src" / "sfumato" / "query" / "narrowed_values.py",
]
CHARGE = "The charge"  # its files say in their own words what they are for
WHOLE_FILES = [trusted.path for trusted in LISTED if trusted.path not in PERIMETER and trusted.section != CHARGE]
LINES = ("Claim", "Checked by")
SAYS_NOTHING = re.compile(r"^ *(?:Requires|Relies on): nothing|^ *Proof:", re.MULTILINE)
# no proof rests on these: they show, describe, or pass on to a function that has a claim
WITHOUT = {
    ("narrowed_values.py", "Narrowing.combine"),
    ("narrowed_values.py", "Narrowing.widen"),
    ("narrowed_values.py", "combine_narrowings"),
    ("exact.py", "write_plain"),
    ("number_arguments.py", "read_positive_decimal"),
    ("number_arguments.py", "read_privacy_amount"),
    ("number_arguments.py", "read_positive_fraction"),
    ("number_arguments.py", "read_probability"),
    ("number_arguments.py", "read_whole_number"),
    ("bundle.py", "name_bundle_part"),
    ("entropy.py", "Entropy.take"),
    ("neighbours.py", "Neighbours.people_moved"),
    ("neighbours.py", "PrivacyUnit.per_row"),
    ("plan.py", "Grid.middle"),
    ("plan.py", "Grid.span"),
    ("plan.py", "BoundedPlan.reach"),
    ("plan.py", "Quantiles.width"),
    ("plan.py", "Pivot.width"),
    ("plan.py", "Pivot.value"),
    ("plan.py", "Strategy.value"),
    ("plan.py", "take_part"),
    ("plan.py", "Products.width"),
    ("plan.py", "Products.exponent"),
    ("plan.py", "Products.find_multiplier"),
    ("released_steps.py", "count_bins"),
    ("plan.py", "DistinctSum.keys"),
    ("plan.py", "BoundedPlan.holds_pairs"),
    ("key_rounds.py", "KeyRounds.hope"),
    ("key_rounds.py", "KeyRounds.noise"),
    ("key_rounds.py", "KeyRounds.rounds"),
    ("weighted_keys.py", "WeightedKeyRule.noise"),
    ("weighted_keys.py", "list_blocks"),
    ("released_steps.py", "find_exponent"),
    ("expressions.py", "collect_columns"),
    ("expressions.py", "find_kinds"),
    ("expressions.py", "may_be_negative_zero"),
    ("samplers.py", "GeometricCoins.make"),
    ("samplers.py", "draw_in_chunks"),
    ("losses.py", "PureDP.compose"),
    ("losses.py", "ApproxDP.compose"),
    ("losses.py", "ZCDP.compose"),
    ("losses.py", "GDP.mu"),
    ("mechanisms.py", "LaplaceNoise.draw"),
    ("mechanisms.py", "GaussianNoise.draw"),
    ("mechanisms.py", "BoxNoise.draw"),
    ("canonical.py", "has_rule"),
    ("canonical.py", "is_text"),
    ("canonical.py", "is_decimal"),
    ("canonical.py", "is_day"),
    ("canonical.py", "is_moment"),
    ("parsing.py", "choose_sql_type"),
    ("parsing.py", "write_double"),
    ("two_stage.py", "TwoStage.k"),
    ("two_stage.py", "TwoStage.name"),
    ("hadamard.py", "Hadamard.columns"),
    ("hashing.py", "Hashing.buckets"),
    ("hashing.py", "Hashing.seed_bits"),
    ("shifted_noise.py", "ShiftedNoise.outputs"),
    ("shifted_noise.py", "ShiftedNoise.reach"),
    ("mean_tables.py", "Mixture.outputs"),
    ("mean_tables.py", "Mixture.steps"),
    ("mean_tables.py", "Rows.outputs"),
    ("mean_tables.py", "Rows.steps"),
    ("mean_tables.py", "Window.outputs"),
}


def public_functions():
    for path in (*PERIMETER, *NOT_TRUSTED):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield path.name, node.name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield path.name, f"{node.name}.{inner.name}", ast.get_docstring(inner) or ""


FUNCTIONS = {(file, name): doc for file, name, doc in public_functions()}
CLAIMED = {place: doc for place, doc in FUNCTIONS.items() if place not in WITHOUT}


def field(doc, name):
    found = re.search(rf"^{name}: (.*(?:\n {{4}}.*)*)", doc, re.MULTILINE)
    assert found, f"the line '{name}:' is missing"
    return found.group(1)


def defined_tests(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_the_trusted_perimeter_is_what_the_files_say():
    """The list in docs/trusted.md is the one place that names it; each file says that it is part of it."""
    listed = {trusted.path for trusted in LISTED if trusted.path.parent.name != "kernel"}
    assert all(path.exists() for path in listed)
    told = {
        path
        for path in (ROOT / "src").rglob("*.py")
        if "trusted perimeter" in " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    }
    assert told == listed


def test_the_list_of_exceptions_is_current():
    assert set(FUNCTIONS) >= WITHOUT
    assert not any("Claim:" in FUNCTIONS[place] for place in WITHOUT)


@pytest.mark.parametrize("place", sorted(CLAIMED), ids=lambda place: "::".join(place))
def test_the_claim_is_whole(place):
    doc = CLAIMED[place]
    for name in LINES:
        assert field(doc, name).strip()
    assert not SAYS_NOTHING.search(doc), "leave the line out"
    proof = ROOT / proof_of(doc)
    text = proof.read_text()
    function = place[1].split(".")[-1]
    assert len(text) > 400, "a proof is more than a sentence"
    owner = place[1].split(".")[0]
    assert function in text or owner in text or place[0] in index_row(proof.stem), (
        f"{proof.name} does not speak of {place[1]}"
    )
    file, test = field(doc, "Checked by").strip().split("::")
    assert test in defined_tests(ROOT / file), f"{file} has no {test}"


def proof_of(doc):
    number = re.match(r"K-\d\d", field(doc, "Claim"))
    assert number, "a claim begins with its number"
    return f"docs/claims/{number.group()}.md"


def test_a_line_that_says_nothing_is_seen():
    """Negative control."""
    assert SAYS_NOTHING.search("Claim: K-01. x.\n    Requires: nothing.\n")
    assert SAYS_NOTHING.search("Claim: K-01. x.\n    Proof: docs/claims/K-01.md\n")
    assert not SAYS_NOTHING.search("Claim: K-01. x.\n    Requires: x > 0.\n")


def index_row(number):
    rows = (ROOT / "docs" / "claims" / "README.md").read_text().splitlines()
    return next(row for row in rows if row.startswith(f"| [{number}]"))


def test_every_proof_is_used_and_listed():
    used = {proof_of(doc) for doc in CLAIMED.values()}
    there = {f"docs/claims/{path.name}" for path in (ROOT / "docs" / "claims").glob("K-*.md")}
    assert used == there
    for path in there:
        assert index_row(Path(path).stem)


def test_a_file_as_a_whole_names_real_claims():
    there = {path.stem for path in (ROOT / "docs" / "claims").glob("K-*.md")}
    for trusted in LISTED:
        assert trusted.claims == "by function" or set(trusted.claims.split(", ")) <= there, trusted.file


def test_relies_on_names_real_claims():
    there = {path.stem for path in (ROOT / "docs" / "claims").glob("K-*.md")}
    for doc in CLAIMED.values():
        assert set(re.findall(r"K-\d\d", doc)) <= there
    for path in (ROOT / "docs" / "claims").glob("K-*.md"):
        assert set(re.findall(r"K-\d\d", path.read_text())) <= there
