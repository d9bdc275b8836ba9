import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from local_laws import HEADS, TAILS, join_words, units_of
from scripted import Scripted

import sfumato as sf
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.mean_tables import Ends, Mixture, Rows, Window
from sfumato.local.randomisers.mean_values import list_report_numbers, list_report_probabilities, make_laplace_table

POSITIONS = [0, 1, UNITS // 3, UNITS // 2, UNITS // 2 + 12345, UNITS - 1, UNITS]
SMALL = {
    "ends": Ends(3 << 30),
    "window": Window(4, 2, 3 << 30),
    "narrow": Window(4, 1, 3 << 30),
    "mixture": Mixture(1 << 30, Window(4, 3, 3 << 30), Ends(3_000_000_000)),
    "bold ends": Mixture(1 << 30, Window(4, 3, 3 << 30), Ends(3_900_000_000)),
    "never": Mixture(0, Window(2, 1, 3 << 30), Ends(3 << 30)),
    "rows": make_laplace_table(Decimal(1), 4),
}


def report(table, position, script):
    return int(table.draw(np.array([position]), Scripted(script))[0])


def even(count):
    return [(bytes([byte]), Fraction(1, count)) for byte in range(count)]


def coin(units):
    return [(join_words(HEADS), Fraction(units, UNITS)), (join_words(TAILS), Fraction(UNITS - units, UNITS))]


def stages_of(table, position):
    """Each stage of a draw: the bytes that stand for its outcomes, with their probabilities as measured."""
    match table:
        case Ends():
            down = report(table, position, join_words(TAILS, HEADS))
            up = units_of(lambda word: report(table, position, join_words(word, HEADS)) != down)
            keep = units_of(lambda word: report(table, position, join_words(TAILS, word)) == down)
            return [coin(up), coin(keep)]
        case Window():
            down = report(table, position, join_words(TAILS, HEADS) + bytes(2))
            up = units_of(lambda word: report(table, position, join_words(word, HEADS) + bytes(2)) != down)
            inside = units_of(lambda word: report(table, position, join_words(TAILS, word) + bytes(2)) == down)
            return [coin(up), coin(inside), even(table.width), even(table.steps)]
        case Mixture():
            inner = [*stages_of(table.window, position), *stages_of(table.ends, position)]
            rest = b"".join(stage[0][0] for stage in inner)
            windowed = units_of(lambda word: report(table, position, join_words(word) + rest) < table.window.outputs)
            return [coin(windowed), *inner]


def law(table, position):
    total = [Fraction(0)] * table.outputs
    if isinstance(table, Rows):
        down = report(table, position, join_words(TAILS, HEADS))
        assert down == 0  # every row begins with column 0
        up = Fraction(position * table.steps % UNITS, UNITS)
        for rounded, weight in ((HEADS, up), (TAILS, 1 - up)):
            below = 0
            for column in range(table.outputs):
                units = units_of(lambda word, r=rounded, c=column: report(table, position, join_words(r, word)) <= c)
                total[column] += weight * Fraction(units - below, UNITS)
                below = units
        return total
    for outcome in product(*stages_of(table, position)):
        weight = math.prod(probability for _, probability in outcome)
        total[report(table, position, b"".join(word for word, _ in outcome))] += weight
    return total


@pytest.mark.parametrize("name", SMALL)
def test_reports_are_unbiased_for_the_table_itself(name):
    """The expected number of a report is the position, as Fractions; so is the whole law, and its variance."""
    table = SMALL[name]
    places = {position: law(table, position) for position in POSITIONS}
    for position, probabilities in places.items():
        assert sum(probabilities) == 1
        mean = sum(p * number for p, number in zip(probabilities, list_report_numbers(table), strict=True))
        assert mean == Fraction(position, UNITS)
        low, part = divmod(position * table.steps, UNITS)
        nearby = [list_report_probabilities(table, low), list_report_probabilities(table, min(low + 1, table.steps))]
        share = Fraction(part, UNITS)
        assert probabilities == [(1 - share) * first + share * second for first, second in zip(*nearby, strict=True)]
        second = sum(p * number**2 for p, number in zip(probabilities, list_report_numbers(table), strict=True))
        randomiser = sf.local.MeanRandomiser("test", Decimal(0), Decimal(1), table)
        assert randomiser.variance_asked(position / UNITS) == pytest.approx(float(second - mean**2), rel=1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_the_loss_is_what_the_laws_say(name):
    table = SMALL[name]
    laws = [law(table, UNITS * step // table.steps) for step in range(table.steps + 1)]
    columns = [column for column in zip(*laws, strict=True) if any(column)]
    ratio = max(max(column) / min(column) for column in columns)
    assert bound_ratio_loss(ratio) <= table.epsilon
    if name != "never":  # a window that is never used costs nothing, and is counted all the same
        assert bound_ratio_loss(ratio) == table.epsilon
    between = [law(table, position) for position in POSITIONS]
    assert max(max(c) / min(c) for c in zip(*between, strict=True) if any(c)) <= ratio


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1", "3", "8"])
@pytest.mark.parametrize("name", ["duchi", "piecewise", "hybrid", "laplace"])
def test_made_tables_cost_what_was_asked_and_are_unbiased(name, epsilon):
    made = sf.local.mean_randomiser(name, lower=-3, upper="4.5", epsilon=epsilon)
    assert Decimal(epsilon) * (1 - Decimal("1e-5")) < made.epsilon <= Decimal(epsilon)
    table = made.table
    for step in {0, 1, table.steps // 2, table.steps}:
        row = list_report_probabilities(table, step)
        assert sum(row) == 1
        assert sum(p * number for p, number in zip(row, list_report_numbers(table), strict=True)) == Fraction(
            step, table.steps
        )
    assert sf.local.rebuild(made.describe()) == made


def test_variances_are_those_of_the_papers():
    """On [-1, 1]: Duchi's c^2 - x^2; piecewise and hybrid by their formulas, which a grid of 1,024 steps follows."""
    for epsilon in (0.3, 1, 2.5):
        growth, root = math.exp(epsilon), math.exp(epsilon / 2)
        for x in (-1, -0.25, 0, 0.7, 1):
            duchi = ((growth + 1) / (growth - 1)) ** 2 - x**2
            piecewise = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
            share = 1 - 1 / root if epsilon > 0.61 else 0
            hybrid = share * piecewise + (1 - share) * duchi
            for name, formula in (("duchi", duchi), ("piecewise", piecewise), ("hybrid", hybrid)):
                made = sf.local.mean_randomiser(name, lower=-1, upper=1, epsilon=epsilon)
                assert made.variance_asked(x) == pytest.approx(formula, rel=3e-3), (name, epsilon, x)
                assert made.variance_asked(x) < 1.01 * formula


def test_duchi_is_one_coin_of_the_formula():
    """P(+) = 1/2 + x/(2c) with c = (E + 1)/(E - 1), for the table's own E."""
    table = sf.local.mean_randomiser("duchi", lower=-1, upper=1, epsilon=1).table
    growth = Fraction(table.keep, UNITS - table.keep)
    c = (growth + 1) / (growth - 1)
    for position in POSITIONS:
        x = 2 * Fraction(position, UNITS) - 1
        assert law(table, position)[1] == Fraction(1, 2) + x / (2 * c)
    assert [2 * number - 1 for number in list_report_numbers(table)] == [-c, c]


def test_margins_hold_for_the_worst_population():
    for name in ("duchi", "piecewise", "hybrid", "laplace"):
        made = sf.local.mean_randomiser(name, lower=0, upper=1, epsilon=1)
        margin = made.margin(100, "0.95") / 1.959964 * 10
        seconds = [made.variance_asked(x) + x**2 for x in np.linspace(0, 1, 33)]
        worst = 0.0
        for a, b in product(range(33), repeat=2):
            for share in np.linspace(0, 1, 9):
                mean = (1 - share) * a / 32 + share * b / 32
                worst = max(worst, (1 - share) * seconds[a] + share * seconds[b] - mean**2)
        assert worst <= margin**2 * (1 + 1e-6)
        assert margin**2 <= worst * 1.01


def test_numbers_are_read_to_half_a_step_and_held_to_the_bounds():
    made = sf.local.mean_randomiser("hybrid", lower="-2.5", upper=10, epsilon=1)
    values = np.linspace(-2.5, 10, 1001)
    positions, single = made.positions(values)
    assert not single
    assert np.abs(positions / UNITS * 12.5 - 2.5 - values).max() <= 12.5 / UNITS
    assert made.positions([-100, 100.0])[0].tolist() == [0, UNITS]
    assert type(made.randomise(3)) is int
    assert made.randomise([]).shape == (0,)
    for bad in (float("nan"), "x", None, True, [1, float("inf")]):
        with pytest.raises(sf.errors.InvalidParameter):
            made.randomise(bad)


@pytest.mark.parametrize("epsilon", ["40", "1e-12", 0, -1, "x"])
def test_epsilons_that_need_a_zero_entry_are_refused(epsilon):
    for name in ("duchi", "piecewise", "hybrid", "laplace"):
        with pytest.raises(sf.errors.InvalidParameter, match="epsilon"):
            sf.local.mean_randomiser(name, lower=0, upper=1, epsilon=epsilon)


def test_bad_bounds_and_names():
    for lower, upper in ((1, 1), (2, 1), ("a", 1), (None, 1), (float("nan"), 1), (0, "1e999"), (True, 2)):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.mean_randomiser("duchi", lower=lower, upper=upper, epsilon=1)
    with pytest.raises(sf.errors.InvalidParameter, match="hybrid"):
        sf.local.mean_randomiser("gauss", lower=0, upper=1, epsilon=1)


def altered(description):
    """Documents that differ from a published one in one place."""
    yield {**description, "mechanism": "other"}
    yield {**description, "more": 1}
    for key in description:
        yield {name: value for name, value in description.items() if name != key}
    for name in description.get("coins", {}):
        limits = () if name == "piecewise" else (0, UNITS, UNITS // 4)  # a public coin may be sure, and need not favour
        for bad in (-1, UNITS + 1, 1.5, "7", True, None, *limits):
            yield {**description, "coins": {**description["coins"], name: bad}}
    if "coins" in description:
        yield {**description, "coins": {**description["coins"], "another": 5}}
    for key in ("steps", "width"):
        if key in description:
            for bad in (0, -1, 3000, 2.0, "4", True):
                yield {**description, key: bad}
    if "table" in description:
        rows = description["table"]
        yield {**description, "table": [rows[0]] * len(rows)}  # distinguishes no two inputs
        yield {**description, "table": rows[:-1]}
        yield {**description, "table": [[*rows[0][:-1], rows[0][-1] + 1], *rows[1:]]}
        yield {**description, "table": [[0, rows[0][0] + rows[0][1], *rows[0][2:]], *rows[1:]]}
        yield {**description, "table": [[float(entry) for entry in row] for row in rows]}
        yield {**description, "table": "rows"}


@pytest.mark.parametrize("name", ["duchi", "piecewise", "hybrid", "laplace"])
def test_altered_tables_are_refused(name):
    made = sf.local.mean_randomiser(name, lower=0, upper=10, epsilon=1)
    for document in [*altered(made.describe()), None, [], "duchi", {}]:
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.rebuild(document)


def test_estimates_of_a_mean():
    made = sf.local.mean_randomiser("piecewise", lower=0, upper=10, epsilon=2)
    tally = made.tally(made.randomise(np.full(20_000, 7.5)))
    both = made.estimate(tally + tally)
    once = made.estimate(tally)
    assert both.mean == pytest.approx(once.mean)
    assert both.people == 40_000
    assert once.low < once.mean < once.high
    assert once.error == pytest.approx(math.sqrt(made.variance_asked(7.5) / 20_000), rel=0.05)
    assert abs(once.mean - 7.5) < 6 * once.error
    assert "are fake" in str(once)
    low, high = once.honest_range("0.01")
    assert low < once.mean < high
    assert once.worst_shift("0.01") == max(once.mean - low, high - once.mean)
    least, greatest = once.extremes
    assert (0.99 * low + 0.01 * greatest) == pytest.approx(once.mean)
    assert (0.99 * high + 0.01 * least) == pytest.approx(once.mean)
    single = made.estimate([0])
    assert single.high - single.low > 10
    assert single.consistent == 0
    for bad in ([], [-1], [10**6], ["a"], sf.local.Tally.empty(3), sf.local.Tally.empty(made.table.outputs)):
        with pytest.raises(sf.errors.InvalidParameter):
            made.estimate(bad)


def test_laplace_follows_the_formula_for_its_grid():
    """Row by row against exact decay, to a few units; what falls outside is at the ends."""
    rows = make_laplace_table(Decimal(1)).rows
    steps = len(rows) - 1
    with mpmath.workprec(150):
        x = mpmath.exp(-mpmath.mpf(1) / steps)
        for step, row in enumerate(rows):
            for column, units in enumerate(row):
                scale = (1 - x) / (1 + x) if 0 < column < steps else 1 / (1 + x)
                assert abs(units - UNITS * scale * x ** abs(step - column)) < 100
