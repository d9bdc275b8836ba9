"""The frequent words of a crowd, with no list of words: prefixes are extended, each by a group of people of its own.

People are split into groups evenly and at random. Each person reports, with the whole epsilon, on the first bits of
their word, as many as their group asks, by local hashing. The collector keeps the best short prefixes, extends them by
all that can follow, and asks the next group.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin, loss_of_ratio
from sfumato.local.mechanisms.hadamard import walsh_hadamard
from sfumato.local.mechanisms.hashing import best_hash_bits
from sfumato.local.mechanisms.kary import move_on
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, Counts
from sfumato.local.mechanisms.table_limits import coin
from sfumato.local.randomisers.prefix_rows import PrefixRows
from sfumato.local.randomisers.share_estimates import normal_quantile, wilson
from sfumato.local.randomisers.word_bits import BitRow, Words, pack

STEP = 16
MOST_STEP = 20
MOST_HASH_BITS = 8
MOST_GROUPS = 128


@dataclass(frozen=True, slots=True)
class Found:
    """A word that occurs, with its share of people: unbiased, and an interval that holds for all words at once."""

    word: str
    frequency: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Which prefixes are asked for, and the coin of a report.

    Bit i of a hash is the parity of row i of the seed and the prefix, bit by bit: over even seeds, two prefixes have
    the same hash with probability 1/g exactly. There is no small tally: candidates are not known before the reports.
    """

    words: Words
    lengths: tuple[int, ...]  # bits of the prefix of each group, ascending; the last is the whole word
    hash_bits: int
    keep: int

    def __post_init__(self) -> None:
        steps = [high - low for low, high in zip((0, *self.lengths), self.lengths, strict=False)]
        if not 1 <= len(steps) <= MOST_GROUPS or self.lengths[-1] != self.words.bits:
            raise InvalidParameter("lengths", "must end with the whole word", "others")
        if not all(1 <= step <= MOST_STEP for step in steps):
            raise InvalidParameter("lengths", f"must grow by 1 to {MOST_STEP} bits at a time", "others")
        if whole_number(self.hash_bits, "hash_bits", 1) > MOST_HASH_BITS:
            raise InvalidParameter("hash_bits", f"must be at most {MOST_HASH_BITS}", "more")
        coin(self.keep, "keep")
        if self.support[0] <= self.support[1]:
            raise InvalidParameter("table", "must report the truth more often than anything else", "one that does not")

    def __repr__(self) -> str:
        return f"<heavy hitters of {self.words.length} characters, epsilon {plain(self.epsilon)}>"

    @property
    def epsilon(self) -> Decimal:
        """The loss of one report: a fact of the coin, rounded up at the thirtieth digit."""
        return loss_of_ratio(_ratio(self.hash_bits, self.keep))

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.keep, UNITS), Fraction(1, 1 << self.hash_bits)

    @property
    def form(self) -> PrefixRows:
        return PrefixRows(self.lengths, self.hash_bits)

    def describe(self) -> dict[str, object]:
        return {
            "mechanism": "pem",
            "length": self.words.length,
            "alphabet": self.words.alphabet,
            "lengths": list(self.lengths),
            "hash_bits": self.hash_bits,
            "coins": {"keep": self.keep},
        }

    def randomise(self, words: object) -> BitRow:
        """The report of one person on a text, or of many people on a list of texts: rows of bytes."""
        texts = [words] if isinstance(words, str) else list(words) if isinstance(words, Iterable) else None
        if texts is None:
            raise InvalidParameter("values", "must be texts", kind_of(words))
        known = {text: self.words.encode(text) for text in set(texts)}
        reports = self.draw(pack([known[text] for text in texts], self.words.bits), SYSTEM)
        return reports[0] if isinstance(words, str) else reports

    def draw(self, rows: BitRow, entropy: Entropy) -> BitRow:
        """Reports on words given as rows of bits."""
        reports = np.empty((len(rows), self.form.bytes), np.uint8)
        masks = pack([(1 << self.words.bits) - (1 << self.words.bits - each) for each in self.lengths], self.words.bits)
        step = max(1, CELLS_AT_ONCE // self.form.bytes)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            groups = uniform_below(len(self.lengths), len(part), entropy)
            drawn = entropy.take(len(part) * self.hash_bits * self.form.seed_bytes)
            seeds = drawn.reshape(len(part), self.hash_bits, self.form.seed_bytes) & masks[groups][:, None]
            kept = flip_units(self.keep, len(part), entropy)
            hashes = np.empty(len(part), np.int64)
            move_on(_hashes(seeds, part), kept, 1 << self.hash_bits, entropy, hashes)
            reports[start : start + step] = np.column_stack((groups, hashes, seeds.reshape(len(part), -1)))
        return reports

    def find(self, reports: object, *, keep: int = 16, confidence: Number = "0.95") -> tuple[Found, ...]:
        """The words that occur, most frequent first, among the extensions of the `keep` best prefixes of each length.

        The last group's reports are about candidates that other people's reports chose. Its intervals hold for all
        candidates at once, and a word is listed if its interval lies above zero: with the stated confidence, every
        listed word is somebody's.
        """
        rows, malformed = self.form.sift(reports)
        if malformed:
            raise InvalidParameter(
                "reports", "must have been made by these heavy hitters", f"{malformed} that cannot have been"
            )
        whole_number(keep, "keep", 1)
        level = probability_inside(confidence, "confidence")
        parents: list[int] = [0]
        supports, people = np.zeros((1, 1), np.int64), 0
        for group, length in enumerate(self.lengths):
            own = rows[rows[:, 0] == group]
            before = self.lengths[group - 1] if group else 0
            people, supports = len(own), self._supports(own, parents, before, length)
            if not people:
                raise InvalidParameter("reports", "must hold some of every group", "none of one group")
            if group + 1 < len(self.lengths):
                parents = _extended(parents, _best(supports, keep), length - before)
        return self._listed(supports, parents, people, normal_quantile((1 - level) / supports.size))

    def _supports(self, reports: BitRow, parents: list[int], before: int, length: int) -> Counts:
        """How many reports support each parent's prefix with each extension of it: an array (parents, extensions).

        The hash is linear in the bits, so a report's sign under a mask of hash bits is a sign for the parent times a
        character of the extension: signs are summed by character, and one transform gives all extensions.
        """
        seeds = reports[:, 2:].reshape(len(reports), self.hash_bits, self.form.seed_bytes)
        bits = np.unpackbits(seeds, axis=2)[:, :, before:length].astype(np.int64)
        places = 1 << np.arange(length - before)[::-1]
        characters = bits @ places  # of each hash bit by itself
        whole = pack([parent << self.words.bits - before for parent in parents], self.words.bits)
        folded = np.zeros((len(parents), 1 << length - before), np.int64)
        for index in range(len(parents)):
            signs = _hashes(seeds, whole[index]) ^ reports[:, 1]
            for mask in range(1 << self.hash_bits):
                picked = np.zeros(len(reports), np.int64)
                for place in range(self.hash_bits):
                    if mask >> place & 1:
                        picked ^= characters[:, place]
                odd = np.bitwise_count(signs & mask) & 1
                folded[index] += np.bincount(picked, 1.0 - 2.0 * odd, folded.shape[1]).astype(np.int64)
        return walsh_hadamard(folded) >> self.hash_bits

    def _listed(self, supports: Counts, parents: list[int], people: int, quantile: float) -> tuple[Found, ...]:
        true, other = (float(each) for each in self.support)
        observed = supports.reshape(-1) / people
        low, high = wilson(observed, people, quantile)
        sure = np.flatnonzero(low > other)
        found = []
        for place in sure[np.argsort(-observed[sure], kind="stable")].tolist():
            index, extension = divmod(place, supports.shape[1])
            word = self.words.decode(parents[index] * supports.shape[1] + extension)
            if word is not None:
                shares = ((each[place] - other) / (true - other) for each in (observed, low, high))
                found.append(Found(word, *(float(each) for each in shares)))
        return tuple(found)


def heavy_hitters(length: int, epsilon: Number, *, alphabet: str = "", step: int = STEP) -> HeavyHitters:
    """Heavy hitters among texts of up to `length` characters (longer ones are cut), with at most epsilon a report.

    Prefixes grow by `step` bits from group to group: more bits at a time mean fewer and larger groups.
    """
    words, exact = Words(length, alphabet), positive_decimal(epsilon, "epsilon")
    if whole_number(step, "step", 1) > MOST_STEP:
        raise InvalidParameter("step", f"must be at most {MOST_STEP}", "more")
    hash_bits = min(best_hash_bits(exact), MOST_HASH_BITS)
    lengths = (*range(step, words.bits, step), words.bits)
    return HeavyHitters(words, lengths, hash_bits, greatest_coin(lambda keep: _ratio(hash_bits, keep), exact))


def rebuild_heavy_hitters(description: object) -> HeavyHitters:
    """The heavy hitters of a published description; whatever is not exactly one is refused."""
    match description:
        case {
            "mechanism": "pem",
            "length": length,
            "alphabet": alphabet,
            "lengths": list(lengths),
            "hash_bits": hash_bits,
            "coins": {"keep": keep, **rest},
            **more,
        } if not rest and not more and all(type(each) is int for each in lengths):
            return HeavyHitters(Words(length, alphabet), tuple(lengths), hash_bits, keep)
    raise InvalidParameter("description", "must be published heavy hitters", "something else")


def _hashes(seeds: npt.NDArray[np.uint8], rows: BitRow) -> Counts:
    """The parities of the seeds' rows with the words' bits, as the bits of a number."""
    own = rows[:, None] if rows.ndim == 2 else rows
    parities = np.bitwise_count(seeds & own).sum(axis=2, dtype=np.int64) & 1
    hashes: Counts = (parities << np.arange(seeds.shape[1])).sum(axis=1, dtype=np.int64)
    return hashes


def _best(supports: Counts, keep: int) -> list[tuple[int, int]]:
    """The places of the greatest supports: (parent, extension)."""
    order = np.argsort(-supports.reshape(-1), kind="stable")[:keep]
    return [divmod(place, supports.shape[1]) for place in order.tolist()]


def _extended(parents: list[int], best: list[tuple[int, int]], bits: int) -> list[int]:
    return [parents[index] << bits | extension for index, extension in best]


def _ratio(hash_bits: int, keep: int) -> Fraction:
    return Fraction(keep * ((1 << hash_bits) - 1), UNITS - keep)
