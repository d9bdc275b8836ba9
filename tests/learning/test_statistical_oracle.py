"""The statistical-query oracle: K averages, one charge, two tolerances."""

import json
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma

import sfumato as sf
from sfumato.accuracy.query_tolerances import PSI_BITS
from sfumato.answering.psi_expressions import bind_psi, plan_sums
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger

M = 1_000
ROWS = pd.DataFrame(
    {
        "age": np.arange(M) % 100,
        "smoker": np.arange(M) % 4 == 0,
        "share": (np.arange(M) % 11) / 10,
        "gap": [None if row % 2 else 1.0 for row in range(M)],
    }
)
COLUMNS = {
    "age": sf.Integer(0, 120, nullable=False), "smoker": sf.Boolean(nullable=False),
    "share": sf.Real(0, 1, nullable=False), "gap": sf.Real(0, 1),
}  # fmt: skip
PUBLIC = {"neighbours": "replace-one", "rows": M}


def protect(data=ROWS, columns=COLUMNS, budget=None, **options):
    return sf.protect(
        data, name="people", unit=sf.ROW, columns=columns, budget=budget or sf.Budget(epsilon=10_000), **options
    )


@pytest.mark.parametrize("options", [PUBLIC, {}], ids=["replace-one", "add-remove"])
def test_answers_are_the_averages_within_the_empirical_tolerance(options):
    with protect(**options) as curator:
        oracle = curator.statistical_queries(k=5, epsilon=1_000, beta="0.000001")
        answers = oracle.means(["smoker", "age >= 50", "share", "gap", "age / 120"])
        truth = [0.25, 0.5, ROWS["share"].mean(), 0.5, (ROWS["age"] / 120).mean()]
        assert oracle.empirical_tolerance < 0.1
        for answer, expected in zip(answers, truth, strict=True):
            assert abs(answer - expected) <= oracle.empirical_tolerance
        assert oracle.empirical_tolerance < oracle.tolerance
        assert curator.budget.spent.epsilon == 1_000


def test_the_noise_is_laplace_of_k_over_epsilon_m():
    """The certificate that the kernel derives has the scale K/epsilon, on the grid of the sum."""
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=10, epsilon=2)
        assert oracle.noise_scale == pytest.approx(10 / (2 * M))
        share = PureDP(oracle.settings.shares.query)
        plan = plan_sums(curator.desk, "people", (bind_psi("smoker", curator.dataset, "people").measure("q", share),))
        (certified,) = certify(plan).measurements
        assert certified.noise.scale == Fraction(10, 2) * 2**PSI_BITS
        assert certified.exponent == -PSI_BITS


def test_a_count_takes_its_stated_share_of_epsilon_where_rows_are_private():
    with protect() as curator:
        oracle = curator.statistical_queries(k=9, epsilon=2)
        shares = oracle.settings.shares
        assert shares.count == Fraction(1, 2)  # 1/(1 + sqrt(9)) of 2
        assert 2 - Fraction(1, 10**9) < 9 * Fraction(shares.query) + Fraction(shares.count) <= 2
        with pytest.raises(sf.errors.QueryError, match="number of rows is private"):
            _ = oracle.tolerance
        oracle.begin()
        assert abs(oracle.noisy_rows - M) < 100
        assert oracle.remaining == 9


def test_query_k_plus_one_is_refused_and_a_repeated_one_is_free():
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        first = oracle.mean("smoker")
        assert oracle.mean("(smoker)") == first
        assert oracle.remaining == 1
        with pytest.raises(sf.errors.QueryError, match="1 of 2 queries left"):
            oracle.means(["age > 1", "age > 2"])
        assert oracle.remaining == 1  # nothing was asked
        oracle.means(["age > 1", "smoker", "age > 1"])
        with pytest.raises(sf.errors.QueryError, match="0 of 2 queries left"):
            oracle.mean("age > 2")
        assert oracle.mean("smoker") == first
        assert curator.budget.spent.epsilon == 1


def test_a_batch_takes_one_scan(monkeypatch):
    scans = []
    measure = DuckDBEngine.aggregate
    monkeypatch.setattr(DuckDBEngine, "aggregate", lambda self, plan: scans.append(plan) or measure(self, plan))
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=40, epsilon=1)
        oracle.means([f"age > {age}" for age in range(30)])
        assert len(scans) == 1
        oracle.mean("smoker")  # negative control
        assert len(scans) == 2


def test_nothing_is_charged_before_data_is_read():
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        for wrong in (
            "salary",
            "AVG(age)",
            "smoker) FROM people --",
            "SELECT 1",
            "age,",
            "(SELECT age FROM people)",
        ):
            with pytest.raises(sf.errors.SfumatoError):
                oracle.mean(wrong)
        assert oracle.cost is None
        assert curator.budget.spent.epsilon == 0
        oracle.mean("smoker")
        assert str(oracle.cost.epsilon) == "1"


def test_too_small_a_budget_refuses_and_the_oracle_can_still_begin():
    with protect(budget=sf.Budget(epsilon=1), **PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=2)
        with pytest.raises(sf.errors.BudgetExceeded):
            oracle.mean("smoker")
        assert oracle.cost is None
        assert curator.budget.spent.epsilon == 0


def test_values_outside_0_to_1_are_clamped_and_that_is_said():
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=3, epsilon=1_000)
        with pytest.warns(sf.learning.ClampWarning, match="from -40 to 80"):
            answer = oracle.mean("age - 40")
        assert abs(answer - (ROWS["age"] > 40).mean()) <= oracle.empirical_tolerance
        with warnings.catch_warnings():  # negative control
            warnings.simplefilter("error")
            oracle.mean("share")


def test_a_query_that_failed_in_the_engine_is_resumed(monkeypatch):
    measure = DuckDBEngine.aggregate
    fails = [True]

    def fail_once(self, plan):
        if fails.pop() if fails else False:
            raise sf.errors.EngineFailed
        return measure(self, plan)

    monkeypatch.setattr(DuckDBEngine, "aggregate", fail_once)
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        with pytest.raises(sf.errors.EngineFailed):
            oracle.mean("smoker")
        assert oracle.remaining == 1  # its share is spent
        oracle.mean("smoker")  # resumed
        assert oracle.remaining == 1
        assert curator.budget.spent.epsilon == 1


@pytest.mark.parametrize("options", [PUBLIC, {}], ids=["replace-one", "add-remove"])
def test_an_answer_that_was_stored_before_an_interrupt_is_not_paid_again(monkeypatch, options):
    """Ctrl-C after the answer was stored, also of the noisy count: asking again returns the stored answer."""
    store, interrupts = Ledger.store, [True] * (1 if options else 2)

    def store_and_interrupt(self, *arguments):
        head = store(self, *arguments)
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return head

    with protect(**options) as curator:
        oracle = curator.statistical_queries(k=3, epsilon=1)
        with monkeypatch.context() as interrupted:
            interrupted.setattr(Ledger, "store", store_and_interrupt)
            while interrupts:
                with pytest.raises(KeyboardInterrupt):
                    oracle.means(["smoker", "share"])
        assert oracle.remaining == 1
        first = oracle.mean("smoker")
        assert oracle.remaining == 1
        assert oracle.means(["share", "smoker"])[1] == first
        oracle.mean("age > 10")  # negative control: a new query is paid
        assert oracle.remaining == 0
        assert curator.budget.spent.epsilon == 1


def test_the_last_query_is_resumed_after_a_failure_before_its_draw(monkeypatch):
    measure, fails = DuckDBEngine.aggregate, [True]

    def fail_once(self, plan):
        if fails:
            fails.pop()
            raise sf.errors.EngineFailed
        return measure(self, plan)

    monkeypatch.setattr(DuckDBEngine, "aggregate", fail_once)
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=1, epsilon=1)
        with pytest.raises(sf.errors.EngineFailed):
            oracle.mean("smoker")
        assert oracle.remaining == 0
        with pytest.raises(sf.errors.QueryError, match="0 of 1 queries left"):  # negative control
            oracle.mean("age > 10")
        assert 0 <= oracle.mean("smoker") <= 1


def test_a_query_that_failed_after_its_draw_is_not_resumed(monkeypatch):
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "store", lambda *arguments: 1 / 0)
            with pytest.raises(sf.errors.KernelFault):
                oracle.mean("smoker")
        assert oracle.remaining == 1
        oracle.mean("smoker")
        assert oracle.remaining == 0


def test_the_ledger_records_the_class_or_says_that_it_does_not():
    with protect(**PUBLIC) as curator:
        curator.statistical_queries(k=1, epsilon=1, psi_class=["age > 3", "smoker"]).mean("smoker")
        curator.statistical_queries(k=1, epsilon=1).mean("smoker")
        long = [f"age > {number}" for number in range(2_000)]
        curator.statistical_queries(k=1, epsilon=1, psi_class=long).mean("age > 3")
        records = [json.loads(entry.question) for entry in curator.ledger().entries() if entry.kind == "charge"]
        assert [record["purpose"] for record in records] == ["1 statistical queries"] * 3
        assert [record["psi"] for record in records] == [
            "age > 3; smoker", "chosen later, not recorded", "from a class of 2,000, too long to record",
        ]  # fmt: skip


def test_more_different_queries_than_the_declared_class_has_are_refused():
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=3, epsilon=1, class_size=2)
        oracle.means(["smoker", "share"])
        with pytest.raises(sf.errors.QueryError, match="declared class has 2 functions"):
            oracle.mean("age > 10")
        oracle.mean("smoker")
        assert oracle.remaining == 1
        plain = curator.statistical_queries(k=3, epsilon=1)  # negative control
        plain.means(["smoker", "share", "age > 10"])


def test_data_that_was_prepared_again_ends_the_oracle():
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        oracle.mean("smoker")
        curator.desk = replace(curator.desk, versions={"people": "another"})
        with pytest.raises(sf.errors.QueryError, match="prepared again"):
            oracle.mean("smoker")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"k": 0}, "k must"), ({"k": 1_000_001}, "k must"), ({"k": 1.5}, "k must"), ({"epsilon": 0}, "epsilon"),
        ({"beta": 0}, "beta"), ({"beta": 1}, "beta"), ({"class_size": 0}, "class_size"), ({"table": "x"}, "x"),
        ({"psi_class": []}, "psi_class"), ({"psi_class": ["smoker"], "class_size": 3}, "class_size"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_by_name(options, match):
    with protect(**PUBLIC) as curator, pytest.raises(sf.errors.SfumatoError, match=match):
        curator.statistical_queries(**{"k": 2, "epsilon": 1, **options})


def test_a_table_of_people_with_several_rows_and_undeclared_rows_are_refused():
    with protect(neighbours="replace-one") as curator, pytest.raises(sf.errors.InvalidParameter, match="rows = n"):
        curator.statistical_queries(k=1, epsilon=1)
    people = ROWS.assign(person=[str(row) for row in range(M)])
    columns = {**COLUMNS, "person": sf.Id()}
    with (
        sf.protect(people, name="people", unit="person", columns=columns, budget=sf.Budget(epsilon=1)) as curator,
        pytest.raises(sf.errors.InvalidParameter, match="the row as its unit") as refused,
    ):
        curator.statistical_queries(k=1, epsilon=1)
    assert "independent rows" in refused.value.hint


def test_an_empty_table_has_answers():
    """What depends on the data is never an error."""
    with protect(ROWS.iloc[:0]) as curator:
        oracle = curator.statistical_queries(k=2, epsilon=1)
        assert 0 <= oracle.mean("smoker") <= 1
        assert oracle.tolerance == 1


FEATURES = 81


def test_adaptive_queries_without_a_class_break_the_tolerance():
    """The last query is made of earlier answers: a vote of fair coins, each counted as it came up more often.

    Its mean over the distribution is 1/2. Over the data it is far above, because the data chose it.
    """
    rows, names = 200, [f"x{number}" for number in range(FEATURES)]
    tossed = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (rows, FEATURES)), columns=names)
    columns = {name: sf.Integer(0, 1, nullable=False) for name in names}
    with protect(tossed, columns, neighbours="replace-one", rows=rows) as curator:
        oracle = curator.statistical_queries(k=FEATURES + 1, epsilon=5_000, beta="0.05")
        answers = oracle.means(names)
        assert max(abs(answer - 0.5) for answer in answers) <= oracle.tolerance  # fixed in advance: it holds
        often = [answer > 0.5 for answer in answers]
        votes = [name if more else f"(1 - {name})" for name, more in zip(names, often, strict=True)]
        last = oracle.mean(f"{add(votes)} > {FEATURES // 2}")
        counted = np.where(often, tossed, 1 - tossed).sum(axis=1) > FEATURES // 2
        assert abs(last - counted.mean()) <= oracle.empirical_tolerance  # this one holds for adaptive queries
        assert last - 0.5 > 1.2 * oracle.tolerance  # and this one does not


def add(terms):
    """The sum as a balanced tree: a chain would be nested too deeply."""
    half = len(terms) // 2
    return f"({add(terms[:half])} + {add(terms[half:])})" if half else terms[0]


def test_a_declared_class_refuses_what_is_not_in_it():
    with protect(**PUBLIC) as curator:
        psi_class = [f"age > {age}" for age in range(50)]
        oracle = curator.statistical_queries(k=2, epsilon=1, psi_class=psi_class)
        oracle.mean("age > 7")
        with pytest.raises(sf.errors.QueryError, match="not in the oracle's class"):
            oracle.mean("age > 7 AND smoker")
        assert oracle.settings.functions == 50
        fixed = curator.statistical_queries(k=2, epsilon=1)
        assert oracle.tolerance > fixed.tolerance  # ln 50 instead of ln 2


FALSE_ALARM = 1e-6


def test_the_noise_of_the_answers_has_its_scale():
    """The sum of |noise|/scale of n answers has a gamma law. Noise that is too small or too large is noticed."""
    queries = 300
    with protect(**PUBLIC) as curator:
        oracle = curator.statistical_queries(k=queries, epsilon=3 * queries, beta="0.01")
        ages = [10 + 80 * number / queries for number in range(queries)]  # no answer is near 0 or 1: none is clamped
        answers = oracle.means([f"age > {age}" for age in ages])
        errors = np.abs(np.array(answers) - [(ROWS["age"] > age).mean() for age in ages])
        assert errors.max() <= oracle.empirical_tolerance
        total = errors.sum() / oracle.noise_scale
        low, high = gamma.ppf(FALSE_ALARM / 2, queries), gamma.isf(FALSE_ALARM / 2, queries)
        assert low < total < high
        assert not low < 1.6 * total < high  # negative controls
        assert not low < total / 1.6 < high
