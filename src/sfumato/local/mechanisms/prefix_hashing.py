"""Reports on a prefix of a text: a random group says how long the prefix is, and its hash is randomised.

Part of the trusted perimeter.
"""

import numpy as np
import numpy.typing as npt

from sfumato.kernel.entropy import Entropy
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import flip_units
from sfumato.local.mechanisms.kary import keep_or_move

ByteRows = npt.NDArray[np.uint8]


def draw_prefixes(rows: ByteRows, masks: ByteRows, hash_bits: int, keep: int, entropy: Entropy) -> ByteRows:
    """Draw a report on each text (a row of bits): the bytes of the group, of the randomised hash and of the seed.

    Claim: K-45. Group and seed are uniform and independent of the text. Given them, the hash is reported by k-ary
        response over 2**hash_bits values, so the greatest ratio is that of Kary(2**hash_bits, keep).
    Requires: rows and masks of one width; up to 256 masks, one for each group; hash_bits <= 8 (caller).
    Relies on: K-07, K-04, K-40, K-22.
    Checked by: tests/local/test_heavy_hitters.py::test_the_loss_is_that_of_one_report_with_the_whole_epsilon
    """
    people, width = rows.shape
    groups = uniform_below(len(masks), people, entropy)
    drawn = entropy.take(people * hash_bits * width).reshape(people, hash_bits, width)
    seeds = drawn & masks[groups][:, None]
    kept = flip_units(keep, people, entropy)
    hashes = keep_or_move(hash_rows(seeds, rows[:, None]), kept, 1 << hash_bits, entropy)
    return np.column_stack((groups, hashes, seeds.reshape(people, -1))).astype(np.uint8)


def hash_rows(seeds: ByteRows, rows: ByteRows) -> npt.NDArray[np.int64]:
    """Hash rows of bits: bit i of a hash is the parity of the row's bits that row i of the seed selects.

    Claim: K-45. The result is a function of the seed and the row, from 0 to 2**hash_bits - 1.
    Requires: arrays that broadcast to (people, hash_bits, bytes) (caller).
    Relies on: K-04.
    Checked by: tests/local/test_heavy_hitters.py::test_supports_have_exactly_p_and_q
    """
    parities = np.bitwise_count(seeds & rows).sum(axis=2, dtype=np.int64) & 1
    hashes: npt.NDArray[np.int64] = (parities << np.arange(seeds.shape[1])).sum(axis=1, dtype=np.int64)
    return hashes
