"""Several questions at once: the least epsilon for all their margins, and one reservation for all of them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from sfumato.answering import recorded_question
from sfumato.answering.prices import margins_by_column
from sfumato.answering.receipt import Given, cost_of
from sfumato.answers.answer import Answer, Cost
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.bundle import apart, bundle, parts, together
from sfumato.kernel.certify import Reservation, certify
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.losses import PureDP
from sfumato.kernel.parameters import Number, kind_of, probability_inside
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import Released, release
from sfumato.ledger.ledger import AlreadyAnswered, Ledger
from sfumato.planning.planner import Planned
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse
from sfumato.query.query import KeyRef, Query

if TYPE_CHECKING:
    from sfumato.curator import Curator

Drawn = TypeVar("Drawn")
Margin = float | Mapping[str, float]
Wanted = Sequence[tuple[str, Margin]]


@dataclass(frozen=True, slots=True)
class Share:
    """One question of a workload, what it should be accurate to, and its epsilon."""

    sql: str
    margin: Mapping[str, float]
    epsilon: Decimal


@dataclass(frozen=True, slots=True)
class Workload:
    """Questions and the least epsilon that gives each its margins; the total is their sum."""

    shares: tuple[Share, ...]
    confidence: Fraction

    @property
    def cost(self) -> Cost:
        """The least total. A question that stands twice is asked, and paid, once."""
        once = {each.sql: Fraction(each.epsilon) for each in self.shares}
        return Cost.of(PureDP(sum_exactly(sum(once.values(), Fraction(0)))))

    def __str__(self) -> str:
        lines = [f"ε = {each.epsilon}: {each.sql}" for each in self.shares]
        return "\n".join([f"{self.cost} in all", *lines])


def plan_workload(curator: "Curator", wanted: Wanted, confidence: Number) -> Workload:
    """The least epsilon, to three digits, of each question; the same question takes the larger of its two."""
    level = probability_inside(confidence, "confidence")
    needed: dict[str, tuple[Query, dict[str, float]]] = {}
    for sql, margin in _pairs(wanted):
        query, before = needed.get(sql, (None, {}))
        query = query or bind(parse(sql), curator.dataset)
        refuse_epsilon(query.dp_options, "its margin decides what is spent")
        for name, most in _margins(query, margin).items():
            before[name] = min(most, before.get(name, most))
        needed[sql] = (query, before)
    shares = tuple(
        Share(sql, margins, curator.least(query, margins, level).epsilon) for sql, (query, margins) in needed.items()
    )
    return Workload(shares, level)


def _pairs(wanted: object) -> list[tuple[str, Margin]]:
    hint = "For example [(sql, 20)], or [(sql, {'n': 20})]."
    if not isinstance(wanted, Sequence) or isinstance(wanted, (str, bytes)):
        raise InvalidParameter("questions", "must be a list of questions with their margins", kind_of(wanted), hint)
    if not wanted:
        raise InvalidParameter("questions", "must be at least one", "none", hint)
    for each in wanted:
        if not isinstance(each, (tuple, list)) or len(each) != 2 or not isinstance(each[0], str):
            raise InvalidParameter("questions", "must be pairs of SQL text and a margin", kind_of(each), hint)
    return [(sql, margin) for sql, margin in wanted]


def _margins(query: Query, margin: Margin) -> dict[str, float]:
    if isinstance(margin, Mapping):
        return margins_by_column(margin)
    return margins_by_column({name: margin for name, post in query.columns if not isinstance(post, KeyRef)})


def ask_workload(curator: "Curator", workload: Workload, analyst: str) -> list[Answer]:
    """All answers, in the order of the questions, for one charge; asked again, it is free."""
    asked: list[tuple[Query, Planned]] = []
    said: list[dict[str, object]] = []
    for each in workload.shares:
        tree = parse(each.sql)
        query = bind(tree, curator.dataset)
        said.append(recorded_question.asked(tree, query, each.margin))
        refuse_epsilon(query.dp_options, "the workload decides what is spent")
        asked.append((query, curator.planned(query, PureDP(each.epsilon))))
        if asked[-1][1].plan.cells is None:
            hint = "Ask it on its own, or declare the key's values."
            raise InvalidParameter("questions", "must have declared keys", "one whose keys the data names", hint)
    all_of_them = recorded_question.question("ask_all", *said, confidence=workload.confidence)
    found = release_together(curator, [planned.plan for _, planned in asked], analyst, all_of_them)
    return [
        curator.presented(query, planned, each, workload.confidence, found.given.part(each.certificate))
        for (query, planned), each in zip(asked, found.released, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Together:
    """Plans that were released on one reservation."""

    released: list[Released]
    given: Given

    @property
    def cost(self) -> Cost:
        return cost_of(self.given.taken)


def drawn_once(books: Ledger, reservation: Reservation, draw: Callable[[], Drawn]) -> Drawn:
    """Draw noise. If that fails the charge is closed: nobody draws for it again until they like what comes."""
    with suppress(Exception):  # nothing of it is kept: what failed may depend on data and noise
        return draw()
    books.void(reservation)
    raise KernelFault("The answer could not be made; its charge is closed.")


def release_together(curator: "Curator", plans: Sequence[BoundedPlan], analyst: str, said: str) -> Together:
    """Check all plans, charge them together, then measure and release each; what was released before is free."""
    certificates = [certify(plan) for plan in plans]
    whole = bundle(certificates)
    books, who = curator.ledger(), curator.analyst(analyst)
    for plan in plans:
        curator.engine.check(plan)
    try:
        reservation, taken = books.charge(who, whole, said)
        exact = [curator.engine.aggregate(plan) for plan in plans]
        pairs = list(zip(exact, parts(reservation, certificates), strict=True))
        released = drawn_once(books, reservation, lambda: [release(measured, each) for measured, each in pairs])
        head = books.store(reservation, together(reservation, released))
        return Together(released, Given(who, head, taken, cached=False))
    except AlreadyAnswered:
        stored = books.stored(whole, who)
        if stored is None:
            raise
        kept = apart(Released(stored.entry_number, whole, stored.integers), certificates)
        return Together(kept, Given(who, stored.head, stored.taken, cached=True))
