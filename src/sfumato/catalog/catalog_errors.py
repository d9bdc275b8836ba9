"""Errors in a catalog: what is wrong, where, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import CatalogError, InvalidParameter

MOST_CHARACTERS = 100


def build_catalog_error(message: str, hint: str = "") -> CatalogError:
    """The refusal of a catalog."""
    return CatalogError("catalog", message, hint)


@contextmanager
def name_place(where: str) -> Iterator[None]:
    """Put the place in the catalog before the message of an error."""
    try:
        yield
    except (CatalogError, InvalidParameter) as error:
        raise build_catalog_error(f"{where}: {error.message}" if where else error.message, error.hint) from None


def show_value(value: object) -> str:
    """A declared value in a message; a long one is cut."""
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= 2 * MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."
