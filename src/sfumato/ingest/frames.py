"""Frames of pandas, polars, Arrow and DuckDB -> one Arrow table. How a value is read does not depend on other values.

A column whose type fixes the type of its values is passed on by its type. A column of objects, which may be of many
types, becomes a column of canonical texts, one object at a time. Part of the trusted perimeter: claim K-50.
"""

import sys
from contextlib import suppress
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.catalog.columns import Category, ColumnDeclaration, Date, DateTime, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import TextFormat
from sfumato.ingest.canonical import NoRule, spell_value
from sfumato.ingest.extension_types import mark_extension
from sfumato.ingest.frame_libraries import DATASET, PANDAS, POLARS, find_library
from sfumato.ingest.moments import TYPED
from sfumato.ingest.parsing import is_read_as_text
from sfumato.ingest.source_refusals import KINDS, NOT_A_FRAME, build_source_error, explain_no_rule, refuse_twins

NUMPY_KINDS = "biufM"  # truth values, whole numbers, floats, moments
PANDAS_TYPES = (
    "StringDtype", "BooleanDtype", "ArrowDtype", "DatetimeTZDtype", "Float32Dtype", "Float64Dtype",
    *(f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)),
)  # fmt: skip
ARROW_EXTENSIONS = ("arrow.uuid", "arrow.json", "arrow.bool8")
OBJECTS = ("object", "category", "Object", "Int128", "UInt128")  # columns that are read object by object


def convert_to_arrow(table: Table, data: object) -> tuple[pa.Table, dict[str, str]]:
    """The declared columns of a frame (of a public table: all columns), and types that Arrow lacks.

    What can be read only once (a reader of Arrow batches, a lazy frame) is read here.

    Claim: K-50. Objects become their canonical texts, one by one. Days and moments become counts (see `canonical`).
    Requires: a frame of a known library; objects have a rule (checked here).
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_parsing.py::test_every_type_is_read_as_its_text_is
    """
    columns = _list_columns(table.name, data)
    wanted = {name: column for name, column in columns.items() if table.public or name in table.columns}
    if not wanted:  # rows of which nothing is declared can be counted
        name, column = next(iter(columns.items()))
        return pa.table({name: pa.nulls(len(column), pa.string())}), {}
    made, kinds = {}, {}
    for name, column in wanted.items():
        convert = partial(_convert_column, column, table.columns.get(name), table.reading)
        made[name], kind = _count_moments(explain_no_rule(table.name, name, convert))
        if kind is not None:
            kinds[name] = kind
    return pa.table(made), kinds


def _list_columns(table: str, data: Any) -> dict[str, Any]:  # noqa: ANN401 - a frame of a known library
    """The columns by name, each as its library has it. Two columns of one name are refused."""
    library = find_library(data)
    if library is None:
        raise build_source_error(table, "the kind of source is not known.", f"{NOT_A_FRAME} {KINDS}")
    if library == PANDAS:
        data = sys.modules["pandas"].DataFrame(data)  # a subclass may have methods of its own
        found = [(str(name), data.iloc[:, place]) for place, name in enumerate(data.columns)]
    elif library == POLARS:
        found = [(column.name, column) for column in data.lazy().collect().get_columns()]
    else:
        data = data.to_table() if library == DATASET else pa.table(data)
        found = [
            (field.name, mark_extension(field, column)) for field, column in zip(data.schema, data.columns, strict=True)
        ]
    if not found:
        raise build_source_error(table, "the frame has no columns.", "Pass a frame with the declared columns.")
    refuse_twins(table, [name for name, _ in found])
    return dict(found)


def _convert_column(column: Any, declared: ColumnDeclaration | None, reading: TextFormat) -> Any:  # noqa: ANN401
    """A column as Arrow. A type that is not known is refused: Arrow would guess a type from all values."""
    library, kind = type(column).__module__.split(".")[0], str(getattr(column, "dtype", ""))
    if kind.startswith("Sparse"):
        return _convert_column(column.sparse.to_dense(), declared, reading)
    if kind in OBJECTS:
        if declared is None:  # of a public table, whose types are read from its values
            with suppress(pa.ArrowException, TypeError, ValueError):
                return _decode(pa.array(column.to_list(), from_pandas=True), declared, reading)
        return _spell_objects(column.to_list(), declared, reading)
    if library == PANDAS:
        if not _is_known(column.dtype):
            raise NoRule(kind)
        return _decode(pa.array(column, from_pandas=True), declared, reading)
    return _decode(column.to_arrow() if library == POLARS else column, declared, reading)


def _is_known(dtype: Any) -> bool:  # noqa: ANN401
    """Is it a type of pandas' or numpy's own, whose values all have one type?"""
    if isinstance(dtype, np.dtype):
        return dtype.kind in NUMPY_KINDS
    return type(dtype).__module__.split(".")[0] == "pandas" and type(dtype).__name__ in PANDAS_TYPES


def _decode(column: Any, declared: ColumnDeclaration | None, reading: TextFormat) -> Any:  # noqa: ANN401
    """An Arrow column of a type that DuckDB takes as it is, or object by object where it does not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _decode(column.cast(kind.value_type), declared, reading)
    if pa.types.is_run_end_encoded(kind):
        return _decode(pc.run_end_decode(column), declared, reading)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name not in ARROW_EXTENSIONS:
        raise NoRule(kind.extension_name)
    if pa.types.is_float16(kind) or pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale < 0):
        return _spell_objects(column.to_pylist(), declared, reading)
    return column


def _count_moments(column: Any) -> tuple[Any, str | None]:  # noqa: ANN401
    """A column of days or moments as whole numbers, and the type that says what they count."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()), f"MOMENT({kind.unit}{', UTC' if kind.tz else ''})"
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()), "DAY(day)"
    return (column.cast(pa.int64()), "DAY(ms)") if pa.types.is_date64(kind) else (column, None)


def _spell_objects(values: list[Any], declared: ColumnDeclaration | None, reading: TextFormat) -> pa.Array:
    """The canonical text of each object; of numbers and moments so that the declared format of texts reads them."""
    exact = declared is None or is_read_as_text(declared)
    has_numbers = isinstance(declared, (Integer, Real, Category)) and not exact
    has_moments = isinstance(declared, (Date, DateTime)) and reading.date_format is not None
    texts: list[str | None] = []
    for value in values:
        text = spell_value(value, exact=exact)
        if text is not None and not isinstance(value, str):
            if has_numbers:
                text = text.replace(".", reading.decimal)
            elif has_moments and isinstance(value, (date, np.datetime64)):
                text = TYPED + text  # numbers are read by the date format, as in a column of numbers
        texts.append(text)
    return pa.array(texts, pa.string())
