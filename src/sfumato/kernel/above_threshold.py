"""Above threshold (sparse vector): has it been exceeded yet? Any number of questions, at the price of one."""

import os
import threading
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from operator import index

from sfumato.errors import KernelFault, QueryError
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import check_scale
from sfumato.kernel.samplers import geometric
from sfumato.kernel.sealed import seal


@dataclass(frozen=True, slots=True)
class CrossingNoise:
    """The scales of one sequence's geometric noise, and a public rise of the threshold.

    Noise on values only helps them over the threshold, and noise on the threshold only raises it; `rise` makes up for
    the difference.
    """

    threshold_scale: Fraction
    value_scale: Fraction
    rise: int


@seal  # a copy would answer True a second time, with the same noise on the threshold
@dataclass(frozen=True, slots=True, eq=False)
class AboveThreshold:
    """False, False, … until the first True: whole numbers against a threshold, epsilon-DP for the whole sequence.

    `sensitivity` bounds how far one person moves any one value; `monotonic` says that one person moves all values the
    same way (counts under add-remove). Any number of values may be checked.
    """

    threshold: int
    sensitivity: Fraction
    epsilon: Decimal
    monotonic: bool
    noise: CrossingNoise
    finished: bool = field(init=False, default=False)
    name: str = field(init=False, repr=False)  # what its charge is for: no other sequence has it
    _bar: int | None = field(init=False, repr=False, default=None)
    _busy: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _process: int = field(init=False, repr=False, default_factory=os.getpid)

    def __post_init__(self) -> None:
        if self.sensitivity <= 0 or self.epsilon <= 0 or type(self.monotonic) is not bool:
            raise KernelFault("A sequence has a sensitivity and an epsilon above zero.")
        once, often = (check_scale(s, "epsilon") for s in (self.noise.threshold_scale, self.noise.value_scale))
        if self.sensitivity * (1 / once + (1 if self.monotonic else 2) / often) > Fraction(self.epsilon):
            raise KernelFault("The noise of this sequence does not pay for its epsilon.")
        object.__setattr__(self, "threshold", index(self.threshold))
        object.__setattr__(self, "name", SYSTEM.take(32).tobytes().hex())

    @property
    def loss(self) -> PureDP:
        """What the whole sequence costs, to be paid before the first question.

        Claim: K-34. All answers together satisfy this loss: with c = 1 if monotonic, else 2,
            sensitivity/threshold_scale + c * sensitivity/value_scale <= epsilon (checked when the sequence is made).
        Requires: as check.
        Relies on: K-08.
        Checked by: tests/kernel/test_above_threshold.py::test_sequences_are_private_exactly
        """
        return PureDP(self.epsilon)

    def check(self, value: int, entropy: Entropy) -> bool:
        """Has the value, nearly, reached the threshold? After the first True the sequence is finished, and refuses.

        Claim: K-34. The sequence of answers is epsilon-DP, also when each value is asked for after earlier answers.
        Requires: `sensitivity` bounds each value's change between neighbours, and `monotonic` is true of them (caller);
            epsilon was charged (caller).
        Relies on: K-08; one answer at a time, in one process (checked here).
        Checked by: tests/kernel/test_above_threshold.py::test_answers_follow_the_scripted_noise
        """
        value = index(value)
        if os.getpid() != self._process:  # a fork copies the noise: the other process may go on with it
            raise KernelFault("A sequence belongs to the process that began it.")
        if not self._busy.acquire(blocking=False):
            raise QueryError("sequence-busy", "This sequence is answering another question.", "Ask one at a time.")
        try:
            if self.finished:
                hint = "Begin another one; it costs its own epsilon."
                raise QueryError("sequence-finished", "This sequence has said True, and is finished.", hint)
            bar = self._bar
            if bar is None:  # drawn once, for the whole sequence
                raised = int(geometric(self.noise.threshold_scale, 1, entropy)[0])
                bar = self.threshold + self.noise.rise + raised
                object.__setattr__(self, "_bar", bar)
            above = value + int(geometric(self.noise.value_scale, 1, entropy)[0]) >= bar
            object.__setattr__(self, "finished", above)
            return above
        finally:
            self._busy.release()
