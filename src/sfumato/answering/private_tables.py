"""Which private table a question that names at most one is about."""

from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import InvalidParameter


def choose_private_table(dataset: Dataset, table: str | None, hint_if_public: str) -> Table:
    """The private table of this name; without a name, the only private one."""
    private = [name for name, declared in dataset.tables.items() if not declared.public]
    if table is None and len(private) != 1:
        raise InvalidParameter("table", f"must be one of {', '.join(private)}", "nothing")
    declared = dataset.table(private[0] if table is None else table)
    if declared.public:
        raise InvalidParameter("table", "must be private", "a public table", hint_if_public)
    return declared
