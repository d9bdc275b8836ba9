"""The Laplace and Gaussian mechanisms for a program's own numbers."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast, get_args

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.number_arguments import Number, read_positive_decimal, read_positive_fraction
from sfumato.standalone.grid_margins import compute_margin_on_grid
from sfumato.standalone.mechanisms.additive_noise import Additive, Of, release_on_grid


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace:
    """The Laplace mechanism: epsilon-DP for a number or vector whose L1 sensitivity is `sensitivity`.

    Integers come out if the sensitivity is whole, floats otherwise; `of` says it explicitly. The type of a value never
    matters. With of="integers" you declare that every value is whole, whatever the data: a vector then gets noise on
    the integers themselves. Without the declaration, a vector gets a little more noise to pay for its rounding: less
    than 1 part in 1,000.
    """

    mechanism: Additive

    def __init__(self, sensitivity: Number, epsilon: Number, *, of: Of | None = None) -> None:
        moved = read_positive_fraction(sensitivity, "sensitivity")
        loss = PureDP(read_positive_decimal(epsilon, "epsilon"))
        object.__setattr__(self, "mechanism", Additive(moved, loss, _read_of(of, moved), of == "integers"))

    def __repr__(self) -> str:
        amounts = f"sensitivity={write_plain(self.sensitivity)}, epsilon={write_plain(self.epsilon)}"
        return f"Laplace({amounts}{_show_of(self.mechanism)})"

    @property
    def sensitivity(self) -> Fraction:
        """The L1 sensitivity of the whole vector."""
        return self.mechanism.sensitivity

    @property
    def epsilon(self) -> Decimal:
        """The loss of one release."""
        return self.loss.epsilon

    @property
    def of(self) -> Of:
        """What comes out: "integers" or "reals"."""
        return self.mechanism.of

    @property
    def loss(self) -> PureDP:
        """What one release costs, however long the vector."""
        return cast(PureDP, self.mechanism.loss)

    def release(self, value: object) -> Any:  # noqa: ANN401 - int or float, or an array of them, as `of` and shape say
        """The value plus exact noise, on the integers or on a public grid: `of` decides, never the value or its type.

        You must know that `sensitivity` bounds the L1 distance between the values of any two neighbours (NaN counts as
        0), and that the shape of a vector is public.
        """
        return release_on_grid(self.mechanism, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        Where integers come out, it is for values that are whole; another value is half a step further away at most.
        """
        return compute_margin_on_grid(self.mechanism, confidence, size)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian:
    """The Gaussian mechanism: rho-zCDP for a number or vector whose L2 sensitivity is `sensitivity`.

    Integers come out if the sensitivity is whole, floats otherwise; `of` says it explicitly, as for `Laplace`.
    """

    mechanism: Additive

    def __init__(self, sensitivity: Number, rho: Number, *, of: Of | None = None) -> None:
        moved = read_positive_fraction(sensitivity, "sensitivity")
        loss = ZCDP(read_positive_decimal(rho, "rho"))
        object.__setattr__(self, "mechanism", Additive(moved, loss, _read_of(of, moved), of == "integers"))

    def __repr__(self) -> str:
        numbers = f"sensitivity={write_plain(self.sensitivity)}, rho={write_plain(self.rho)}"
        return f"Gaussian({numbers}{_show_of(self.mechanism)})"

    @property
    def sensitivity(self) -> Fraction:
        """The L2 sensitivity of the whole vector."""
        return self.mechanism.sensitivity

    @property
    def rho(self) -> Decimal:
        """The loss of one release."""
        return self.loss.rho

    @property
    def of(self) -> Of:
        """What comes out: "integers" or "reals"."""
        return self.mechanism.of

    @property
    def loss(self) -> ZCDP:
        """What one release costs, however long the vector."""
        return cast(ZCDP, self.mechanism.loss)

    def release(self, value: object) -> Any:  # noqa: ANN401 - int or float, or an array of them, as `of` and shape say
        """The value plus exact noise, on the integers or on a public grid: `of` decides, never the value or its type.

        You must know that `sensitivity` bounds the L2 distance between the values of any two neighbours (NaN counts as
        0), and that the shape of a vector is public.
        """
        return release_on_grid(self.mechanism, value, SYSTEM)

    def margin(self, confidence: Number = "0.95", *, size: int = 1) -> int | float:
        """|error| is at most this with the stated probability, for all `size` entries of a vector at once.

        Where integers come out, it is for values that are whole; another value is half a step further away at most.
        """
        return compute_margin_on_grid(self.mechanism, confidence, size)


def _read_of(of: object, sensitivity: Fraction) -> Of:
    if of is None:
        return "integers" if sensitivity.denominator == 1 else "reals"
    kinds: tuple[Of, ...] = get_args(Of)
    for kind in kinds:
        if isinstance(of, str) and of == kind:
            return kind
    raise InvalidParameter("of", "must be 'integers' or 'reals'", describe_kind(of))


def _show_of(mechanism: Additive) -> str:
    """`of`, where it was given and matters."""
    if mechanism.declared_whole or _read_of(None, mechanism.sensitivity) != mechanism.of:
        return f", of={mechanism.of!r}"
    return ""
