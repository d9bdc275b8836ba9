"""Does a private choice have its exact probabilities? Small weights are chosen among many times, and counted."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.entropy import SYSTEM
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.noise_distribution import ALARM
from sfumato.lab.distributions.choice_distributions import distribute_bins

Choice = QuantileChoice | ExtremeChoice | ModeChoice

FEW_BINS = 5
SMALL_REACH = 8  # of a unit, in weights: exact probabilities of larger ones take long
TIMES = 4_000
_ROUNDING = 1e-9
SHAPES = ((0, 0, 0, 0, 0), (3, 0, 1, 0, 2), (0, 2, 0, 2, 0), (6, 1, 0, 0, 0), (0, 0, 0, 1, 9))  # in spreads, or targets


def check_choosers(choices: Sequence[Choice]) -> Iterator[str]:
    """Choose among few bins, each choice of a certificate by itself and each fraction alone, and compare."""
    for choice in dict.fromkeys(small for certified_choice in choices for small in _list_small(certified_choice)):
        for shape in SHAPES:
            weights = [part * _find_step(choice) for part in shape[: choice.bins]]
            rows = np.tile(np.array(weights, np.int64), (TIMES, 1))
            drawn = Counter(choice.choose_cells(rows, SYSTEM))
            exact = distribute_bins(choice, weights)
            for outcome, chance in zip(exact.outcomes, exact.masses, strict=True):
                hits = drawn[outcome]
                often = compute_tail(hits, TIMES, min(1.0, float(chance.high) + _ROUNDING))
                seldom = compute_tail(TIMES - hits, TIMES, min(1.0, 1 - float(chance.low) + _ROUNDING))
                if min(often, seldom) < ALARM:
                    yield f"{_describe(choice)}: a bin is chosen with another probability than certified."
                    break


def _list_small(choice: Choice) -> list[Choice]:
    few, reach = min(choice.bins, FEW_BINS), min(choice.reach, SMALL_REACH)
    match choice:
        case QuantileChoice():
            return [replace(choice, bins=few, reach=reach, fractions=(fraction,)) for fraction in choice.fractions]
        case ExtremeChoice():
            return [replace(choice, bins=few, reach=reach)]
        case ModeChoice():
            return [replace(choice, bins=few, reach=reach, k=min(choice.k, few))]


def _find_step(choice: Choice) -> int:
    """A weight at which bins are told apart sometimes."""
    return max(1, choice.target // 4 if isinstance(choice, ExtremeChoice) else int(choice.spread / 2))


def _describe(choice: Choice) -> str:
    match choice:
        case QuantileChoice(fractions=fractions, miss=miss):
            return f"The {'quantile' if miss is None else 'interval of the quantile'} {float(fractions[0]):g}"
        case ExtremeChoice(largest=largest):
            return "A maximum" if largest else "A minimum"
        case ModeChoice(k=k):
            return "A mode" if k == 1 else f"The {k} fullest bins"
