"""Sfumato's own mechanisms, each with a hard pair of neighbouring inputs: none of them may be flagged."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy.crossing_margins import balance_noise
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import GaussianNoise, choose_box_noise
from sfumato.lab.auditing.audit_result import AuditResult
from sfumato.lab.auditing.mechanism_audit import audit
from sfumato.local.randomisers.category_randomisers import randomiser
from sfumato.local.randomisers.category_tables import NAMES
from sfumato.local.randomisers.heavy_hitters import heavy_hitters
from sfumato.local.randomisers.mean_randomisers import MEAN_NAMES, mean_randomiser
from sfumato.local.randomisers.questions import METHODS, questions
from sfumato.local.randomisers.randomized_response import KaryResponse, RandomizedResponse
from sfumato.local.randomisers.two_stage_randomisers import STAGED, memoise
from sfumato.number_arguments import Number
from sfumato.standalone.additive import Gaussian, Laplace
from sfumato.standalone.private_choice import PrivateChoice
from sfumato.standalone.thresholded_keys import ThresholdedKeys


@dataclass(frozen=True, slots=True)
class RealMechanism:
    """A mechanism with its claim and two neighbouring inputs. With `batch`, it makes many outputs in one call."""

    name: str
    mechanism: Callable[..., Any]
    first: object
    second: object
    epsilon: Number | None = 1
    delta: Number = 0
    rho: Number | None = None
    batch: bool = True

    def audit(self, samples: int) -> AuditResult:
        """Audit the claim with so many samples on each input."""
        return audit(
            self.mechanism, self.first, self.second, self.epsilon, self.delta, self.rho, samples, batch=self.batch
        )  # fmt: skip


def _repeat(release: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    """One call on many copies of a number: entries of an array get independent noise."""
    return lambda data, runs: release(np.full(runs, data))


def _repeat_rows(release: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    return lambda data, runs: release(np.tile(np.array(data), (runs, 1)))


def _release_vectors(mechanism: Laplace | Gaussian) -> Callable[[Any], Any]:
    return lambda data: mechanism.release(np.array(data))


def _cross(answers: list[int]) -> list[bool]:
    """Above threshold, until the first True."""
    noise = balance_noise(Fraction(1), Decimal(1), False, 100)
    sequence = AboveThreshold(8, Fraction(1), Decimal(1), False, noise)
    found: list[bool] = []
    for answer in answers:
        found.append(sequence.check(answer, SYSTEM))
        if found[-1]:
            break
    return found


def _add_rounded(data: int, runs: int) -> Any:  # noqa: ANN401 - an array
    return data + GaussianNoise(Fraction(1), rounded=True).draw(runs, SYSTEM)


def _release_boxes(data: list[int], runs: int) -> Any:  # noqa: ANN401 - an array
    """Joint sums of two terms: one person moves them by at most 16 and 32."""
    box = choose_box_noise([Fraction(16), Fraction(32)], 1, PureDP(1))
    return np.array(data) + box.draw(2 * runs, SYSTEM).reshape(runs, 2).astype(np.int64)


def _list_local() -> list[RealMechanism]:
    half = Decimal("0.5")
    listed = [
        RealMechanism("RandomizedResponse", _repeat(RandomizedResponse(1).randomise), False, True),
        RealMechanism("KaryResponse", _repeat(KaryResponse(5, 1).randomise), 0, 4),
    ]
    for name in NAMES:
        made = randomiser(name, k=2 if name == "rr" else 8, epsilon=1)
        listed.append(RealMechanism(f"local {name}", _repeat(made.randomise), 0, 1))
    for name in STAGED:
        made = memoise(name, k=2 if name == "rr" else 4, longitudinal_epsilon=Decimal(1), epsilon=half)
        listed.append(RealMechanism(f"local two-stage {name}", _repeat(made.randomise), 0, 1, half))
    for name in MEAN_NAMES:
        mean = mean_randomiser(name, lower=0, upper=1, epsilon=1)
        listed.append(RealMechanism(f"local mean {name}", _repeat(mean.randomise), 0.0, 1.0))
    for method in METHODS:
        asked = questions(3, 1, method)
        listed.append(
            RealMechanism(f"local questions {method}", _repeat_rows(asked.randomise), [False] * 3, [True] * 3)
        )
    words = heavy_hitters(2, 1)
    listed.append(RealMechanism("local heavy hitters", lambda word, runs: words.randomise([word] * runs), "aa", "zz"))
    return listed


REAL_MECHANISMS = (
    RealMechanism("Laplace on integers", _repeat(Laplace(1, 1, of="integers").release), 0, 1),
    RealMechanism("Laplace on reals", Laplace("0.5", 1).release, 0.0, 0.5, batch=False),
    RealMechanism("Laplace at epsilon 0.1", _repeat(Laplace(1, "0.1", of="integers").release), 0, 1, "0.1"),
    RealMechanism("Laplace at epsilon 5", _repeat(Laplace(1, 5, of="integers").release), 0, 1, 5),
    RealMechanism("Laplace of a vector", _release_vectors(Laplace(2, 1)), [5, 5, 5], [4, 6, 5], batch=False),
    RealMechanism("Laplace of huge values", Laplace(1, 1).release, 2**62, 2**62 + 1, batch=False),
    RealMechanism("Laplace of NaN", Laplace(1, 1).release, float("nan"), 1.0, batch=False),
    RealMechanism("Gaussian", _repeat(Gaussian(1, "0.5", of="integers").release), 0, 1, None, rho="0.5"),
    RealMechanism("Gaussian of a vector", _release_vectors(Gaussian(1, "0.5")), [0.3, 0.0], [0.0, 0.4], None,
        rho="0.5", batch=False),
    # mu = 1 at epsilon = 1: the least delta is Phi(-1/2) - e Phi(-3/2)
    RealMechanism("rounded Gaussian", _add_rounded, 0, 1, 1, "0.12693674"),
    RealMechanism("box noise", _release_boxes, [0, 0], [16, 32]),
    RealMechanism("PrivateChoice", PrivateChoice(1, 1).release, [1, *[0] * 20], [0, *[1] * 20], batch=False),
    RealMechanism("PrivateChoice, monotonic", PrivateChoice(1, 1, monotonic=True).release, [3, 2, 0], [3, 3, 1],
        batch=False),
    RealMechanism("ThresholdedKeys", ThresholdedKeys(1, "0.05").release, {"a": 5}, {"a": 5, "b": 1}, 1, "0.05",
        batch=False),
    RealMechanism("ThresholdedKeys, one more person", ThresholdedKeys(1, "0.05").release, {"a": 3}, {"a": 4}, 1, "0.05",
        batch=False),
    # eight numbers rise by one and the last falls by one: that only the last crosses uses up nearly all of epsilon
    RealMechanism("above threshold", _cross, [*[12] * 8, 14], [13] * 9, batch=False),
    *_list_local(),
)  # fmt: skip
