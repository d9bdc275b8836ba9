"""Refusing a catalog: what is wrong, where, and what would be right."""

from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import CatalogError, InvalidParameter

MOST_CHARACTERS = 100


def catalog_error(message: str, hint: str = "") -> CatalogError:
    return CatalogError("catalog", message, hint)


@contextmanager
def naming_place(where: str) -> Iterator[None]:
    """Say where in the catalog a rule was broken."""
    try:
        yield
    except (CatalogError, InvalidParameter) as error:
        raise catalog_error(f"{where}: {error.message}" if where else error.message, error.hint) from None


def show_value(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= 2 * MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."
