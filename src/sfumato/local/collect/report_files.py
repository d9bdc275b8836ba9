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
from sfumato.local.randomisers.report_forms import BitRows, Codes, Counts, Form, Reports
from sfumato.local.survey.manifest import Manifest

AT_ONCE = 1 << 16
ID_BYTES = 16
ENDINGS = (".jsonl", ".ndjson", ".parquet")
_FIELDS = {"survey", "period", "id", "report"}
_ID = re.compile(r"[0-9a-f]{32}")
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
        if record is None or type(record["period"]) is not int or not 0 <= record["period"] < manifest.periods:
            malformed += 1
        elif record["survey"] != manifest.id:
            foreign += 1
        elif type(record["id"]) is not str or not _ID.fullmatch(record["id"]):
            malformed += 1
        else:
            ids.append(record["id"])
            periods.append(record["period"])
            reports.append(record["report"])
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
        rows = isinstance(_form(self._manifest), BitRows)
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
    report = pa.binary() if isinstance(_form(manifest), BitRows) else pa.int64()
    return pa.schema([("survey", pa.string()), ("period", pa.int32()), ("id", pa.binary(ID_BYTES)), ("report", report)])


def _form(manifest: Manifest) -> Form:
    return manifest.table.form


def _parse_record(line: bytes | str) -> dict[str, Any] | None:
    try:
        text = line.decode() if isinstance(line, bytes) else line
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.keys() == _FIELDS else None


def _read_json_lines(manifest: Manifest, path: Path) -> Iterator[Batch]:
    form = _form(manifest)
    most = _AROUND + (2 * form.bytes if isinstance(form, BitRows) else 0)
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
    try:
        with pq.ParquetFile(str(path)) as file:
            if not file.schema_arrow.equals(make_report_schema(manifest)):
                raise InvalidParameter("reports", "must have the columns of this survey's reports", "others")
            for batch in file.iter_batches(batch_size=AT_ONCE):
                yield _read_columns(manifest, batch)
    except pa.ArrowException:
        raise InvalidParameter("reports", "must be a readable Parquet file", "something else") from None


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
        rows = batch["report"].to_pylist()
        kept &= np.array([row is not None and len(row) == form.bytes for row in rows], np.bool_)
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
