"""A wrong argument is refused with its name and a hint, never with a raw exception, and nothing is charged."""

import decimal
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from protected import COLUMNS, clinic, protect

import sfumato as sf

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture(scope="module")
def people():
    return protect(unit=sf.ROW)


@pytest.mark.parametrize("both", [{"epsilon": 1}, {"rho": 1}])
def test_a_margin_and_another_price_are_refused_together(people, both):
    """Negative control: each alone is taken."""
    with pytest.raises(sf.errors.InvalidParameter, match="margin must be given alone, without"):
        people.ask(COUNT, margin={"n": 20}, **both)
    assert people.preview(COUNT, **both).margins["n"] > 0
    assert people.budget.spent.epsilon == 0


def test_an_epsilon_that_floats_computed_is_refused_with_the_decimal(people):
    for way in (people.ask, people.preview, people.upgrade, people.rehearse):
        with pytest.raises(
            sf.errors.InvalidParameter, match=r"Pass 0\.3, or '0\.3': the charge would be 0\.30000000000000004"
        ):
            way(COUNT, epsilon=0.1 + 0.2)
    with pytest.raises(sf.errors.SfumatoError, match=r"Pass 0\.3"):
        sf.Budget(epsilon=0.1 + 0.2)
    assert people.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("margin", "told"),
    [
        (5, "margin must map columns of the answer to margins; got an int"), ({}, "an empty mapping"),
        ({"n": "x"}, "margin must be a number above zero"), ({"n": -1}, "a negative number"), ({1: 2}, "by text"),
        ({"m": 5}, "must name one of these columns: n"), ({"n": None}, "nothing"), ([("n", 5)], "a list"),
    ],
)  # fmt: skip
def test_margins_that_are_none_are_refused_by_name(people, margin, told):
    with pytest.raises(sf.errors.InvalidParameter, match=told):
        people.ask(COUNT, margin=margin)


@pytest.mark.parametrize(
    ("assume", "told"),
    [
        ({"n": 10**400}, "that a double can hold"),
        ({"n": "x"}, r"assume\['n'\] must be a number above zero"), ({"m": 5}, "the one key 'n'; got another key"),
        (5, "the one key 'n'; got an int"), ({"n": 0}, "zero"), ({"n": float("nan")}, "NaN"), ({"n": None}, "nothing"),
    ],
)  # fmt: skip
def test_assumptions_that_are_none_are_refused_by_name(people, assume, told):
    with pytest.raises(sf.errors.InvalidParameter, match=told):
        people.preview(COUNT, epsilon=1, assume=assume)


@pytest.mark.parametrize(
    "questions", [None, 5, COUNT, [COUNT], [(COUNT,)], [(5, 20)], [(COUNT, None)], [], [(COUNT, -5)]]
)
def test_workloads_that_are_none_are_refused_by_name(people, questions):
    with pytest.raises(sf.errors.InvalidParameter, match=r"questions|margin"):
        people.plan(questions)


class Odd:
    """An object whose text, truth value and equality raise errors."""

    def _refuse(self, *_):
        raise RuntimeError("raw")

    __str__ = __repr__ = __bool__ = __eq__ = _refuse
    __hash__ = object.__hash__


ODD = [
    None, 5, -1, 0, 2.5, float("nan"), float("inf"), 10**400, True, "", "x", "\x00", "nan", b"x", [], [1], (1, 2), {},
    {"n": "x"}, {1: 2}, set(), object(), int, decimal.Decimal("nan"), np.float64("nan"), np.array([1, 2]),
    np.array([]), pd.Series([1, 2]), pd.DataFrame({"a": [1]}), pd.NA, pd.NaT, date(2020, 1, 1), 1j,
    Path("/nonexistent/x"), sf.Budget(epsilon=1), sf.Integer(0, 1), sf.ROW, range(3), Odd(), "a" * 9_999, "\ud800",
]  # fmt: skip


def callables(people):
    """Every public call that has parameters, with arguments that it accepts."""
    asked = {"sql": COUNT, "epsilon": "0.0001", "rho": None, "confidence": "0.95"}
    named = {"analyst": "ann"}
    answer = people.ask(COUNT, epsilon="0.0001")
    laplace, unit = sf.Laplace(sensitivity=1, epsilon=1), "person_id"
    return {
        "ask": (people.ask, asked | named | {"delta": None, "margin": None}),
        "preview": (people.preview, asked | named | {"delta": None, "assume": None}),
        "upgrade": (people.upgrade, asked | named),
        "rehearse": (people.rehearse, asked),
        "plan": (people.plan, {"questions": [(COUNT, 9_999)], "confidence": "0.95"}),
        "ask_all": (people.ask_all, {"questions": [(COUNT, 9_999)], "confidence": "0.95"} | named),
        "watch": (people.watch, {"sql": COUNT, "above": 10**6, "epsilon": "0.0001", "questions": 9} | named),
        "diagnose": (people.diagnose, {"sql": COUNT, "epsilon": "0.0001"} | named),
        "find_bounds": (people.find_bounds, {"column": "income", "epsilon": "0.0001", "table": None} | named),
        "find_cap": (people.find_cap, {"table": "people", "epsilon": "0.0001"} | named),
        "select": (people.select, {"table": "people"}),
        "where": (people.where, {"condition": "age > 3"}),
        "group_by": (lambda key: people.group_by(key), {"key": "city"}),
        "agg": (lambda aggregation: people.agg(n=aggregation), {"aggregation": sf.count()}),
        "mean": (sf.mean, {"value": "age"}),
        "protect": (sf.protect, {
            "data": clinic(), "name": "people", "unit": unit, "columns": COLUMNS, "budget": sf.Budget(epsilon=1),
            "neighbours": "add-remove", "rows": None, "max_rows_per_unit": 2, "max_groups_per_unit": 2,
            "population": None, "version": "1", "ledger": None, "analysts": None,
        }),
        "open": (sf.open, {"folder": "/nonexistent", "ledger": None}),
        "Budget": (sf.Budget, {"epsilon": 1, "delta": 0, "accounting": "basic"}),
        "Integer": (sf.Integer, {"lower": 0, "upper": 1, "nullable": True}),
        "Real": (sf.Real, {"lower": 0, "upper": 1, "nullable": True}),
        "Category": (sf.Category, {"values": ["a"], "nullable": True}),
        "Boolean": (sf.Boolean, {"nullable": True}),
        "Text": (sf.Text, {"nullable": True}),
        "Date": (sf.Date, {"lower": "2020-01-01", "upper": "2021-01-01", "nullable": True}),
        "DateTime": (sf.DateTime, {"lower": "2020-01-01T00:00:00", "upper": "2021-01-01T00:00:00", "nullable": True}),
        "Laplace": (sf.Laplace, {"sensitivity": 1, "epsilon": 1}),
        "release": (lambda value: laplace.release(value), {"value": 1}),
        "margin": (laplace.margin, {"confidence": "0.9"}),
        "Gaussian": (sf.Gaussian, {"sensitivity": 1, "rho": 1}),
        "choose": (sf.choose, {"scores": [1, 2], "sensitivity": 1, "epsilon": 1}),
        "PureDP": (sf.PureDP, {"epsilon": 1}),
        "ApproxDP": (sf.ApproxDP, {"epsilon": 1, "delta": "1e-6"}),
        "ZCDP": (sf.ZCDP, {"rho": 1}),
        "compose": (lambda other: sf.PureDP(1).compose(other), {"other": sf.PureDP(1)}),
        "group": (lambda most: sf.PureDP(1).group(most), {"most": 2}),
        "to_approx": (sf.ZCDP(1).to_approx, {"delta": "1e-6"}),
        "explain": (answer.explain, {"people": 1}),
        "plot": (answer.plot, {"column": "n"}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def rich():
    return protect(budget=sf.Budget(epsilon=10**6), unit=sf.ROW)


@pytest.mark.parametrize("name", sorted(callables(protect(unit=sf.ROW))))
def test_nothing_that_is_passed_gives_a_raw_exception(name, rich, tmp_path, monkeypatch):
    """Each parameter in turn gets an odd value: it is accepted, or refused with a SfumatoError that has a message."""
    monkeypatch.chdir(tmp_path)
    called, usual = callables(rich)[name]
    for parameter in usual:
        for odd in ODD:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = called(**(usual | {parameter: odd}))
            except sf.errors.KernelFault:
                pytest.fail(f"{name}({parameter}={type(odd).__name__}) is a fault of the kernel")
            except sf.errors.SfumatoError as refused:
                assert len(refused.message) > 10
            except Exception as raw:
                pytest.fail(f"{name}({parameter}={type(odd).__name__}) gives a raw {type(raw).__name__}")
            else:
                if isinstance(made, type(rich)):
                    made.close()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (pd.Series([1]), "to_frame"), ({"age": [1]}, "pandas.DataFrame"), (None, "nothing"), ([1], "pandas.DataFrame"),
        (np.array([[1]]), "pandas.DataFrame"), (5, "an int"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_what_to_do(data, told):
    with pytest.raises(sf.errors.InvalidParameter, match=r"data must be a frame \(pandas, polars, Arrow\)") as refused:
        sf.protect(data, name="t", unit=sf.ROW, columns={"age": sf.Integer(0, 9)}, budget=sf.Budget(epsilon=1))
    assert told in str(refused.value)


@pytest.mark.parametrize("ledger", [5, "", "/nonexistent/x.db", "a\x00b", b"x", ["x"]])
def test_what_is_no_ledger_is_refused_by_name(ledger):
    with pytest.raises(sf.errors.InvalidParameter, match="ledger must be"):
        protect(unit=sf.ROW, ledger=ledger)


@pytest.mark.parametrize("analyst", [None, 5, ["ann"], ""])
def test_what_is_no_analyst_is_refused_by_name(people, analyst):
    with pytest.raises(sf.errors.InvalidParameter, match="analyst must"):
        people.ask(COUNT, epsilon=1, analyst=analyst)
    assert people.budget.spent.epsilon == 0


def test_a_question_before_any_table_exists_says_how_to_add_one(tmp_path):
    (tmp_path / "catalog.toml").write_text('[dataset]\nname = "clinic"\n[budget]\nepsilon = "1"\n')
    with pytest.raises(sf.errors.SfumatoError, match="sfumato add"), sf.open(tmp_path) as clinic:
        clinic.ask(COUNT, epsilon=1)


def test_pinned_data_that_is_damaged_says_to_prepare_it(tmp_path):
    pd.DataFrame({"age": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "catalog.toml").write_text(
        '[dataset]\nname = "clinic"\n[budget]\nepsilon = "1"\n[tables.t]\nsource = "t.csv"\nunit = "row"\n'
        'columns.age = { type = "integer", lower = 0, upper = 9 }\n'
    )
    with sf.open(tmp_path) as clinic:
        assert clinic.preview("SELECT COUNT(*) AS n FROM t", epsilon=1).cost.epsilon == 1
    (tmp_path / ".sfumato" / "snapshot.duckdb").write_bytes(b"damaged" * 1_000)
    with pytest.raises(sf.errors.CatalogError, match="sfumato prepare"):
        sf.open(tmp_path)


@pytest.mark.parametrize(
    "flag", [np.array([1, 2]), pd.Series([True, False]), pd.DataFrame({"a": [1]}), pd.NA, "yes", 1, None]
)
def test_flags_that_are_not_truths_are_refused_by_name(people, flag):
    with pytest.raises(sf.errors.InvalidParameter, match="strict must be True or False; got"):
        protect(unit=sf.ROW, strict=flag)
    answer = people.rehearse(COUNT, epsilon=1)
    for way in (answer.to_pandas, answer.to_polars, answer.to_arrow):
        with pytest.raises(sf.errors.InvalidParameter, match="intervals must be True or False; got"):
            way(intervals=flag)
    assert len(answer.to_pandas(intervals=True).columns) == 3
