"""SQL text -> allow-listed syntax tree, or a refusal at line:column. The tree holds syntax only; bind.py resolves it.

tokens.py checks the words before the parser runs. This file checks every node and its arguments afterwards.
"""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from sfumato.errors import QueryError, UnsupportedSyntax
from sfumato.query import function_words
from sfumato.query.hints import WORD_HINTS
from sfumato.query.plain_syntax import rewrite_syntax
from sfumato.query.result_functions import RESULT_SHAPES
from sfumato.query.tokens import BEGIN, DIALECT, SHORTEN, read_tokens, shorten

MOST_DEPTH = 60
DP_OPTIONS = "sfumato_dp_options"  # the metadata key of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...)
_TWO = ("this", "expression")
SHAPES: dict[type[exp.Expr], tuple[str, ...]] = {  # a node -> the arguments that are allowed
    exp.Select: (
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_", "offset", "distinct",
        "qualify", "windows",
    ),
    exp.With: ("expressions",), exp.CTE: ("this", "alias"), exp.Subquery: ("this", "alias"),
    exp.Join: ("this", "on", "using", "side", "kind", "method"),
    exp.Union: ("this", "expression", "distinct", "with_", "order", "limit", "offset"),
    exp.From: ("this",), exp.Table: ("this", "alias", "db", "catalog"), exp.TableAlias: ("this",),
    exp.Where: ("this",), exp.Having: ("this",), exp.Group: ("expressions", "all", "rollup", "cube"),
    exp.Order: ("expressions",), exp.Ordered: ("this", "desc", "nulls_first"), exp.Limit: ("expression",),
    exp.Alias: ("this", "alias"), exp.Paren: ("this",), exp.Column: ("this", "table", "db"),
    exp.Identifier: ("this", "quoted"), exp.Star: (), exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",), exp.Null: (), exp.Cast: ("this", "to"), exp.DataType: ("this", "expressions"),
    exp.And: _TWO, exp.Or: _TWO, exp.Not: ("this",), exp.Neg: ("this",),
    exp.EQ: _TWO, exp.NEQ: _TWO, exp.LT: _TWO, exp.LTE: _TWO, exp.GT: _TWO, exp.GTE: _TWO,
    exp.Add: _TWO, exp.Sub: _TWO, exp.Mul: _TWO, exp.Div: _TWO,
    exp.Is: _TWO, exp.Between: ("this", "low", "high"), exp.In: ("this", "expressions", "query"),
    exp.Like: (*_TWO, "negate"), exp.Case: ("ifs", "default"), exp.If: ("this", "true"),
    exp.Coalesce: ("this", "expressions"), exp.Abs: ("this",), exp.Floor: ("this",), exp.Ceil: ("this",),
    exp.Round: ("this", "decimals"), exp.Count: ("this", "big_int"), exp.Distinct: ("expressions",),
    exp.Corr: _TWO, exp.CovarSamp: _TWO, exp.CovarPop: _TWO, exp.RegrSlope: _TWO, exp.RegrIntercept: _TWO,
    exp.RegrR2: _TWO, exp.RegrSxx: _TWO, exp.RegrSyy: _TWO, exp.RegrSxy: _TWO, exp.RegrCount: _TWO,
    exp.RegrAvgx: _TWO, exp.RegrAvgy: _TWO,
    exp.ApproxDistinct: ("this",), exp.Tuple: ("expressions",),
    exp.Min: ("this",), exp.Max: ("this",), exp.Median: ("this",), exp.Mode: ("this",), exp.PercentileCont: _TWO,
    exp.WithinGroup: _TWO, exp.Anonymous: ("this", "expressions"), exp.Var: ("this",),
    exp.TimestampTrunc: ("this", "unit"), exp.DateTrunc: ("this", "unit"), exp.Extract: _TWO,
    exp.DateDiff: ("this", "expression", "unit", "date_part_boundary"), exp.Year: ("this",), exp.Quarter: ("this",),
    exp.Month: ("this",), exp.Week: ("this",), exp.Day: ("this",), exp.DayOfWeek: ("this",), exp.DayOfYear: ("this",),
    exp.Hour: ("this",), exp.Minute: ("this",),
    exp.Sum: ("this",), exp.Avg: ("this",), exp.Variance: ("this",), exp.Stddev: ("this",), exp.StddevSamp: ("this",),
}  # fmt: skip
SHAPES = RESULT_SHAPES | SHAPES | function_words.SHAPES
_REQUIRED = {"this", "expression", "low", "high", "ifs", "true", "to"}  # of a node that may have them
NEEDED = {kind: _REQUIRED.intersection(allowed) for kind, allowed in SHAPES.items()}
NEEDED[exp.PercentileCont] = {"this"}  # PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x) has no second value
NEEDED |= function_words.NOT_REQUIRED
CHAINS = (exp.And, exp.Or, exp.DPipe)
SQL_NAMES = {  # of nodes whose own name is not what people write
    "ordered": "ORDER BY", "order": "ORDER BY", "group": "GROUP BY", "timetostr": "STRFTIME", "dpipe": "||",
    "intdiv": "//", "mod": "%", "subquery": "A subquery", "tuple": "A list in brackets", "array": "A list",
    "window": "OVER", "percentilecont": "PERCENTILE_CONT", "withingroup": "WITHIN GROUP", "cast": "CAST",
    "trycast": "TRY_CAST", "approxdistinct": "APPROX_COUNT_DISTINCT",
}  # fmt: skip
HINTS = {  # an unsupported argument of a node -> what to write instead
    "distinct": "Leave DISTINCT out, if no value occurs twice. COUNT(DISTINCT x) counts different values.",
    "symmetric": "Write BETWEEN low AND high.",
    "columns": "Name the table without a list of columns.",
    "limit_options": "Write LIMIT 10.",
    "sample": "Ask about the whole table: that is more accurate. A sample has other numbers.",
    "recursive": "Write WITH without RECURSIVE.",
}
MISSPELT = ("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "BETWEEN", "DISTINCT", "SELECT")
JOIN_A_SUBQUERY = (
    "Write the join as a subquery that selects the columns you need: "
    "LEFT JOIN (SELECT v.id, s.region FROM visits v JOIN sites s ON s.site = v.site) x ON x.id = p.id."
)
SAME_WITHOUT = "Leave it out, if the question means the same without it."
EXPRESSIONS = "Supported: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE and + - * /."


def parse(sql: str) -> exp.Query:
    """Parse one SELECT statement, or several that UNION ALL joins."""
    tree = _parse_tokens(sql, clauses=True)
    if not isinstance(tree, exp.Query):
        raise UnsupportedSyntax("syntax", "A question is one SELECT statement.", BEGIN)
    return tree


def parse_expression(sql: str, *, named: bool = False) -> exp.Expr:
    """Parse one expression. Only with `named` may it have a name (AS ...)."""
    tree = _parse_tokens(sql, clauses=False)
    for node in tree.walk():
        if node.meta.get("line"):
            node.meta["fragment"] = sql  # for messages: a position counts from the beginning of this text
    if isinstance(tree, exp.Alias) and not named:
        raise build_syntax_refusal(tree, "A name (AS ...) cannot be given here", "Leave it out.")
    return tree


def _parse_tokens(sql: str, *, clauses: bool) -> exp.Expr:
    tokens, options = read_tokens(sql, clauses=clauses)
    try:
        parser = DIALECT.parser()
        trees = parser.parse(tokens, sql) if clauses else parser.parse_into(exp.Expr, tokens, sql)
    except SqlglotError as error:
        found = (getattr(error, "errors", None) or [{}])[0]
        begin = (found.get("col") or 0) - len(found.get("highlight") or "") + 1
        where = f" at {found['line']}:{max(begin, 1)}" if found.get("line") else ""
        message = f"The SQL cannot be parsed{where}."
        raise UnsupportedSyntax("syntax", message, _suggest_spelling(tokens)) from None
    except RecursionError:
        raise UnsupportedSyntax("syntax", "The question is too deeply nested.", SHORTEN) from None
    if len(trees) != 1 or trees[0] is None:
        raise UnsupportedSyntax("syntax", "A question is one SELECT statement.", "Ask one question at a time.")
    tree = rewrite_syntax(trees[0])
    _check_nodes(tree)
    if options is not None:
        tree.meta[DP_OPTIONS] = options
    return tree


def _suggest_spelling(tokens: Sequence[Token]) -> str:
    """The keyword that a name probably means, after the parser failed."""
    for token in tokens:
        close = difflib.get_close_matches(token.text.upper(), MISSPELT, 1, 0.75)
        if close and close[0] != token.text.upper():
            return f"Did you mean {close[0]} instead of {shorten(token.text)}? Check also the commas."
    return "Check the spelling and the commas before it."


def _check_nodes(tree: exp.Expr) -> None:
    """Check that every node is on the list, has only the arguments listed for it, and is not too deep."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        kind = type(node)
        allowed = SHAPES.get(kind)
        if allowed is None:
            hint = WORD_HINTS.get(name_node(node), EXPRESSIONS)
            raise build_syntax_refusal(node, f"{name_node(node)} is not supported", hint)
        if depth > MOST_DEPTH:
            raise build_syntax_refusal(node, "The question is too deeply nested", SHORTEN)
        present = set()
        for name, value in node.args.items():
            if value is None or (isinstance(value, list) and not value):
                continue
            if name not in allowed:
                if value is False:
                    continue
                raise _build_argument_refusal(node, name)
            present.add(name)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr):
                    # a chain of AND, or of OR, counts as one level
                    chained = kind in CHAINS and type(child) is kind
                    waiting.append((child, depth if chained else depth + 1))
        if not NEEDED[kind] <= present:
            raise build_syntax_refusal(node, f"{name_node(node)} lacks a value", "Add the value.")
        if kind is exp.Group and not present:
            raise build_syntax_refusal(
                node, "GROUP BY has no key", "Name the columns to group by, or leave GROUP BY out."
            )


def _build_argument_refusal(node: exp.Expr, name: str) -> UnsupportedSyntax:
    if isinstance(node, exp.Order):  # MEDIAN(x ORDER BY y)
        return build_syntax_refusal(node, "ORDER BY inside a function is not supported", "Leave it out.")
    if isinstance(node, exp.Table) and name == "joins":  # a LEFT JOIN (b JOIN c ...)
        what = "A join in brackets on the right side of a join is not supported"
        return build_syntax_refusal(node, what, JOIN_A_SUBQUERY)
    shown = "this value" if name == "this" else name.rstrip("_").upper().replace("_", " ")
    return build_syntax_refusal(node, f"{name_node(node)} with {shown} is not supported", HINTS.get(name, SAME_WITHOUT))


def locate(node: exp.Expr) -> str:
    """Write " at line:column" of the first name, function or value in a node; " near" if only a parent has one."""
    above: exp.Expr | None = node
    while above is not None:
        found = [inner.meta for inner in above.walk() if inner.meta.get("line")]
        if found:
            first = min(found, key=lambda meta: int(meta["start"]))
            begin = max(first["col"] - (first["end"] - first["start"]), 1)
            fragment = f" of '{shorten(first['fragment'])}'" if "fragment" in first else ""
            return f" {'at' if above is node else 'near'} {first['line']}:{begin}{fragment}"
        above = above.parent
    return ""


def name_node(node: exp.Expr) -> str:
    """The name of a node in SQL."""
    if node.key in SQL_NAMES:
        return SQL_NAMES[node.key]
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    return node.sql_name() if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) else node.key.upper()


def build_syntax_refusal(node: exp.Expr, what: str, hint: str) -> UnsupportedSyntax:
    """An error that says what is not supported, where, and what to write instead.

    The position goes where `what` has [at], or to its end.
    """
    place = locate(node)
    return UnsupportedSyntax("syntax", (what.replace("[at]", place) if "[at]" in what else what + place) + ".", hint)


@contextmanager
def locate_errors(node: exp.Expr) -> Iterator[None]:
    """Add a node's position to an error from code that does not know the position."""
    try:
        yield
    except QueryError as error:
        message = f"{error.message.rstrip('.')}{locate(node)}."
        raise type(error)(error.code, message, error.hint) from None
