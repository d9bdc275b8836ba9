"""(SELECT AVG(price) FROM products) over a public table -> the number itself, computed from the table's rows.

x IN (SELECT site FROM sites ORDER BY beds LIMIT 2) becomes a list of the values, unless a join means the same.

The rows belong to nobody, so the number is known without asking. It is computed as numbers of released rows are
(released_tables.py), in a database in memory that holds this table and nothing else.
"""

from datetime import date, datetime
from typing import Any

from sqlglot import exp

from sfumato.catalog.columns import column_type
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import find_name
from sfumato.errors import QueryError
from sfumato.kernel.expressions import ColumnType, Scalar
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.released_tables import check_finish, run_finish
from sfumato.query.schema_names import is_schema_known
from sfumato.query.subquery_links import filters_rows

MOST_LISTED = 1_000  # values in the place of IN (SELECT ...), and rows of a public table beside results
SQL_TYPES = {
    ColumnType.INTEGER: "BIGINT", ColumnType.REAL: "DOUBLE", ColumnType.BOOLEAN: "BOOLEAN", ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE", ColumnType.DATETIME: "TIMESTAMP", ColumnType.ID: "VARCHAR",
}  # fmt: skip
ONE_VALUE = "Select one aggregate of the public table, such as (SELECT AVG(x) FROM it)."


def replace_public_values(tree: exp.Query, dataset: Dataset) -> exp.Query:
    """The question with literals in the place of each such subquery. One without them is returned as it is."""
    found = [node for node in tree.find_all(exp.Subquery) if _find_table(node, tree, dataset) is not None]
    if not found:
        return tree
    made = tree.copy()
    for node in list(made.find_all(exp.Subquery)):
        table = _find_table(node, made, dataset)
        if table is None:
            continue
        listed = node.parent
        value = _compute_list(listed, node, table) if isinstance(listed, exp.In) else _compute(node, table)
        if value is not None:
            (listed if isinstance(listed, exp.In) else node).replace(value)
    return made


def _find_table(node: exp.Subquery, tree: exp.Expr, dataset: Dataset) -> Table | None:
    """The public table that a subquery in the place of a value reads, if it reads no other."""
    select = node.this
    if isinstance(node.parent, exp.From | exp.Join | exp.SetOperation) or not isinstance(select, exp.Select):
        return None
    if isinstance(node.parent, exp.In) and node.parent.args.get("query") is not node:
        return None
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or len(select.expressions) != 1:
        return None
    item = source.this
    if not isinstance(item, exp.Table) or len(list(select.find_all(exp.Query))) != 1 or _is_cte(item.name, tree):
        return None
    return find_public_table(item, dataset)


def find_public_table(item: exp.Expr, dataset: Dataset) -> Table | None:
    """The public table that an item of FROM names, if its rows are known."""
    known = isinstance(item, exp.Table) and is_schema_known(item, dataset)
    name = find_name(item.name, dataset.tables) if known else None
    table = None if name is None else dataset.tables[name]
    return table if table is not None and table.public and table.public_rows is not None else None


def list_public_rows(table: Table) -> exp.Select | None:
    """SELECT ... FROM (VALUES ...) with the rows of a public table; None if there are more than MOST_LISTED."""
    rows = table.public_rows
    if rows is None or len(rows) > MOST_LISTED:
        return None
    names = [f"c{place}" for place in range(len(table.columns))]
    columns: list[exp.Expr] = [
        exp.alias_(exp.cast(exp.column(place), SQL_TYPES[column_type(declared)]), name, quoted=True)
        for place, (name, declared) in zip(names, table.columns.items(), strict=True)
    ]
    written = [exp.Tuple(expressions=[_write(value) for value in row]) for row in rows or [(None,) * len(names)]]
    alias = exp.TableAlias(this=exp.to_identifier("public_rows"), columns=[exp.to_identifier(name) for name in names])
    made = exp.Select(expressions=columns, from_=exp.From(this=exp.Values(expressions=written, alias=alias)))
    return made if rows else made.where(exp.false())


def _is_cte(name: str, tree: exp.Expr) -> bool:
    return any(find_name(name, (part.alias,)) is not None for part in tree.find_all(exp.CTE))


def _compute(node: exp.Subquery, table: Table) -> exp.Expr | None:
    """The value as a literal. None: the subquery also names columns of the outer row."""
    rows = _run(node, table)
    if rows is None:
        return None
    if len(rows) > 1:
        raise build_syntax_refusal(node, "A subquery[at] in the place of a value has several rows", ONE_VALUE)
    return _write(rows[0][0]) if rows else exp.Null()


def _compute_list(listed: exp.In, node: exp.Subquery, table: Table) -> exp.Expr | None:
    """x IN (SELECT ...) as a list of values. None: it is joined instead. An empty list has no NULL to compare with."""
    if filters_rows(listed) and _is_joined(node.this, table):
        return None
    rows = _run(node, table)
    if rows is None:
        return None
    if not rows:
        return exp.false()
    different = sorted({row[0] for row in rows if row[0] is not None})
    values = [_write(value) for value in different]
    if len(values) > MOST_LISTED or None in values:
        return None
    found: exp.Expr = exp.In(this=listed.this.copy(), expressions=values) if values else exp.null()
    if values and len(different) < len({row[0] for row in rows}):  # a NULL in the list: unknown, unless it is found
        found = exp.Case(ifs=[exp.If(this=found, true=exp.true())], default=exp.null())
    return exp.Paren(this=found)


def _is_joined(select: exp.Select, table: Table) -> bool:
    """Does a join with the table mean the same? It has each value once, and nothing but WHERE selects its rows."""
    column = select.expressions[0].unalias()
    if any(select.args.get(clause) for clause in ("group", "having", "limit", "offset", "distinct", "qualify")):
        return False
    return isinstance(column, exp.Column) and dict(table.multiplicities).get(column.name) == 1


def _run(node: exp.Subquery, table: Table) -> list[tuple[Any, ...]] | None:
    """The rows of a subquery. None: it also names columns of the outer row."""
    select = node.this.copy()
    item = select.args["from_"].this
    alias = item.alias or item.name
    item.replace(exp.alias_(exp.Table(this=exp.Identifier(this="released0")), alias, table=True, quoted=True))
    sql = select.sql(dialect="duckdb", comments=False)
    columns = tuple((name, SQL_TYPES[column_type(declared)]) for name, declared in table.columns.items())
    try:
        check_finish(sql, (columns,))
    except QueryError:
        return None
    return run_finish(sql, (columns,), (table.public_rows or (),))


def _write(value: Scalar) -> exp.Expr | None:  # noqa: PLR0911 - one return a type
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float():
            number = exp.Literal.number(repr(abs(value)))
            return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
        case datetime():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
        case str():
            return exp.Literal.string(value)
    return None
