"""Questions that are remembered: bound once for one dataset, and never for another."""

import os
import signal
import threading

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import QueryError, UnknownName
from sfumato.query import bound_question
from sfumato.query.bind import bind
from sfumato.query.bound_question import MOST_LETTERS_REMEMBERED, MOST_REMEMBERED, bind_question
from sfumato.query.frame import Frame, count
from sfumato.query.parse import parse

SQL = "SELECT COUNT(*) AS n FROM t WHERE x > 1"


def dataset(**columns):
    return Dataset("d", [Table("t", None, sf.ROW, columns)], sf.Budget(epsilon=1))


def test_a_question_is_bound_once():
    mine = dataset(x=sf.Integer(0, 9))
    first = bind_question(SQL, mine)
    assert bind_question(SQL, mine) is first
    assert first.query == bind(parse(SQL), mine)


def test_another_dataset_gets_its_own_query_even_if_it_is_equal():
    one, two = dataset(x=sf.Category([1, 2])), dataset(x=sf.Category([1, 2]))
    assert one == two
    assert bind_question(SQL, one) is not bind_question(SQL, two)
    wide, narrow = dataset(x=sf.Real(0, 90)), dataset(x=sf.Real(0, 9))
    total = "SELECT SUM(x) AS s FROM t"
    assert bind_question(total, wide).query.aggregates[0].value.upper == 90
    assert bind_question(total, narrow).query.aggregates[0].value.upper == 9
    bind_question(SQL, wide)
    with pytest.raises(UnknownName):
        bind_question(SQL, dataset(y=sf.Real(0, 9)))


def test_refusals_are_not_remembered():
    mine = dataset(x=sf.Real(0, 9))
    before = dict(bound_question._REMEMBERED)
    for sql in ("SELECT x FROM t", "SELECT", "SELECT SUM(y) FROM t"):
        with pytest.raises(QueryError):
            bind_question(sql, mine)
    assert dict(bound_question._REMEMBERED) == before


def test_few_and_short_questions_are_remembered():
    mine = dataset(x=sf.Real(0, 9))
    for index in range(MOST_REMEMBERED + 20):
        bind_question(f"SELECT COUNT(*) AS n FROM t WHERE x > {index}", mine)
    assert len(bound_question._REMEMBERED) == MOST_REMEMBERED
    long = SQL + " " * MOST_LETTERS_REMEMBERED
    assert bind_question(long, mine) is not bind_question(long, mine)


def test_a_frame_is_bound_like_its_sql():
    mine = dataset(x=sf.Real(0, 9))
    asked = Frame(mine, "t").where("x > 1").agg(n=count())
    assert bind_question(asked, mine).query == bind_question(asked.sql(), mine).query


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_beside_a_thread_that_binds_does_not_hang():
    """A thread holds the lock while the process forks. The child has its own lock."""
    mine = dataset(x=sf.Integer(0, 9))
    bind_question(SQL, mine)
    held, done = threading.Event(), threading.Event()

    def hold():
        with bound_question._LOCK:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends a child that hangs
        os._exit(0 if bind_question(SQL, mine) else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    holder.join()
    assert status == 0
