"""The possible values of a function: the function applied to each possible value of its arguments.

So UPPER(city), SUBSTR(city, 1, 1) and FLOOR(x / 500) * 500 keep public keys. The values follow from declarations and
from the question, never from the data. The work for one question is limited.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import product
from math import prod

from sfumato.kernel.expressions import Call, Literal, Scalar
from sfumato.query.query import Typed
from sfumato.row_meanings.evaluate import evaluate

MOST_MAPPED = 10_000  # of one function, like functions.MOST_KEYS
MOST_WORK = 200_000  # function calls for one question


class Work:
    """The calls that one question has used."""

    def __init__(self) -> None:
        self.calls = 0

    def take(self, calls: int) -> bool:
        """Use some calls. False: there are not that many left."""
        if self.calls + calls > MOST_WORK:
            return False
        self.calls += calls
        return True


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def limit_work() -> Iterator[None]:
    """Limit the work for one question."""
    before = _WORK.set(Work())
    try:
        yield
    finally:
        _WORK.reset(before)


def take_work(calls: int) -> bool:
    """Use some of the calls that a question may use. False: too many."""
    work = _WORK.get()
    return work is None or work.take(calls)


def map_values(made: Typed, arguments: Sequence[Typed]) -> Typed:
    """A call with its possible values, if those of all its arguments are known and few."""
    listed = [argument.values for argument in arguments if argument.values is not None]
    if len(listed) < len(arguments) or not isinstance(made.expression, Call):
        return made
    size = prod(map(len, listed))
    if size > MOST_MAPPED or not take_work(size):
        return made
    call = made.expression
    found: dict[Scalar, None] = {}
    nullable = made.nullable
    for values in product(*listed):
        arguments_of = (*map(Literal, values), *call.arguments[len(values) :])  # the others are constants
        value = evaluate(Call(call.function, arguments_of, call.unit), {})
        if value is None:
            nullable = True
        else:
            found[show_whole(value, whole=made.whole)] = None
    ordered = list(found) if made.type in ("text", "boolean") else sorted(found)  # type: ignore[type-var]
    return replace(made, values=tuple(ordered) or None, nullable=nullable)


def show_whole(value: Scalar, *, whole: bool) -> Scalar:
    """A whole number as an integer; -0.0 as 0.0."""
    if not isinstance(value, float):
        return value
    return int(value) if whole and value.is_integer() else value + 0.0
