"""Snowflake's DP_INTERVAL_LOW(n) and DP_INTERVAL_HIGH(n) in the outermost SELECT: the ends of the interval of n."""

from sqlglot import exp

from sfumato.catalog.names import fold
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import IntervalColumn
from sfumato.query.relation import refuse_second
from sfumato.query.sql_text import name_expression

ENDS = {"DP_INTERVAL_LOW": False, "DP_INTERVAL_HIGH": True}  # the function -> is it the upper end?
HIDDEN = "__sfumato_interval"  # of columns that only an end needs: no answer shows them
ALONE = "Write SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n), DP_INTERVAL_HIGH(n) FROM ..., and compute with them in Python."


def take_interval_columns(tree: exp.Query) -> tuple[exp.Query, tuple[IntervalColumn, ...]]:
    """Take these columns out of a question. What they are about stays in it, under a hidden name if it has none."""
    found_ends = [node for node in tree.find_all(exp.Anonymous) if _is_end(node)]
    if not found_ends:
        return tree, ()
    selected = [id(node.unalias()) for node in tree.expressions] if isinstance(tree, exp.Select) else []
    for node in found_ends:
        if id(node) not in selected:
            what = f"{str(node.this).upper()}[at] can only be a column of its own in the outermost SELECT"
            raise build_syntax_refusal(node, what, ALONE)
    made = tree.copy()
    made.meta.update(tree.meta)
    _refuse_other_places(made)
    kept = [node for node in made.expressions if not _is_end(node.unalias())]
    found: list[IntervalColumn] = []
    for place, node in enumerate(made.expressions):
        bare = node.unalias()
        if not _is_end(bare):
            continue
        if len(bare.expressions) != 1:
            raise build_syntax_refusal(node, f"{str(bare.this).upper()}[at] needs one column", ALONE)
        (value,) = bare.expressions
        name = node.alias or name_expression(bare)
        refuse_second(node, name, [*(one.alias_or_name for one in kept), *(one.name for one in found)])
        found.append(IntervalColumn(name, place, _name_value(value, kept), ENDS[str(bare.this).upper()]))
    made.set("expressions", kept)
    return made, tuple(found)


def _is_end(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in ENDS


def _name_value(value: exp.Expr, kept: list[exp.Expr]) -> str:
    """The name of the selected column that is meant. If none is, it is selected too."""
    for node in kept:
        named = isinstance(value, exp.Column) and not value.table and fold(node.alias_or_name) == fold(value.name)
        if named or (node.alias_or_name and node.unalias() == value):
            return str(node.alias_or_name)
    name = f"{HIDDEN}{len(kept)}"
    kept.append(exp.Alias(this=value.copy(), alias=exp.Identifier(this=name, quoted=True)))
    return name


def _refuse_other_places(tree: exp.Query) -> None:
    """GROUP BY 1 and ORDER BY 2 count columns from the left: an end before them would move them."""
    first = next(place for place, node in enumerate(tree.expressions) if _is_end(node.unalias()))
    for clause in ("group", "order"):
        for node in tree.args[clause].find_all(exp.Literal) if tree.args.get(clause) is not None else ():
            text = str(node.this)
            ordinal = not node.is_string and isinstance(node.parent, exp.Group | exp.Ordered) and text.isdigit()
            if ordinal and int(text) > first:
                raise build_syntax_refusal(node, f"Column {text}[at] comes after an end of an interval", "Name it.")
