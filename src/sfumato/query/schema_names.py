"""schema.table: the schema is the dataset's name, one that the catalog declares, or a database's default."""

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.errors import UnknownName
from sfumato.query.parse import locate
from sfumato.query.tokens import shorten

DEFAULT_SCHEMAS = ("main", "public", "dbo")


def is_schema_known(node: exp.Table, dataset: Dataset) -> bool:
    """Does a table have no schema in front of its name, or a known one?"""
    return _find_unknown(node, dataset) is None


def check_schema(node: exp.Table, dataset: Dataset) -> None:
    """Refuse a table with a schema that is not known."""
    given = _find_unknown(node, dataset)
    if given is not None:
        message = f"There is no schema '{shorten(given.name)}' here{locate(given)}."
        hint = (
            f"Leave it out, or write {dataset.name}. The owner can declare other names of the schema: "
            f'schemas = ["{shorten(given.name)}"] in [dataset].'
        )
        raise UnknownName("unknown-name", message, hint)


def _find_unknown(node: exp.Table, dataset: Dataset) -> exp.Expr | None:
    schemas = (dataset.name, *dataset.schemas, *DEFAULT_SCHEMAS)
    given = (node.args.get(part) for part in ("db", "catalog"))
    return next(
        (argument for argument in given if argument is not None and find_name(argument.name, schemas) is None), None
    )
