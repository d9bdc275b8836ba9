"""An altered, shortened, foreign or missing ledger is noticed, and the first broken entry is named."""

import json
import os
import shutil
from hashlib import sha256

import pytest
import sqlalchemy as sa
from ledger_questions import POPULATION, ask, make_plain_answer, make_question
from raw_ledger import open_raw, tamper

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger.adoption import adopt
from sfumato.ledger.entries import hash_entry
from sfumato.ledger.keyring import Keyring, find_home
from sfumato.ledger.ledger import Ledger, Limit, Verification
from sfumato.ledger.ledger_tables import ENTRIES as ENTRIES_TABLE
from sfumato.ledger.ledger_tables import HEAD

LIMIT = Limit(PureDP(9))
ENTRIES = 8  # open, then charge and answer three times, then seen


IN_A_FILE = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


@pytest.fixture
def path(place):
    return place


@pytest.fixture
def books(path):
    """(ledger_id, head) of a ledger with a little history."""
    with Ledger.create(path, POPULATION, LIMIT) as ledger:
        for i in range(3):
            ask(ledger, "ann", make_question(PureDP("0.5"), f"q{i}"))
        ledger.find_stored(make_question(PureDP("0.5"), "q0"), "bob")
        assert ledger.verify() == Verification(True, ENTRIES, None, "All entries are correct.")
        return ledger.ledger_id, ledger.head()


def audit(path, books):
    """The result of `verify` for the open file."""
    with Ledger.read(path, books[0], POPULATION) as ledger:
        return ledger.verify()


CHEAPER = """'{"epsilon":"0.1"}'"""


@pytest.mark.parametrize(
    ("statements", "broken", "reason"),
    [
        ([f"UPDATE sfumato_entries SET loss = {CHEAPER} WHERE number = 4"], 4, "Entry 4 was altered."),
        ([f"UPDATE sfumato_entries SET spent = {CHEAPER} WHERE number = 5"], 5, "Entry 5 was altered."),
        (["UPDATE sfumato_entries SET analyst = 'eve' WHERE number = 2"], 2, "Entry 2 was altered."),
        (["DELETE FROM sfumato_entries WHERE number = 4"], 4, "Entry 4 is missing."),
        (["DELETE FROM sfumato_entries WHERE number = 1"], 1, "Entry 1 is missing."),
        (["DELETE FROM sfumato_entries"], 1, "Entry 1 of the ledger is missing."),
        (["DELETE FROM sfumato_entries WHERE number > 6"], 7, "Entry 7 of the ledger is missing."),
        (
            [
                "UPDATE sfumato_entries SET number = -1 WHERE number = 4",
                "UPDATE sfumato_entries SET number = 4 WHERE number = 6",
                "UPDATE sfumato_entries SET number = 6 WHERE number = -1",
            ],
            4,
            "Entry 4 was altered.",
        ),
        (
            ["""UPDATE sfumato_entries SET payload = '{"n0":[1000]}' WHERE number = 5"""],
            5,
            "Entry 5 was altered.",
        ),
        ([f"UPDATE sfumato_head SET spent = {CHEAPER}"], 8, "Entry 8 of the ledger does not agree with the totals."),
        (["DELETE FROM sfumato_head"], 8, "The ledger has lost its totals."),
    ],
)
def test_the_first_broken_entry_is_named(path, books, statements, broken, reason):
    tamper(path, *statements)
    found = audit(path, books)
    assert (found.ok, found.first_broken, found.reason) == (False, broken, reason)
    assert found.entries < ENTRIES or broken == ENTRIES


ALL_ENTRIES = sa.select(ENTRIES_TABLE).order_by(ENTRIES_TABLE.c.number)
FIRST = sa.update(ENTRIES_TABLE).where(ENTRIES_TABLE.c.number == 1)


def read_first(connection):
    """What the first entry declares."""
    return json.loads(connection.execute(ALL_ENTRIES).mappings().first()["payload"])


def rehash(path, number, **changes):
    """Act as an attacker who can write the tables: change an entry, and forge every later hash and the head."""
    with open_raw(path) as connection:
        previous = ""
        connection.exec_driver_sql("DROP INDEX sfumato_one_answer")
        for old in connection.execute(ALL_ENTRIES).mappings().all():
            row = dict(old) | (changes if old["number"] == number else {})
            row["previous"], row["hash"] = previous, hash_entry(previous, row)
            previous = row["hash"]
            connection.execute(sa.update(ENTRIES_TABLE).where(ENTRIES_TABLE.c.number == old["number"]).values(row))
        connection.execute(sa.update(HEAD).values(hash=previous))


def forget_the_mark(books):
    """Act as an attacker who can write the mark but does not have the key."""
    os.remove(find_home() / "ledgers" / books[0] / "mark")


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (4, {"loss": '{"epsilon":"0.1"}'}),  # not what was certified
        (4, {"spent": '{"epsilon":"0.6"}'}),  # a wrong sum
        (4, {"analyst_spent": '{"epsilon":"0.6"}'}),
        (4, {"budget": '{"epsilon":"99"}'}),  # an undeclared limit
        (5, {"about": 2}),  # a second answer
        (8, {"about": 3}),  # a view of no charge
        (3, {"answer_key": "0"}),  # an answer to another question
        (8, {"kind": "gift"}),
        (8, {"loss": "not a loss"}),
    ],
)
def test_forged_hashes_do_not_hide_wrong_sums(path, books, number, changes):
    rehash(path, number, **changes)
    forget_the_mark(books)
    found = audit(path, books)
    assert (found.ok, found.first_broken) == (False, number)
    assert found.reason == f"Entry {number} breaks the ledger's rules, or its sums are wrong."


def test_forged_hashes_are_told_by_their_signatures(path, books):
    rehash(path, 2, time="2000-01-01")
    forget_the_mark(books)
    assert audit(path, books) == Verification(False, 1, 2, "Entry 2 is not signed with the ledger's key.")
    with pytest.raises(LedgerError, match="Entry 8 of the ledger is not signed with the ledger's key"):
        Ledger.open(path, books[0], POPULATION, LIMIT)


def test_forged_hashes_are_told_by_the_mark(path, books):
    rehash(path, 2, time="2000-01-01")
    assert audit(path, books).first_broken == 2
    with pytest.raises(LedgerError):
        Ledger.open(path, books[0], POPULATION, LIMIT)


def forge_the_key(path, books):
    """An attacker without the key signs everything with another key, and names that key in the first entry."""
    other = Keyring.make("another")
    with open_raw(path) as connection:
        forged = json.dumps({**read_first(connection), "keys": [[1, other.public_key]]}, sort_keys=True)
        connection.execute(FIRST.values(payload=forged))
    rehash(path, 1, payload_hash=sha256(forged.encode()).hexdigest())
    with open_raw(path) as connection:
        for row in connection.execute(ALL_ENTRIES).mappings().all():
            same = ENTRIES_TABLE.c.number == row["number"]
            connection.execute(sa.update(ENTRIES_TABLE).where(same).values(signature=other.sign(row["hash"])))


def test_another_key_is_told(path, books):
    forge_the_key(path, books)
    forget_the_mark(books)
    found = audit(path, books)
    assert (found.ok, found.reason) == (
        False,
        "The entries are signed with another key than the one that is kept here.",
    )
    with pytest.raises(LedgerError, match="The key that signs this ledger is not here"):
        Ledger.open(path, books[0], POPULATION, LIMIT)


def test_forged_hashes_are_told_by_a_head_that_was_kept(path, books):
    rehash(path, 2, time="2000-01-01")
    with pytest.raises(LedgerError, match="No entry of this ledger has the expected hash"):
        Ledger.open(path, books[0], POPULATION, LIMIT, expected_head=books[1][1])


def cut(path, last):
    """Remove the tail so that the file is consistent in itself: an older ledger."""
    tamper(
        path,
        f"DELETE FROM sfumato_entries WHERE number > {last}",
        f"DELETE FROM sfumato_releases WHERE number > {last}",
        "UPDATE sfumato_head SET (number, hash, budget, spent) = (SELECT number, hash, budget, spent"
        f" FROM sfumato_entries WHERE number = {last})",
    )


def test_a_truncated_tail_is_told_by_the_expected_head(path, books):
    cut(path, 5)
    forget_the_mark(books)
    assert audit(path, books).ok, "without the mark, nothing here can tell"
    with pytest.raises(LedgerError, match="entry 6 is missing") as refused:
        Ledger.open(path, books[0], POPULATION, LIMIT, expected_head=books[1])
    assert refused.value.code == "ledger-older"
    with pytest.raises(LedgerError, match="No entry of this ledger has the expected hash") as refused:
        Ledger.open(path, books[0], POPULATION, LIMIT, expected_head=books[1][1])
    assert refused.value.code == "ledger-older"


def test_a_truncated_tail_is_told_by_the_mark(path, books):
    """Truncation and one UPDATE of the totals: everything in the file agrees, and every signature holds."""
    cut(path, 5)
    assert audit(path, books) == Verification(
        False, 5, 6, "The ledger is older than it was: it ends before entry 8, and entry 6 is missing."
    )
    with pytest.raises(LedgerError, match="entry 6 is missing"):
        Ledger.open(path, books[0], POPULATION, LIMIT)


def test_an_honest_head_is_accepted(path, books):
    with Ledger.open(path, books[0], POPULATION, LIMIT, expected_head=books[1]) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "more"))
    with Ledger.open(path, books[0], POPULATION, LIMIT, expected_head=books[1]) as ledger:
        assert ledger.head()[0] == ENTRIES + 2
        assert ledger.verify().ok


def test_a_ledger_that_goes_back_in_time_is_noticed_while_open(path, books):
    with Ledger.open(path, books[0], POPULATION, LIMIT) as ledger:
        cut(path, 5)
        for call in (ledger.totals, ledger.head, lambda: ledger.reserve("ann", make_question(PureDP("0.5"), "x"))):
            with pytest.raises(LedgerError, match="entry 6 is missing"):
                call()
        assert ledger.verify().first_broken == 6


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("""UPDATE sfumato_entries SET payload = '{"n0":[1000]}' WHERE number = 3""", 3),
        ("UPDATE sfumato_entries SET payload = replace(payload, '8', '1') WHERE number = 2", 2),
    ],
)
def test_an_altered_answer_is_not_given_out(path, books, statement, number):
    with Ledger.open(path, books[0], POPULATION, LIMIT) as ledger:
        tamper(path, statement)
        with pytest.raises(LedgerError, match=f"Entry {number} of the ledger was altered"):
            ledger.find_stored(make_question(PureDP("0.5"), "q0"), "ann")


def test_altered_totals_buy_nothing(path, books):
    tamper(path, f"UPDATE sfumato_head SET spent = {CHEAPER}")
    with pytest.raises(LedgerError, match="does not agree with the totals"):
        Ledger.open(path, books[0], POPULATION, LIMIT)


@IN_A_FILE
def test_a_missing_ledger_is_never_made_anew(path, books):
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    for url in (path, f"sqlite:///{path}", None):
        with pytest.raises(LedgerError) as refused:
            Ledger.open(url, books[0], POPULATION, LIMIT)
        assert refused.value.code == "ledger-missing"
    assert not os.path.exists(path)
    open(path, "w").close()
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger.open(path, books[0], POPULATION, LIMIT)


@IN_A_FILE
def test_a_file_of_something_else_is_refused(path):
    with open(path, "w") as file:
        file.write("not a database, but long enough to be taken for one" * 100)
    for make in (lambda: Ledger.open(path, "0", POPULATION, LIMIT), lambda: Ledger.create(path, POPULATION, LIMIT)):
        with pytest.raises(LedgerError, match="cannot be read or written"):
            make()


def test_a_foreign_ledger_is_refused(path, books):
    for ledger_id, population in (("0" * 32, POPULATION), (books[0], "others")):
        with pytest.raises(LedgerError) as refused:
            Ledger.open(path, ledger_id, population, LIMIT)
        assert refused.value.code == "ledger-foreign"


def test_a_ledger_is_never_overwritten(path, books):
    with pytest.raises(LedgerError) as refused:
        Ledger.create(path, POPULATION, LIMIT)
    assert refused.value.code == "ledger-exists"
    assert audit(path, books).ok


def test_places_that_are_none(tmp_path):
    for url in ("mysql://host/db", "nonsense://", "://", str(tmp_path / "no" / "such" / "folder" / "ledger.db")):
        with pytest.raises(LedgerError) as refused:
            Ledger.create(url, POPULATION, LIMIT)
        assert refused.value.code == "ledger-unreachable"


def test_an_auditor_needs_only_sha256_and_json(path, books):
    """The chain, checked by hand from what the file says."""
    with open_raw(path) as connection:
        before = ""
        for row in map(dict, connection.execute(ALL_ENTRIES).mappings()):
            assert sha256(row.pop("payload").encode()).hexdigest() == row["payload_hash"]
            assert row.pop("previous") == before
            row.pop("signature")  # of the hash
            claimed = row.pop("hash")
            body = json.dumps(row, sort_keys=True, separators=(",", ":"))
            before = sha256(f"{before}\n{body}".encode()).hexdigest()
            assert before == claimed
    assert (row["number"], before) == books[1]


@IN_A_FILE
def test_a_backup_taken_while_open_is_a_ledger(path, books, tmp_path):
    copy = str(tmp_path / "copy.db")
    shutil.copy(path, copy)
    with pytest.raises(LedgerError, match="This ledger is a copy"):
        Ledger.open(copy, books[0], POPULATION, LIMIT)
    adopt(copy, books[0], POPULATION)
    with Ledger.open(copy, books[0], POPULATION, LIMIT, expected_head=books[1]) as ledger:
        reservation = ledger.reserve("ann", make_question(PureDP("0.5"), "x"))
        ledger.store(reservation, make_plain_answer(reservation))
        assert ledger.verify().ok


CUT = (
    "DELETE FROM sfumato_entries WHERE number > 3",
    "UPDATE sfumato_head SET number = 3, (hash, spent) = (SELECT hash, spent FROM sfumato_entries WHERE number = 3)",
)


@pytest.mark.parametrize(
    "statements",
    [(*CUT, "UPDATE sfumato_head SET anchor = 2"), ("UPDATE sfumato_head SET anchor = 2",)],
    ids=["cut", "whole"],
)
def test_an_anchor_that_the_row_of_totals_makes_up_is_refused(path, books, statements):
    tamper(path, *statements)
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path, books[0], POPULATION, LIMIT)
    assert refused.value.code == "ledger-altered"
    with Ledger.read(path, books[0], POPULATION) as ledger:
        assert not ledger.verify().ok


@IN_A_FILE
def test_a_copy_with_an_anchor_made_up_is_refused(path, books, tmp_path):
    copied = str(tmp_path / "copied.db")
    shutil.copyfile(path, copied)
    tamper(copied, "UPDATE sfumato_head SET anchor = 2")
    with pytest.raises(LedgerError) as refused:
        Ledger.open(copied, books[0], POPULATION, LIMIT)
    assert refused.value.code in ("ledger-altered", "ledger-copied")


@pytest.mark.parametrize("keys", ["none", "later"])
@pytest.mark.parametrize("keep", [1, ENTRIES])
def test_a_ledger_rewritten_without_its_key_is_refused(path, books, keys, keep):
    """Its first entry declares that no entries, or only much later ones, are signed. All hashes fit."""
    with open_raw(path) as connection:
        declared = read_first(connection)
        declared["keys"] = [] if keys == "none" else [[1000, declared["keys"][0][1]]]
        forged = json.dumps(declared)
        connection.execute(FIRST.values(payload=forged))
        connection.exec_driver_sql("UPDATE sfumato_entries SET signature = ''")
        connection.exec_driver_sql(f"DELETE FROM sfumato_entries WHERE number > {keep}")
        last = "SELECT number, spent FROM sfumato_entries ORDER BY number DESC LIMIT 1"
        connection.exec_driver_sql(f"UPDATE sfumato_head SET (number, spent) = ({last})")
    rehash(path, 1, payload_hash=sha256(forged.encode()).hexdigest())
    for forget in (False, True):
        if forget:
            forget_the_mark(books)
        with pytest.raises(LedgerError) as refused:
            Ledger.open(path, books[0], POPULATION, LIMIT)
        assert refused.value.code == "ledger-altered"
        with Ledger.read(path, books[0], POPULATION) as ledger:
            assert not ledger.verify().ok
            with pytest.raises(LedgerError):
                ledger.totals()


def test_an_older_anchor_is_refused_where_a_newer_one_was_seen(path, books):
    adopt(path, books[0], POPULATION)
    with Ledger.open(path, books[0], POPULATION, LIMIT) as ledger:
        ask(ledger, "ann", make_question(PureDP("0.5"), "after"))
    tamper(
        path,
        "UPDATE sfumato_entries SET kind = 'limit' WHERE kind = 'adopt'",  # so that it is not found
        "UPDATE sfumato_head SET anchor = 1",
    )
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path, books[0], POPULATION, LIMIT)
    assert refused.value.code == "ledger-altered"
