"""How many random examples a neighbour test tries: few in `make test`, at least 200 a question in `make test-slow`."""

import os

from hypothesis import HealthCheck

SLOW = [HealthCheck.too_slow]  # how fast examples are made is no evidence
FROM_OUTSIDE = "SFUMATO_EXAMPLES"


def count_examples(fast):
    """The larger of `fast` and the number that the environment variable asks for."""
    return max(fast, int(os.environ.get(FROM_OUTSIDE, "0")))
