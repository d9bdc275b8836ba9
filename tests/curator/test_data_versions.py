"""Versions of data: new data never gets old answers, and an open curator notices `prepare`."""

import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from protected import COLUMNS, clinic, protect

import sfumato as sf
from sfumato.answering.current_data import CurrentData, read_stamp
from sfumato.errors import CatalogError, LedgerError

COUNT = "SELECT COUNT(*) AS n FROM people"
CATALOG = """
[dataset]
name = "clinic"
[budget]
epsilon = "1000"
[tables.people]
source = "people.csv"
unit = "row"
columns.age = { type = "integer", lower = 0, upper = 120, nullable = false }
"""
PREPARE = "import sys; from sfumato.cli.main import app; app(['-C', sys.argv[1], 'prepare'])"


def of_frame(frame, **options):
    settings = {"unit": "person_id", "max_rows_per_unit": 2, "max_groups_per_unit": 2, "columns": COLUMNS} | options
    return sf.protect(frame, name="people", budget=sf.Budget(epsilon=3), **settings)


def changed(frame):
    other = frame.copy()
    other.loc[0, "age"] += 1
    return other


@pytest.mark.parametrize(
    "change",
    [
        changed,
        lambda frame: frame.iloc[1:],
        lambda frame: pd.concat([frame, frame.iloc[:1]]),
        lambda frame: frame.assign(person_id=["p0", "p1", *frame["person_id"][2:]]),
        lambda frame: frame.assign(income=[np.nan, *frame["income"][1:]]),
    ],
)
def test_new_data_never_gets_old_answers(tmp_path, change):
    place = tmp_path / "ledger.db"
    with of_frame(clinic(), ledger=place) as people:
        old = people.ask(COUNT, epsilon=1)
    with of_frame(change(clinic()), ledger=place) as people:
        assert not people.ask(COUNT, epsilon=1).cached
    with of_frame(clinic(), ledger=place) as people:
        assert people.ask(COUNT, epsilon=1).rows == old.rows, "the old data has its answer still"


def test_the_same_explicit_version_does_not_reuse_answers_of_other_data(tmp_path):
    place = tmp_path / "ledger.db"
    with of_frame(clinic(), ledger=place, version="2026") as people:
        people.ask(COUNT, epsilon=1)
    with of_frame(changed(clinic()), ledger=place, version="2026") as people:
        assert not people.ask(COUNT, epsilon=1).cached
    with of_frame(clinic(), ledger=place, version="2027") as people:
        assert not people.ask(COUNT, epsilon=1).cached, "and a new version is new, whatever the data"


def test_the_order_of_rows_and_the_kind_of_frame_do_not_make_a_version(tmp_path):
    place = tmp_path / "ledger.db"
    with of_frame(clinic(), ledger=place) as people:
        people.ask(COUNT, epsilon=1)
    for same in (clinic().iloc[::-1], clinic().sample(frac=1, random_state=1)):
        with of_frame(same, ledger=place) as people:
            assert people.ask(COUNT, epsilon=1).cached


def test_a_version_says_nothing_without_the_key(tmp_path):
    versions = set()
    for number in range(3):  # the same data beside three ledgers
        with of_frame(clinic(), ledger=tmp_path / f"{number}.db") as people:
            versions.add(people.versions["people"])
            assert (tmp_path / f"{number}.db.key").stat().st_mode & 0o777 == 0o600
    assert len(versions) == 3


def test_values_that_meet_in_a_row_are_told_apart(tmp_path):
    pairs = [("ab", "c"), ("a", "bc"), ("x", "1:y"), ("x1:y", None), ("-", "x"), (None, "x"), ("x", "-"), ("x", None)]
    frames = [pd.DataFrame({"a": [one], "b": [two]}) for one, two in pairs]
    versions = set()
    for frame in frames:
        with sf.protect(
            frame, name="t", unit=sf.ROW, columns={"a": sf.Text(), "b": sf.Text()}, budget=sf.Budget(epsilon=1),
            ledger=tmp_path / "ledger.db",
        ) as table:  # fmt: skip
            versions.add(table.versions["t"])
    assert len(versions) == len(frames)


def folder_of(tmp_path, rows):
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "people.csv").write_text("age\n" + "30\n" * rows)
    return tmp_path


def prepare_in_another_process(folder):
    subprocess.run([sys.executable, "-c", PREPARE, str(folder)], check=True, capture_output=True, timeout=120)


def test_an_open_curator_notices_prepare(tmp_path):
    folder = folder_of(tmp_path, 1000)
    with sf.open(folder) as people:
        before = people.ask(COUNT, epsilon=5)
        (folder / "people.csv").write_text("age\n" + "30\n" * 5000)
        assert people.ask(COUNT, epsilon=5).cached, "what is not prepared is not seen"
        prepare_in_another_process(folder)
        assert not people.preview(COUNT, epsilon=5).cached
        after = people.ask(COUNT, epsilon=5)
        assert not after.cached
        assert after.rows[0]["n"] > before.rows[0]["n"] + 3000
        assert people.upgrade(COUNT, epsilon=6).rows[0]["n"] > 4000
        assert people.ask_all([(COUNT, 3)])[0].rows[0]["n"] > 4000


def test_an_open_curator_refuses_data_that_another_catalog_prepared(tmp_path):
    folder = folder_of(tmp_path, 10)
    with sf.open(folder) as people:
        people.ask(COUNT, epsilon=1)
        catalog = (folder / "catalog.toml").read_text()
        (folder / "catalog.toml").write_text(catalog.replace("upper = 120", "upper = 90"))
        prepare_in_another_process(folder)
        spent = people.budget.spent
        for _ in range(2):
            with pytest.raises(CatalogError, match="prepared again") as refused:
                people.ask(COUNT, epsilon=2)
            assert "Open the folder again" in str(refused.value)
        assert people.budget.spent == spent
    with sf.open(folder) as people:
        assert people.ask(COUNT, epsilon=2).rows


def test_data_is_replaced_only_between_questions(tmp_path):
    path, reopened = tmp_path / "snapshot", []
    path.write_text("old")
    current = CurrentData(path, read_stamp(path), lambda: reopened.append(True))
    inside, leave, done = threading.Event(), threading.Event(), []

    def long_question():
        with current.asking():
            inside.set()
            leave.wait(30)
            done.append(list(reopened))

    def next_question():
        with current.asking(), current.asking():  # a part of a question is no other question
            done.append(list(reopened))

    first, second = threading.Thread(target=long_question), threading.Thread(target=next_question)
    first.start()
    assert inside.wait(30)
    path.write_text("newer")
    second.start()
    second.join(0.3)
    assert second.is_alive(), "it waits for the question that reads the old data"
    leave.set()
    first.join(30)
    second.join(30)
    assert done == [[], [True]]


def test_questions_go_on_while_data_is_prepared(tmp_path):
    folder = folder_of(tmp_path, 100)
    with sf.open(folder) as people:
        failed, done = [], threading.Event()

        def ask(first):
            for number in range(first, first + 1000):
                if done.is_set():
                    return
                try:
                    people.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {number} / 100", epsilon="0.01")
                except Exception as error:
                    failed.append(error)

        threads = [threading.Thread(target=ask, args=(10_000 * number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        (folder / "people.csv").write_text("age\n" + "30\n" * 200)
        prepare_in_another_process(folder)
        done.set()
        for thread in threads:
            thread.join(timeout=60)
        assert failed == []
        people.preview(COUNT, epsilon=1)
        with sf.open(folder) as other:
            assert dict(people.versions) == dict(other.versions)


def test_one_population_has_one_budget_in_a_process():
    with protect(population="class of 26") as one, protect(population="class of 26", unit=sf.ROW) as two:
        one.ask(COUNT, epsilon=1)
        two.ask("SELECT COUNT(*) AS n FROM people WHERE age > 30", epsilon="1.5")
        assert one.budget.spent.epsilon == two.budget.spent.epsilon == 2.5
        with pytest.raises(sf.errors.BudgetExceeded):
            one.ask("SELECT COUNT(*) AS n FROM people WHERE age > 31", epsilon=1)
    with protect(population="class of 26") as again:
        assert again.budget.remaining.epsilon == 0.5, "closing forgets nothing"
        assert again.ask(COUNT, epsilon=1).cached, "the same data has its answers"


def test_a_closed_curator_charges_nothing(tmp_path):
    for options in ({"population": "class of 25"}, {}, {"ledger": tmp_path / "ledger.db"}):
        people = protect(**options)
        people.close()
        for ask in (people.ask, people.preview, people.upgrade):
            with pytest.raises(sf.errors.InvalidParameter, match="must be open"):
                ask(COUNT, epsilon=1)
    with protect(population="class of 25") as people:
        assert people.budget.spent.epsilon == 0


def test_a_population_with_another_budget_is_refused():
    protect(population="class of 27").close()
    for options in ({"budget": sf.Budget(epsilon=4)}, {"analysts": {"ann": sf.Budget(epsilon=1)}}):
        with pytest.raises(LedgerError, match="another budget") as refused:
            protect(population="class of 27", **options)
        assert "Give the same budget" in str(refused.value)
    with pytest.raises(LedgerError, match="spelled differently"):
        protect(population="Class of 27")


def test_other_data_about_one_population_does_not_get_its_answers():
    with (
        of_frame(clinic(), population="class of 28") as one,
        of_frame(changed(clinic()), population="class of 28") as two,
    ):
        one.ask(COUNT, epsilon=1)
        assert not two.ask(COUNT, epsilon=1).cached


def test_populations_that_are_not_named_are_apart():
    with protect() as one, protect() as two:
        one.ask(COUNT, epsilon=1)
        assert two.budget.spent.epsilon == 0
