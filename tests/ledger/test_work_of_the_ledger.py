"""How many statements and rows the ledger needs: the same for the first release of a question and the 300th."""

import pytest
from ledger_questions import POPULATION, ask, make_plain_answer, make_question

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PureDP
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.prepared_statement import PreparedStatement

RELEASES = 300
LIMITS = {"eve": PureDP(500)}


@pytest.fixture
def count_work(monkeypatch):
    """Counts the statements and the rows of a piece of work."""

    def count(work):
        counted = [0, 0]
        run = PreparedStatement.run

        def run_and_count(self, connection, **values):
            found = run(self, connection, **values)
            counted[0] += 1
            counted[1] += len(found)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(PreparedStatement, "run", run_and_count)
            work()
        return tuple(counted)

    return count


def release_often(ledger, releases, about="often"):
    """Release one question again and again, each time at a larger epsilon."""
    for number in range(1, releases + 1):
        assert ask(ledger, "ann", make_question(PureDP(number), about))


def make_ledger(releases):
    """A ledger in memory with so many releases of one question, which ann paid for."""
    ledger = Ledger.create(None, POPULATION, Limit(PureDP(10**6)), LIMITS)
    release_often(ledger, releases)
    ledger.find_earlier("another question", "ann")  # the names of the analysts are read once
    return ledger


def work_of(releases, analyst, count_work):
    """The statements and rows of quotes and of stored answers, that are used and that are not."""
    cheap, dear = (make_question(PureDP(epsilon), "often") for epsilon in ("1", "999"))
    with make_ledger(releases) as ledger:
        return [
            count_work(lambda: ledger.quote(analyst, cheap)),
            count_work(lambda: ledger.quote(analyst, dear)),
            count_work(lambda: ledger.find_stored(dear, analyst)),
            count_work(lambda: ledger.find_stored(cheap, analyst)),
            count_work(lambda: ledger.find_stored(cheap, analyst)),
        ]


@pytest.mark.parametrize("analyst", ["ann", "bob", "eve"])
def test_work_does_not_grow_with_the_releases_of_a_question(count_work, analyst):
    """ann paid for the releases, bob has no limit and eve has one."""
    one, many = work_of(1, analyst, count_work), work_of(RELEASES, analyst, count_work)
    assert one == many
    assert max(statements for statements, _ in many) <= 12, "a glance, and a first view is two transactions"


@pytest.mark.parametrize("releases", [1, RELEASES])
def test_a_charge_and_its_answer_take_few_statements(count_work, releases):
    certificate, reservations = make_question(PureDP("999"), "often"), []
    with make_ledger(releases) as ledger:
        charged = count_work(lambda: reservations.append(ledger.reserve("ann", certificate)))
        stored = count_work(lambda: ledger.store(reservations[0], make_plain_answer(reservations[0])))
    assert charged == (4, 2), "the head, the analyst's last entry, the new entry, the new head"
    assert stored == (5, 2), "the head, the charge, the new entry, the new head, the index of releases"


def test_the_counts_would_notice_a_walk_through_all_releases(count_work):
    """Negative control: an operation that lists all releases reads more rows if there are more."""
    key = make_question(PureDP(1), "often").answer_key
    rows = []
    for releases in (1, 20):
        with Ledger.create(None, POPULATION, Limit(PureDP(10**6))) as ledger:
            release_often(ledger, releases)
            rows.append(count_work(lambda: ledger.find_earlier(key, "ann"))[1])
    assert rows[1] >= rows[0] + 2 * 19


def test_the_most_precise_answer_is_used_whatever_the_split_of_its_loss():
    with Ledger.create(None, POPULATION, Limit(PureDP(10**6))) as ledger:
        shares = [("1", "4"), ("4", "1"), ("2", "3")]
        for pair in shares:
            assert ask(ledger, "ann", make_question(tuple(map(PureDP, pair)), "pair"))
        for wanted, used in ((("2", "2"), ("2", "3")), (("1", "2"), ("2", "3")), (("3", "1"), ("4", "1"))):
            found = ledger.find_stored(make_question(tuple(map(PureDP, wanted)), "pair"), "ann")
            assert found.shares == tuple(map(PureDP, used)), wanted
        assert ledger.find_stored(make_question((PureDP(3), PureDP(3)), "pair"), "ann") is None


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM sfumato_releases",
        "UPDATE sfumato_releases SET charge = 2",
        "UPDATE sfumato_releases SET answer_key = (SELECT MAX(answer_key) FROM sfumato_releases), variance = -number",
        "UPDATE sfumato_releases SET answer_key = (SELECT MIN(answer_key) FROM sfumato_releases), variance = -number",
    ],
)
def test_a_damaged_index_shows_no_other_answer(damage):
    with Ledger.create(None, POPULATION, Limit(PureDP(10**6))) as ledger:
        for about in ("one", "two"):
            ask(ledger, "ann", make_question(PureDP(1), about))
        with ledger._database.write() as rows:
            rows.connection.exec_driver_sql(damage)
        for about, charge in (("one", 2), ("two", 4)):
            try:
                found = ledger.find_stored(make_question(PureDP(1), about), "bob")
                assert found is None or found.entry_number == charge
            except LedgerError as refused:
                assert refused.code == "ledger-altered"
