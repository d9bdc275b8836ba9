"""Rows are linked to people through another table, whatever the names of the link and of the other columns."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

ORDERS = pd.DataFrame({"customer": [1] * 20 + list(range(2, 21)), "order_id": range(1, 40)})


def items(link, **more):
    frame = pd.DataFrame({link: range(1, 40), "y": [1.0] * 39})
    return frame.assign(**dict.fromkeys(more, 1000 + frame[link]))


def people_of(link, through="orders", other="order_id", name="orders", **more):
    """The number of pinned rows of each customer."""
    orders = Table(name, None, "customer", {"customer": sf.Id(), other: sf.Id()}, 20)
    columns = {link: sf.Id(), "y": sf.Real(0, 9)}
    linked = Table("items", None, None, columns, 20, unit_through=(link, through))
    Dataset("shop", [orders, linked], sf.Budget(epsilon=1))
    data = {name: ORDERS.rename(columns={"order_id": other}), "items": items(link, **more)}
    engine = DuckDBEngine.of_tables({table.name: (table, data[table.name]) for table in (linked, orders)})
    try:
        counted = "SELECT __sfumato_unit, COUNT(*) FROM items GROUP BY ALL"
        return {int(unit): rows for unit, rows in engine._connection.execute(counted).fetchall()}
    finally:
        engine.close()


TRUE = {1: 20, **dict.fromkeys(range(2, 21), 1)}


@pytest.mark.parametrize(
    ("link", "other"), [("order_id", "order_id"), ("Order_ID", "order_id"), ("\u00e9", "e\u0301"), ("rows", "ROWS")]
)
def test_a_link_is_the_same_name_in_any_case(link, other):
    assert people_of(link, other=other) == TRUE


@pytest.mark.parametrize(("name", "through"), [("orders", "ORDERS"), ("tables", "tables"), ("\u00c9", "e\u0301")])
def test_a_table_is_the_same_name_in_any_case(name, through):
    assert people_of("order_id", through, name=name) == TRUE


@pytest.mark.parametrize("more", ["__sfumato_owner", "__SFUMATO_OWNER", "__sfumato_unit", "owner", "people", "rows"])
def test_what_a_source_has_besides_changes_nobody(more):
    assert people_of("order_id", **{more: True}) == TRUE


def test_the_others_own_unit_may_be_the_link():
    orders = Table("orders", None, "customer", {"customer": sf.Id()}, 20)
    linked = Table("items", None, None, {"Customer": sf.Id()}, 20, unit_through=("Customer", "orders"))
    data = {"orders": ORDERS[["customer"]], "items": pd.DataFrame({"Customer": [1, 1, 2, 99]})}
    engine = DuckDBEngine.of_tables({table.name: (table, data[table.name]) for table in (orders, linked)})
    try:
        held = engine._connection.execute("SELECT __sfumato_unit FROM items ORDER BY 1").fetchall()
    finally:
        engine.close()
    assert [int(unit) for (unit,) in held] == [1, 1, 2]
