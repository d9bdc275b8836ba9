"""Limits that every table of a mechanism keeps, whether it is built from numbers or read from a document.

Part of the trusted perimeter.
"""

import re

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.number_arguments import read_whole_number

MOST_CATEGORIES = 1 << 20
PUBLISHED_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,60})?(e[+-]?[0-9]{1,3})?")  # as every client reads it


def check_categories(k: object) -> int:
    """Return a number of categories.

    Claim: K-45. The result is a whole number from 2 to 2**20, so that all sums of a table fit into 64 bits.
    Relies on: K-03.
    Checked by: tests/local/test_randomisers.py::test_altered_descriptions_are_refused
    """
    count = read_whole_number(k, "k", 2)
    if count > MOST_CATEGORIES:
        raise InvalidParameter("k", f"must be at most {MOST_CATEGORIES}", "more", "For texts, use heavy_hitters.")
    return count


def check_coin(units: object, name: str) -> int:
    """Return the units of a coin that can fall either way.

    Claim: K-45. The result is a whole number from 1 to 2**32 - 1, so that no entry of a table is zero.
    Relies on: K-40.
    Checked by: tests/local/test_randomisers.py::test_altered_descriptions_are_refused
    """
    if type(units) is not int or not 0 < units < UNITS:
        found = "a number outside" if type(units) is int else describe_kind(units)
        raise InvalidParameter(name, "must be a whole number of units, from 1 to 2**32 - 1", found)
    return units
