"""CORR, COVAR and REGR: without noise they are numpy's, NULL pairs do not count, and their intervals hold."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf

RANDOM = np.random.default_rng(7)
ROWS = 3_000


def make_data():
    x = RANDOM.uniform(0, 100, ROWS)
    y = np.clip(5 + 0.4 * x + RANDOM.normal(0, 8, ROWS), 0, 60)
    data = pd.DataFrame({"x": x, "y": y, "group": RANDOM.choice(["a", "b"], ROWS)})
    data.loc[RANDOM.random(ROWS) < 0.1, "y"] = np.nan
    data.loc[RANDOM.random(ROWS) < 0.1, "x"] = np.nan
    return data


DATA = make_data()


def protect(unit=sf.ROW, **changes):
    columns = {"x": sf.Real(0, 100), "y": sf.Real(0, 60), "group": sf.Category(["a", "b", "c"])}
    return sf.protect(
        DATA, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=10**7, delta="1e-6", **changes)
    )


def compute_plain(data):
    pairs = data.dropna()
    x, y, n = pairs["x"].to_numpy(), pairs["y"].to_numpy(), len(pairs)
    slope, start = np.polyfit(x, y, 1)
    correlation = np.corrcoef(x, y)[0, 1]
    return {
        "CORR": correlation, "REGR_R2": correlation**2, "COVAR_SAMP": np.cov(x, y)[0, 1],
        "COVAR_POP": np.cov(x, y, ddof=0)[0, 1], "REGR_SLOPE": slope, "REGR_INTERCEPT": start,
        "REGR_SXX": n * x.var(), "REGR_SYY": n * y.var(), "REGR_SXY": n * np.cov(x, y, ddof=0)[0, 1],
        "REGR_COUNT": n, "REGR_AVGX": x.mean(), "REGR_AVGY": y.mean(),
    }  # fmt: skip


PLAIN = compute_plain(DATA)


@pytest.mark.parametrize("price", [{"epsilon": 60_000}, {"rho": 3_000}])
def test_without_noise_they_are_numpys(price):
    curator = protect(accounting="zcdp") if "rho" in price else protect()
    asked = ", ".join(f"{function}(y, x) AS {function.lower()}" for function in PLAIN)
    (row,) = curator.ask(f"SELECT {asked} FROM t", **price).rows
    for function, value in PLAIN.items():
        assert row[function.lower()] == pytest.approx(value, rel=2e-2), function


def test_groups_and_an_empty_group():
    rows = {row["group"]: row for row in protect().ask(
        'SELECT "group", CORR(y, x) AS c, REGR_SLOPE(y, x) AS s FROM t GROUP BY "group"', epsilon=50_000
    ).rows}  # fmt: skip
    for name in ("a", "b"):
        plain = compute_plain(DATA[DATA["group"] == name][["x", "y"]])
        assert rows[name]["c"] == pytest.approx(plain["CORR"], rel=5e-3)
        assert rows[name]["s"] == pytest.approx(plain["REGR_SLOPE"], rel=5e-3)
    assert rows["c"]["c"] is None or abs(rows["c"]["c"]) <= 1


@pytest.mark.parametrize("function", ["CORR", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"])
def test_intervals_hold_as_often_as_they_say(function):
    """Of 100 releases, 95 % hold. Fewer than 83 would happen with a probability below 1e-5; and they are not too wide:
    with a fifth of their width, fewer than 60 hold."""
    curator = protect()
    held = narrow = 0
    for place in range(100):
        answer = curator.ask(f"SELECT {function}(y, x) AS c FROM t", epsilon=f"2.{place:03d}1")
        low, high = answer.intervals[0]["c"]
        held += low <= PLAIN[function] <= high
        middle, tenth = (low + high) / 2, (high - low) / 10
        narrow += middle - tenth <= PLAIN[function] <= middle + tenth
    assert held >= 83
    assert narrow < 60


def test_few_rows_have_the_widest_interval():
    curator = protect()
    answer = curator.ask("SELECT CORR(y, x) AS c, REGR_SLOPE(y, x) AS s FROM t WHERE \"group\" = 'c'", epsilon="0.5")
    for name, ends in answer.intervals[0].items():
        assert ends == ((-1.0, 1.0) if name == "c" else (-np.inf, np.inf))


def test_moments_are_shared():
    curator = protect()
    explained = curator.preview("SELECT CORR(y, x) AS c, REGR_SLOPE(y, x) AS s, COVAR_POP(y, x) AS p FROM t", epsilon=1)
    assert "3 measurements" in explained.explain()
    assert explained.margins == {"c": None, "s": None, "p": None}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ('SELECT CORR(x, "group") FROM t', "needs two numbers"),
        ("SELECT CORR(x, 3) FROM t", "is constant"),
        ("SELECT REGR_SLOPE(x / y, x) FROM t", "bounds"),
    ],
)
def test_what_is_refused(question, said):
    with pytest.raises(sf.errors.QueryError, match=said):
        protect().ask(question, epsilon=1)


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_a_preview_has_the_margins_of_even_and_independent_values(accounting):
    """On such values, the margin before the release is the half width of the answer's interval."""
    even = np.random.default_rng(2)
    data = pd.DataFrame({"x": even.uniform(0, 100, 4_000), "y": even.uniform(-5, 5, 4_000)})
    columns = {"x": sf.Real(0, 100), "y": sf.Real(-5, 5)}
    budget = sf.Budget(epsilon=90, delta="1e-6", accounting=accounting)
    statistics = ("CORR", "COVAR_SAMP", "COVAR_POP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_SXX", "REGR_SXY")
    sql = f"SELECT {', '.join(f'{one}(y, x) AS {one.lower()}' for one in statistics)} FROM t"
    with sf.protect(data, name="t", unit=sf.ROW, columns=columns, budget=budget) as curator:
        unknown = curator.preview(sql, epsilon=3)
        assert set(unknown.margins.values()) == {None}
        margins = curator.preview(sql, epsilon=3, assume={"n": 4_000}).margins
        (interval,) = curator.ask(sql, epsilon=3).intervals
    for name, margin in margins.items():
        low, high = interval[name]
        assert margin == pytest.approx((high - low) / 2, rel=0.1), name
