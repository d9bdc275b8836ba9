import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from protected import clinic, protect
from scipy import stats

import sfumato as sf
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidParameter, KernelFault, MissingBounds

FALSE_ALARM = 1e-6
GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY city"


def test_an_answer_has_rows_intervals_a_price_and_what_is_left(people):
    answer = people.ask(GROUPED, epsilon=0.5)
    assert answer.columns == ("city", "n", "age")
    assert [row["city"] for row in answer.rows] == ["Rome", "Oslo", "Lima", "Bonn"]  # declared keys, empty ones too
    assert all(isinstance(row["n"], int) and isinstance(row["age"], float) for row in answer.rows)
    assert all(0 <= row["age"] <= 120 for row in answer.rows)
    assert all(low <= high for row in answer.intervals for low, high in row.values())
    assert (float(answer.cost.epsilon), float(answer.remaining.epsilon)) == (0.5, 2.5)
    assert not answer.cached


def test_the_same_question_again_is_free(people):
    first = people.ask(GROUPED, epsilon=0.5)
    for sql in (GROUPED, "select City, count(*) AS n, avg(AGE) as age from PEOPLE group by 1"):
        again = people.ask(sql, epsilon=0.5)
        assert again.cached
        assert [list(row.values()) for row in again.rows] == [list(row.values()) for row in first.rows]
        assert float(again.cost.epsilon) == 0
    assert people.ask(GROUPED, epsilon=0.1).cached  # a worse answer is not better paid for
    assert not people.ask(GROUPED, epsilon=0.6).cached
    assert float(people.budget.spent.epsilon) == pytest.approx(1.1)


def test_post_processing_is_free(people):
    people.ask("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=1)
    for more in ("ORDER BY n DESC", "HAVING COUNT(*) > 100", "LIMIT 1", "ORDER BY city LIMIT 2"):
        answer = people.ask(f"SELECT city, COUNT(*) AS n FROM people GROUP BY city {more}", epsilon=1)
        assert answer.cached
    ordered = people.ask("SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2", epsilon=1)
    assert len(ordered.rows) == 2
    assert ordered.rows[0]["n"] >= ordered.rows[1]["n"]


def test_answers_are_near_the_truth():
    truth = clinic()
    with protect(sf.Budget(epsilon=10_000)) as people:
        answer = people.ask(
            "SELECT COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a, STDDEV(age) AS d, VARIANCE(income) AS v, "
            "COUNT(DISTINCT person_id) AS p, SUM(income) / COUNT(*) AS r "
            "FROM people WHERE city = 'Rome' AND NOT smoker",
            epsilon=3000,
        )
    kept = truth[(truth.city == "Rome") & ~truth.smoker]
    row = answer.rows[0]
    assert row["n"] == len(kept)
    assert row["s"] == pytest.approx(kept.income.sum(), rel=1e-3)
    assert row["a"] == pytest.approx(kept.age.mean(), rel=1e-2)
    assert row["d"] == pytest.approx(kept.age.std(), rel=1e-2)
    assert row["v"] == pytest.approx(kept.income.var(), rel=1e-2)
    assert row["p"] == kept.person_id.nunique()
    assert row["r"] == pytest.approx(kept.income.mean(), rel=1e-2)


@pytest.mark.parametrize("unit", ["person_id", sf.ROW])
@pytest.mark.parametrize(
    "sql", ["COUNT(*) AS x", "SUM(income) AS x", "AVG(age) AS x", "STDDEV(age) AS x", "SUM(age) / COUNT(*) AS x"]
)
def test_intervals_cover_the_truth_as_often_as_they_say(unit, sql):
    """Asked at many epsilons, so that no answer is a stored one: the intervals contain the value without noise."""
    times = 25
    with protect(sf.Budget(epsilon=10**6), unit=unit) as people:
        exact = people.ask(f"SELECT {sql} FROM people", epsilon=1000 if unit is sf.ROW else 10**5).rows[0]["x"]
    inside = 0
    for _ in range(times):
        with protect(sf.Budget(epsilon=10), unit=unit) as people:
            (ends,) = people.ask(f"SELECT {sql} FROM people", epsilon=2, confidence="0.9").intervals
        low, high = ends["x"]
        inside += low - 1e-6 * abs(low) - 0.01 <= exact <= high + 1e-6 * abs(high) + 0.01
    assert stats.binomtest(inside, times, 0.9, "less").pvalue > FALSE_ALARM


def test_a_refusal_says_what_is_left_and_spends_nothing():
    people = protect(unit=sf.ROW)
    people.ask("SELECT COUNT(*) FROM people", epsilon="2.9")
    with pytest.raises(BudgetExceeded) as caught:
        people.ask("SELECT COUNT(*) FROM people WHERE age > 3", epsilon="0.2")
    assert "0.1" in str(caught.value)
    assert float(people.budget.remaining.epsilon) == pytest.approx(0.1)
    people.ask("SELECT COUNT(*) FROM people WHERE age > 3", epsilon="0.1")
    assert float(people.budget.remaining.epsilon) == 0
    with pytest.raises(BudgetExceeded):
        people.ask("SELECT COUNT(*) FROM people WHERE age > 4", epsilon="1e-17")
    people.close()


def test_ten_times_a_tenth_is_one():
    with protect(sf.Budget(epsilon=1)) as people:
        for age in range(10):
            people.ask(f"SELECT COUNT(*) FROM people WHERE age > {age}", epsilon=0.1)
        assert float(people.budget.remaining.epsilon) == 0


@pytest.mark.parametrize(
    "epsilon", [5e-324, 1e-50, 1e308, 10**400, True, float("nan"), 0, -1, "x", None], ids=lambda e: str(e)[:8]
)
def test_bad_epsilons_are_refused_and_cost_nothing(people, epsilon):
    with pytest.raises(InvalidParameter):
        people.ask("SELECT COUNT(*) FROM people", epsilon=epsilon)
    assert float(people.budget.spent.epsilon) == 0


def test_margin_finds_the_least_epsilon():
    with protect(sf.Budget(epsilon=100), unit=sf.ROW) as people:
        answer = people.ask("SELECT COUNT(*) AS n FROM people", margin={"n": 20}, confidence="0.95")
        assert float(answer.cost.epsilon) == pytest.approx(math.log(20) / 20, rel=0.1)
        other = "SELECT COUNT(*) AS n FROM people WHERE age > 30"  # of which no answer is stored
        preview = people.preview(other, epsilon=answer.cost.epsilon)
        assert preview.margins["n"] <= 20
        less = people.preview(other, epsilon=float(answer.cost.epsilon) * 0.98)
        assert less.margins["n"] > 20
        with pytest.raises(InvalidParameter, match="margin"):
            people.ask("SELECT COUNT(*) AS n FROM people", margin={"m": 20})
        with pytest.raises(
            MissingBounds, match=r"private count\. Assume one: assume=\{'n': 500\}, or --assume n=500\."
        ):
            people.ask("SELECT AVG(age) AS a FROM people", margin={"a": 1})


def test_a_margin_of_an_average_is_for_an_assumed_count():
    sql = "SELECT AVG(age) AS a FROM people"
    with protect(sf.Budget(epsilon=100), unit=sf.ROW) as people:
        few = people.preview(sql, margin={"a": 2}, assume={"n": 100})
        many = people.preview(sql, margin={"a": 2}, assume={"n": 1_000})
        assert few.margins["a"] <= 2
        assert many.margins["a"] <= 2
        assert float(few.cost.epsilon) == pytest.approx(10 * float(many.cost.epsilon), rel=0.1)
        less = people.preview(sql, float(many.cost.epsilon) * 0.98, assume={"n": 1_000})
        assert less.margins["a"] > 2
        assert people.ask(sql, margin={"a": 2}, assume={"n": 1_000}).cost == many.cost
        assert '"assumed_rows":1000' in people.ledger().entries()[-2].question.replace(" ", "")
        with pytest.raises(InvalidParameter, match="assume must come with a margin"):
            people.ask(sql, epsilon=1, assume={"n": 1_000})
        with pytest.raises(InvalidParameter, match="margin must be given alone"):
            people.preview(sql, epsilon=1, margin={"a": 2})


def test_preview_reads_nothing_and_costs_nothing(people, monkeypatch):
    monkeypatch.setattr(people, "desk", replace(people.desk, engine=None))
    preview = people.preview(GROUPED, epsilon=0.5)
    assert float(preview.cost.epsilon) == 0.5
    assert preview.margins["n"] > 0
    assert preview.margins["age"] is None
    assert "private count" in preview.reasons["age"]
    assumed = people.preview(GROUPED, epsilon=0.5, assume={"n": 500})
    assert 0 < assumed.margins["age"] < 60
    assert people.preview(GROUPED, epsilon=0.5, assume={"n": 5000}).margins["age"] < assumed.margins["age"]
    assert preview.fits
    assert not people.preview(GROUPED, epsilon=5).fits
    assert ": sensitivity " in preview.explain()
    assert float(people.budget.spent.epsilon) == 0


def test_the_charge_comes_before_the_data(people, monkeypatch):
    class Broken:
        def check(self, plan):
            if "WHERE" in asked:
                raise KernelFault("The engine cannot run this plan.")

        def aggregate(self, plan):
            raise EngineFailed

    engine, asked = people.engine, ["WHERE"]
    monkeypatch.setattr(people, "desk", replace(people.desk, engine=Broken()))
    with pytest.raises(KernelFault):  # what can be known without data is known before the charge
        people.ask("SELECT COUNT(*) FROM people", epsilon=1)
    assert float(people.budget.spent.epsilon) == 0
    asked.clear()
    with pytest.raises(EngineFailed) as caught:
        people.ask("SELECT COUNT(*) FROM people", epsilon=1)
    assert float(people.budget.spent.epsilon) == 1
    monkeypatch.setattr(people, "desk", replace(people.desk, engine=engine))
    resumed = people.ask("SELECT COUNT(*) FROM people", epsilon=1)
    assert float(people.budget.spent.epsilon) == 1  # resumed, not paid again
    assert resumed.rows
    assert "600" not in str(caught.value)


def test_zcdp_accounting():
    with protect(sf.Budget(rho="0.5", accounting="zcdp")) as people:
        gaussian = people.ask("SELECT COUNT(*) AS n FROM people", rho="0.1")
        assert float(gaussian.cost.rho) == 0.1
        assert "Gaussian" in gaussian.explain()
        converted = people.ask("SELECT COUNT(*) AS n FROM people WHERE age > 30", epsilon="0.5")
        assert "discrete Gaussian" in converted.explain()  # smaller than Laplace noise, at the rho of epsilon
        assert float(people.budget.spent.rho) == pytest.approx(0.1 + 0.5 * math.tanh(0.25))
        chosen = people.ask("SELECT MEDIAN(age) AS a, COUNT(*) AS n FROM people", epsilon="0.2")
        assert "permute-and-flip" in chosen.explain()
        assert float(people.budget.spent.rho) == pytest.approx(0.1 + 0.5 * math.tanh(0.25) + 0.2 * math.tanh(0.05))


@pytest.mark.parametrize(
    ("asked", "mechanism"),
    [
        ("MEDIAN(age)", "permute-and-flip"),
        ("MODE(city)", "permute-and-flip"),
        ("TOP_K(city, 2)", "discrete Laplace"),
        ("MAX(age)", "noisy-threshold"),
    ],
)
def test_an_explanation_names_the_mechanism_of_a_choice(asked, mechanism):
    with protect(sf.Budget(epsilon=1)) as people:
        assert f"; {mechanism} mechanism, scale " in people.ask(f"SELECT {asked} AS x FROM people", epsilon=1).explain()


def test_sub_limits_of_analysts():
    with protect(sf.Budget(epsilon=3), analysts={"ann": sf.Budget(epsilon="0.5")}) as people:
        people.ask("SELECT COUNT(*) FROM people", epsilon="0.5", analyst="ann")
        with pytest.raises(BudgetExceeded):
            people.ask("SELECT COUNT(*) FROM people WHERE age > 1", epsilon="0.5", analyst="ann")


def test_whether_a_row_exists_never_changes_the_kind_of_outcome():
    """Same columns, number of rows, types and NULLs with and without a record; empty data too."""
    shapes = set()
    for rows in (0, 1, 2, 50):
        data = clinic().head(rows)
        with sf.protect(
            data, name="t", unit=sf.ROW, budget=sf.Budget(epsilon=10),
            columns={"age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"]), "income": sf.Real(0, 1e5)},
        ) as curator:  # fmt: skip
            sql = "SELECT city, COUNT(*) AS n, AVG(age) AS a, STDDEV(income) AS d, SUM(age) AS s FROM t GROUP BY city"
            answer = curator.ask(sql, epsilon=1)
        shapes.add(
            (answer.columns, len(answer.rows), tuple(type(value) for row in answer.rows for value in row.values()))
        )
    assert len(shapes) == 1


def test_noise_differs_between_askers():
    answers = set()
    for _ in range(8):
        with protect() as people:
            answers.add(tuple(row["n"] for row in people.ask(GROUPED, epsilon=0.5).rows))
    assert len(answers) == 8


def test_frames_files_and_arrow_are_one(tmp_path):
    import polars
    import pyarrow

    data = clinic()
    data.to_csv(tmp_path / "people.csv", index=False)
    data.to_parquet(tmp_path / "people.parquet")
    columns = {"person_id": sf.Id(), "age": sf.Integer(0, 120), "income": sf.Real(0, 100_000), "smoker": sf.Boolean()}
    found = []
    frames = [data, polars.from_pandas(data), pyarrow.Table.from_pandas(data)]
    for source in (*frames, tmp_path / "people.csv", str(tmp_path / "people.parquet")):
        with sf.protect(
            source, name="t", unit="person_id", columns=columns, budget=sf.Budget(epsilon=10**6), max_rows_per_unit=2
        ) as curator:
            answer = curator.ask(
                "SELECT COUNT(*) AS n, SUM(income) AS s FROM t WHERE NOT smoker AND age < 70", epsilon=10**5
            )
        found.append((answer.rows[0]["n"], round(answer.rows[0]["s"], -3)))
    assert len(set(found)) == 1


def test_tables_plots_and_words(people, tmp_path):
    answer = people.ask(GROUPED, epsilon=1)
    frame = answer.to_pandas(intervals=True)
    assert list(frame.columns) == ["city", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    assert answer.to_polars().columns == ["city", "n", "age"]
    assert answer.to_arrow(intervals=True).num_rows == 4
    assert "<table>" in answer._repr_html_()
    assert "Contribution bound" in answer.explain()
    chart = answer.plot("age")
    chart.save(tmp_path / "age.svg")
    assert (tmp_path / "age.svg").read_text().startswith("<svg")
    chart.save(tmp_path / "age.png")
    assert (tmp_path / "age.png").stat().st_size > 1000
    with pytest.raises(InvalidParameter, match="column"):
        answer.plot("city")
    first = ["columns", "rows", "intervals", "cost", "remaining", "entry", "cached"]
    assert list(answer.to_dict()) == [*first, "warnings", "loss", "one_person_changes", "confidence", "interval_note"]


def test_a_durable_ledger_is_found_again_and_never_begun_anew(tmp_path):
    path = tmp_path / "ledger.db"
    with protect(sf.Budget(epsilon=1), ledger=path) as people:
        people.ask("SELECT COUNT(*) FROM people", epsilon=1)
    with protect(sf.Budget(epsilon=1), ledger=path) as people:
        assert float(people.budget.remaining.epsilon) == 0
        assert people.ask("SELECT COUNT(*) FROM people", epsilon=1).cached
    path.unlink()
    for leftover in itertools.chain(tmp_path.glob("ledger.db-*")):
        leftover.unlink()
    with pytest.raises(sf.errors.LedgerError):
        protect(sf.Budget(epsilon=1), ledger=path)


def test_a_folder_is_opened_with_its_ledger(tmp_path):
    clinic().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "catalog.toml").write_text(
        """
[dataset]
name = "clinic"
population = "patients"

[budget]
epsilon = "3"

[tables.people]
source = "people.csv"
unit_column = "person_id"
max_rows_per_unit = 2
columns.person_id = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 120 }
"""
    )
    with sf.open(tmp_path) as clinic_:
        clinic_.ask("SELECT AVG(age) FROM people", epsilon=1)
    with sf.open(tmp_path) as clinic_:
        assert float(clinic_.budget.spent.epsilon) == 1
    assert "ledger_id" in (tmp_path / "catalog.toml").read_text()
    for path in tmp_path.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(sf.errors.LedgerError):
        sf.open(tmp_path)


def test_arithmetic_that_has_no_value_is_null(people):
    answer = people.ask("SELECT COUNT(*) / 0 AS x, ROUND(AVG(age), 1) AS r FROM people", epsilon=1)
    assert answer.rows[0]["x"] is None
    assert answer.rows[0]["r"] == np.round(answer.rows[0]["r"], 1)


def test_rehearsal_is_free_and_reads_nothing(people, monkeypatch):
    monkeypatch.setattr(people, "desk", replace(people.desk, engine=None))
    answer = people.rehearse(GROUPED)
    assert [row["city"] for row in answer.rows] == ["Rome", "Oslo", "Lima", "Bonn"]
    assert sum(row["n"] for row in answer.rows) == pytest.approx(1000, abs=200)
    assert people.rehearse("SELECT SUM(income) AS s FROM people", epsilon=2).rows[0]["s"] > 0
    assert float(people.budget.spent.epsilon) == 0
    assert people.ledger().head()[0] == 1  # the ledger has its opening entry only
    for shown in (repr(answer), answer._repr_html_()):
        assert "made-up rows" in shown
        assert "Nothing was spent" in shown
        assert "Left:" not in shown


def test_an_answer_is_not_a_rehearsal(people):
    answer = people.ask(GROUPED, epsilon=1)
    assert "made-up rows" not in repr(answer)
    assert "Left:" in repr(answer)


def test_the_small_print_says_what_one_person_changes():
    """The sensitivity of a count and of a choice is two rows, for every grid of weights and values."""
    with protect() as people:
        sql = "SELECT COUNT(*) AS n, MEDIAN(age) AS m, MEDIAN(income) AS i FROM people"
        said = people.ask(sql, epsilon=2).disclosure["statement"]["measurements"]
    assert {measured["kind"] for measured in said} == {"count", "choice"}
    assert [measured["one_person_changes"] for measured in said] == [2.0] * 3


def test_a_replaced_row_changes_two_bins_of_a_choice():
    """A replaced row leaves one bin and enters another: certificate, preview and explain() state the same number."""
    with protect(unit=sf.ROW, neighbours="replace-one") as people:
        answer = people.ask("SELECT MEDIAN(age) AS m, MAX(age) AS top, MODE(city) AS c FROM people", epsilon=2)
        said = answer.disclosure["statement"]["measurements"]
        assert [measured["one_person_changes"] for measured in said] == [2.0] * 3
        assert str(answer.explain()).count("sensitivity 2;") == 3


def test_the_small_print_is_signed(tmp_path):
    from sfumato.answers.disclosure import Signer, verify

    with protect(ledger=tmp_path / "ledger.db") as people:
        said = people.ask(GROUPED, epsilon=0.5).disclosure
        again = people.ask(GROUPED, epsilon=0.5).disclosure
    assert verify(said, said["public_key"])
    assert again["public_key"] == said["public_key"]
    assert said["statement"]["loss"] == {"epsilon": "0.5"}
    assert said["statement"]["family_of_four"] == {"epsilon": "2"}
    assert said["statement"]["max_rows_per_unit"] == 2
    assert "person_id" in said["statement"]["unit"]
    for part, value in (("loss", {"epsilon": "0.1"}), ("ledger_head", "0" * 64)):
        forged = {**said, "statement": {**said["statement"], part: value}}
        assert not verify(forged, said["public_key"])
    assert not verify(said, Signer().sign({})["public_key"])
    assert not verify({}, said["public_key"])
    assert (tmp_path / "ledger.db.key").stat().st_mode & 0o077 == 0
    with protect(ledger=tmp_path / "ledger.db") as people:
        assert people.ask(GROUPED, epsilon=0.5).disclosure["public_key"] == said["public_key"]


def test_a_declaration_that_changed_after_pinning_is_refused(tmp_path):
    """The snapshot is clamped and scaled under one declaration. With other bounds, the sensitivity would be wrong."""
    clinic().to_csv(tmp_path / "people.csv", index=False)
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(
        """
[dataset]
name = "clinic"
[budget]
epsilon = "3"
[tables.people]
source = "people.csv"
unit_column = "person_id"
max_rows_per_unit = 2
columns.person_id = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 120 }
"""
    )
    sf.open(tmp_path).close()
    first = catalog.read_text()
    for old, new in (("unit = 2", "unit = 1"), ("upper = 120", "upper = 10"), ("lower = 0", "lower = -1")):
        catalog.write_text(first.replace(old, new))
        with pytest.raises(sf.errors.CatalogError, match="pinned"):
            sf.open(tmp_path)
    more = (
        '[tables.more]\nsource = "people.csv"\nunit = "row"\ncolumns.age = { type = "integer", lower = 0, upper = 9 }'
    )
    catalog.write_text(f"{first}\n{more}\n")
    with pytest.raises(sf.errors.CatalogError, match="pinned"):
        sf.open(tmp_path)
    catalog.write_text(first)
    with sf.open(tmp_path) as people:
        before = people.ask("SELECT COUNT(*) FROM people", epsilon=1)
    (tmp_path / ".sfumato" / "snapshot.duckdb").unlink()
    with sf.open(tmp_path) as people:  # pinned anew: a new version, whose answers are its own
        assert not people.ask("SELECT COUNT(*) FROM people", epsilon=1).cached
        assert before.entry != people.ask("SELECT COUNT(*) FROM people", epsilon=1).entry


def test_python_and_sql_are_one_question(people):
    frame = people.where("age > 65").group_by("city").agg(n=sf.count(), age=sf.mean("age"))
    expected = frame.preview(epsilon=0.5)
    first = frame.ask(epsilon=0.5)
    sql = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people WHERE age > 65 GROUP BY city"
    again = people.ask(sql, epsilon=0.5)
    assert again.cached
    assert again.rows == first.rows
    assert expected.cost == first.cost
    assert frame.preview(epsilon=0.5).cost == again.cost
    assert "GROUP BY" in frame.sql()
    assert people.agg(p=sf.people(), t=sf.total("income"), v=sf.variance("age"), d=sf.stddev("age")).ask(epsilon=1).rows
    with pytest.raises(sf.errors.QueryError):
        people.where("1 = 1) FROM other --").agg(n=sf.count()).ask(epsilon=1)


def test_an_explanation_says_that_rows_without_a_key_are_in_no_group():
    """Plain SQL shows a group of NULL. A key that is never NULL needs no word about it."""
    cities, wards = ("Rome", "Oslo", None), ("a", "b", "a")
    data = pd.DataFrame({"id": range(9), "city": cities * 3, "ward": wards * 3})
    columns = {"id": sf.Id(), "city": sf.Category(["Rome", "Oslo"]), "ward": sf.Category(["a", "b"], nullable=False)}
    with sf.protect(data, name="t", unit="id", columns=columns, budget=sf.Budget(epsilon=1)) as curator:
        texts = {key: curator.preview(f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", epsilon=1).explain()
                 for key in ("city", "ward")}  # fmt: skip
    assert "Rows whose key is NULL are in no group." in texts["city"]
    assert "NULL" not in texts["ward"]
