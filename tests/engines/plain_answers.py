"""The answers of a system without privacy: the analyst's own SQL on the calm clinic, where no bound has an effect."""

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from itertools import product

import duckdb
import numpy as np

from sfumato.answers.released_values import compute_aggregate, split_parts
from sfumato.engines.measured_cells import make_key
from sfumato.ingest.hidden_names import UNIT
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import Count, Keys, People
from sfumato.kernel.released_steps import find_exponent
from sfumato.planning.formulas import ChoiceFormula, MeanFormula, SumFormula, VarianceFormula
from sfumato.query.query import AggregateRef, KeyRef

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def make_plain_tables(clinic):
    """The pinned rows in a separate database. Numbers are doubles, and division by zero gives NULL."""
    made = duckdb.connect()
    for setting in ("error_on_division_by_zero", "ieee_floating_point_ops"):
        with suppress(duckdb.Error):  # the first is of DuckDB 2, the second of all
            made.execute(f"SET {setting} = false")
    for name, rows in clinic.held.items():
        columns = {}
        for column, kind, *_ in clinic.curator.engine._connection.execute(f'DESCRIBE "{name}"').fetchall():
            if not column.startswith("__sfumato"):
                columns[column] = "DOUBLE" if kind in WHOLE else "VARCHAR" if kind.startswith("ENUM") else kind
        values = [[row[column] for column in columns] for row in rows]
        if name in ("patients", "visits"):
            columns["pid"] = "VARCHAR"
            values = [[*keys, str(row[UNIT])] for keys, row in zip(values, rows, strict=True)]
        made.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())})")
        made.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)
    return made


def find_differences(rows, query, planned, exact):
    """The differences between plain SQL's rows and the exact integers, and how many numbers were compared."""
    plan, wrong, compared, seen = planned.plan, [], 0, set()
    cells = list(exact._keys if exact._keys is not None else product(*(key.values for key in plan.keys)))
    numbers = {_told(cell): number for number, cell in enumerate(cells)}
    values = _values(planned, exact, len(cells))
    for row in rows:
        shown = list(zip(query.columns, row, strict=True))
        keys = {post.index: value for (_, post), value in shown if isinstance(post, KeyRef)}
        if None in keys.values():
            continue
        cell = numbers.get(_told(keys[index] for index in range(len(keys))))
        if cell is None:
            wrong.append("plain SQL has a group that is not here")
            continue
        seen.add(cell)
        for (name, post), value in shown:
            if isinstance(post, AggregateRef) and post.index in values and value is not None:
                compared += 1
                far = abs(values[post.index][cell] - float(value))
                if not far <= _tolerance(planned.formulas[post.index], plan, float(value)):
                    wrong.append(f"{name} is {values[post.index][cell]}, and plain SQL says {value}")
    for measurement in plan.measurements:
        if isinstance(measurement.quantity, Count | People | Keys):
            wrong += [f"{measurement.name}: a group more" for cell in range(len(cells))
                      if cell not in seen and exact._integers[measurement.name][cell]]  # fmt: skip
    return wrong, compared


def _values(planned, exact, cells):
    """For each aggregate that is computed from sums and counts, its value without noise in each cell."""
    measured = {
        one.name: one.values
        for measurement in certify(planned.plan).measurements
        if measurement.name in exact._integers
        for one in split_parts(
            measurement, np.array(exact._integers[measurement.name].tolist(), float) * 2.0**measurement.exponent
        )
    }
    return {
        index: np.broadcast_to(compute_aggregate(formula, measured), cells)
        for index, formula in enumerate(planned.formulas)
        if not isinstance(formula, ChoiceFormula)
    }


def _tolerance(formula, plan, value):
    """The largest error that the grids of its sums can cause."""
    if isinstance(formula, VarianceFormula):
        return (4e-5 * formula.cap) ** (0.5 if formula.root else 1)
    totals = [formula.total] if isinstance(formula, SumFormula | MeanFormula) else []
    terms = [name.split(".")[0] for total in totals for name, _ in total.terms]
    steps = sum(
        2.0 ** find_exponent(measurement.quantity, per_row=plan.unit.per_row)
        for measurement in plan.measurements
        if measurement.name in terms
    )
    return 1e-9 * abs(value) + 100 * steps


def _told(values):
    return make_key(map(_one_type, values))


def _one_type(value):
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value
