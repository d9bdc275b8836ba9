"""Frames -> Arrow: pandas, polars, Arrow, and DuckDB's relations. No column's type decides how its values are read.

A column of mixed objects becomes canonical texts, value by value. Part of the trusted perimeter: claim K-50.
"""

import sys
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.catalog.columns import Category, ColumnDeclaration, Date, DateTime, Integer, Real
from sfumato.catalog.text_format import TextFormat
from sfumato.ingest.arrow_moments import days, microseconds
from sfumato.ingest.canonical import TYPED, NoRule, canonical_text
from sfumato.ingest.frame_kinds import FrameKind, find_frame_kind
from sfumato.ingest.parsing import is_read_as_text
from sfumato.ingest.source_refusals import KINDS, NOT_A_FRAME, no_rule, refused, two_columns

Declared = Mapping[str, ColumnDeclaration]
NUMPY_KINDS = "biufM"  # truth values, whole numbers, floats, moments
PANDAS_TYPES = (
    "StringDtype", "BooleanDtype", "ArrowDtype", "DatetimeTZDtype", "Float32Dtype", "Float64Dtype",
    *(f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)),
)  # fmt: skip
ARROW_EXTENSIONS = ("arrow.uuid", "arrow.json", "arrow.bool8")
WIDE_POLARS = ("Int128", "UInt128")  # Arrow has no such type


def convert_to_arrow(
    table: str, data: object, declared: Declared, reading: TextFormat, *, everything: bool
) -> pa.Table:
    """The declared columns of a frame; `everything`: the others too, of public tables.

    What can be read only once (a reader of Arrow batches, a lazy frame) is read here.

    Claim: K-50. Mixed objects become their canonical texts, one by one; other columns stay as they are.
    Requires: a frame of a known kind; objects have a rule (checked here).
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_parsing.py::test_every_type_is_read_as_its_text_is
    """
    columns = dict(_columns(table, data))
    if not columns:
        raise refused(table, "the frame has no columns.", "Pass a frame with the declared columns.")
    if everything:
        wanted = columns
    else:
        wanted = {name: column for name, column in columns.items() if name in declared}
        if not wanted:  # rows of which nothing is declared can be counted
            name = next(iter(columns))
            return pa.table({name: pa.nulls(len(columns[name]), pa.string())})
    made: dict[str, Any] = {}
    for name, column in wanted.items():
        made[name] = _arrow(table, name, column, declared.get(name), reading)
    return pa.table(made)


def _columns(table: str, data: Any) -> Iterable[tuple[str, Any]]:  # noqa: ANN401 - a frame of a known library
    """The columns by name, each as its library has it; a name that stands twice is refused."""
    kind = find_frame_kind(data)
    if kind is None:
        raise refused(table, "the kind of source is not known.", f"{NOT_A_FRAME} {KINDS}")
    match kind:
        case FrameKind.PANDAS:
            data = sys.modules["pandas"].DataFrame(data)  # a subclass may have methods of its own
            names = [str(label) for label in data.columns]
            found: list[Any] = [data.iloc[:, place] for place in range(len(names))]
        case FrameKind.POLARS | FrameKind.LAZY:
            data = data.collect() if kind is FrameKind.LAZY else data
            names, found = list(data.columns), data.get_columns()
        case FrameKind.TABLE | FrameKind.BATCH | FrameKind.READER | FrameKind.DATASET | FrameKind.RELATION:
            data = _arrow_table(kind, data)
            names, found = (
                data.column_names,
                [_stored(data.field(at), data.column(at)) for at in range(data.num_columns)],
            )
        case _:
            assert_never(kind)
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise two_columns(table, twins[0])
    return zip(names, found, strict=True)


def _arrow_table(kind: FrameKind, data: Any) -> pa.Table:  # noqa: ANN401
    if kind is FrameKind.BATCH:
        return pa.Table.from_batches([data])
    if kind is FrameKind.READER:
        return data.read_all()
    return data.to_table() if kind is FrameKind.DATASET else pa.table(data)


def _stored(field: pa.Field, column: Any) -> Any:  # noqa: ANN401
    """The column; of an extension type that Arrow does not know here, as a type of that name, which has no rule."""
    extension = find_extension(field)
    if extension is None or isinstance(field.type, pa.BaseExtensionType):
        return column
    return pa.nulls(0, pa.opaque(field.type, extension, "unknown"))


def find_extension(field: pa.Field) -> str | None:
    """The name of a column's extension type, also of one that is not registered: it is then in the metadata alone.

    Claim: K-50. Of the schema alone.
    Relies on: K-50.
    Checked by: tests/ingest/test_frames.py::test_an_extension_type_that_is_not_registered_is_refused
    """
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    named = (field.metadata or {}).get(b"ARROW:extension:name")
    return None if named is None else named.decode("utf-8", "replace")


def _arrow(table: str, name: str, column: Any, declared: ColumnDeclaration | None, reading: TextFormat) -> Any:  # noqa: ANN401, PLR0911
    module, kind = type(column).__module__.split(".")[0], str(getattr(column, "dtype", ""))
    if module == "pandas":
        if kind == "object":
            if declared is None and (found := _try_array(column.tolist())) is not None:
                return _plain(table, name, found, declared, reading)
            return _texts(table, name, column.tolist(), declared, reading)
        if kind == "category":
            values = column.cat.categories
            inner = values.tolist() if str(values.dtype) != "object" else list(values)
            texts = [*_texts(table, name, inner, declared, reading).to_pylist(), None]
            return pa.array([texts[code] for code in column.cat.codes], pa.string())
        if kind.startswith("Sparse"):
            return _arrow(table, name, column.sparse.to_dense(), declared, reading)
        made = _try_array(column) if _is_known(column.dtype) else None  # else Arrow would guess from all values
        if made is None:
            raise no_rule(table, name, kind)
        return _plain(table, name, made, declared, reading)
    if module == "polars":
        if kind == "Object" or kind in WIDE_POLARS:
            return _texts(table, name, column.to_list(), declared, reading)
        return _plain(table, name, column.to_arrow(), declared, reading)
    return _plain(table, name, column, declared, reading)


def _is_known(dtype: Any) -> bool:  # noqa: ANN401
    """Is it a type of pandas' or numpy's own, whose values all have one type?"""
    if isinstance(dtype, np.dtype):
        return dtype.kind in NUMPY_KINDS
    return type(dtype).__module__.split(".")[0] == "pandas" and type(dtype).__name__ in PANDAS_TYPES


def _try_array(values: Any) -> Any:  # noqa: ANN401
    """An Arrow array of values that are all of one type; None if they are not."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _plain(table: str, name: str, column: Any, declared: ColumnDeclaration | None, reading: TextFormat) -> Any:  # noqa: ANN401, PLR0911
    """An Arrow column of a type that DuckDB takes as it is."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(table, name, column.cast(kind.value_type), declared, reading)
    if pa.types.is_run_end_encoded(kind):
        return _plain(table, name, pc.run_end_decode(column), declared, reading)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name not in ARROW_EXTENSIONS:
        raise no_rule(table, name, kind.extension_name)
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind):
        if pa.types.is_decimal128(kind):
            return column
        if kind.precision <= 38:
            return column.cast(pa.decimal128(38, kind.scale))
        return _texts(table, name, column.to_pylist(), declared, reading)
    if pa.types.is_timestamp(kind):
        return microseconds(column)
    return days(column) if pa.types.is_date(kind) else column


def _texts(
    table: str, name: str, values: list[Any], declared: ColumnDeclaration | None, reading: TextFormat
) -> pa.Array:
    """Canonical texts, value by value: one value must not decide how the others are read."""
    exact = declared is None or is_read_as_text(declared)
    numbers = reading.decimal != "." and (
        isinstance(declared, (Integer, Real)) or (isinstance(declared, Category) and not exact)
    )
    moments = reading.date_format is not None and isinstance(declared, (Date, DateTime))
    wrong: str | None = None
    texts: list[str | None] = []
    try:
        if numbers or moments:
            for value in values:
                found = canonical_text(value)
                # a column of numbers is read by the date format, and so is a number among objects
                marked = isinstance(value, (date, np.datetime64)) if moments else not isinstance(value, str)
                texts.append(TYPED + found if found is not None and marked else found)
        else:
            texts = [canonical_text(value, exact=exact) for value in values]
    except NoRule as error:
        wrong = str(error)
    if wrong is not None:
        raise no_rule(table, name, wrong)
    return pa.array(texts, pa.string())
