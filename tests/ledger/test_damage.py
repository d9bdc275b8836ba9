"""After damage to any byte, or a fork next to busy threads: a LedgerError or the right total, and no hang."""

import os
import random
import shutil
import signal
import sqlite3
import threading
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_questions import POPULATION, ask, make_answer, make_question
from raw_ledger import tamper
from test_migration import read_dump

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerError
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.loss_sums import add_losses, fits, make_zero_loss, split_loss
from sfumato.ledger.spending import subtract_spent

LIMIT = Limit(PureDP(9))
TEXTS = ("kind", "analyst", "plan_digest", "answer_key", "loss", "budget", "spent", "analyst_spent", "payload_hash",
         "time", "previous", "hash", "payload", "question", "signature")  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(path, ledger_id, head) of a ledger with a little history."""
    path = str(tmp_path_factory.mktemp("whole") / "ledger.db")
    with Ledger.create(path, POPULATION, LIMIT, {"bob": PureDP(5)}) as ledger:
        for i in range(3):
            ask(ledger, "ann", make_question(PureDP("0.5"), f"q{i}"))
        ledger.find_stored(make_question(PureDP("0.5"), "q0"), "bob")
        return path, ledger.ledger_id, ledger.totals()


def use(path, ledger_id, expected):
    """Use every operation of a ledger. It may raise a LedgerError, but never show a wrong total."""
    try:
        with Ledger.open(path, ledger_id, POPULATION, LIMIT, {"bob": PureDP(5)}) as ledger:
            assert ledger.totals() == expected
            ledger.totals("bob"), ledger.entries(), ledger.verify(), ledger.open_charges()
            for analyst in ("ann", "bob"):
                for i in range(4):
                    ledger.fits(analyst, make_question(PureDP("0.5"), f"q{i}"))
                    ledger.find_stored(make_question(PureDP("0.5"), f"q{i}"), analyst)
                ledger.find_earlier(make_question(PureDP("0.5"), "q0").answer_key, analyst)
            ask(ledger, "ann", make_question(PureDP("0.5"), "new"))
    except LedgerError:
        pass
    try:
        with Ledger.read(path, ledger_id, POPULATION) as ledger:
            return ledger.verify()
    except LedgerError:
        return None


def in_its_place(whole, tmp_path):
    """The ledger's own file. It is restored after each damage, because a copy would be refused."""
    path, ledger_id, totals = whole
    saved = str(tmp_path / "saved")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    shutil.copyfile(path, saved)
    mark = os.path.join(os.environ["SFUMATO_HOME"], "ledgers", ledger_id, "mark")
    shutil.copyfile(mark, saved + ".mark")

    def put_back():
        for suffix in ("-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.remove(path + suffix)
        shutil.copyfile(saved, path)
        shutil.copyfile(saved + ".mark", mark)

    return path, ledger_id, totals, put_back


@pytest.mark.parametrize("column", TEXTS)
@pytest.mark.parametrize("damage", [b"\xff\xfe", b'{"epsilon":"NaN"}', b"9" * 5000], ids=["bytes", "nan", "long"])
def test_damaged_texts_are_told(whole, tmp_path, column, damage):
    path, ledger_id, totals, put_back = in_its_place(whole, tmp_path)
    try:
        for number in (2, 8):
            with closing(sqlite3.connect(path)) as connection, connection:
                statement = f"UPDATE sfumato_entries SET {column} = CAST(? AS TEXT) WHERE number = ? AND {column} <> ?"
                changed = connection.execute(statement, (damage, number, damage.decode("latin-1"))).rowcount
            found = use(path, ledger_id, totals)
            assert not changed or found is None or not found.ok
            put_back()
    finally:
        put_back()


@pytest.mark.parametrize("value", ["'text'", "x'ff'", "NULL", "-1", "1e300", "99999999999"])
@pytest.mark.parametrize("column", ["number", "about", "version"])
def test_damaged_numbers_are_told(whole, tmp_path, column, value):
    path, ledger_id, totals, put_back = in_its_place(whole, tmp_path)
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = 1")
            try:
                connection.execute(f"UPDATE sfumato_entries SET {column} = {value} WHERE number = 5")
            except sqlite3.Error:
                return
        found = use(path, ledger_id, totals)
        assert found is None or not found.ok
    finally:
        put_back()


@pytest.mark.parametrize("column", [name for name in TEXTS if name not in ("budget", "spent", "hash", "payload")])
def test_an_entry_altered_beside_the_process_that_wrote_it_is_refused(tmp_path, column):
    """The process remembers what it wrote. It must not use what it wrote in place of what is there."""
    path = str(tmp_path / "ledger.db")
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "q0"))
        ledger.totals()
        tamper(path, f"UPDATE sfumato_entries SET {column} = {column} || 'x' WHERE number = 3")
        with pytest.raises(LedgerError):
            ledger.totals()


def test_a_payload_altered_beside_the_process_that_wrote_it_is_refused(tmp_path):
    path = str(tmp_path / "ledger.db")
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "q0"))
        tamper(path, "UPDATE sfumato_entries SET payload = payload || ' ' WHERE number = 3")
        with pytest.raises(LedgerError, match="altered"):
            ledger.find_stored(make_question(PureDP("0.5"), "q0"), "ann")


def flipped(whole, tmp_path, times):
    path, ledger_id, totals, put_back = in_its_place(whole, tmp_path)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    told = 0
    try:
        for _ in range(times):
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                for _ in range(chance.choice([1, 1, 4, 100])):
                    file.seek(chance.randrange(size))
                    file.write(bytes([chance.randrange(256)]))
            found = use(path, ledger_id, totals)
            told += found is None or not found.ok
            put_back()
    finally:
        put_back()
    assert told, "no damage was told: nothing was tested"


def test_damaged_bytes_give_ledger_errors_or_the_truth(whole, tmp_path):
    flipped(whole, tmp_path, 60)


@pytest.mark.slow
def test_many_damaged_bytes_give_ledger_errors_or_the_truth(whole, tmp_path):
    flipped(whole, tmp_path, 2000)


def waited_for(child, seconds=60):
    """The exit code of a child, or None if it hangs; then it is killed."""
    import time

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_beside_busy_threads_neither_hangs_nor_fails(tmp_path):
    path = str(tmp_path / "ledger.db")
    with Ledger.create(path, POPULATION, Limit(PureDP(1000))) as ledger:
        stopping, failures = threading.Event(), []

        def work(name):
            try:
                for i in range(10_000):
                    if stopping.is_set():
                        return
                    reservation = ledger.reserve(name, make_question(PureDP("0.001"), f"{name} {i}"))
                    ledger.store(reservation, make_answer(reservation))
                    ledger.totals()
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        codes = []
        for i in range(12):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    ask(ledger, f"child {i}", make_question(PureDP("0.001"), f"child {i}"))
                    ledger.totals()
                    code = 0
                finally:
                    os._exit(code)
            codes.append(waited_for(child))
        stopping.set()
        for thread in threads:
            thread.join(60)
        assert codes == [0] * 12
        assert not failures
        assert sum(entry.analyst.startswith("child") for entry in ledger.entries() if entry.kind == "charge") == 12
        assert ledger.verify().ok


AMOUNTS = st.builds(
    lambda digits, exponent: f"{digits}e{exponent}",
    st.integers(1, 10**60 - 1).map(str),
    st.integers(-89, -30),
).filter(lambda text: 1e-30 <= float(text) <= 1e30)


@settings(max_examples=200, deadline=None)
@given(st.lists(AMOUNTS, min_size=1, max_size=40), AMOUNTS, st.sampled_from([PureDP, ZCDP]))
def test_what_is_left_can_always_be_told(amounts, limit, kind):
    """subtract_spent is exact, and never fails for sums that add_losses accepted."""
    spent, most = make_zero_loss(kind(limit)), kind(limit)
    for amount in amounts:
        spent = add_losses(spent, kind(amount))
        left = subtract_spent(most, spent)
        assert split_loss(left)[0] == max(0, split_loss(most)[0] - split_loss(spent)[0])
        assert fits(left, spent, most) == (split_loss(spent)[0] <= split_loss(most)[0])


@pytest.mark.parametrize("kind", [PureDP, ZCDP])
@pytest.mark.parametrize("amount", ["0." + "3" * 61, "0." + "3" * 3980, "1." + "1" * 70, "1e-31"])
def test_a_long_amount_is_refused_before_it_is_charged(tmp_path, kind, amount):
    limit = ZCDP(9) if kind is ZCDP else ApproxDP(9, "1e-6")
    with Ledger.create(None, POPULATION, Limit(limit)) as ledger:
        try:
            certificate = make_question(kind(amount))
        except InvalidParameter:
            return  # the kernel cannot draw noise for it
        with pytest.raises(InvalidParameter, match="at most 60 digits"):
            ledger.reserve("eve", certificate)
        assert ledger.head()[0] == 1
        assert ledger.totals().spent == make_zero_loss(limit)


def test_a_ledger_that_holds_a_long_amount_opens_and_answers(tmp_path):
    """A ledger of the first version, which could not compute what is left."""
    path, ledger_id = read_dump(tmp_path, "long_amounts")
    with Ledger.open(path, ledger_id, POPULATION, Limit(ZCDP(1)), {"eve": ZCDP("0.5")}) as ledger:
        assert ledger.verify().ok
        spent = ledger.totals().spent
        assert spent == ZCDP("3." + "3" * 58 + "4e-15"), "rounded up to 60 digits"
        assert ledger.totals("eve").remaining.rho > ZCDP("0.4999").rho
        assert ask(ledger, "ann", make_question(ZCDP("0.01"), "q1"))
        assert ask(ledger, "eve", make_question(ZCDP("0.01"), "q2"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve("ann", make_question(ZCDP(2), "q3"))
        assert ledger.verify().ok
