"""Datasets in which faults are planted: people, rows, counts, and a clinic of several tables."""

import sys
from pathlib import Path

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table

sys.path.append(str(Path(__file__).parents[1] / "engines"))

from hostile_clinic import declare_tables

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(-5, 500),
    "age": sf.Integer(0, 120, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "job": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "seen": sf.DateTime("2024-01-01T00:00:00", "2024-12-31T00:00:00"),
    "smoker": sf.Boolean(),
}
OF_ROWS = {name: kind for name, kind in COLUMNS.items() if name != "person"}


def declare(unit="person", neighbours="add-remove", accounting="basic", **options):
    bounds = {"max_rows_per_unit": 2, "max_groups_per_unit": 2} if unit == "person" else {}
    table = Table("t", None, unit, COLUMNS if unit == "person" else OF_ROWS, **bounds, **options)
    return Dataset("d", [table], sf.Budget(epsilon=3, delta="1e-6", accounting=accounting), None, neighbours)


DATASETS = {
    "people": declare,
    "people, zcdp": lambda: declare(accounting="zcdp"),
    "people, replaced": lambda: declare(neighbours="replace-one"),
    "people, public number": lambda: declare(neighbours="replace-one", people=10),
    "rows": lambda: declare(sf.ROW),
    "rows, replaced": lambda: declare(sf.ROW, "replace-one"),
    "rows, replaced, zcdp": lambda: declare(sf.ROW, "replace-one", "zcdp"),
    "rows, public number": lambda: declare(sf.ROW, "replace-one", rows=10),
    "counts": lambda: declare(sf.ROW, count_column="n"),
    "clinic": lambda: Dataset("clinic", declare_tables(most_rows=2, most_groups=2), sf.Budget(epsilon=9, delta="1e-6")),
}


def declare_shop(neighbours="add-remove"):
    """Orders with a unique key, and lines that name them."""
    order = {"cid": sf.Id(), "oid": sf.Id(), "price": sf.Real(0, 100), "note": sf.Text()}
    line = {"cid": sf.Id(), "oid": sf.Id(), "amount": sf.Integer(0, 10), "kind": sf.Category(["a", "b"])}
    tables = [
        Table("orders", None, "cid", order, 3, 2, unique=(("oid",),)),
        Table("lines", None, "cid", line, 4, 2),
    ]
    return Dataset("shop", tables, sf.Budget(epsilon=3, delta="1e-6"), None, neighbours)


def declare_with_keys(neighbours="add-remove"):
    """People in so many groups that undeclared keys are released by weight."""
    columns = {"person": sf.Id(), "age": sf.Integer(0, 120), "job": sf.Text()}
    table = Table("t", None, "person", columns, 8, 8)
    return Dataset("d", [table], sf.Budget(epsilon=3, delta="1e-3"), None, neighbours)


DATASETS |= {
    "shop": declare_shop,
    "people, many keys": declare_with_keys,
    "people, many keys, replaced": lambda: declare_with_keys("replace-one"),
    "people, gdp": lambda: declare(accounting="gdp"),
}
