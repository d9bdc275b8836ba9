"""If an error or an interrupt comes after the noise was drawn, the charge is closed, and the error says so."""

import pytest
from protected import protect

import sfumato as sf
from sfumato.answering import receipt
from sfumato.ledger.ledger import Ledger

SQL = "SELECT COUNT(*) AS n FROM people"


def fail_with(error):
    def fail(*given, **named):
        raise error

    return fail


def no_ledger():
    return sf.errors.LedgerError("ledger-unreachable", "The ledger cannot be written: the disk is full.", "Make room.")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_closes_the_charge_and_is_raised_as_it_is(monkeypatch, interrupt):
    with protect() as people:
        error = interrupt()
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "store", fail_with(error))
            with pytest.raises(interrupt) as raised:
                people.ask(SQL, epsilon="0.1")
        assert raised.value is error
        assert error.__notes__ == [receipt.CLOSED]
        assert people.ledger().open_charges() == []
        assert str(people.ask(SQL, epsilon="0.1").cost.epsilon) == "0.1"
        assert str(people.budget.spent.epsilon) == "0.2"


def test_an_interrupt_after_the_answer_was_stored_loses_nothing(monkeypatch):
    """Negative control: such a charge has its answer, and is not paid again."""
    store = Ledger.store

    def store_then_stop(*given):
        store(*given)
        raise KeyboardInterrupt

    with protect() as people:
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "store", store_then_stop)
            with pytest.raises(KeyboardInterrupt) as raised:
                people.ask(SQL, epsilon="0.1")
        assert raised.value.__notes__ == [receipt.STORED]
        assert people.ask(SQL, epsilon="0.1").cached


def test_an_interrupt_before_the_draw_leaves_the_charge_open(monkeypatch):
    """Negative control: nothing was drawn, so the charge is resumed at no further cost."""
    with protect() as people:
        with monkeypatch.context() as broken:
            broken.setattr(type(people.desk.engine), "aggregate", fail_with(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                people.ask(SQL, epsilon="0.1")
        assert len(people.ledger().open_charges()) == 1
        assert people.ask(SQL, epsilon="0.1").cost.epsilon == 0
        assert str(people.budget.spent.epsilon) == "0.1"


@pytest.mark.parametrize(
    ("error", "raised"),
    [(no_ledger(), sf.errors.LedgerError), (ValueError(), sf.errors.KernelFault), (KeyboardInterrupt(), None)],
)
@pytest.mark.parametrize(("void_fails", "said"), [(False, receipt.CLOSED), (True, receipt.LEFT_OPEN)])
def test_an_error_says_what_became_of_the_charge(monkeypatch, error, raised, void_fails, said):
    with protect() as people, monkeypatch.context() as broken:
        broken.setattr(Ledger, "store", fail_with(error))
        if void_fails:
            broken.setattr(Ledger, "void", fail_with(no_ledger()))
        with pytest.raises(raised or KeyboardInterrupt) as found:
            people.ask(SQL, epsilon=1)
        assert said in " ".join([str(found.value), *getattr(found.value, "__notes__", [])])
        assert len(people.ledger().open_charges()) == int(void_fails)
        if isinstance(found.value, sf.errors.LedgerError):
            assert found.value.code == "ledger-unreachable"
            assert "Make room." in str(found.value)


def test_an_interrupted_watch_is_over_and_has_not_finished(monkeypatch):
    with protect(sf.Budget(epsilon=100)) as people:
        watch = people.watch(SQL, above=5, epsilon=20)
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "store", fail_with(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                watch.ask(SQL)
        assert not watch.finished, "its True was not stored"
        assert people.ledger().open_charges() == []
        with pytest.raises(sf.errors.QueryError, match="Begin another watch"):
            watch.ask(SQL)
        other = people.watch(SQL, above=5, epsilon=20)
        assert other.ask(SQL)
        assert other.finished


def delete_ledger(path, monkeypatch):
    path.unlink()


def fill_disk(path, monkeypatch):
    monkeypatch.setattr("sfumato.ledger.database.has_room", lambda path: False)


@pytest.mark.parametrize("break_ledger", [delete_ledger, fill_disk])
def test_a_watch_refuses_alike_whatever_it_would_answer(tmp_path, monkeypatch, break_ledger):
    """Only True is stored. If only storing failed, a failure would mean True."""
    path = tmp_path / "books.db"
    with protect(sf.Budget(epsilon=100), ledger=path) as people:
        watches = [people.watch(SQL, above=above, epsilon=20) for above in (0, 1_000_000)]
        assert not people.watch(SQL, above=1_000_000, epsilon=20).ask(SQL), "negative control: it could be written"
        with monkeypatch.context() as broken:
            break_ledger(path, broken)
            refused = []
            for watch in watches:
                with pytest.raises(sf.errors.LedgerError) as error:
                    watch.ask(SQL)
                refused.append(str(error.value))
                assert not watch.finished
                assert watch.sequence._bar is None, "nothing was drawn"
        assert len(set(refused)) == 1
        if path.exists():
            assert [watch.ask(SQL) for watch in watches] == [True, False]
