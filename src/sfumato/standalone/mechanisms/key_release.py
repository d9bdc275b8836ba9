"""Release of the keys that a program's own data holds, with their noisy numbers of people.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

from collections.abc import Hashable, Mapping
from typing import TypeVar, cast

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.samplers import discrete_laplace
from sfumato.kernel.saturating_sums import add_saturating
from sfumato.number_arrays import read_numbers
from sfumato.standalone.mechanisms.canonical_keys import NoKey, Ordered, canonical
from sfumato.standalone.mechanisms.value_grid import to_grid

Key = TypeVar("Key", bound=Hashable)


def release_keys(rule: KeyRule, people_per_key: Mapping[Key, int], entropy: Entropy) -> dict[Key, int]:
    """Add noise to every key that somebody holds, and drop keys below the threshold. Most people come first.

    Claim: K-21. The output is (epsilon, delta)-DP: it depends on the data only through the noisy counts that reach the
        threshold. No key and no number is refused.
    Requires: a person counts at most once per key and in at most max_groups_per_unit keys (caller).
    Relies on: K-09, K-13 (reading).
    Checked by: tests/kernel/test_keys.py::test_release_is_noise_and_threshold
    """
    if not isinstance(people_per_key, Mapping):
        raise InvalidParameter("people_per_key", "must map keys to numbers of people", describe_kind(people_per_key))
    values = read_numbers(list(people_per_key.values()), "people_per_key")
    if values.shape != (len(people_per_key),):
        raise InvalidParameter("people_per_key", "must map each key to one number of people", "several")
    held: list[tuple[object, Ordered]] = []
    counted: list[int] = []
    for key, people in zip(people_per_key, to_grid(values.flat, 0).tolist(), strict=True):
        form = canonical(key)
        if people > 0 and not isinstance(form, NoKey):  # a number below zero counts as nobody
            held.append(form)
            counted.append(people)
    noisy = add_saturating(np.array(counted, np.int64), discrete_laplace(rule.scale, len(held), entropy))
    threshold = rule.threshold
    passed = [(form, count) for form, count in zip(held, noisy.tolist(), strict=True) if count >= threshold]
    in_order = sorted(passed, key=lambda pair: (-pair[1], pair[0][1]))
    return {cast(Key, key): count for (key, _), count in in_order}
