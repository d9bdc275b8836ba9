"""A question in SQL or Python -> BoundQuestion. The latest questions in SQL are remembered.

`preview` followed by `ask`, and a dashboard that repeats its questions, parse and bind each question once.
"""

import os
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.query.bind import bind
from sfumato.query.frame import FrameQuery
from sfumato.query.parse import parse
from sfumato.query.query import Query

MOST_REMEMBERED = 64
MOST_LETTERS_REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class BoundQuestion:
    """The syntax tree of a question and its Query. The tree is never changed; code that needs a variant copies it."""

    tree: exp.Query
    query: Query


# A dataset is part of the key by its identity, and is kept with the value so that its identity is not used again.
_REMEMBERED: OrderedDict[tuple[str, int], tuple[Dataset, BoundQuestion]] = OrderedDict()
_LOCK = Lock()


def _start_over() -> None:
    """Begin with a new lock and an empty cache: a thread that the fork did not copy may hold the old lock."""
    global _LOCK  # noqa: PLW0603 - the lock of the parent process stays locked in the child
    _LOCK = Lock()
    _REMEMBERED.clear()


os.register_at_fork(after_in_child=_start_over)


def bind_question(question: str | FrameQuery, dataset: Dataset) -> BoundQuestion:
    """Parse and bind a question. A question that was bound with this very dataset before is not bound again."""
    if isinstance(question, FrameQuery):
        return _bind_tree(question.build_tree(), dataset)
    if type(question) is not str or len(question) > MOST_LETTERS_REMEMBERED:
        return _bind_tree(parse(question), dataset)
    key = (question, id(dataset))
    with _LOCK:
        remembered = _REMEMBERED.get(key)
        if remembered is not None:
            _REMEMBERED.move_to_end(key)
            return remembered[1]
    bound = _bind_tree(parse(question), dataset)
    with _LOCK:
        _REMEMBERED[key] = (dataset, bound)
        if len(_REMEMBERED) > MOST_REMEMBERED:
            _REMEMBERED.popitem(last=False)
    return bound


def _bind_tree(tree: exp.Query, dataset: Dataset) -> BoundQuestion:
    return BoundQuestion(tree, bind(tree, dataset))
