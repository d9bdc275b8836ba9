"""SQL text -> allow-listed syntax tree, or a refusal at line:column. The tree is syntax only: bind.py gives it meaning.

Words are checked before the parser runs (tokens.py); nodes and every argument of each are checked after it (here).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.dialects import DuckDB
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryError, UnsupportedSyntax
from sfumato.query.tokens import HINTS as TOKEN_HINTS
from sfumato.query.tokens import read_tokens

MOST_DEPTH = 60
DP_OPTIONS = "sfumato_dp_options"  # what a tree carries of SELECT WITH DIFFERENTIAL_PRIVACY
_TWO = ("this", "expression")
SHAPES: dict[type[exp.Expr], tuple[str, ...]] = {  # a node -> the arguments that it may have
    exp.Select: ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_"),
    exp.With: ("expressions",), exp.CTE: ("this", "alias"), exp.Subquery: ("this", "alias"),
    exp.Join: ("this", "on", "using", "side", "kind"), exp.Union: ("this", "expression", "distinct", "with_"),
    exp.From: ("this",), exp.Table: ("this", "alias"), exp.TableAlias: ("this",),
    exp.Where: ("this",), exp.Having: ("this",), exp.Group: ("expressions",),
    exp.Order: ("expressions",), exp.Ordered: ("this", "desc", "nulls_first"), exp.Limit: ("expression",),
    exp.Alias: ("this", "alias"), exp.Paren: ("this",), exp.Column: ("this", "table"),
    exp.Identifier: ("this", "quoted"), exp.Star: (), exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",), exp.Null: (), exp.Cast: ("this", "to"), exp.DataType: ("this",),
    exp.And: _TWO, exp.Or: _TWO, exp.Not: ("this",), exp.Neg: ("this",),
    exp.EQ: _TWO, exp.NEQ: _TWO, exp.LT: _TWO, exp.LTE: _TWO, exp.GT: _TWO, exp.GTE: _TWO,
    exp.Add: _TWO, exp.Sub: _TWO, exp.Mul: _TWO, exp.Div: _TWO,
    exp.Is: _TWO, exp.Between: ("this", "low", "high"), exp.In: ("this", "expressions"),
    exp.Like: (*_TWO, "negate"), exp.Case: ("ifs", "default"), exp.If: ("this", "true"),
    exp.Coalesce: ("this", "expressions"), exp.Abs: ("this",), exp.Floor: ("this",), exp.Ceil: ("this",),
    exp.Round: ("this", "decimals"), exp.Count: ("this", "big_int"), exp.Distinct: ("expressions",),
    exp.Min: ("this",), exp.Max: ("this",), exp.Median: ("this",), exp.Mode: ("this",), exp.PercentileCont: _TWO,
    exp.WithinGroup: _TWO, exp.Anonymous: ("this", "expressions"), exp.Var: ("this",),
    exp.TimestampTrunc: ("this", "unit"), exp.DateTrunc: ("this", "unit"), exp.Extract: _TWO,
    exp.DateDiff: ("this", "expression", "unit", "date_part_boundary"), exp.Year: ("this",), exp.Quarter: ("this",),
    exp.Month: ("this",), exp.Week: ("this",), exp.Day: ("this",), exp.DayOfWeek: ("this",), exp.DayOfYear: ("this",),
    exp.Hour: ("this",), exp.Minute: ("this",),
    exp.Sum: ("this",), exp.Avg: ("this",), exp.Variance: ("this",), exp.Stddev: ("this",), exp.StddevSamp: ("this",),
}  # fmt: skip
OPTIONAL = {(exp.PercentileCont, "expression")}
NEEDED = ("this", "expression", "low", "high", "ifs", "true", "to")  # where a node may have them
HINTS = {
    "distinct": "Use GROUP BY, or COUNT(DISTINCT id).",
    "symmetric": "Write BETWEEN low AND high.",
    "columns": "Name the table alone.",
    "db": "Name the table alone.",
    "limit_options": "Write LIMIT 10.",
    "sample": "Ask about the whole table.",
    "recursive": "Write WITH alone.",
    "query": "Join the other table on the person instead.",
    "this": "Write CASE WHEN x = 1 THEN ... END.",
}


def parse(sql: str) -> exp.Select:
    """One SELECT statement."""
    tree = _parse_tokens(sql, clauses=True)
    if not isinstance(tree, exp.Select):
        raise UnsupportedSyntax("syntax", "A question is one SELECT statement.", "Begin with SELECT COUNT(*) FROM.")
    return tree


def parse_expression(sql: str, *, named: bool = False) -> exp.Expr:
    """One expression on its own, with a name (AS ...) only where that is asked for."""
    tree = _parse_tokens(sql, clauses=False)
    if isinstance(tree, exp.Alias) and not named:
        raise syntax_refusal(tree, "A name (AS) does not belong here", "Leave it out.")
    return tree


def _parse_tokens(sql: str, *, clauses: bool) -> exp.Expr:
    tokens, options = read_tokens(sql, clauses=clauses)
    try:
        parser = DuckDB().parser()
        trees = parser.parse(tokens, sql) if clauses else parser.parse_into(exp.Expr, tokens, sql)
    except SqlglotError as error:
        found = (getattr(error, "errors", None) or [{}])[0]
        begin = (found.get("col") or 0) - len(found.get("highlight") or "") + 1
        where = f" at {found['line']}:{max(begin, 1)}" if found.get("line") else ""
        raise UnsupportedSyntax("syntax", f"This is not SQL that can be read{where}.", "Check the spelling.") from None
    except RecursionError:
        raise UnsupportedSyntax("syntax", "The question is too deeply nested.", "Ask for less at once.") from None
    if len(trees) != 1 or trees[0] is None:
        raise UnsupportedSyntax("syntax", "A question is one SELECT statement.", "Ask one question at a time.")
    tree: exp.Expr = trees[0]
    _check(tree)
    if options is not None:
        tree.meta[DP_OPTIONS] = options
    return tree


def _check(tree: exp.Expr) -> None:
    """Every node is on the list, with no argument beyond its own, and none is too deep."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        allowed = SHAPES.get(type(node))
        if allowed is None:
            hint = TOKEN_HINTS.get(name_node(node), "Comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, CASE, + - * / are.")
            raise syntax_refusal(node, f"{name_node(node)} is not supported", hint)
        for name, value in node.args.items():
            if name not in allowed and value is not None and value is not False and value != []:
                hint = HINTS.get(name, "Leave it out.")
                shown = "a value" if name == "this" else name.rstrip("_").upper().replace("_", " ")
                raise syntax_refusal(node, f"{name_node(node)} with {shown} is not supported", hint)
        lacking = [name for name in NEEDED if name in allowed and node.args.get(name) in (None, [])]
        if any((type(node), name) not in OPTIONAL for name in lacking):
            raise syntax_refusal(node, f"{name_node(node)} lacks a value", "Give it one.")
        if isinstance(node, exp.Group) and not node.expressions:
            raise syntax_refusal(node, "GROUP BY has no key", "Name the columns to group by, or leave GROUP BY out.")
        if isinstance(node, exp.Subquery) and not isinstance(node.parent, (exp.From, exp.Join, exp.Union, exp.CTE)):
            raise syntax_refusal(node, "A subquery cannot stand here", TOKEN_HINTS["SELECT"])
        if depth > MOST_DEPTH:
            raise syntax_refusal(node, "The question is too deeply nested", "Ask for less at once.")
        chained = isinstance(node, (exp.And, exp.Or))  # a flatten of these is one flat list
        waiting.extend(
            (each, depth + (not chained or type(each) is not type(node))) for each in node.iter_expressions()
        )


def locate(node: exp.Expr) -> str:
    """line:column of the first name, function or value below a node; near it, where it has none of its own."""
    above: exp.Expr | None = node
    while above is not None:
        found = [each.meta for each in above.walk() if each.meta.get("line")]
        if found:
            first = min(found, key=lambda meta: int(meta["start"]))
            begin = max(first["col"] - (first["end"] - first["start"]), 1)
            return f" {'at' if above is node else 'near'} {first['line']}:{begin}"
        above = above.parent
    return ""


def name_node(node: exp.Expr) -> str:
    """What a node is called in SQL."""
    return {"ordered": "ORDER BY", "group": "GROUP BY"}.get(node.key, node.key.upper())


def syntax_refusal(node: exp.Expr, what: str, hint: str) -> UnsupportedSyntax:
    return UnsupportedSyntax("syntax", f"{what}{locate(node)}.", hint)


@contextmanager
def locate_errors(node: exp.Expr) -> Iterator[None]:
    """Say where, in a refusal of something that does not know its place."""
    try:
        yield
    except QueryError as error:
        message = f"{error.message.rstrip('.')}{locate(node)}."
        raise type(error)(error.code, message, error.hint) from None
