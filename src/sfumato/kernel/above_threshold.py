"""Above threshold (sparse vector): has it been exceeded yet? Any number of questions, at the price of one."""

import math
import os
import threading
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

import numpy as np

from sfumato.errors import InvalidParameter, KernelFault, QueryError
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import carried_scale
from sfumato.kernel.parameters import (
    Number,
    kind_of,
    positive_decimal,
    positive_fraction,
    probability_inside,
    whole_number,
)
from sfumato.kernel.samplers import geometric

_RISK = 1 / 40  # the noise is balanced for a margin of 95 %: this much on either side
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class CrossingNoise:
    """Where the noise of one sequence goes: scales of the geometric noise, and a public rise of the threshold.

    Noise on values only helps them over the threshold, and noise on the threshold only raises it; `rise` makes up for
    the difference.
    """

    threshold_scale: Fraction
    value_scale: Fraction
    rise: int


def balanced_noise(sensitivity: Fraction, epsilon: Decimal, monotonic: bool, queries: int) -> CrossingNoise:
    """Split epsilon between threshold and values so that the margin for so many questions is about the least.

    Claim: K-34. With c = 1 if monotonic, else 2: sensitivity/threshold_scale + c * sensitivity/value_scale = epsilon.
    Requires: public parameters only (caller); floats choose the share and the rise, and no proof rests on those.
    Relies on: nothing.
    Proof: docs/claims/K-34.md
    Checked by: tests/kernel/test_above_threshold.py::test_the_split_spends_epsilon_and_no_more
    """
    shifts = 1 if monotonic else 2
    once, often = math.log(1 / _RISK), math.log(queries / _RISK)
    share = Fraction(round(100 / (1 + math.sqrt(shifts * often / once))), 100)
    threshold_scale = carried_scale(sensitivity / (share * Fraction(epsilon)), "epsilon")
    value_scale = carried_scale(shifts * sensitivity / ((1 - share) * Fraction(epsilon)), "epsilon")
    rarer = math.log(value_scale / (threshold_scale + value_scale))
    return CrossingNoise(
        threshold_scale, value_scale, round((float(value_scale) * (often + rarer) - float(threshold_scale) * once) / 2)
    )


class AboveThreshold:
    """False, False, … until the first True: whole numbers against a threshold, epsilon-DP for the whole sequence.

    `sensitivity` bounds how far one person moves any one value; `monotonic` says that one person moves all values the
    same way (counts under add-remove). `queries` is about how many values are expected; more may be checked.
    """

    __slots__ = (
        "_bar", "_busy", "_process", "epsilon", "finished", "monotonic", "name", "noise", "queries", "sensitivity",
        "threshold",
    )  # fmt: skip

    name: str
    threshold: int
    sensitivity: Fraction
    epsilon: Decimal
    monotonic: bool
    queries: int
    noise: CrossingNoise
    finished: bool
    _bar: int | None
    _busy: threading.Lock
    _process: int

    def __init__(
        self, threshold: int, sensitivity: Number, epsilon: Number, monotonic: bool = False, queries: int = 100
    ) -> None:
        if not isinstance(monotonic, bool):
            raise InvalidParameter("monotonic", "must be True or False", kind_of(monotonic))
        self._set("name", SYSTEM.take(32).tobytes().hex())  # what its charge is for: no other sequence has it
        self._set("threshold", _whole(threshold, "threshold"))
        self._set("sensitivity", positive_fraction(sensitivity, "sensitivity"))
        self._set("epsilon", positive_decimal(epsilon, "epsilon"))
        self._set("monotonic", monotonic)
        self._set("queries", whole_number(queries, "queries", 1))
        self._set("noise", balanced_noise(self.sensitivity, self.epsilon, self.monotonic, self.queries))
        self._set("finished", False)
        self._set("_bar", None)
        self._set("_busy", threading.Lock())
        self._set("_process", os.getpid())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise KernelFault("A sequence cannot be changed from outside.")

    def __delattr__(self, name: str) -> NoReturn:
        raise KernelFault("A sequence cannot be changed from outside.")

    def __repr__(self) -> str:
        numbers = f"sensitivity={plain(self.sensitivity)}, epsilon={plain(self.epsilon)}, monotonic={self.monotonic}"
        return f"AboveThreshold({self.threshold}, {numbers}, finished={self.finished})"

    # a copy would answer True a second time, with the same noise on the threshold

    def __copy__(self) -> NoReturn:
        raise KernelFault("A sequence cannot be copied or written out.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise KernelFault("A sequence cannot be copied or written out.")

    def __reduce__(self) -> NoReturn:
        raise KernelFault("A sequence cannot be copied or written out.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise KernelFault("A sequence cannot be copied or written out.")

    def __getstate__(self) -> NoReturn:
        raise KernelFault("A sequence cannot be copied or written out.")

    @property
    def loss(self) -> PureDP:
        """What the whole sequence costs, to be paid before the first question.

        Claim: K-34. All answers together satisfy this loss.
        Requires: as check.
        Relies on: balanced_noise.
        Proof: docs/claims/K-34.md
        Checked by: tests/kernel/test_above_threshold.py::test_sequences_are_private_exactly
        """
        return PureDP(self.epsilon)

    def check(self, value: int, entropy: Entropy) -> bool:
        """Has the value, nearly, reached the threshold? After the first True the sequence is finished, and refuses.

        Claim: K-34. The sequence of answers is epsilon-DP, also when each value is asked for after earlier answers.
        Requires: `sensitivity` bounds each value's change between neighbours, and `monotonic` is true of them (caller);
            epsilon was charged (caller).
        Relies on: K-08; one answer at a time, in one process (checked here).
        Proof: docs/claims/K-34.md
        Checked by: tests/kernel/test_above_threshold.py::test_answers_follow_the_scripted_noise
        """
        value = _whole(value, "value")
        if os.getpid() != self._process:  # a fork copies the noise: the other process may go on with it
            raise KernelFault("A sequence belongs to the process that began it.")
        if not self._busy.acquire(blocking=False):
            raise QueryError("sequence-busy", "This sequence is answering another question.", "Ask one at a time.")
        try:
            if self.finished:
                raise QueryError(
                    "sequence-finished",
                    "This sequence has said True, and is finished.",
                    "Begin another one; it costs its own epsilon.",
                )
            bar = self._bar
            if bar is None:  # drawn once, for the whole sequence
                raised = int(geometric(self.noise.threshold_scale, 1, entropy)[0])
                bar = self.threshold + self.noise.rise + raised
                self._set("_bar", bar)
            above = value + int(geometric(self.noise.value_scale, 1, entropy)[0]) >= bar
            self._set("finished", above)
            return above
        finally:
            self._busy.release()

    def margin(self, confidence: Number = "0.95", queries: int | None = None) -> int:
        """The least a that the following holds for, with the stated probability, over `queries` questions.

        Every value answered False is at most threshold + a, and the one answered True is at least threshold - a.

        Claim: K-34. It holds for every sequence of values.
        Requires: 0 < confidence < 1, queries >= 1 (checked here).
        Relies on: floats, with a slack of one part in 10**9.
        Proof: docs/claims/K-34.md
        Checked by: tests/kernel/test_above_threshold.py::test_margin_holds
        """
        miss = 1 - probability_inside(confidence, "confidence")
        count = self.queries if queries is None else whole_number(queries, "queries", 1)
        raising, helping = float(1 / self.noise.threshold_scale), float(1 / self.noise.value_scale)
        limit = math.log(miss.numerator) - math.log(miss.denominator) - _SLACK
        meeting = math.log(count) + math.log(math.expm1(-raising) / math.expm1(-raising - helping))

        def rare(margin: int) -> bool:
            missed, early = margin + 2 - self.noise.rise, margin + 1 + self.noise.rise
            if min(missed, early) < 0:
                return False
            return float(np.logaddexp(-raising * missed, meeting - helping * early)) <= limit

        low, high = -1, 0
        while not rare(high):
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if rare(middle) else (middle, high)
        return high


def _whole(value: object, name: str) -> int:
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameter(name, "must be a whole number", kind_of(value))
    return int(value)
