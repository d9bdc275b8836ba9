"""Values that JSON can hold, and their text."""

import json
import math
from typing import Any

_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))


def replace_infinite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The same value with null in place of infinity and NaN: JSON has neither."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: replace_infinite(item) for name, item in value.items()}
    return [replace_infinite(item) for item in value] if isinstance(value, list | tuple) else value


def write_json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """The JSON text of a value, in ASCII and without spaces, with null in place of infinity and NaN."""
    try:
        return _ENCODER.encode(value)
    except ValueError:  # few values have any: to look at every part of all of them takes longer than to write them
        return _ENCODER.encode(replace_infinite(value))
