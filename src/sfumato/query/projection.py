"""A subquery of row-level expressions: the outer query uses the expressions in place of its column names."""

from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.kernel.row_sources import derive_extent
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Typed
from sfumato.query.relation import DERIVED, FromItem, Relation, Scope, read_column_name
from sfumato.query.row_expressions import RowBinder
from sfumato.query.size_limits import refuse_large_expression
from sfumato.query.tokens import shorten


def bind_projection(node: exp.Select, inner: Relation) -> Relation:
    """Bind a SELECT of row-level expressions. The outer query then uses the expressions themselves."""
    binder, scope = RowBinder(inner.scope), inner.scope
    columns: dict[str, Typed] = {}
    person: set[str] = set()
    links: dict[str, tuple[str, str]] = {}
    public: dict[str, int] = {}
    partners: dict[str, Typed] = {}
    left_out: set[str] = set()
    for selected in node.expressions:
        if isinstance(selected, exp.Star) or (isinstance(selected, exp.Column) and isinstance(selected.this, exp.Star)):
            starred = isinstance(selected, exp.Star)
            shown = [item for item in scope.items if not item.hidden]
            for item in _find_items(scope, selected) if isinstance(selected, exp.Column) else shown:
                names = [name for name in item.columns if not (starred and name in item.merged)]
                taken = {name for name in names if find_name(name, columns) is not None}
                left_out |= taken  # the first column has the name, as in DuckDB
                added = {name: typed for name, typed in item.columns.items() if name in names and name not in taken}
                columns |= added
                person |= item.person & added.keys()
                links |= {name: link for name, link in item.links.items() if name in added}
                partners |= {name: partner for name, partner in item.partners.items() if name in added}
                public |= {name: most for name, most in (item.public or {}).items() if name in added}
            continue
        name = read_column_name(selected, columns)
        bare = selected.unalias()
        if isinstance(bare, exp.Column):
            item, column = scope.resolve(bare)
            columns[name] = item.columns[column]
            person |= {name} if column in item.person else set()
            links |= {name: item.links[column]} if column in item.links else {}
            partners |= {name: item.partners[column]} if column in item.partners else {}
            public |= {name: item.public[column]} if item.public and column in item.public else {}
        else:
            columns[name] = binder.bind(bare)
            if columns[name].type == "null":
                raise build_syntax_refusal(
                    selected, "NULL cannot be a column of its own", "Leave it out, or give a value."
                )
            refuse_large_expression(bare, columns[name].expression)
    made = FromItem(
        "",
        columns,
        DERIVED,
        frozenset(person),
        links,
        None if derive_extent(inner.source).private else public,
        partners=partners,
        left_out=frozenset(left_out),
    )
    return replace(inner, items=(made,))


def _find_items(scope: Scope, node: exp.Column) -> list[FromItem]:
    found = [item for item in scope.items if find_name(node.table, (item.alias,)) is not None]
    if not found:
        raise build_syntax_refusal(node, f"There is no table '{shorten(node.table)}' here", "Name a table of FROM.")
    return found
