"""The keys of catalog.toml: reading its sections, and refusing what they do not know."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Id, Integer, Real, Text
from sfumato.errors import describe_kind

FILE = "catalog.toml"
KINDS: dict[str, type[Any]] = {
    "integer": Integer,
    "real": Real,
    "category": Category,
    "boolean": Boolean,
    "text": Text,
    "date": Date,
    "datetime": DateTime,
    "id": Id,
}
OTHER_TYPES = {  # names of other systems
    **dict.fromkeys(("timestamp", "timestamptz", "datetime64", "moment"), "datetime"),
    **dict.fromkeys(("float", "float64", "double", "decimal", "numeric", "number"), "real"),
    **dict.fromkeys(("string", "str", "varchar", "char", "object"), "text (or category, with its values)"),
    **dict.fromkeys(("int64", "bigint", "smallint", "long"), "integer"),
    **dict.fromkeys(("enum", "categorical", "factor"), "category"),
    **dict.fromkeys(("key", "identifier"), "id"),
}
NAMES = {kind: name for name, kind in KINDS.items()}
LIMITS = ("epsilon", "delta", "accounting", "rho", "mu")
TABLE_KEYS = ("max_rows_per_unit", "max_groups_per_unit", "rows", "people", "public", "unique")  # as in Table
ABOUT = ("name", "population", "neighbours", "ledger_id", "ledger", "schemas", "engine")  # as in Dataset

Section = Mapping[str, Any]


def read_section(where: str, raw: object) -> Section:
    """A section of keys and values."""
    if not isinstance(raw, dict):
        raise build_catalog_error(
            f"{where} must be a section of keys and values; got {describe_kind(raw)}.", f"Begin it with [{where}]."
        )
    return raw


def check_keys(where: str, section: Section, known: tuple[str, ...], required: tuple[str, ...]) -> None:
    """Refuse a key that is not known here, and a section without a required one."""
    place = f"{where}: " if where else ""
    for key in section:
        if key not in known:
            raise build_catalog_error(f"{place}there is no key {key!r} here.", suggest_key(key, known))
    for key in required:
        if key not in section:
            raise build_catalog_error(f"{place}{key} is missing.", f"Needed here: {', '.join(required)}.")


def suggest_type(name: object) -> str:
    """The type that another system's name means; else the one that is spelt most alike, or all of them."""
    meant = OTHER_TYPES.get(name.casefold()) if isinstance(name, str) else None
    return suggest_key(name, KINDS) if meant is None else f"{name} is called {meant} here."


def suggest_key(key: object, known: Iterable[str]) -> str:
    """The known key that is most like this one; else all of them."""
    close = difflib.get_close_matches(key.casefold(), known, 1, 0.5) if isinstance(key, str) else []
    return f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(known)}."
