"""Limits that a question sets to what one person contributes: max_rows and max_groups. They only lower bounds."""

from dataclasses import replace

from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.row_sources import Capped, derive_extent
from sfumato.number_arguments import read_whole_number
from sfumato.query.dp_options import DpOptions
from sfumato.query.query import Query
from sfumato.query.source_outline import outline_source


def limit_contributions(query: Query, max_rows: int | None, max_groups: int | None, dataset: Dataset) -> Query:
    """The question with these limits. A limit that is no lower than what holds anyway changes nothing."""
    if max_rows is None and max_groups is None:
        return query
    tables = [dataset.table(name) for name in outline_source(query.source).tables]
    if any(table.unit is ROW and not table.public for table in tables):
        name = "max_rows" if max_groups is None else "max_groups"
        hint = "Leave it out: each row is one person."
        raise InvalidParameter(name, "must not be given where each row is one person", "a limit", hint)
    if query.beside:
        raise InvalidParameter("question", "must need one release if it has limits", "one that needs several")
    if max_rows is not None:
        most = read_whole_number(max_rows, "max_rows", 1)
        if most < derive_extent(query.source).reach:
            query = replace(query, source=Capped(query.source, most))
    if max_groups is not None:
        limit = read_whole_number(max_groups, "max_groups", 1)
        options = query.dp_options or DpOptions()
        if options.max_groups_contributed is not None:
            hint = "Give the limit once."
            raise InvalidParameter("max_groups", "must not be given beside max_groups_contributed", "both", hint)
        query = replace(query, max_groups=limit)
    return query
