"""The ledger's address in the catalog, and ledgers that several processes or threads create at once."""

import os
import signal
import threading
import time

import pytest
from test_first_open import COUNT, PROCESSES, folder_at

import sfumato as sf
from sfumato import folder_ledger, shared_ledgers
from sfumato.catalog.catalog_file import load_catalog
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///", "sqlite:///:memory:", ":memory:", "sqlite+pysqlite://"])
@pytest.mark.parametrize("given", [True, False])
def test_a_ledger_in_memory_is_refused_and_leaves_no_id(tmp_path, address, given):
    folder = folder_at(tmp_path / "clinic", "" if given else f'ledger = "{address}"')
    with pytest.raises(sf.errors.LedgerError) as refused:
        sf.open(folder, ledger=address if given else None)
    assert refused.value.code == "ledger-in-memory"
    assert load_catalog(folder).ledger_id is None


@pytest.mark.parametrize("address", ["sqlite:///../shared.db", "../shared.db", "~/shared.db", "sqlite:///~/shared.db"])
def test_a_path_is_seen_from_the_folder(tmp_path, address, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    elsewhere = tmp_path / "a" / "b"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    sf.open(folder_at(tmp_path / "clinic", f'ledger = "{address}"')).close()
    assert (tmp_path / "shared.db").is_file()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("no/such/x.db", "folder does not exist: .*no/such"),
        (".", "is a folder"),
        ("~nobody-here/x.db", "begins with ~"),
    ],
)
def test_a_place_that_cannot_hold_a_ledger_is_named(tmp_path, address, message):
    with pytest.raises(sf.errors.LedgerError, match=message):
        sf.open(folder_at(tmp_path / "clinic", f'ledger = "{address}"'))


def test_a_ledger_that_another_dataset_began_meanwhile_is_joined(tmp_path, monkeypatch):
    one, two = (folder_at(tmp_path / name, 'ledger = "../shared.db"') for name in ("one", "two"))
    looked = []

    def begun_by_another(address, look=folder_ledger.Ledger.read_identity):
        found = look(address)
        if not looked:
            looked.append(found)
            sf.open(one).close()
        return found

    monkeypatch.setattr(folder_ledger.Ledger, "read_identity", begun_by_another)
    sf.open(two).close()
    assert looked == [None]
    assert load_catalog(one).ledger_id == load_catalog(two).ledger_id


def ask_once(folder, about):
    with sf.open(folder) as clinic:
        clinic.ask(f"{COUNT} WHERE age < {about}", epsilon="0.125")


def test_folders_that_share_a_ledger_are_first_opened_at_once(tmp_path):
    folders = [folder_at(tmp_path / name, 'ledger = "../shared.db"') for name in ("one", "two", "three")]
    started = [PROCESSES.Process(target=ask_once, args=(folder, i + 1)) for i, folder in enumerate(folders * 2)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0] * 6
    with sf.open(folders[0]) as clinic:
        assert float(clinic.budget.spent.epsilon) == 6 * 0.125


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_waits_for_a_thread_that_makes_a_shared_ledger(monkeypatch):
    """A thread is writing while the process forks. The child must be able to create its own ledger."""
    inside, made = threading.Event(), shared_ledgers.Ledger.create

    def slowly(*arguments):
        inside.set()
        time.sleep(0.5)
        return made(*arguments)

    monkeypatch.setattr(shared_ledgers.Ledger, "create", slowly)
    thread = threading.Thread(target=shared, args=("made in a thread",))
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a hang ends the child
        code = 1
        try:
            shared("made in a child")
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    thread.join()
    assert status == 0


def shared(population):
    return shared_ledgers.open_shared_ledger(population, PureDP(1), {}, Neighbours.ADD_REMOVE)


@pytest.mark.parametrize("arguments", [(None,), (5,), ("", None), ("FOLDER", 5), ("FOLDER", "x"), ("\ud800", None)])
def test_what_set_budget_cannot_take_is_refused_by_name(tmp_path, arguments):
    folder = folder_at(tmp_path / "clinic", pinned=False)
    with pytest.raises(sf.errors.InvalidParameter):
        sf.set_budget(*(folder if argument == "FOLDER" else argument for argument in arguments))


@pytest.mark.parametrize("head", [5, b"x", (1, 2, 3), (1, None), ("x", 1), (10**30, "a"), (0, "a"), [1, "a"], "\ud800"])
def test_an_expected_head_that_is_none_is_refused_by_name(tmp_path, head):
    folder = folder_at(tmp_path / "clinic")
    sf.open(folder).close()
    with pytest.raises(sf.errors.InvalidParameter, match="expected_head"):
        sf.open(folder, expected_head=head)


def test_a_ledger_that_is_cut_short_or_empty_is_to_be_restored(tmp_path):
    folder = folder_at(tmp_path / "clinic")
    with sf.open(folder) as clinic:
        clinic.ask(COUNT, epsilon=1)
    for length in (5000, 0):
        os.truncate(folder / "ledger.db", length)
        with pytest.raises(sf.errors.LedgerError) as refused:
            sf.open(folder)
        assert "sfumato ledger restore" in refused.value.hint


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_watch_in_a_fork_is_refused_in_words(tmp_path):
    with sf.open(folder_at(tmp_path / "clinic")) as clinic:
        watch = clinic.watch(COUNT, above=100, epsilon=1)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            code = 1
            try:
                watch.ask(COUNT)
            except sf.errors.LedgerError as error:
                code = 0 if "process that began it" in error.message else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert watch.ask(COUNT)
