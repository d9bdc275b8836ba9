"""(SELECT AVG(price) FROM products) over a public table -> the number itself, computed from the table's rows.

The rows belong to nobody, so the number is known without asking. It is computed as numbers of released rows are
(released_tables.py), in a database in memory that holds this table and nothing else.
"""

from datetime import date, datetime

from sqlglot import exp

from sfumato.catalog.columns import Boolean, ColumnDeclaration, Date, DateTime, Integer, Real
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import find_name
from sfumato.errors import QueryError
from sfumato.kernel.expressions import Scalar
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.released_tables import check_finish, run_finish

ONE_VALUE = "Select one aggregate of the public table, such as (SELECT AVG(x) FROM it)."


def replace_public_values(tree: exp.Query, dataset: Dataset) -> exp.Query:
    """The question with a literal in the place of each such subquery. One without them is returned as it is."""
    found = [node for node in tree.find_all(exp.Subquery) if _find_table(node, tree, dataset) is not None]
    if not found:
        return tree
    made = tree.copy()
    for node in list(made.find_all(exp.Subquery)):
        table = _find_table(node, made, dataset)
        value = None if table is None else _compute(node, table)
        if value is not None:
            node.replace(value)
    return made


def _find_table(node: exp.Subquery, tree: exp.Expr, dataset: Dataset) -> Table | None:
    """The public table that a subquery in the place of a value reads, if it reads no other."""
    select = node.this
    if isinstance(node.parent, exp.From | exp.Join | exp.In | exp.SetOperation) or not isinstance(select, exp.Select):
        return None
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or len(select.expressions) != 1:
        return None
    item = source.this
    if not isinstance(item, exp.Table) or len(list(select.find_all(exp.Query))) != 1 or _is_cte(item.name, tree):
        return None
    name = find_name(item.name, dataset.tables)
    table = None if name is None else dataset.tables[name]
    return table if table is not None and table.public and table.public_rows is not None else None


def _is_cte(name: str, tree: exp.Expr) -> bool:
    return any(find_name(name, (part.alias,)) is not None for part in tree.find_all(exp.CTE))


def _compute(node: exp.Subquery, table: Table) -> exp.Expr | None:
    """The value as a literal. None: the subquery also names columns of the outer row."""
    select = node.this.copy()
    item = select.args["from_"].this
    alias = item.alias or item.name
    item.replace(exp.alias_(exp.Table(this=exp.Identifier(this="released0")), alias, table=True, quoted=True))
    sql = select.sql(dialect="duckdb", comments=False)
    columns = tuple((name, _choose_type(declared)) for name, declared in table.columns.items())
    try:
        check_finish(sql, (columns,))
    except QueryError:
        return None
    rows = run_finish(sql, (columns,), (table.public_rows or (),))
    if len(rows) != 1:
        raise build_syntax_refusal(node, "A subquery[at] in the place of a value has several rows", ONE_VALUE)
    return _write(rows[0][0])


def _choose_type(declared: ColumnDeclaration) -> str:
    match declared:
        case Integer():
            return "BIGINT"
        case Real():
            return "DOUBLE"
        case Boolean():
            return "BOOLEAN"
        case DateTime():
            return "TIMESTAMP"
        case Date():
            return "DATE"
        case _:
            return "VARCHAR"


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
