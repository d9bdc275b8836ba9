"""Columns of an answer that show an end of the interval of another column (query/interval_columns.py)."""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.answers.answer import Answer
from sfumato.query.asked_intervals import HIDDEN
from sfumato.query.query import IntervalColumn


def add_interval_columns(answer: Answer, wanted: Sequence[IntervalColumn]) -> Answer:
    """The answer with these columns. An end is None where no interval is stated."""
    if not wanted:
        return answer
    columns = [name for name in answer.columns if not name.startswith(HIDDEN)]
    for column in wanted:
        columns.insert(column.place, column.name)
    rows = []
    for row, intervals in zip(answer.rows, answer.intervals, strict=True):
        ends = {
            column.name: intervals[column.of][column.upper] if column.of in intervals else None for column in wanted
        }
        rows.append({name: ends[name] if name in ends else row[name] for name in columns})
    return replace(answer, columns=tuple(columns), rows=rows)
