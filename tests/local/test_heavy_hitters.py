from fractions import Fraction
from itertools import islice, product
from string import ascii_lowercase

import numpy as np
import pytest
from local_laws import HEADS, TAILS, join_words, units_of
from scripted import Scripted

import sfumato as sf
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.prefix_hashing import hash_rows
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.word_bits import Words, pack_numbers

SMALL = HeavyHitters(Words(1, "ab"), (1, 2), 1, 3 << 30)  # two bits a word, two groups, two hashes
WIDER = HeavyHitters(Words(1, "ab"), (2,), 2, 3 << 30)  # one group, four hashes


def report(asked, word, script):
    return bytes(asked.draw(pack_numbers([asked.words.encode(word)], asked.words.bits), Scripted(script))[0])


def law(asked, word):
    """Report -> probability: every group, every seed that matters, the measured coin, every other hash."""
    groups, rows = len(asked.lengths), list(product(range(4), repeat=asked.hash_bits))
    tail = [b""] if asked.hash_bits == 1 else [bytes([step]) for step in range((1 << asked.hash_bits) - 1)]
    start = bytes([0]) + bytes(asked.hash_bits)
    true = report(asked, word, start + join_words(HEADS) + tail[0])
    keep = units_of(lambda value: report(asked, word, start + join_words(value) + tail[0]) == true)
    total = {}
    for group, seeds, (value, units), step in product(
        range(groups), rows, ((HEADS, keep), (TAILS, UNITS - keep)), tail
    ):
        script = bytes([group, *(seed << 6 for seed in seeds)]) + join_words(value) + step
        drawn = report(asked, word, script)
        total[drawn] = total.get(drawn, 0) + Fraction(units, UNITS * groups * len(rows) * len(tail))
    return total


@pytest.mark.parametrize("asked", [SMALL, WIDER], ids=["two groups", "four hashes"])
def test_the_loss_is_that_of_one_report_with_the_whole_epsilon(asked):
    laws = [law(asked, word) for word in ("", "a", "b")]
    assert all(sum(chances.values()) == 1 for chances in laws)
    assert all(set(chances) == set(laws[0]) for chances in laws)
    ratio = max(max(chances[r] for chances in laws) / min(chances[r] for chances in laws) for r in laws[0])
    assert asked.epsilon == bound_ratio_loss(ratio)
    assert ratio == 3 * ((1 << asked.hash_bits) - 1)


@pytest.mark.parametrize("asked", [SMALL, WIDER], ids=["two groups", "four hashes"])
def test_supports_have_exactly_p_and_q(asked):
    """A report of the last group supports the person's own word with probability p, any other word with 1/g."""
    true, other = asked.support
    last = len(asked.lengths) - 1
    for word in ("", "a", "b"):
        supports = [Fraction(0)] * 4
        own = {r: p for r, p in law(asked, word).items() if r[0] == last}
        for drawn, weight in own.items():
            row = np.frombuffer(drawn, np.uint8)[None]
            for candidate, count in enumerate(asked._count_supports(row, [0], 0, 2)[0].tolist()):
                supports[candidate] += count * weight / sum(own.values())
        assert supports == [true if code == asked.words.encode(word) else other for code in range(4)]


def test_supports_equal_hashing_every_candidate():
    asked = sf.local.heavy_hitters(3, 3, step=5)
    reports = asked.randomise(["abc", "zz", "q", "é"] * 100)
    group, before, length = 2, asked.lengths[1], asked.lengths[2]
    own = reports[reports[:, 0] == group]
    seeds = own[:, 2:].reshape(len(own), asked.hash_bits, 3)
    parents = [0, 5, 1023]
    counts = asked._count_supports(own, parents, before, length)
    for index, parent in enumerate(parents):
        for extension in range(1 << length - before):
            prefix = (parent << length - before | extension) << asked.words.bits - length
            hashed = hash_rows(seeds, pack_numbers([prefix], asked.words.bits)[0])
            assert counts[index, extension] == (hashed == own[:, 1]).sum()


def test_frequent_words_are_found_and_rare_ones_are_not():
    asked = sf.local.heavy_hitters(6, 4)
    rare = [f"x{number}" for number in range(4000)]
    crowd = ["münch"] * 12_000 + ["oslo"] * 8000 + ["rome is far"] * 6000 + rare * 5
    found = asked.find(asked.randomise(crowd), confidence="0.999999")
    assert [hitter.word for hitter in found] == ["münch"[:6], "oslo", "rome i"]
    for hitter, share in zip(found, (12, 8, 6), strict=True):
        assert hitter.low < share / 46 < hitter.high
        assert hitter.low < hitter.frequency < hitter.high
    nobody = asked.find(asked.randomise(rare * 5), confidence="0.999999")
    assert nobody == ()


def test_an_alphabet_makes_words_shorter():
    plain, spelt = sf.local.heavy_hitters(8, 2), sf.local.heavy_hitters(8, 2, alphabet="abcdefghijklmnopqrstuvwxyz")
    assert plain.words.bits == 64
    assert spelt.words.bits == 40
    assert len(spelt.lengths) < len(plain.lengths)
    with pytest.raises(sf.errors.InvalidParameter, match="only characters of the alphabet") as refused:
        spelt.randomise("Oslo")
    assert "Oslo" not in str(refused.value)


@pytest.mark.parametrize("coding", [Words(5), Words(5, "abcd"), Words(3, "01"), Words(4, "é√x")])
def test_texts_come_back(coding):
    letters = coding.alphabet or "abé√ "
    for size in range(coding.length + 1):
        for letter in letters:
            text = letter * size
            cut = text.encode()[: coding.length].decode(errors="ignore") if not coding.alphabet else text
            assert coding.decode(coding.encode(text)) == cut
    assert coding.encode("") == 0
    assert coding.decode(1) is None  # the end, and then a character


def test_reports_travel_and_malformed_ones_are_counted():
    asked = sf.local.heavy_hitters(4, 2, step=10)
    reports = asked.randomise(["home", "work"] * 50)
    decoded, malformed = asked.form.decode(asked.form.encode(reports))
    assert malformed == 0
    assert np.array_equal(decoded, reports)
    single = asked.randomise("home")
    assert single.shape == (asked.form.bytes,)
    spoilt = reports.copy()
    spoilt[0, 0] = len(asked.lengths)
    spoilt[1, 1] = 255
    spoilt[2, 0], spoilt[2, 2:] = 0, 255  # bits beyond the group's prefix
    kept, malformed = asked.form.sift(spoilt)
    assert malformed == 3
    assert np.array_equal(kept, reports[3:])
    with pytest.raises(sf.errors.InvalidParameter, match="3 malformed"):
        asked.find(spoilt)
    assert asked.form.decode([None, 3, "zz", "00", {"a": 1}, "g" * 2 * asked.form.bytes])[1] == 6
    assert asked.form.sift(np.zeros(3))[1] == 3
    assert sf.local.rebuild(asked.describe()) == asked
    with pytest.raises(sf.errors.InvalidParameter, match="every group"):
        asked.find(reports[reports[:, 0] == 0])


def test_refusals():
    for length, epsilon, options in (
        (0, 1, {}), (100, 1, {}), (4, 0, {}), (4, 60, {}), (4, 1, {"step": 0}), (4, 1, {"step": 21}),
        (4, 1, {"alphabet": "aa"}), (4, 1, {"alphabet": 3}), ("4", 1, {}),
    ):  # fmt: skip
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.heavy_hitters(length, epsilon, **options)
    asked = sf.local.heavy_hitters(4, 2)
    for bad in (3, None, ["a", 3], [b"a"]):
        with pytest.raises(sf.errors.InvalidParameter):
            asked.randomise(bad)
    good = asked.describe()
    for bad in (
        None, {}, {**good, "lengths": [16]}, {**good, "lengths": [16, 16, 32]}, {**good, "lengths": []},
        {**good, "lengths": [16, "32"]}, {**good, "hash_bits": 9}, {**good, "coins": {"keep": 0}}, {**good, "more": 1},
        {**good, "coins": {"keep": 5}}, {**good, "alphabet": None}, {**good, "length": True},
    ):  # fmt: skip
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.rebuild(bad)


def test_more_words_are_kept_where_more_can_be_told_from_noise():
    """The number of kept prefixes follows from public numbers: people and epsilon."""
    small, large = (sf.local.heavy_hitters(4, epsilon=epsilon, alphabet=ascii_lowercase) for epsilon in (1, 4))
    assert small.choose_keep(1000) == 16
    assert small.choose_keep(10_000_000) > small.choose_keep(1_000_000) > 16
    assert large.choose_keep(1_000_000) > small.choose_keep(1_000_000)
    assert large.choose_keep(10**12) == 128
    words = ["".join(letters) for letters in islice(product("abcdef", repeat=4), 0, 1240, 40)]
    assert len(words) == 31
    people = [word for word in words for _ in range(3000)]
    assert large.choose_keep(len(people)) >= 31
    found = large.find(large.randomise(people))
    assert {one.word for one in found} == set(words)  # with 16 prefixes, at most 16 were found
    assert len(large.find(large.randomise(people), keep=16)) <= 16
