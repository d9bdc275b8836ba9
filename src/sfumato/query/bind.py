"""Syntax tree + catalog -> Query."""

from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.query.asked_intervals import take_interval_columns
from sfumato.query.count_columns import check_count_use
from sfumato.query.decided_comparisons import collect_cautions
from sfumato.query.mapped_values import limit_work
from sfumato.query.public_values import replace_public_values
from sfumato.query.query import Query
from sfumato.query.result_binder import ResultBinder


def bind(tree: exp.Query, dataset: Dataset) -> Query:
    """Resolve every name and type. `Query.cautions` lists comparisons that the declarations decide."""
    asked, ends = take_interval_columns(tree)
    with collect_cautions() as cautions, limit_work():
        query = ResultBinder(dataset).bind(replace_public_values(asked, dataset))
    notes = [note for part in (query, *query.beside) for note in check_count_use(tree, part, dataset)]
    unit_notes = tuple(dict.fromkeys(notes))
    return replace(query, cautions=tuple(cautions), unit_notes=unit_notes, interval_columns=ends)
