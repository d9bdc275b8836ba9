"""Read and write files of reports: JSON lines or Parquet, in batches. Malformed reports are counted and left out."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.errors import InvalidParameter
from sfumato.local.collect.parquet_pages import UnboundedPages, bound_row_group
from sfumato.local.randomisers.report_forms import Codes, Counts, Form, Reports
from sfumato.local.survey.manifest import Manifest

AT_ONCE = 1 << 16
ID_BYTES = 16
MOST_DECODED = 1 << 28
MOST_ROW_GROUPS = 1 << 14
ENDINGS = (".jsonl", ".ndjson", ".parquet")
_FIELDS = {"survey", "period", "id", "report"}
_ID = re.compile(r"[0-9a-f]{32}")
_USUAL = re.compile(
    rb'\{"survey":"([0-9a-f]{32})","period":(0|[1-9][0-9]{0,5}),"id":"([0-9a-f]{32})",'
    rb'"report":(?:(0|[1-9][0-9]{0,14})|"([0-9a-f]*)")\}\r?\n?'
)
_AROUND = 1024  # the most characters of a line besides the report
_REST = 1 << 20


Ids = npt.NDArray[np.uint8]  # of shape (reports, 16)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Well-formed reports with their ids and periods, and the number of other reports."""

    ids: Ids
    periods: Counts
    reports: Reports
    malformed: int
    foreign: int  # of another survey


def read_reports(manifest: Manifest, path: Path | str) -> Iterator[Batch]:
    """Read the reports of a file in batches of bounded size. The ending of its name gives its format."""
    place = Path(path)
    if place.suffix.lower() == ".parquet":
        return _read_parquet(manifest, place)
    if place.suffix.lower() in ENDINGS:
        return _read_json_lines(manifest, place)
    raise InvalidParameter("reports", f"must be in a file that ends in {', '.join(ENDINGS)}", "another")


def read_lines(manifest: Manifest, lines: Iterable[bytes | str]) -> Batch:
    """Read reports from lines of JSON, one record per line."""
    ids: list[str] = []
    periods: list[int] = []
    reports: list[object] = []
    malformed = foreign = 0
    for line in lines:
        record = _parse_record(line)
        if record is None or type(record[1]) is not int or not 0 <= record[1] < manifest.periods:
            malformed += 1
        elif record[0] != manifest.id:
            foreign += 1
        elif record[2] is None:
            malformed += 1
        else:
            periods.append(record[1])
            ids.append(record[2])
            reports.append(record[3])
    form = _form(manifest)
    decoded, wrong = form.decode(reports)
    if wrong:  # rare: decode one by one, to leave out the ids of the wrong ones too
        good = [place for place, report in enumerate(reports) if form.decode([report])[1] == 0]
        ids, periods = [ids[place] for place in good], [periods[place] for place in good]
    names = np.frombuffer(bytes.fromhex("".join(ids)), np.uint8).reshape(-1, ID_BYTES)
    return Batch(names, np.array(periods, np.int64), decoded, malformed + wrong, foreign)


def write_lines(file: BinaryIO, manifest: Manifest, ids: Ids, periods: Counts, reports: Reports) -> None:
    """Write reports as lines of JSON."""
    values = (json.dumps(value) for value in _form(manifest).encode(reports))
    for name, period, report in zip(ids, periods.tolist(), values, strict=True):
        line = f'{{"survey":"{manifest.id}","period":{period},"id":"{bytes(name).hex()}","report":{report}}}\n'
        file.write(line.encode())


class ParquetReports:
    """A Parquet file of reports, written batch by batch."""

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        self._manifest = manifest
        self._writer = pq.ParquetWriter(str(path), make_report_schema(manifest))

    def write(self, ids: Ids, periods: Counts, reports: Reports) -> None:
        rows = not isinstance(_form(self._manifest), Codes)
        columns = [
            pa.array([self._manifest.id] * len(ids), pa.string()),
            pa.array(periods, pa.int32()),
            pa.Array.from_buffers(pa.binary(ID_BYTES), len(ids), [None, pa.py_buffer(ids.tobytes())]),
            pa.array([bytes(row) for row in reports], pa.binary()) if rows else pa.array(reports, pa.int64()),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=make_report_schema(self._manifest)))

    def __enter__(self) -> "ParquetReports":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def make_report_schema(manifest: Manifest) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The columns of a Parquet file of reports."""
    report = pa.int64() if isinstance(_form(manifest), Codes) else pa.binary()
    return pa.schema([("survey", pa.string()), ("period", pa.int32()), ("id", pa.binary(ID_BYTES)), ("report", report)])


def _form(manifest: Manifest) -> Form:
    return manifest.table.form


def rewrite_line(line: bytes) -> tuple[str, str, str] | None:
    """The id, the survey and the compact text of a record, without anything else; None if it is not a record."""
    record = _parse_record(line)
    match record:
        case (str(survey), int(period), str(name), int() | str() as report) if bool not in (type(period), type(report)):
            text = json.dumps({"survey": survey, "period": period, "id": name, "report": report}, separators=(",", ":"))
            return (name, survey, text) if len(survey) == 2 * ID_BYTES else None
    return None


def _parse_record(line: bytes | str) -> tuple[Any, Any, Any, Any] | None:
    """The survey, period, id (None if it is no id) and report of a line; None if it is not a record."""
    data = line.encode(errors="replace") if isinstance(line, str) else line
    usual = _USUAL.fullmatch(data)
    if usual is not None:  # as both clients write it: ten times as fast as reading any JSON
        survey, period, name, number, row = usual.groups()
        return survey.decode(), int(period), name.decode(), int(number) if number is not None else row.decode()
    try:
        record = json.loads(line.decode() if isinstance(line, bytes) else line, object_pairs_hook=refuse_repeated_names)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.keys() != _FIELDS:
        return None
    is_id = type(record["id"]) is str and _ID.fullmatch(record["id"])
    return record["survey"], record["period"], record["id"] if is_id else None, record["report"]


def refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers could take different ones of two values of one name."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError
    return record


def _read_json_lines(manifest: Manifest, path: Path) -> Iterator[Batch]:
    form = _form(manifest)
    most = _AROUND + (0 if isinstance(form, Codes) else 2 * form.bytes)
    with path.open("rb") as file:
        lines: list[bytes] = []
        while line := file.readline(most):
            if len(line) == most and not line.endswith(b"\n"):  # longer than any report: not kept in memory
                while len(rest := file.readline(_REST)) == _REST and not rest.endswith(b"\n"):
                    pass
                line = b"{}"
            if line.strip():
                lines.append(line)
            if len(lines) == AT_ONCE:
                yield read_lines(manifest, lines)
                lines = []
        if lines:
            yield read_lines(manifest, lines)


def _read_parquet(manifest: Manifest, path: Path) -> Iterator[Batch]:
    """Read a Parquet file, in bounded memory whatever it contains.

    Texts and bytes are read as dictionaries: otherwise one long text that a small file repeats takes its length each
    time. The sizes of all pages are checked before anything is decoded.
    """
    pages = path.open("rb")
    try:
        limits: dict[str, Any] = {
            "read_dictionary": ["survey", "report"],
            "thrift_container_size_limit": MOST_ROW_GROUPS,
        }
        with pages, pq.ParquetFile(str(path), **limits) as file:
            found = [(field.name, getattr(field.type, "value_type", field.type)) for field in file.schema_arrow]
            if found != [(field.name, field.type) for field in make_report_schema(manifest)]:
                raise InvalidParameter("reports", "must have the columns of this survey's reports", "others")
            _check_pages(file.metadata, pages, path.stat().st_size)
            for batch in file.iter_batches(batch_size=AT_ONCE):
                yield _read_columns(manifest, batch)
    except KeyError:  # of read_dictionary
        raise InvalidParameter("reports", "must have the columns of this survey's reports", "others") from None
    except (pa.ArrowException, OSError):  # also of a damaged page
        raise InvalidParameter("reports", "must be a readable Parquet file", "something else") from None


def _check_pages(footer: Any, pages: BinaryIO, size: int) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse a file that grows too much when it is decoded. Ids are random: a report has more than one byte."""
    try:
        if footer.num_rows > size:
            raise UnboundedPages
        for number in range(footer.num_row_groups):
            bound_row_group(pages, footer.row_group(number), MOST_DECODED)
    except UnboundedPages:
        raise InvalidParameter(
            "reports",
            f"must be a Parquet file of at most {MOST_DECODED >> 20} MiB for each row group, with random ids",
            "one that grows much more when it is decoded",
            "Write smaller row groups, with the usual encodings (not DELTA_BYTE_ARRAY).",
        ) from None


def _read_columns(manifest: Manifest, batch: Any) -> Batch:  # noqa: ANN401 - pyarrow has no types
    form = _form(manifest)
    own = pc.fill_null(pc.equal(batch["survey"], manifest.id), False).to_numpy(zero_copy_only=False)
    complete = np.ones(len(own), np.bool_)
    for name in ("survey", "period", "id", "report"):
        complete &= pc.is_valid(batch[name]).to_numpy(zero_copy_only=False)
    periods = pc.fill_null(batch["period"], -1).to_numpy().astype(np.int64)
    complete &= (periods >= 0) & (periods < manifest.periods)
    foreign = int((complete & ~own).sum())
    kept = complete & own
    if isinstance(form, Codes):
        reports = pc.fill_null(batch["report"], -1).to_numpy()
        kept &= (reports >= 0) & (reports < form.count)
        values: Reports = reports[kept]
    else:
        lengths = pc.fill_null(pc.binary_length(batch["report"].dictionary), -1).to_numpy(zero_copy_only=False)
        places = pc.fill_null(batch["report"].indices, -1).to_numpy(zero_copy_only=False)
        kept &= (places >= 0) & (np.append(lengths, -1)[places] == form.bytes)
        rows = batch["report"].dictionary.take(pc.if_else(pa.array(kept), batch["report"].indices, None)).to_pylist()
        chosen = np.flatnonzero(kept)
        values = np.frombuffer(b"".join(rows[place] for place in chosen), np.uint8).reshape(-1, form.bytes)
        whole, malformed = form.sift(values)
        if malformed:
            right = np.array([form.sift(row[None])[1] == 0 for row in values], np.bool_)
            kept[chosen[~right]], values = False, whole
    places = np.flatnonzero(kept)
    ids = b"".join(batch["id"].take(pa.array(places)).to_pylist())
    names = np.frombuffer(ids, np.uint8).reshape(-1, ID_BYTES)
    return Batch(names, periods[places], values, len(own) - len(places) - foreign, foreign)
