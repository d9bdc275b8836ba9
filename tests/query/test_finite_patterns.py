"""Regular expressions of finitely many texts: the conditions that replace them are what DuckDB's own matching says."""

import re
from itertools import product

import duckdb
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.query.finite_patterns import compare_with_texts, list_texts
from sfumato.query.parse import parse_expression

FINITE = (
    "^A[12]$", "^B", "b$", "ab", "a|b", "^(a|b)c$", "^(?:a|bc)?d", "x?y", "[a-c]1", "a\\.b", "^a b$", "[0-3][ab]?$",
    "a-b", "(a|ab)(c|bc)",
)  # fmt: skip
REFUSED = (
    "a*", "a+", "a.b", "[^a]", "^a|b$", "a{2}", "(a", "a)", "[", "[]", "\\d", "a??", "(?i)a", "", "a|", "[a-Z]", "é",
    "a$b", "a^b", "[-a]", "a\\", "[[:alpha:]]", "x" * 300, "[a-z][a-z]",
)  # fmt: skip
VALUES = [
    *("".join(letters) for size in range(4) for letters in product("ab1cd.", repeat=size)), "A1", "A3", "B", "BA", "xy",
    "y", "a b", "a-b", "abc", "a\nb", "b\n", "\nb", "é", "3a", "aab", None,
]  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("pattern", FINITE)
def test_a_pattern_is_what_duckdb_says(pattern, whole):
    made = compare_with_texts(exp.column("x"), exp.Literal.string(pattern), whole=whole)
    name = "REGEXP_FULL_MATCH" if whole else "REGEXP_MATCHES"
    table = duckdb.connect()
    table.execute("CREATE TABLE t (x VARCHAR)")
    table.executemany("INSERT INTO t VALUES (?)", [[value] for value in VALUES])
    quoted = exp.Literal.string(pattern).sql(dialect="duckdb")
    wrong = table.execute(
        f"SELECT x FROM t WHERE ({made.sql(dialect='duckdb')}) IS DISTINCT FROM {name}(x, {quoted})"
    ).fetchall()
    assert wrong == []


@pytest.mark.parametrize("pattern", REFUSED)
def test_other_patterns_are_refused(pattern):
    assert list_texts(pattern) is None


def test_the_texts_match_the_pattern():
    """Another witness: Python's own matching of each text."""
    for pattern in FINITE:
        texts, _, _ = list_texts(pattern)
        assert all(re.search(pattern, text) for text in texts)


@pytest.mark.parametrize("text", ["REGEXP_MATCHES(job, 'a.*b')", "REGEXP_CONTAINS(job, '[^x]')", "REGEXP_LIKE(job, k)"])
def test_a_refusal_names_the_alternatives(text):
    with pytest.raises(sf.errors.UnsupportedSyntax, match="finitely many texts"):
        parse_expression(text)
