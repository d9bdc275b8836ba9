"""Groups that nobody is in: every declared key is released. Plain SQL has no such groups, and a warning says so."""

from sqlglot import exp

from sfumato.query.decided_comparisons import add_caution
from sfumato.query.row_expressions import has_aggregate

COUNTS_GROUPS = (exp.Count, exp.Avg, exp.Min, exp.Median, exp.Variance, exp.Stddev, exp.StddevSamp, exp.Quantile)
COUNTED = (
    "COUNT, AVG, MIN and the like over groups include groups that nobody is in: every declared key is released, with "
    "noise around 0. Plain SQL has no such groups. HAVING COUNT(*) > m leaves most of them out, with m the margin."
)
LIMITED = (
    "LIMIT and OFFSET count groups that nobody is in: every declared key is released, with noise around 0. Plain SQL "
    "has no such groups. HAVING COUNT(*) > m leaves most of them out, with m the margin."
)


def warn_of_empty_groups(tree: exp.Query, finished: exp.Query) -> None:
    """Add a warning where rows of the answer depend on how many groups there are. The keys are declared."""
    over_groups = (node for node in finished.walk() if isinstance(node, COUNTS_GROUPS))
    if any(node.find_ancestor(exp.Window) is None for node in over_groups):
        add_caution(COUNTED)
    if any(_takes_first_keys(select) for select in tree.find_all(exp.Select)):
        add_caution(LIMITED)


def _takes_first_keys(select: exp.Select) -> bool:
    """Does it take the first groups by key? Where groups are sorted by a count, those of nobody are the last."""
    group, order = select.args.get("group"), select.args.get("order")
    if group is None or not (select.args.get("limit") or select.args.get("offset")) or select.args.get("having"):
        return False
    first = None if order is None else order.expressions[0].this
    if isinstance(first, exp.Literal) and str(first.this).isdigit():
        place = int(str(first.this)) - 1
        first = select.expressions[place] if place < len(select.expressions) else None
    named = first.name.lower() if isinstance(first, exp.Column) else None
    meant = next((selected for selected in select.expressions if named and selected.alias.lower() == named), first)
    return meant is None or not has_aggregate(meant)
