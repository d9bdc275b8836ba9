"""Syntax tree -> SQL text that `parse` reads back as the same question."""

import re

from sqlglot import exp

from sfumato.query.tokens import DIALECT

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNBRACKETED = (exp.Where, exp.Having, exp.Group, exp.Select, exp.Alias)  # a whole part of these needs no brackets
DATE_TYPES = {exp.DType.DATE: "DATE", exp.DType.TIMESTAMPNTZ: "TIMESTAMP"}
PRINTED_AS_THEY_ARE = frozenset({  # the printer reads these, and changes none: a tree of them needs no copy
    exp.Select, exp.From, exp.Table, exp.Where, exp.Group, exp.Order, exp.Ordered, exp.Limit, exp.Column, exp.Alias,
    exp.TableAlias, exp.Literal, exp.Star, exp.Count, exp.Sum, exp.Avg, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ,
    exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.In, exp.Between, exp.Is, exp.Null,
})  # fmt: skip


def print_sql(tree: exp.Expr) -> str:
    """Print a tree. The tree itself is changed: pass a copy if it is needed afterwards."""
    for node in list(tree.find_all(exp.Cast, exp.DateDiff, exp.WithinGroup, exp.ToChar, exp.Distinct)):
        if isinstance(node, exp.Distinct):
            _print_list(node)
        elif not isinstance(node, exp.Cast) or _is_moment(node):
            printable = _build_printable(node)
            tree = printable if node is tree else tree
            node.replace(printable)
    return _write(tree)


def _write(tree: exp.Expr) -> str:
    return str(DIALECT.generate(tree, comments=False, copy=False))  # tree.sql() would look the dialect up again


def name_expression(node: exp.Expr) -> str:
    """The name of an output column that has no other: its text in lower case."""
    tree = node.copy()
    for part in list(tree.find_all(exp.Distinct, exp.ToChar)):
        if isinstance(part, exp.Distinct):
            _print_list(part)
            continue
        given = [part.this.copy(), *([part.args["format"].copy()] if part.args.get("format") else [])]
        made = exp.Anonymous(this="TO_CHAR", expressions=given)  # the printer would leave the format out
        tree = made if part is tree else tree
        part.replace(made)
    return tree.sql(dialect="duckdb").lower()


def _print_list(node: exp.Distinct) -> None:
    """Change COUNT(DISTINCT a, b), which the printer would write as a CASE."""
    if len(node.expressions) > 1:
        listed = ", ".join(part.sql(dialect=DIALECT, comments=False) for part in node.expressions)
        node.set("expressions", [exp.Var(this=listed)])


def _is_moment(node: exp.Cast) -> bool:
    """Is it DATE '2026-01-31' or TIMESTAMP '...', which is parsed as a cast of a text?"""
    return node.to.this in DATE_TYPES and isinstance(node.this, exp.Literal)


def _build_printable(node: exp.Expr) -> exp.Expr:
    """A node with the same meaning that is printed as `parse` accepts it."""
    match node:
        case exp.Cast():  # DATE '2026-01-31', which the printer would write as a CAST
            return exp.Introducer(this=exp.Var(this=DATE_TYPES[node.to.this]), expression=node.this)
        case exp.DateDiff():  # the printer would CAST the text of a day
            unit = exp.Literal.string(node.args["unit"].name.lower())
            return exp.Anonymous(this="DATE_DIFF", expressions=[unit, node.expression, node.this])
        case exp.ToChar():  # the printer would leave the format out
            return exp.Anonymous(this="TO_CHAR", expressions=[node.this, node.args["format"]])
    (term,) = node.expression.expressions  # PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)
    fraction = node.this.this
    if term.args.get("desc"):
        fraction = exp.Sub(this=exp.Literal.number(1), expression=exp.Paren(this=fraction))
    return exp.PercentileCont(this=term.this, expression=fraction)


def normalise_sql(tree: exp.Expr) -> str:
    """Print a tree in one normal form: no needless quotes or brackets, keywords in upper case, single spaces."""
    if all(_is_normal(node) for node in tree.walk()):
        return _write(tree)
    copied = tree.copy()
    brackets = []
    for node in copied.find_all(exp.Identifier, exp.Paren):
        if isinstance(node, exp.Paren):
            brackets.append(node)
        elif PLAIN_NAME.fullmatch(node.this):
            node.set("quoted", False)
    for node in brackets:
        if isinstance(node.parent, UNBRACKETED):
            node.replace(node.this)
    return print_sql(copied)


def _is_normal(node: exp.Expr) -> bool:
    """Is the node printed in normal form without a change to it?"""
    kind = type(node)
    return kind in PRINTED_AS_THEY_ARE or (kind is exp.Identifier and not node.args.get("quoted"))
