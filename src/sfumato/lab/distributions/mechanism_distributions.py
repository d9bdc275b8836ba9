"""`sf.lab.probabilities`: the distribution of any mechanism's output, for a value that a teacher chooses."""

from typing import TypeAlias, overload

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.distributions.choice_distributions import distribute_bins, distribute_choice
from sfumato.lab.distributions.crossings import find_first_crossing
from sfumato.lab.distributions.enclosed import Enclosed
from sfumato.lab.distributions.finite_distribution import FiniteDistribution
from sfumato.lab.distributions.key_distribution import KeyDistribution, distribute_keys
from sfumato.lab.distributions.lattice_distribution import LatticeDistribution, VectorDistribution
from sfumato.lab.distributions.local_distributions import (
    check_category,
    distribute_category,
    distribute_mean,
    distribute_questions,
    distribute_response,
    report_chance,
)
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.randomized_response import KaryResponse, RandomizedResponse
from sfumato.number_arguments import Number
from sfumato.number_arrays import read_numbers
from sfumato.standalone.additive import Gaussian, Laplace
from sfumato.standalone.mechanisms.additive_noise import Additive, choose_grid_and_noise
from sfumato.standalone.mechanisms.value_grid import to_grid
from sfumato.standalone.private_choice import PrivateChoice
from sfumato.standalone.thresholded_keys import ThresholdedKeys

Listed: TypeAlias = (
    PrivateChoice
    | QuantileChoice
    | ExtremeChoice
    | ModeChoice
    | AboveThreshold
    | RandomizedResponse
    | KaryResponse
    | Randomiser
    | MeanRandomiser
    | Questions
)
Distribution: TypeAlias = FiniteDistribution | LatticeDistribution | VectorDistribution | KeyDistribution


@overload
def probabilities(mechanism: Listed, value: object) -> FiniteDistribution: ...
@overload
def probabilities(mechanism: ThresholdedKeys, value: object) -> KeyDistribution: ...
@overload
def probabilities(mechanism: Laplace | Gaussian, value: Number) -> LatticeDistribution: ...
@overload
def probabilities(mechanism: object, value: object) -> Distribution: ...
def probabilities(mechanism: object, value: object) -> Distribution:  # noqa: PLR0911, PLR0912 - a case each
    """The probability of every output of a mechanism, for this value. It draws nothing, and charges nothing.

    | mechanism | value | result |
    |---|---|---|
    | sf.Laplace, sf.Gaussian | a number, or a list | a lattice: p(x), cdf(x), range(mass) |
    | sf.PrivateChoice | scores | each index |
    | sf.ThresholdedKeys | {key: people} | p({key: noisy number}), released(key) |
    | sf.RandomizedResponse, sf.KaryResponse, sf.local randomisers | one answer | each report |
    | above-threshold (a watch's sequence) | whole numbers | the index of the first True; None if there is none |
    | quantile, extreme and mode choices of the kernel | weights in the bins | the chosen bins |

    A probability is an exact fraction where it is rational. Otherwise it lies between two fractions that agree to more
    than 50 digits (for Gaussian noise on a fine grid, to 9).
    """
    match mechanism:
        case Laplace() | Gaussian():
            return _distribute_number(mechanism.mechanism, value)
        case LaplaceNoise() | GaussianNoise():
            return LatticeDistribution(int(to_grid(read_numbers(value).flat, 0)[0]), mechanism, 0, "integers")
        case PrivateChoice():
            return distribute_choice(mechanism, value)
        case QuantileChoice() | ExtremeChoice() | ModeChoice():
            return distribute_bins(mechanism, value)
        case ThresholdedKeys():
            return distribute_keys(mechanism.rule, value)
        case AboveThreshold():
            return _distribute_sequence(mechanism, value)
        case RandomizedResponse():
            chances = distribute_response(mechanism.mechanism, check_category(value, 2))
            return FiniteDistribution((False, True), chances.masses)
        case KaryResponse():
            return distribute_response(mechanism.mechanism, check_category(value, mechanism.categories))
        case Randomiser():
            return distribute_category(mechanism, check_category(value, mechanism.k))
        case MeanRandomiser():
            return distribute_mean(mechanism, value)
        case Questions():
            return distribute_questions(mechanism, value)
        case HeavyHitters():
            hint = "sf.lab.report_probability(mechanism, word, report) gives the probability of one report."
            raise InvalidParameter("mechanism", "must have few reports", "heavy hitters", hint)
        case _:
            rule = "must be a mechanism of Sfumato, such as sf.Laplace(1, 1) or sf.RandomizedResponse(1)"
            raise InvalidParameter("mechanism", rule, describe_kind(mechanism))


def report_probability(mechanism: object, value: object, report: object) -> Enclosed:
    """The probability of one report of a local randomiser, also where there are too many reports to list."""
    if isinstance(mechanism, Randomiser | HeavyHitters):
        chance = report_chance(mechanism, value, report)
        return Enclosed(chance, chance)
    found = probabilities(mechanism, value)
    if not isinstance(found, FiniteDistribution):
        raise InvalidParameter("mechanism", "must be a local randomiser", describe_kind(mechanism))
    return found.p(report)  # Python refuses what cannot be hashed


def _distribute_number(mechanism: Additive, value: object) -> LatticeDistribution | VectorDistribution:
    values = read_numbers(value)
    exponent, noise = choose_grid_and_noise(mechanism, max(values.flat.size, 1))
    entries = tuple(
        LatticeDistribution(centre, noise, exponent, mechanism.of) for centre in to_grid(values.flat, exponent).tolist()
    )
    return entries[0] if values.shape is None else VectorDistribution(entries)


def _distribute_sequence(sequence: AboveThreshold, values: object) -> FiniteDistribution:
    flat = read_numbers(values, "values").flat.tolist()
    if any(value != int(value) for value in flat):
        raise InvalidParameter("values", "must be whole numbers", "others")
    noise = sequence.noise
    chances = find_first_crossing(
        [int(value) for value in flat], sequence.threshold + noise.rise, noise.threshold_scale, noise.value_scale
    )
    return FiniteDistribution((*range(len(flat)), None), tuple(chances))
