"""SQL text -> syntax tree, or a refusal at line:column. The tree is syntax only: bind.py decides what it means."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.errors import UnsupportedSyntax

MOST_LETTERS = 20_000
MOST_DEPTH = 100
MOST_NODES = 5_000


def parse(sql: str) -> exp.Select:
    """One SELECT statement."""
    if not isinstance(sql, str) or not sql.strip():
        raise UnsupportedSyntax("syntax", "The question must be SQL text.", "Begin with SELECT COUNT(*) FROM a table.")
    if len(sql) > MOST_LETTERS or _depth(sql) > MOST_DEPTH:
        raise UnsupportedSyntax("syntax", "The question is too long or too deeply nested.", "Ask for less at once.")
    try:
        statements = sqlglot.parse(sql, read="duckdb")
    except SqlglotError as error:
        found = (getattr(error, "errors", None) or [{}])[0]
        place = f" at {found['line']}:{found['col']}" if found.get("line") else ""
        raise UnsupportedSyntax(
            "syntax", f"This is not SQL that can be read{place}.", "Check the spelling there."
        ) from None
    except RecursionError:
        raise UnsupportedSyntax("syntax", "The question is too deeply nested.", "Ask for less at once.") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise UnsupportedSyntax(
            "syntax", "A question is one SELECT statement.", "Begin with SELECT, and leave out ';'."
        )
    if sum(1 for _ in statements[0].walk()) > MOST_NODES:
        raise UnsupportedSyntax("syntax", "The question has too many parts.", "Ask for less at once.")
    return statements[0]


def _depth(sql: str) -> int:
    """The deepest nesting of brackets and CASE: a bound on the parser's recursion, roughly."""
    deepest = depth = 0
    for letter in sql:
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, depth)
    words = sql.upper().split()
    return max(deepest, words.count("CASE"), words.count("NOT"))


def place_of(node: exp.Expr) -> str:
    """line:column of the first name below a node, where it is known."""
    for each in node.walk():
        if each.meta.get("line"):
            return f" at {each.meta['line']}:{each.meta['col']}"
    return ""
