"""One SQL tree is printed in the dialect of each engine."""

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from sfumato.engines.sql.dialect import DUCKDB, Dialect


def build_tree():
    wide = exp.cast(exp.column("n", quoted=True), exp.DataType.Type.INT128)
    return exp.select(exp.IntDiv(this=wide, expression=exp.column("held", quoted=True))).from_("rows")


def test_duckdb_writes_the_tree_as_it_is():
    assert DUCKDB.write(build_tree()) == build_tree().sql(dialect="duckdb")
    assert DUCKDB.write(build_tree()) == 'SELECT CAST("n" AS INT128) // "held" FROM rows'


def test_a_dialect_replaces_nodes_before_it_writes():
    def widen(cast):
        return exp.cast(cast.this, "DECIMAL(38, 0)") if cast.to.is_type("INT128") else cast

    def divide(node):
        return exp.Anonymous(this="DIV", expressions=[node.this, node.expression])

    other = Dialect(Postgres(), {exp.Cast: widen, exp.IntDiv: divide})
    assert other.write(build_tree()) == 'SELECT DIV(CAST("n" AS DECIMAL(38, 0)), "held") FROM rows'
    assert Dialect(Postgres()).write(build_tree()) != other.write(build_tree())  # the replacements did it
