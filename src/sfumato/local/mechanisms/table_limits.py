"""What a table may hold: public limits, checked wherever a randomiser is built, from numbers or from a document."""

from sfumato.errors import InvalidParameter
from sfumato.kernel.parameters import kind_of, whole_number
from sfumato.local.mechanisms.coin_tables import UNITS

MOST_CATEGORIES = 1 << 20


def number_of_categories(k: object, least: int = 2) -> int:
    count = whole_number(k, "k", least)
    if count > MOST_CATEGORIES:
        raise InvalidParameter(
            "k", f"must be at most {MOST_CATEGORIES}", "more", "For words and addresses there is heavy_hitters."
        )
    return count


def coin(units: object, name: str) -> int:
    """A coin that can fall either way: 1 .. 2**32 - 1 units. A zero would make epsilon infinite."""
    if type(units) is not int or not 0 < units < UNITS:
        raise InvalidParameter(
            name,
            "must be a whole number of units, from 1 to 2**32 - 1",
            "a number outside" if type(units) is int else kind_of(units),
        )
    return units
