"""Noise that a teacher can reproduce, for slides and exercises. It protects nobody: anyone can repeat the seed.

No mechanism, curator or ledger accepts this object, and it accepts no curator and no data source. The bytes below it
never leave this file, so nothing that Sfumato answers can be drawn with them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import cast

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import ByteArray
from sfumato.kernel.samplers import uniform_below
from sfumato.local.randomisers.category_randomisers import Randomiser, read_categories
from sfumato.local.randomisers.randomized_response import KaryResponse, RandomizedResponse, flip_answers, move_answers
from sfumato.local.randomisers.report_forms import draw_in_blocks
from sfumato.number_arguments import read_whole_number
from sfumato.standalone.additive import Gaussian, Laplace
from sfumato.standalone.mechanisms.additive_noise import release_on_grid
from sfumato.standalone.mechanisms.key_release import release_keys
from sfumato.standalone.mechanisms.score_choice import choose_index
from sfumato.standalone.private_choice import PrivateChoice
from sfumato.standalone.thresholded_keys import ThresholdedKeys

_BLOCK = 32


class _SeededBytes:
    """SHA-256 of the seed, the number of the draw, and a counter."""

    def __init__(self, seed: int, draw: int) -> None:
        self._start = f"sfumato slides {seed} {draw} ".encode()
        self._left = b""
        self._blocks = 0

    def take(self, count: int) -> ByteArray:
        made = [self._left]
        for _ in range(-(-max(0, count - len(self._left)) // _BLOCK)):
            made.append(sha256(self._start + str(self._blocks).encode()).digest())
            self._blocks += 1
        whole = b"".join(made)
        self._left = whole[count:]
        return np.frombuffer(whole[:count], np.uint8)


@dataclass(slots=True)
class SeededNoise:
    """A source of reproducible draws: the same seed and the same calls, in the same order, give the same numbers.

    For slides only. A release to real people uses the mechanism's own `release`, which has no seed.
    """

    seed: int
    draws: int = 0

    def __post_init__(self) -> None:
        self.seed = read_whole_number(self.seed, "seed", 0)
        self.draws = read_whole_number(self.draws, "draws", 0)

    def __repr__(self) -> str:
        return f"<seeded noise {self.seed}, for slides only, after {self.draws} draws>"

    def release(self, mechanism: object, value: object) -> object:
        """What the mechanism would release for a made-up value, with this source's noise instead of real noise."""
        bytes_ = self._next_bytes()
        match mechanism:
            case Laplace() | Gaussian():
                return release_on_grid(mechanism.mechanism, value, bytes_)
            case PrivateChoice():
                return choose_index(value, mechanism.spread, bytes_)
            case ThresholdedKeys():
                return release_keys(mechanism.rule, cast(Mapping[Hashable, int], value), bytes_)  # checked there
            case RandomizedResponse():
                return flip_answers(mechanism, value, bytes_)
            case KaryResponse():
                return move_answers(mechanism, value, bytes_)
            case Randomiser():
                flat, single = read_categories(value, mechanism.k)
                reports = draw_in_blocks(mechanism.mechanism.draw, flat, mechanism.form, bytes_)
                return mechanism.form.take_single(reports) if single else reports
            case _:
                rule = "must be a stand-alone mechanism, such as sf.Laplace(1, 1)"
                hint = "Seeded noise is for slides. A curator draws its own noise."
                raise InvalidParameter("mechanism", rule, describe_kind(mechanism), hint)

    def integers(self, low: int, high: int, size: int) -> npt.NDArray[np.int64]:
        """Made-up data: whole numbers from low to high, each equally likely."""
        return low + uniform_below(high - low + 1, read_whole_number(size, "size", 0), self._next_bytes())

    def coins(self, chance: Fraction | Decimal | float, size: int) -> npt.NDArray[np.bool_]:
        """Made-up data: True with this probability, to 32 bits."""
        return uniform_below(1 << 32, read_whole_number(size, "size", 0), self._next_bytes()) < int(chance * (1 << 32))

    def _next_bytes(self) -> _SeededBytes:
        self.draws += 1
        return _SeededBytes(self.seed, self.draws)


def seeded(seed: int) -> SeededNoise:
    """Reproducible noise for slides: `sf.lab.seeded(1).release(sf.Laplace(1, 1), 42)` is the same on every machine."""
    return SeededNoise(seed)
