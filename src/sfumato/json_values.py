"""Values that JSON can hold."""

import math
from typing import Any


def replace_infinite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The same value with null in place of infinity and NaN: JSON has neither."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: replace_infinite(item) for name, item in value.items()}
    return [replace_infinite(item) for item in value] if isinstance(value, list | tuple) else value
