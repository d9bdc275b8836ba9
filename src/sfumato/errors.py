"""All error types. A message says what is wrong and what to do; it never contains a value from the data."""

import linecache
import math
from decimal import Decimal
from numbers import Rational, Real
from pathlib import Path
from types import TracebackType


class SfumatoError(Exception):
    """Base of every error that Sfumato raises on purpose."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.code = code
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error by its fields, because process pools send errors between processes."""
        return _rebuild, (type(self), self.args, self.__dict__)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of fifty lines: the error, the hint, and the user's own line."""
        lines = [f"{type(self).__name__}: {self.message}", self.hint, *getattr(self, "__notes__", ())]
        return [line for line in (*lines, _find_own_line(self.__traceback__)) if line]


def _find_own_line(traceback: TracebackType | None) -> str:
    """The line of code that called Sfumato: a notebook shows it. Empty if there is none."""
    ours, found = str(Path(__file__).parent), ""
    while traceback is not None:
        name, number = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        if name.startswith(ours):
            break
        found = f"At line {number}: {linecache.getline(name, number).strip()}"
        traceback = traceback.tb_next
    return found


def _rebuild(kind: type[SfumatoError], arguments: tuple[object, ...], state: dict[str, object]) -> SfumatoError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class InvalidParameter(SfumatoError, ValueError):
    """An argument breaks a public rule."""

    def __init__(self, parameter: str, rule: str, kind: str, hint: str = "") -> None:
        super().__init__("invalid-parameter", f"{parameter} {rule}; got {kind}.", hint)
        self.parameter = parameter


class MissingExtra(SfumatoError, ImportError):
    """An optional package is not installed, and this function needs it."""


class QueryError(SfumatoError):
    """The question cannot be answered in this form. Nothing was charged."""


class UnsupportedSyntax(QueryError):
    """Sfumato does not support this SQL. The hint names the nearest supported form."""


class UnknownName(QueryError):
    """A table, column or function is not declared. The hint lists the declared ones."""


class MissingBounds(QueryError):
    """An aggregate needs bounds that do not follow from the catalog."""


class CatalogError(SfumatoError):
    """The catalog breaks a rule. The message names the table, the column, the rule and the fix."""


class LoadWarning(UserWarning):
    """A load lost many values: the text says which column, the likely cause and what to do. For the owner only.

    A warning, not an error: `strict` refuses such a load with CatalogError instead.
    """


class BudgetExceeded(SfumatoError):
    """The charge exceeds what is left of a budget. Nothing was charged."""

    def __init__(self, message: str, hint: str, requested: object, remaining: object) -> None:
        super().__init__("budget-exceeded", message, hint)
        self.requested = requested
        self.remaining = remaining


class PermissionDenied(SfumatoError):
    """The analyst is not allowed to do this."""


class LedgerError(SfumatoError):
    """The ledger is missing, foreign, older, altered or unreachable. Without it, nothing is answered."""


class EngineFailed(SfumatoError):
    """The engine failed after the charge. The text is constant, because the failure may depend on the data."""

    def __init__(self) -> None:
        super().__init__(
            "engine-failed",
            "The engine could not run this plan.",
            "The charge stands; ask the same question again to resume it at no further cost.",
        )


class KernelFault(SfumatoError):
    """The kernel is in a state that its proofs exclude. Nothing was released."""

    def __init__(self, message: str) -> None:
        super().__init__("kernel-fault", message, "Please report this: it is a defect, and no answer left.")


def describe_kind(value: object) -> str:
    """Describe the type of a value, without revealing the value."""
    name = type(value).__name__
    if value is None:
        return "nothing (None)"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Decimal):
        return "NaN" if value.is_nan() else "an infinite number" if value.is_infinite() else "a Decimal"
    if name in ("bool", "bool_"):
        return "a truth value"
    if isinstance(value, Real) and not isinstance(value, Rational):
        return "NaN" if math.isnan(value) else "an infinite number" if math.isinf(value) else "a float"
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def build_too_little_noise(parameter: str, rule: str) -> InvalidParameter:
    """Refuse a parameter that would leave the answer without noise."""
    hint = "A guarantee this weak protects nobody; lower it."
    return InvalidParameter(parameter, f"must leave noise: {rule}", "a larger one", hint)


def build_too_much_noise(parameter: str) -> InvalidParameter:
    """Refuse a parameter whose noise does not fit 64-bit numbers."""
    return InvalidParameter(
        parameter,
        "must, with this sensitivity, give noise that 64-bit numbers can carry",
        "one so small that the answer would be noise alone",
        "Raise it, lower the sensitivity, or use larger units.",
    )
