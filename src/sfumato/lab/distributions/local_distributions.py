"""Probabilities of local reports: exact fractions from the published tables, or enclosures for exact real coins."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, prod
from typing import TypeAlias, assert_never

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import enclose
from sfumato.lab.distributions.enclosed import Enclosed
from sfumato.lab.distributions.finite_distribution import FiniteDistribution, Outcome, make_exact
from sfumato.local.mechanisms.binary_fields import multiply
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.hadamard import Hadamard
from sfumato.local.mechanisms.hashing import Hashing
from sfumato.local.mechanisms.kary import ExactKary, Kary
from sfumato.local.mechanisms.mean_tables import Ends, Mixture, Rows, Window
from sfumato.local.mechanisms.prefix_hashing import hash_rows
from sfumato.local.mechanisms.shifted_noise import ShiftedNoise
from sfumato.local.mechanisms.subset import Subset
from sfumato.local.mechanisms.two_stage import TwoStage, pass_two_responses, pass_two_rows
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.category_tables import CategoryTable
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.mean_values import MeanTable
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.word_bits import pack_numbers
from sfumato.number_arguments import read_whole_number
from sfumato.number_arrays import plain_array

MOST_REPORTS = 1 << 16
_BITS = 256

Report: TypeAlias = int | bytes  # a row of bits is given as its bytes


def distribute_response(mechanism: ExactKary, value: int) -> FiniteDistribution:
    """k-ary randomised response whose coin has an exact real probability."""
    low, high = enclose(mechanism.keep, _BITS)
    keep = Enclosed(Fraction(low, 1 << _BITS), Fraction(high, 1 << _BITS))
    other = (1 - keep) / (mechanism.k - 1)
    masses = tuple(keep if place == value else other for place in range(mechanism.k))
    return FiniteDistribution(tuple(range(mechanism.k)), masses)


def distribute_category(randomiser: Randomiser, value: int) -> FiniteDistribution:
    """Every report on a category, with its probability."""
    table = randomiser.mechanism
    category = check_category(value, table.k)
    reports: dict[Outcome, Fraction] = {
        report: category_chance(table, category, report) for report in _list_reports(table)
    }
    return make_exact(reports)


def category_chance(table: CategoryTable, value: int, report: Report) -> Fraction:  # noqa: PLR0911 - one for each table
    """P(report) for a person whose category is `value`."""
    match table:
        case Kary(k, keep):
            return _respond(Fraction(keep, UNITS), k, report == value)
        case Unary(k, one, zero):
            return _set_bits(Fraction(one, UNITS), Fraction(zero, UNITS), value, _read_bits(report, k))
        case Subset(k, size, include):
            chosen = _read_bits(report, k)
            inside = Fraction(include, UNITS)
            return inside / comb(k - 1, size - 1) if chosen[value] else (1 - inside) / comb(k - 1, size)
        case Hashing(hash_bits=bits, polynomial=polynomial, keep=keep):
            seed, hashed = divmod(_read_code(report), table.buckets)
            true = int(multiply(np.array([seed], np.uint64), np.array([value], np.uint64), polynomial)[0]) % (1 << bits)
            return _respond(Fraction(keep, UNITS), table.buckets, hashed == true) / (1 << table.seed_bits)
        case Hadamard(keep=keep):
            plus = (_read_code(report) & (value + 1)).bit_count() % 2 == 0
            return 2 * _respond(Fraction(keep, UNITS), 2, plus) / table.columns
        case TwoStage(Kary(k) as first, Kary() as second):
            return _respond(pass_two_responses(first, second)[0], k, report == value)
        case TwoStage(Unary(k) as first, Unary() as second):
            return _set_bits(*pass_two_rows(first, second), value, _read_bits(report, k))
        case TwoStage():
            raise AssertionError("both stages are of one kind: checked when the table is built")
        case _:
            assert_never(table)


def distribute_mean(randomiser: MeanRandomiser, value: object) -> FiniteDistribution:
    """Every report on a number, with its probability. The number is rounded at random to a step of the grid first."""
    positions, _ = randomiser.positions(value)
    if positions.size != 1:
        raise InvalidParameter("value", "must be one number", "several")
    chances = mean_chances(randomiser.table, int(positions[0]))
    return make_exact(dict(enumerate(chances)))


def mean_chances(table: MeanTable, position: int) -> list[Fraction]:
    """P(report) for each report on a position of 0 .. 2**32 between the bounds."""
    if isinstance(table, Mixture):
        windowed = Fraction(table.windowed, UNITS)
        window, ends = mean_chances(table.window, position), mean_chances(table.ends, position)
        return [windowed * chance for chance in window] + [(1 - windowed) * chance for chance in ends]
    step, rest = divmod(position * table.steps, UNITS)
    rounded = [(step, Fraction(UNITS - rest, UNITS)), (step + 1, Fraction(rest, UNITS))]
    total = [Fraction(0)] * table.outputs
    for place, weight in rounded:
        if weight:
            for report, chance in enumerate(_step_chances(table, place)):
                total[report] += weight * chance
    return total


def _step_chances(table: Ends | Window | Rows | ShiftedNoise, step: int) -> list[Fraction]:
    match table:
        case Ends(keep=keep):
            return [_respond(Fraction(keep, UNITS), 2, report == step) for report in range(2)]
        case Window(steps, width, inside):
            within, beyond = Fraction(inside, UNITS * width), Fraction(UNITS - inside, UNITS * steps)
            return [within if (report - step) % table.outputs < width else beyond for report in range(table.outputs)]
        case Rows(rows):
            return [Fraction(units, UNITS) for units in rows[step]]
        case ShiftedNoise(noise=noise):
            away = (abs(report - table.reach - step) for report in range(table.outputs))
            return [Fraction(noise[far] if far <= table.reach else 0, UNITS) for far in away]
        case _:
            assert_never(table)


def distribute_questions(questions: Questions, answers: object) -> FiniteDistribution:
    """Every report on a row of yes-or-no answers, with its probability."""
    row = tuple(bool(answer) for answer in plain_array(answers, "answers").reshape(-1).tolist())
    if len(row) != questions.count:
        raise InvalidParameter("answers", f"must be {questions.count} answers of one person", "another number of them")
    truth = questions.truth
    if questions.method == "sample":
        chances: dict[Outcome, Fraction] = {
            2 * question + given: _respond(truth, 2, bool(given) == answer) / questions.count
            for question, answer in enumerate(row)
            for given in range(2)
        }
        return make_exact(chances)
    _refuse_many(1 << questions.count)
    return make_exact(
        {
            _pack_bits(bits): prod(
                (_respond(truth, 2, bit == answer) for bit, answer in zip(bits, row, strict=True)), start=Fraction(1)
            )
            for bits in product((False, True), repeat=questions.count)
        }
    )


def report_chance(randomiser: Randomiser | HeavyHitters, value: object, report: object) -> Fraction:
    """P(report) for one person, also where there are too many reports to list."""
    coded = report if isinstance(report, int | bytes) else plain_array(report, "report").astype(np.uint8).tobytes()
    if isinstance(randomiser, Randomiser):
        return category_chance(randomiser.mechanism, check_category(value, randomiser.k), coded)
    row = np.frombuffer(coded if isinstance(coded, bytes) else b"", np.uint8).reshape(1, -1)
    _, malformed = randomiser.form.sift(row)
    if malformed:
        return Fraction(0)
    group, hashed = int(row[0, 0]), int(row[0, 1])
    length, bits = randomiser.lengths[group], randomiser.hash_bits
    word = pack_numbers([randomiser.words.encode(value)], randomiser.words.bits)
    seeds = row[:, 2:].reshape(1, bits, -1)
    true = int(hash_rows(seeds, word[:, None])[0])
    kept = _respond(Fraction(randomiser.keep, UNITS), 1 << bits, hashed == true)
    return kept / (len(randomiser.lengths) << bits * length)


def check_category(value: object, k: int) -> int:
    """A category from 0 to k - 1."""
    category = read_whole_number(int(value) if isinstance(value, bool) else value, "value", 0)
    if category >= k:
        raise InvalidParameter("value", f"must be a category from 0 to {k - 1}", "a larger number")
    return category


def _list_reports(table: CategoryTable) -> list[Report]:
    match table:
        case Kary(k) | TwoStage(permanent=Kary(k)):
            _refuse_many(k)
            return list(range(k))
        case Unary(k) | TwoStage(permanent=Unary(k)):
            _refuse_many(1 << k)
            return [_pack_bits(bits) for bits in product((False, True), repeat=k)]
        case Subset(k, size):
            _refuse_many(comb(k, size))
            return [_pack_bits([place in chosen for place in range(k)]) for chosen in combinations(range(k), size)]
        case Hashing():
            _refuse_many(table.buckets << table.seed_bits)
            return list(range(table.buckets << table.seed_bits))
        case Hadamard():
            _refuse_many(table.columns)
            return list(range(table.columns))
        case TwoStage():
            raise AssertionError("both stages are of one kind: checked when the table is built")
        case _:
            assert_never(table)


def _refuse_many(count: int) -> None:
    if count > MOST_REPORTS:
        hint = "sf.lab.report_probability(mechanism, value, report) gives the probability of one report."
        raise InvalidParameter("mechanism", f"must have at most {MOST_REPORTS} reports to list", "more", hint)


def _respond(keep: Fraction, k: int, same: bool) -> Fraction:
    """k-ary response: the probability of the true category, or of another given one."""
    return keep if same else (1 - keep) / (k - 1)


def _set_bits(one: Fraction, zero: Fraction, value: int, bits: list[bool]) -> Fraction:
    chances = (one if place == value else zero for place in range(len(bits)))
    return prod((chance if bit else 1 - chance for bit, chance in zip(bits, chances, strict=True)), start=Fraction(1))


def _pack_bits(bits: object) -> bytes:
    return np.packbits(np.array(bits, np.bool_), bitorder="little").tobytes()


def _read_bits(report: Report, k: int) -> list[bool]:
    if not isinstance(report, bytes):
        raise InvalidParameter("report", "must be the bytes of a row of bits", "a number")
    return [bool(bit) for bit in np.unpackbits(np.frombuffer(report, np.uint8), count=k, bitorder="little")]


def _read_code(report: Report) -> int:
    if not isinstance(report, int):
        raise InvalidParameter("report", "must be a whole number", "bytes")
    return report
