"""Upgrades, workloads, watches, diagnoses, find_bounds, and OPTIONS in the question."""

import json
from dataclasses import replace
from decimal import Decimal

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answering.watch import plan_count
from sfumato.catalog.dataset import Dataset, Table
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import KernelFault
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.ledger_tables import GET_ANSWER
from sfumato.query.bind import bind
from sfumato.query.parse import parse

AGES = [20 + index % 60 for index in range(600)]
DATA = pd.DataFrame(
    {
        "id": [f"p{index // 2}" for index in range(600)],
        "age": AGES,
        "pay": [100.0 * (index % 70) for index in range(600)],
        "wide": [float(index % 900) for index in range(600)],
        "job": [["smith", "priest", "nurse"][index % 3] for index in range(599)] + ["hermit"],
        "city": [["Rome", "Oslo"][index % 2] for index in range(600)],
    }
)
COLUMNS = {
    "age": sf.Integer(0, 120, nullable=False),
    "pay": sf.Real(0, 5_000, nullable=False),
    "wide": sf.Real(-1e9, 1e9),
    "job": sf.Text(),
    "city": sf.Category(["Rome", "Oslo"]),
}


def people(unit=sf.ROW, **options):
    columns = COLUMNS if unit is sf.ROW else COLUMNS | {"id": sf.Id()}
    budget = options.pop("budget", sf.Budget(epsilon=200, delta=1e-4))
    return sf.protect(DATA, name="people", unit=unit, columns=columns, budget=budget, **options)


def test_an_upgrade_pays_the_difference_and_combines_by_inverse_variance():
    with people() as curator:
        sql = "SELECT COUNT(*) AS n, SUM(age) AS s FROM people WHERE age > 30"
        first = curator.ask(sql, epsilon=1)
        better = curator.upgrade(sql, epsilon=3)
        assert better.cost.epsilon == 2
        assert curator.budget.spent.epsilon == 3
        again = curator.upgrade(sql, epsilon=3)
        assert again.cached
        assert again.rows == better.rows
        assert again.intervals == better.intervals
        assert curator.upgrade(sql, epsilon=2).rows == better.rows
        assert curator.budget.spent.epsilon == 3
        width = {name: high - low for name, (low, high) in better.intervals[0].items()}
        before = {name: high - low for name, (low, high) in first.intervals[0].items()}
        assert width["n"] < before["n"]
        assert width["s"] < before["s"]


def test_an_upgrade_by_as_much_again_is_another_release():
    with people() as curator:
        sql = "SELECT COUNT(*) AS n FROM people WHERE age > 33"
        curator.ask(sql, epsilon=1)
        for total in (2, 3, 4):
            assert curator.upgrade(sql, epsilon=total).cost.epsilon == 1
        charges = [entry for entry in curator.ledger().entries() if entry.kind == "charge"]
        assert len({entry.plan_digest for entry in charges}) == 4
        assert len({entry.answer_key for entry in charges}) == 1
        assert curator.ask(sql, epsilon=1).cached


def test_combined_values_are_the_weighted_mean_of_the_releases():
    with people() as curator:
        sql = "SELECT COUNT(*) AS n FROM people WHERE age > 31"
        one = curator.ask(sql, epsilon=1).rows[0]["n"]
        both = curator.upgrade(sql, epsilon=3).rows[0]["n"]
        (entry,) = [entry for entry in curator.ledger().entries() if entry.kind == "charge" and entry.loss.epsilon == 2]
        with curator.ledger()._database.read() as rows:
            two = json.loads(rows.find_row(GET_ANSWER, charge=entry.number)["payload"])["integers"]["count1"][0]
        # weights are the inverse variances of discrete Laplace noise at epsilon 1 and 2: 1 and 4, of 2 t**2
        assert both == pytest.approx((1 * one + 4 * two) / 5, abs=0.5)


def test_upgrades_of_choices_are_refused_with_a_hint():
    with people() as curator:
        for sql in ("SELECT MEDIAN(age) AS m FROM people", "SELECT job, COUNT(*) AS n FROM people GROUP BY job"):
            with pytest.raises(sf.errors.SfumatoError, match="larger epsilon"):
                curator.upgrade(sql, epsilon=3)


def test_a_public_number_of_rows_is_used():
    with people(neighbours="replace-one", rows=600) as curator:
        preview = curator.preview("SELECT COUNT(*) AS n, AVG(pay) AS m FROM people", epsilon=1)
        assert preview.margins["n"] == 0
        assert preview.margins["m"] == pytest.approx(5_000 / 600 * 2.9957, rel=0.01)  # (b - a)/n · ln(1/0.05)
        answer = curator.ask("SELECT COUNT(*) AS n, AVG(pay) AS m FROM people", epsilon=50)
        assert answer.rows[0]["n"] == 600
        assert answer.rows[0]["m"] == pytest.approx(DATA["pay"].clip(0, 5_000).mean(), abs=3)
        with pytest.raises(sf.errors.SfumatoError, match="everybody knows it"):
            curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
        for sql in ("AVG(pay), VARIANCE(pay)", "SUM(pay), STDDEV(pay), AVG(pay), COUNT(*)"):
            (only,) = curator.preview(f"SELECT {sql} FROM people", epsilon=1).measurements
            assert "squares" in only.measures
        (only,) = curator.preview("SELECT AVG(pay), SUM(pay) FROM people", epsilon=1).measurements
        assert "(sum)" in only.measures
        answer = curator.ask("SELECT AVG(pay) AS m, SUM(pay) AS s, STDDEV(pay) AS d FROM people", epsilon=120)
        assert answer.rows[0]["s"] == pytest.approx(DATA["pay"].clip(0, 5_000).sum(), rel=1e-2)
        assert answer.rows[0]["d"] == pytest.approx(DATA["pay"].clip(0, 5_000).std(), rel=1e-2)
        assert "halves1" in curator.ask("SELECT city, AVG(pay) AS m FROM people GROUP BY city", epsilon=1).explain()


def test_a_workload_has_the_least_epsilon_for_each_margin_and_one_charge():
    with people() as curator:
        wanted = [
            ("SELECT COUNT(*) AS n FROM people WHERE age > 40", 20),
            ("SELECT city, COUNT(*) AS n FROM people GROUP BY city", {"n": 10}),
            ("SELECT COUNT(*) AS n FROM people WHERE age > 40", 5),
        ]
        plan = curator.plan(wanted)
        assert curator.budget.spent.epsilon == 0
        assert len(plan.shares) == 2
        for share, margin in zip(plan.shares, (5, 10), strict=True):
            assert curator.preview(share.sql, epsilon=share.epsilon).margins["n"] <= margin
            less = share.epsilon * Decimal("0.99")
            assert curator.preview(share.sql, epsilon=less).margins["n"] > margin
        answers = curator.ask_all(plan)
        charges = [entry for entry in curator.ledger().entries() if entry.kind == "charge"]
        assert len(charges) == 1
        assert curator.budget.spent.epsilon == plan.cost.epsilon
        assert [len(answer.rows) for answer in answers] == [1, 2]
        assert abs(answers[0].rows[0]["n"] - sum(age > 40 for age in AGES)) < 50
        again = curator.ask_all(plan)
        assert [answer.rows for answer in again] == [answer.rows for answer in answers]
        assert all(answer.cached for answer in again)
        assert curator.ledger().verify().ok
        assert str(plan).startswith("ε = ")


def test_a_workload_is_paid_whole_or_not_at_all():
    with people(budget=sf.Budget(epsilon="0.5")) as curator:
        with pytest.raises(sf.errors.BudgetExceeded):
            curator.ask_all(
                [("SELECT COUNT(*) AS n FROM people", 6), ("SELECT COUNT(*) AS n FROM people WHERE age > 3", 6)]
            )
        assert curator.budget.spent.epsilon == 0
        assert len(curator.ledger().entries()) == 1


def test_a_preview_says_what_it_assumes():
    with people() as curator:
        mean = "SELECT AVG(age) AS a FROM people"
        assert "spread evenly" in curator.preview(mean, epsilon=1, assume={"n": 500}).explain()
        assert "spread evenly" not in curator.preview(mean, epsilon=1).explain()


def test_a_watch_is_paid_once_and_says_true_once():
    with people() as curator:
        watch = curator.watch("SELECT COUNT(*) FROM people", above=300, epsilon=20)
        assert watch.cost.epsilon == 20
        assert watch.margin() < 5
        assert [watch.ask(f"SELECT COUNT(*) FROM people WHERE age < {20 + age}") for age in (1, 5, 10)] == [False] * 3
        assert watch.ask("SELECT COUNT(*) FROM people WHERE age < 60") is True
        assert watch.finished
        with pytest.raises(sf.errors.QueryError, match="finished"):
            watch.ask("SELECT COUNT(*) FROM people")
        assert curator.budget.spent.epsilon == 20
        assert curator.ledger().verify().ok


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) + 1000 FROM people", "SELECT -COUNT(*) FROM people",
        "SELECT COUNT(*) AS n, COUNT(*) AS m FROM people",
        "SELECT COUNT(*) FROM people HAVING COUNT(*) > 1000", "SELECT COUNT(*) FROM people LIMIT 0",
        "SELECT ROUND(COUNT(*), -3) FROM people", "SELECT AVG(age) FROM people",
    ],
)  # fmt: skip
def test_a_watch_is_of_a_count_itself(sql):
    with people() as curator:
        with pytest.raises(sf.errors.SfumatoError, match="watch"):
            curator.watch(sql, above=100, epsilon=1)
        assert curator.budget.spent.epsilon == 0


def test_a_watch_of_people_counts_in_the_steps_of_people():
    with people(unit="id", max_rows_per_unit=2) as curator:
        watch = curator.watch("SELECT COUNT(*) FROM people", above=300, epsilon=40)
        assert watch.ask("SELECT COUNT(*) FROM people WHERE age < 40") is False
        assert watch.ask("SELECT COUNT(*) FROM people WHERE age < 70") is True
        for sql in (
            "SELECT COUNT(DISTINCT id) FROM people",
            "SELECT SUM(age) FROM people",
            "SELECT city, COUNT(*) FROM people GROUP BY city",
        ):
            with pytest.raises(sf.errors.QueryError):
                curator.watch("SELECT COUNT(*) FROM people", above=3, epsilon=1).ask(sql)


def test_a_watch_of_people_is_not_asked_about_rows_that_are_people():
    """Both sensitivities are 1, but the unit differs, and so does the guarantee that was charged."""
    visits = Table("visits", None, "pid", {"pid": sf.Id()}, 1)
    polls = Table("polls", None, sf.ROW, {"score": sf.Integer(0, 9)})
    rows = {"visits": pd.DataFrame({"pid": ["a", "b"]}), "polls": pd.DataFrame({"score": [1, 2]})}
    engine = DuckDBEngine.of_tables({table.name: (table, rows[table.name]) for table in (visits, polls)})
    dataset = Dataset("clinic", [visits, polls], sf.Budget(epsilon=9))
    books = Ledger.create(None, dataset.population, Limit(dataset.budget.loss), {})
    with Curator(dataset, engine, books, engine.versions) as curator:
        watch = curator.watch("SELECT COUNT(DISTINCT pid) FROM visits", above=3, epsilon=1)
        for sql in ("SELECT COUNT(*) FROM polls", "SELECT COUNT(*) FROM visits"):
            with pytest.raises(sf.errors.QueryError, match="another kind"):
                watch.ask(sql)
        wrong = replace(watch, like=plan_count(curator.desk, "SELECT COUNT(*) FROM polls"))
        with pytest.raises(KernelFault):  # the kernel does not believe it either
            wrong.ask("SELECT COUNT(*) FROM polls")


def test_a_diagnosis_names_what_bounds_and_filters_do():
    with people(unit="id", max_rows_per_unit=1) as curator:
        found = curator.diagnose("SELECT AVG(pay) AS m FROM people WHERE age > 49", epsilon=100)
        assert found.filtered == pytest.approx(0.5, abs=0.05)
        assert found.at_bounds["pay"] == pytest.approx(
            sum(pay >= 5_000 or pay == 0 for pay in DATA["pay"]) / 600, abs=0.05
        )
        assert found.people_bounded == pytest.approx(1, abs=0.05)
        assert found.cost.epsilon == 100
        assert "WHERE drops" in str(found)
        assert curator.diagnose("SELECT AVG(pay) AS m FROM people WHERE age > 49", epsilon=100).cost.epsilon == 0
    with people() as curator:
        assert curator.diagnose("SELECT COUNT(*) FROM people", epsilon=1).people_bounded is None


def test_bounds_are_bought_among_powers_of_two():
    with people() as curator:
        bought = curator.find_bounds("wide", epsilon=20)
        assert (bought.lower, bought.upper) in {
            (0, 512),
            (0, 1024),
            (-1, 512),
            (1, 512),
            (2, 512),
            (4, 512),
            (0, 1024.0),
        } or (bought.lower <= 8 and bought.upper in (512, 1024))
        assert bought.cost.epsilon == 20
        assert curator.budget.spent.epsilon == 20
        with pytest.raises(sf.errors.SfumatoError, match="integer or a real"):
            curator.find_bounds("job")


def test_terms_in_the_question():
    with people(unit="id", max_rows_per_unit=2) as curator:
        head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) "
        rest = "job, COUNT(*) AS n FROM people GROUP BY job"
        answer = curator.ask(
            head.format("epsilon=8, delta=1e-6, max_groups_contributed=2, privacy_unit_column=id") + rest
        )
        assert answer.cost.epsilon == 8
        assert answer.cost.delta == Decimal("0.000001")
        assert {row["job"] for row in answer.rows} <= {"smith", "priest", "nurse", "hermit"}
        assert "hermit" not in {row["job"] for row in answer.rows}
        assert len(answer.rows) == 3
        assert (
            curator.ask("SELECT " + rest, epsilon=8, delta=1e-6).cached is False
        )  # it has other groups for each person
        for wrong in (
            "epsilon=1, privacy_unit_column=age",
            "epsilon=1, k_threshold=3",
            "epsilon",
            "max_groups_contributed=0",
            "max_groups_contributed=²",
            "max_groups_contributed=٣",
            "max_groups_contributed=3 4",
            "max_groups_contributed=000000100000000000",
            "epsilon=1 2",
            "epsilon=1e 2",
            "epsilon=1'0'",
            "epsilon='3'\"0\"",
            "epsilon=2$$0$$",
            "epsilon='1'.'5'",
            'epsilon=1, privacy_unit_column=""id""',
            f"epsilon=1.{'0' * 300}",
        ):
            with pytest.raises(sf.errors.QueryError):
                curator.ask(head.format(wrong) + rest)
        with pytest.raises(sf.errors.SfumatoError, match="OPTIONS"):
            curator.ask(head.format("epsilon=8") + rest, epsilon=2)


PRICED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-6) COUNT(*) AS n FROM people"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda curator: curator.ask(PRICED, margin={"n": 20}), "epsilon at 1:8, but margin decides"),
        (lambda curator: curator.plan([("SELECT COUNT(*) AS n FROM people", 9), (PRICED, 20)]), "epsilon at 1:8"),
        (lambda curator: curator.ask_all([(PRICED, 20)]), "epsilon at 1:8"),
        (lambda curator: curator.watch(PRICED, above=9, epsilon=1), "epsilon at 1:8"),
        (lambda curator: curator.diagnose(PRICED), "epsilon at 1:8"),
        (lambda curator: curator.upgrade(PRICED, epsilon=3), "must be the one in OPTIONS"),
        (lambda curator: curator.ask(PRICED, delta="1e-7"), "must be the one in OPTIONS"),
        (lambda curator: curator.rehearse(PRICED, epsilon=3), "must be the one in OPTIONS"),
    ],
)
def test_a_price_that_cannot_be_honoured_is_refused(ask, said):
    with people() as curator:
        with pytest.raises(sf.errors.SfumatoError, match=said):
            ask(curator)
        assert curator.budget.spent.epsilon == 0


def test_the_price_in_the_question_is_that_of_an_upgrade_and_of_a_rehearsal():
    with people() as curator:
        curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert curator.upgrade(PRICED).cost.epsilon == 1
        assert curator.rehearse(PRICED).cost.epsilon == 2
        assert curator.ask(PRICED, epsilon=2, delta="0.000001").cost.epsilon in (0, 2)


OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=5)"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"SELECT {OPTIONS} COUNT(*)\nFROM (SELECT {OPTIONS} age FROM people) x", "second SELECT has OPTIONS at 2:14"),
        (f"SELECT COUNT(*) FROM people UNION ALL SELECT {OPTIONS} COUNT(*) FROM people UNION ALL SELECT {OPTIONS} 1 "
         "FROM people", "second SELECT has OPTIONS at 1:"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1,\n k=3) COUNT(*) FROM people", "no option 'k' at 2:2"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM people", "OPTIONS is missing .* at 1:8"),
    ],
)  # fmt: skip
def test_a_question_has_one_price(sql, said):
    with people() as curator, pytest.raises(sf.errors.QueryError, match=said):
        curator.ask(sql)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM (SELECT {OPTIONS} age FROM people) x",
        f"WITH x AS (SELECT {OPTIONS} age FROM people)\nSELECT COUNT(*) FROM x",
    ],
)
def test_options_inside_are_the_price_of_the_whole_question(sql):
    with people() as curator:
        assert curator.ask(sql).cost.epsilon == 5


def test_with_before_the_outermost_select_keeps_its_price():
    with people() as curator:
        assert curator.ask(f"WITH x AS (SELECT age FROM people) SELECT {OPTIONS} COUNT(*) FROM x").cost.epsilon == 5


def test_a_view_has_no_price():
    table = Table("visits", None, sf.ROW, {"score": sf.Integer(0, 9)})
    views = {"priced": f"SELECT {OPTIONS} score FROM visits"}
    with pytest.raises(sf.errors.QueryError, match="The view priced has OPTIONS at 1:"):
        bind(parse("SELECT COUNT(*) FROM priced"), Dataset("clinic", [table], sf.Budget(epsilon=9), views=views))


def test_keys_that_the_data_names_come_with_what_it_takes_to_be_seen():
    with people() as curator:
        preview = curator.preview("SELECT job, COUNT(*) AS n FROM people GROUP BY job", epsilon=2)
        assert preview.cost.delta == Decimal("0.000001")  # a hundredth of the budget's
        assert preview.questions_left_by_delta == 100
        assert "the remaining δ is enough for 100 such questions" in preview.explain()
        assert "probability of 50 %" in preview.explain()
        answer = curator.ask(
            "SELECT job, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY job ORDER BY n DESC", epsilon=4
        )
        assert [row["job"] for row in answer.rows].count("hermit") == 0
        assert len(answer.rows) == 3
        assert all(abs(row["n"] - 200) < 30 and 20 < row["a"] < 80 for row in answer.rows)
        assert curator.preview("SELECT job, COUNT(*) FROM people GROUP BY job", epsilon=1).questions_left_by_delta == 99
        counted = curator.preview("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert counted.questions_left_by_delta is None
        assert "such question" not in counted.explain()
        again = curator.ask(
            "SELECT job, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY job ORDER BY n DESC", epsilon=4
        )
        assert again.cached
        assert again.rows == answer.rows
        assert again.intervals == answer.intervals
    with people(budget=sf.Budget(epsilon=3)) as curator, pytest.raises(sf.errors.SfumatoError, match="delta"):
        curator.ask("SELECT job, COUNT(*) AS n FROM people GROUP BY job", epsilon=1)


def test_choices_are_answered_and_stored():
    with people() as curator:
        asked = "MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q, MAX(age) AS top, MODE(job = 'smith') AS s"
        sql = f"SELECT city, {asked} FROM people GROUP BY city"
        answer = curator.ask(sql, epsilon=100)
        for row in answer.rows:
            assert abs(row["m"] - 49.5) < 4
            assert abs(row["q"] - 73.5) < 4
            assert abs(row["top"] - 79) < 4
            assert row["s"] is False
        assert "rows of rank" in answer.explain()
        assert not answer.intervals[0]
        again = curator.ask(sql, epsilon=100)
        assert again.cached
        assert again.rows == answer.rows
        assert curator.ask("SELECT TOP_K(city, 2) AS t FROM people", epsilon=90).rows[0]["t"] in (
            ["Rome", "Oslo"],
            ["Oslo", "Rome"],
        )


def test_no_key_at_all_is_an_answer_and_is_kept():
    """If a question failed when no value passes the threshold, an analyst could repeat it until one passes."""
    with people(unit="id", max_rows_per_unit=2) as curator:
        asked = "MEDIAN(age) AS m, MODE(city) AS c, COUNT(*) AS n, AVG(age) AS a"
        sql = f"SELECT job, {asked} FROM people WHERE job = 'hermit' GROUP BY job HAVING n > 3 LIMIT 5"
        answer = curator.ask(sql, epsilon=1, delta=1e-6)
        assert answer.rows == []
        assert curator.ask(sql, epsilon=1, delta=1e-6).cached
        assert curator.budget.spent.epsilon == 1


def test_noise_is_drawn_once_for_a_charge(monkeypatch):
    with people() as curator:
        sql = "SELECT COUNT(*) AS n FROM people WHERE age > 21"

        def fails(exact, reservation):
            raise ValueError("as it may, for some noise")

        with monkeypatch.context() as broken:
            broken.setattr("sfumato.answering.certified_plans.release", fails)
            for tries in (1, 2, 3):
                with pytest.raises(sf.errors.KernelFault, match="closed") as refused:
                    curator.ask(sql, epsilon=1)
                assert refused.value.__cause__ is refused.value.__context__ is None
                assert curator.budget.spent.epsilon == tries  # each is another charge
        assert curator.ask(sql, epsilon=1).cost.epsilon == 1
        assert curator.budget.spent.epsilon == 4
        assert curator.ask(sql, epsilon=1).cached
        assert curator.upgrade(sql, epsilon=1).cached
        assert curator.ledger().verify().ok


def test_a_failure_after_the_draw_closes_the_charge(monkeypatch):
    """Also if a later step fails: the summary of an upgrade, or storing. A second draw would let the analyst choose."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 21"

    def fails(*given, **named):
        raise ValueError("as it may, for some noise")

    def full(*given, **named):
        raise sf.errors.LedgerError("ledger-unreachable", "The ledger cannot be written: the disk is full.")

    for place, failure, ask, raised in (
        ("sfumato.answering.upgrade.Releases.summarise", fails, "upgrade", sf.errors.KernelFault),
        ("sfumato.ledger.ledger.write_answer", fails, "ask", sf.errors.SfumatoError),
        ("sfumato.ledger.ledger.Ledger.store", full, "ask", sf.errors.LedgerError),
    ):
        with people() as curator, monkeypatch.context() as broken:
            broken.setattr(place, failure)
            for tries in (1, 2):
                with pytest.raises(raised):
                    getattr(curator, ask)(sql, epsilon=1)
                assert curator.budget.spent.epsilon == tries  # each is another charge
            assert curator.ledger().open_charges() == []


def test_a_watch_draws_once_for_a_question(monkeypatch):
    sql = "SELECT COUNT(*) FROM people"
    with people() as curator:
        watch = curator.watch(sql, above=10, epsilon=1)

        def fails(*given):
            raise ValueError("as it may, for some noise")

        with monkeypatch.context() as broken:
            broken.setattr("sfumato.answering.watch.crosses", fails)
            with pytest.raises(sf.errors.KernelFault, match="closed") as refused:
                watch.ask(sql)
            assert refused.value.__cause__ is refused.value.__context__ is None
        assert curator.ledger().open_charges() == []
        with pytest.raises(sf.errors.QueryError, match="Begin another watch"):
            watch.ask(sql)
        assert curator.watch(sql, above=10, epsilon=20).ask(sql)
        assert curator.ledger().verify().ok


def test_a_watch_that_is_busy_or_finished_stays_paid():
    """Negative control: a refusal before the draw does not close the charge."""
    sql = "SELECT COUNT(*) FROM people"
    with people() as curator:
        watch = curator.watch(sql, above=10, epsilon=20)
        watch.sequence._busy.acquire()
        with pytest.raises(sf.errors.QueryError, match="one at a time"):
            watch.ask(sql)
        watch.sequence._busy.release()
        assert watch.ask(sql)
        with pytest.raises(sf.errors.QueryError, match="finished"):
            watch.ask(sql)


def test_a_workload_uses_a_stored_answer_that_is_more_precise():
    with people() as curator:
        questions = ["SELECT COUNT(*) AS n FROM people", "SELECT SUM(age) AS s FROM people"]
        fine = curator.ask_all([(questions[0], 20), (questions[1], 2000)])
        coarse = curator.ask_all([(questions[0], 40), (questions[1], 4000)])
        assert [answer.rows for answer in coarse] == [answer.rows for answer in fine]
        assert [answer.intervals for answer in coarse] == [answer.intervals for answer in fine]
        assert all(answer.cached and answer.cost.epsilon == 0 for answer in coarse)
        assert [answer.loss for answer in coarse] == [answer.loss for answer in fine]


def test_a_column_named_like_an_end_of_an_interval_keeps_its_name():
    with people() as curator:
        answer = curator.ask("SELECT COUNT(*) AS n, SUM(age) AS n_low FROM people", epsilon=9)
        frame = answer.to_pandas(intervals=True)
        assert list(frame.columns) == ["n", "n_low_", "n_high", "n_low", "n_low_low", "n_low_high"]
        assert frame["n_low"][0] == answer.rows[0]["n_low"]


def test_what_overflows_has_no_value():
    with people() as curator:
        for aggregate in ("SUM(age)", "AVG(age)", "SUM(age) / COUNT(*)", "VARIANCE(age)"):
            sql = f"SELECT {aggregate} * 1e99 * 1e99 * 1e99 * 1e99 AS s FROM people"
            assert curator.ask(sql, epsilon=2).rows[0]["s"] is None
            assert curator.preview(sql, epsilon=1, assume={"n": 600}).explain()
