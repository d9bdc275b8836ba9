"""The distribution of a release of undeclared keys: each key comes out with a noisy number, or not at all."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.lab.distributions.enclosed import ONE, ZERO, Enclosed, enclose_exp, greater
from sfumato.lab.distributions.noise_masses import mass, tail_from
from sfumato.number_arguments import Number, read_positive_fraction, read_whole_number
from sfumato.standalone.mechanisms.canonical_keys import NoKey, canonical


@dataclass(frozen=True, slots=True)
class KeyDistribution:
    """The keys that somebody holds, with their true numbers of people. Each key is released independently."""

    rule: KeyRule
    people: tuple[tuple[Hashable, int], ...]

    def released(self, key: Hashable) -> Enclosed:
        """The probability that the key comes out."""
        people = dict(self.people).get(key, 0)
        return tail_from(self._noise, self.rule.threshold - people) if people > 0 else ZERO

    def p(self, output: Mapping[Hashable, int]) -> Enclosed:
        """The probability that exactly these keys come out, with these noisy numbers."""
        if not isinstance(output, Mapping):
            raise InvalidParameter("output", "must map keys to noisy numbers", describe_kind(output))
        held = dict(self.people)
        if not set(output) <= set(held):
            return ZERO
        chance = ONE
        for key, people in held.items():
            if key in output:
                noisy = int(output[key])
                chance = chance * (mass(self._noise, noisy - people) if noisy >= self.rule.threshold else ZERO)
            else:
                chance = chance * (1 - self.released(key))
        return chance

    def delta(self, other: "KeyDistribution", epsilon: Number) -> Enclosed:
        """The least delta for which no event is likelier here than e**epsilon times there, plus delta.

        The two may differ in the number of one key: the other keys then cancel.
        """
        if other.rule != self.rule:
            raise InvalidParameter("other", "must come from the same mechanism", "another")
        mine, theirs = dict(self.people), dict(other.people)
        differing = [key for key in {**mine, **theirs} if mine.get(key, 0) != theirs.get(key, 0)]
        if len(differing) > 1:
            raise InvalidParameter("other", "must differ in one key", "one that differs in several")
        if not differing:
            return ZERO
        (key,) = differing
        return self._delta_of_key(mine.get(key, 0), theirs.get(key, 0), read_positive_fraction(epsilon, "epsilon"))

    @property
    def _noise(self) -> LaplaceNoise:
        return LaplaceNoise(self.rule.scale)

    def _delta_of_key(self, here: int, there: int, epsilon: Fraction) -> Enclosed:
        growth, threshold = enclose_exp(epsilon), self.rule.threshold
        seen_here = tail_from(self._noise, threshold - here) if here > 0 else ZERO
        seen_there = tail_from(self._noise, threshold - there) if there > 0 else ZERO
        unseen = greater((1 - seen_here) - growth * (1 - seen_there), ZERO)
        if here <= 0:
            return unseen
        if there <= 0:
            return unseen + seen_here
        if abs(here - there) <= epsilon * self.rule.scale:  # no noisy number is more than e**epsilon times as likely
            return unseen
        raise InvalidParameter("other", "must differ by at most epsilon * scale people in its key", "more")


def distribute_keys(rule: KeyRule, people_per_key: object) -> KeyDistribution:
    """Read the numbers of people as the mechanism reads them: keys that nobody holds never come out."""
    if not isinstance(people_per_key, Mapping):
        raise InvalidParameter("people_per_key", "must map keys to numbers of people", describe_kind(people_per_key))
    held: list[tuple[Hashable, int]] = []
    for key, people in people_per_key.items():
        form = canonical(key)
        if not isinstance(form, NoKey) and read_whole_number(people, "people_per_key", 0) > 0:
            held.append((form[0], int(people)))
    return KeyDistribution(rule, tuple(held))
