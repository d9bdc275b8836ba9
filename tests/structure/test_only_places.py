"""Three statements say "only". Each is searched for in all of the source, and each search can find something.

Noise is added to a dataset's exact aggregates only in kernel/release.py. Only the ledger makes reservations. All
randomness, that of keys included, comes from kernel/entropy.py only.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
FILES = {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
INSIDE = {"_integers", "_bins", "_holdings"}  # the slots of ExactAggregates
SAMPLERS = {
    "discrete_laplace",
    "discrete_gaussian",
    "rounded_gaussian",
    "geometric",
    "draw_two_sided",
    "draw_one_sided",
    "draw_accepted",
    "draw_in_box",
}
DRAWS = {".draw", "choose_cells", *SAMPLERS}
MAKES_KEYS = {"generate", "generate_key", "generate_private_key", "token_bytes", "token_hex", "randbits"}
PRINTERS = {"engines/sql/dialect.py", "query/sql_text.py"}  # their `generate` is sqlglot's, which prints SQL
# a replay compares the integers of made-up rows, on a ledger that is thrown away (tests/lab/test_query_replay.py)
RECORDS = "lab/auditing/recorded_release.py"
RELEASE, RESERVES, RANDOM = "kernel/release.py", "ledger/charging.py", "kernel/entropy.py"
# the samplers themselves, and mechanisms for numbers that a program passes: no dataset's aggregates
DRAWING_FILES = {
    f"kernel/{name}.py" for name in ("samplers", "rounded_gaussian", "mechanisms", "bin_choice", "above_threshold")
}
DRAWING_FILES |= {f"standalone/mechanisms/{name}.py" for name in ("additive_noise", "key_release")}
DRAWING_FILES.add("lab/auditing/recomputed_release.py")  # draws again from recorded bytes, to compare; releases nothing
DRAWING_FILES.add("lab/auditing/choice_sampling.py")  # chooses among given weights to test probabilities; reads no data
DRAWING_FILES.add("lab/auditing/noise_distribution.py")  # draws noise to test its distribution; adds it to nothing
DRAWING_FILES.add("lab/auditing/real_mechanisms.py")  # adds noise to made-up numbers, to audit the samplers
DRAWING_FILES.add("learning/array_statistics.py")  # sums of arrays that a program passes: no dataset's aggregates


def reads_aggregates(text):
    """Does the text read a private slot of ExactAggregates?"""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in INSIDE
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        for node in ast.walk(ast.parse(text))
    )


def calls(text, names):
    """Is a function or method of one of these names called? A name that begins with a dot is a method's."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and {node.func.attr, f".{node.func.attr}"} & names:
                return True
            if isinstance(node.func, ast.Name) and node.func.id in names:
                return True
    return False


@pytest.mark.parametrize("file", FILES)
def test_noise_meets_aggregates_only_in_release(file):
    assert not reads_aggregates(FILES[file]) or file in {RELEASE, RECORDS}
    assert not calls(FILES[file], DRAWS) or file in {RELEASE, *DRAWING_FILES} or file.startswith("local/")


@pytest.mark.parametrize("file", FILES)
def test_only_the_ledger_makes_reservations(file):
    assert not calls(FILES[file], {"Reservation"}) or file == RESERVES


@pytest.mark.parametrize("file", FILES)
def test_keys_are_made_of_the_kernels_entropy(file):
    assert not calls(FILES[file], MAKES_KEYS - {"generate"} if file in PRINTERS else MAKES_KEYS) or file == RANDOM


def test_the_local_model_has_no_aggregates():
    assert not any("ExactAggregates" in text for file, text in FILES.items() if file.startswith("local/"))


def test_the_searches_can_find_something():
    """Negative control."""
    assert reads_aggregates("x = exact._integers")
    assert reads_aggregates(FILES[RELEASE])
    assert not reads_aggregates("class A:\n    def f(self):\n        return self._bins")
    assert calls("noise.draw(3, entropy)", DRAWS)
    assert calls("discrete_laplace(scale, 3, entropy)", DRAWS)
    assert not calls("draw(exact)", DRAWS)
    assert calls(FILES[RELEASE], DRAWS)
    assert calls("x = Reservation(1, certificate)", {"Reservation"})
    assert calls(FILES[RESERVES], {"Reservation"})
    assert calls("key = Ed25519PrivateKey.generate()", MAKES_KEYS)
    assert not calls("key = read_key(make_secret())", MAKES_KEYS)
