"""Where the SQL of engines differs. Lowering builds one tree for all engines; a dialect writes it for one of them.

Each node of a tree has one meaning. Where sqlglot's generator writes SQL that means something else to an engine, the
engine's dialect replaces the node first. These are the nodes to look at when an engine is added:

    node                          meaning                                                 in DuckDB
    CAST AS INT128                exact integers of at least 128 bits                     HUGEINT
    IntDiv                        the quotient, rounded toward zero                       //
    TRY_CAST(double AS BIGINT)    a whole number within +-2**53, or NULL for NaN          TRY_CAST
    Div                           division of doubles; the divisor is never zero          /
    Floor, Ceil                   of doubles: infinities and NaN stay                     FLOOR, CEIL
    =, <, >                       NaN equals itself, and is above infinity                the same
    GREATEST, LEAST               ignore NULL                                             the same
    MD5                           32 lower-case hexadecimal digits, of UTF-8 text         MD5
    CAST(boolean AS TEXT)         true, false                                             the same
    EXTRACT(dow), EXTRACT(week)   0 is Sunday; weeks of ISO 8601                          the same
    TimestampTrunc, DateDiff      weeks begin on Monday                                   DATE_TRUNC, DATE_DIFF

Part of the trusted perimeter: claim K-26.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.dialects.duckdb import DuckDB

Replace = Callable[[exp.Expression], exp.Expression]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine writes a tree.

    `generator`: sqlglot's dialect. `replacements`: by type of node, what this engine is given instead.
    """

    generator: SqlglotDialect
    replacements: Mapping[type[exp.Expression], Replace] = field(default_factory=lambda: MappingProxyType({}))

    def write(self, tree: exp.Expression) -> str:
        """The SQL text of a tree. The tree may be changed."""
        if self.replacements:
            for node in reversed(list(tree.find_all(*self.replacements))):  # the inner ones first
                if replace := self.replacements.get(type(node)):
                    made = replace(node)
                    tree = made if node is tree else tree
                    node.replace(made)
        return self.generator.generate(tree, copy=False)


DUCKDB = Dialect(DuckDB())
