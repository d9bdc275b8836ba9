"""Frequent words without a list of candidates: the prefix extending method (PEM).

People are assigned to groups uniformly at random. Each person spends the whole epsilon on one report about a prefix of
their word, by local hashing; the group fixes the prefix's length. The collector keeps the most frequent short prefixes,
extends each by all possible next bits, and estimates those from the next group's reports.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import write_plain
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.prefix_hashing import draw_prefixes, hash_rows
from sfumato.local.mechanisms.table_limits import check_coin
from sfumato.local.randomisers.category_tables import find_best_hash_bits
from sfumato.local.randomisers.coin_search import find_greatest_coin
from sfumato.local.randomisers.prefix_rows import PrefixRows
from sfumato.local.randomisers.report_forms import CELLS_AT_ONCE, Counts, check_reports
from sfumato.local.randomisers.share_estimates import compute_normal_quantile, compute_wilson_interval
from sfumato.local.randomisers.support_counts import transform
from sfumato.local.randomisers.tally import Tally
from sfumato.local.randomisers.word_bits import BitRow, Words, pack_numbers
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number

STEP = 16
MOST_STEP = 20
MOST_HASH_BITS = 8
MOST_GROUPS = 128
LEAST_KEPT, MOST_KEPT = 16, 128  # also: so many prefixes that nobody has are kept of each length, on average, at most


@dataclass(frozen=True, slots=True)
class FrequentWord:
    """A word, the unbiased estimate of its share of people, and a confidence interval, simultaneous for all words."""

    word: str
    frequency: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """The prefixes that the groups report on, and the coin of a report.

    Bit i of a hash is the parity of the prefix's bits that row i of the seed selects. Over uniform seeds, two prefixes
    have the same hash with probability 1/g exactly. Candidates come from the reports, so a tally only counts groups.
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
        if read_whole_number(self.hash_bits, "hash_bits", 1) > MOST_HASH_BITS:
            raise InvalidParameter("hash_bits", f"must be at most {MOST_HASH_BITS}", "more")
        check_coin(self.keep, "keep")
        if self.support[0] <= self.support[1]:
            raise InvalidParameter("table", "must report the truth more often than any other answer", "another table")

    def __repr__(self) -> str:
        return f"<heavy hitters of {self.words.length} characters, epsilon {write_plain(self.epsilon)}>"

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, computed from the coin and rounded up at the thirtieth digit."""
        return bound_ratio_loss(Kary(1 << self.hash_bits, self.keep).ratio)

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
        """Randomise one person's text, or a list with one text per person: rows of bytes."""
        texts = [words] if isinstance(words, str) else list(words) if isinstance(words, Iterable) else None
        if texts is None:
            raise InvalidParameter("values", "must be texts", describe_kind(words))
        known = {text: self.words.encode(text) for text in set(texts)}
        reports = self.draw(pack_numbers([known[text] for text in texts], self.words.bits), SYSTEM)
        return reports[0] if isinstance(words, str) else reports

    def draw(self, rows: BitRow, entropy: Entropy) -> BitRow:
        """Draw reports on words given as rows of bits."""
        bits, form = self.words.bits, self.form
        masks = pack_numbers([(1 << bits) - (1 << bits - length) for length in self.lengths], bits)
        reports = np.empty((len(rows), form.bytes), np.uint8)
        step = max(1, CELLS_AT_ONCE // form.bytes)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            reports[start : start + step] = draw_prefixes(part, masks, self.hash_bits, self.keep, entropy)
        return reports

    def tally(self, reports: object) -> Tally:
        """Count well-formed reports, by group. Words are found in the reports themselves."""
        checked = check_reports(self.form, reports)
        return Tally(len(checked), np.bincount(checked[:, 0], minlength=len(self.lengths)).astype(np.int64))

    def choose_keep(self, people: int, confidence: Number = "0.95") -> int:
        """The number of prefixes to keep of each length: as many as can be told from noise by this many people.

        In one group, a share is told from zero if it is at least z * sqrt(q (1 - q) / n) / (p - q). At most one over
        this number of words can have it. This depends on public numbers only.
        """
        return min(max(int(1 / self.find_least_share(people, confidence)), LEAST_KEPT), MOST_KEPT)

    def find_least_share(self, people: int, confidence: Number = "0.95") -> float:
        """The share of a word that this many people tell from zero, among all candidates of the longest step."""
        true, other = (float(probability) for probability in self.support)
        group = max(read_whole_number(people, "people", 1) // len(self.lengths), 1)
        level = read_probability(confidence, "confidence")
        quantile = compute_normal_quantile((1 - level) / (MOST_KEPT << MOST_STEP))
        return quantile * math.sqrt(other * (1 - other) / group) / (true - other)

    def find(
        self, reports: object, *, keep: int | None = None, confidence: Number = "0.95"
    ) -> tuple[FrequentWord, ...]:
        """Find frequent words, most frequent first, among the extensions of the `keep` best prefixes of each length.

        Without `keep`, at most `choose_keep` prefixes are kept, and of those only the ones that few others would
        exceed by chance. Fewer candidates make narrower intervals.
        The last group's reports estimate candidates that other people's reports chose. The confidence intervals are
        simultaneous for all candidates, and a word is listed if its interval lies above zero. So, with the stated
        confidence, every listed word is some person's word. The intervals do not cover fake reports.
        """
        rows, malformed = self.form.sift(reports)
        if malformed:
            raise InvalidParameter("reports", "must have been made by these heavy hitters", f"{malformed} malformed")
        most = self.choose_keep(max(len(rows), 1), confidence) if keep is None else read_whole_number(keep, "keep", 1)
        level = read_probability(confidence, "confidence")
        parents: list[int] = [0]
        supports, people = np.zeros((1, 1), np.int64), 0
        for group, length in enumerate(self.lengths):
            own = rows[rows[:, 0] == group]
            before = self.lengths[group - 1] if group else 0
            people, supports = len(own), self._count_supports(own, parents, before, length)
            if not people:
                raise InvalidParameter("reports", "must include every group", "none from one group")
            if group + 1 < len(self.lengths):
                least = self._find_least_support(people, supports.size) if keep is None else -math.inf
                parents = _extend(parents, _find_best(supports, most, least), length - before)
        return self._list_words(supports, parents, people, compute_normal_quantile((1 - level) / supports.size))

    def _find_least_support(self, people: int, candidates: int) -> float:
        """The support above which LEAST_KEPT of these candidates would be by chance, if nobody had any of them."""
        if candidates <= LEAST_KEPT:
            return -math.inf
        other = float(self.support[1])
        quantile = compute_normal_quantile(Fraction(2 * LEAST_KEPT, candidates)) if candidates > 2 * LEAST_KEPT else 0.0
        return people * other + quantile * math.sqrt(people * other * (1 - other))

    def _count_supports(self, reports: BitRow, parents: list[int], before: int, length: int) -> Counts:
        """Count the reports that support each extension of each parent's prefix: an array (parents, extensions).

        The hash is linear in the bits. So a report's sign under a mask of hash bits is a sign for the parent times a
        character of the extension: signs are summed by character, and one transform gives all extensions.
        """
        seeds = reports[:, 2:].reshape(len(reports), self.hash_bits, self.form.seed_bytes)
        bits = np.unpackbits(seeds, axis=2)[:, :, before:length].astype(np.int64)
        places = 1 << np.arange(length - before)[::-1]
        characters = bits @ places  # of each hash bit by itself
        whole = pack_numbers([parent << self.words.bits - before for parent in parents], self.words.bits)
        signs = [(hash_rows(seeds, row) ^ reports[:, 1]).astype(np.uint8) for row in whole]
        folded = np.zeros((len(parents), 1 << length - before), np.int64)
        for mask in range(1 << self.hash_bits):
            chosen = [place for place in range(self.hash_bits) if mask >> place & 1]
            picked = np.bitwise_xor.reduce(characters[:, chosen], axis=1, initial=0) << 1
            for index, sign in enumerate(signs):
                odd = np.bitwise_count(sign & np.uint8(mask)) & 1
                counts = np.bincount(picked | odd, minlength=2 * folded.shape[1]).reshape(-1, 2)
                folded[index] += counts[:, 0] - counts[:, 1]
        return transform(folded) >> self.hash_bits

    def _list_words(
        self, supports: Counts, parents: list[int], people: int, quantile: float
    ) -> tuple[FrequentWord, ...]:
        true, other = (float(probability) for probability in self.support)
        observed = supports.reshape(-1) / people
        low, high = compute_wilson_interval(observed, people, quantile)
        sure = np.flatnonzero(low > other)
        found = []
        for place in sure[np.argsort(-observed[sure], kind="stable")].tolist():
            index, extension = divmod(place, supports.shape[1])
            word = self.words.decode(parents[index] * supports.shape[1] + extension)
            if word is not None:
                shares = (float((rates[place] - other) / (true - other)) for rates in (observed, low, high))
                found.append(FrequentWord(word, *shares))
        return tuple(found)


def heavy_hitters(length: int, epsilon: Number, *, alphabet: str = "", step: int = STEP) -> HeavyHitters:
    """Heavy hitters among texts of up to `length` characters (longer ones are cut), with at most epsilon per report.

    Prefixes grow by `step` bits from group to group: a larger step gives fewer and larger groups.
    """
    words, exact = Words(length, alphabet), read_positive_decimal(epsilon, "epsilon")
    if read_whole_number(step, "step", 1) > MOST_STEP:
        raise InvalidParameter("step", f"must be at most {MOST_STEP}", "more")
    hash_bits = min(find_best_hash_bits(exact), MOST_HASH_BITS)
    lengths = (*range(step, words.bits, step), words.bits)
    return HeavyHitters(
        words, lengths, hash_bits, find_greatest_coin(lambda keep: Kary(1 << hash_bits, keep).ratio, exact)
    )


def rebuild_heavy_hitters(description: object) -> HeavyHitters:
    """The heavy hitters of a published description. A document that is not exactly such a description is refused."""
    match description:
        case {
            "mechanism": "pem",
            "length": length,
            "alphabet": alphabet,
            "lengths": list(lengths),
            "hash_bits": hash_bits,
            "coins": {"keep": keep, **rest},
            **more,
        } if not rest and not more and all(type(length) is int for length in lengths):
            return HeavyHitters(Words(length, alphabet), tuple(lengths), hash_bits, keep)
    raise InvalidParameter("description", "must be published heavy hitters", "something else")


def _find_best(supports: Counts, most: int, least: float) -> list[tuple[int, int]]:
    """The places of the greatest supports, (parent, extension): at most `most`, and all but the first above `least`."""
    flat = supports.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:most].tolist()
    return [divmod(place, supports.shape[1]) for rank, place in enumerate(order) if not rank or flat[place] > least]


def _extend(parents: list[int], best: list[tuple[int, int]], bits: int) -> list[int]:
    return [parents[index] << bits | extension for index, extension in best]
