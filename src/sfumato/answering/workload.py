"""Several questions at once: the smallest loss for all their margins, or one loss for all; and one charge for all.

Questions that are marginals of one histogram (counts or sums of the same rows by different keys) are measured together
by the best strategy for them, where that is better than to measure them one by one (marginal_group.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from sfumato.answering.ask_together import refuse_several
from sfumato.answering.certified_plans import certify_together
from sfumato.answering.desk import Desk
from sfumato.answering.least_epsilon import find_least_epsilon
from sfumato.answering.marginal_answers import ReleasedMarginals
from sfumato.answering.marginal_group import find_marginal_groups
from sfumato.answering.marginal_plans import Group, Together, plan_for_loss, plan_for_margins
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.prices import check_margins, choose_loss
from sfumato.answering.question_record import record_question, write_record
from sfumato.answering.range_group import find_range_groups
from sfumato.answering.receipt import Answered
from sfumato.answers.answer import Answer, Cost
from sfumato.drawing.cards import make_card, make_note
from sfumato.drawing.pages import make_table
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.plan import BoundedPlan
from sfumato.number_arguments import Number, read_probability
from sfumato.planning.shares import split_evenly
from sfumato.query.bind import bind
from sfumato.query.dp_options import refuse_epsilon
from sfumato.query.parse import parse
from sfumato.query.query import KeyRef, Query

Margin = float | Mapping[str, float]
Wanted = Sequence[tuple[str, Margin]] | Sequence[str]
HINT = "For example [(sql, 20)], or [(sql, {'n': 20})]; or [sql, sql] with epsilon= for all of them."


@dataclass(frozen=True, slots=True)
class Share:
    """One question of a workload, its margins, and its loss; None if it is measured together with others."""

    sql: str
    margin: Mapping[str, float]
    loss: PureDP | ZCDP | None

    @property
    def epsilon(self) -> Decimal | None:
        """The epsilon of a question that has its own."""
        return self.loss.epsilon if isinstance(self.loss, PureDP) else None

    @property
    def rho(self) -> Decimal | None:
        """The rho of a question that has its own."""
        return self.loss.rho if isinstance(self.loss, ZCDP) else None


@dataclass(frozen=True, slots=True)
class Workload:
    """Questions and their losses, which add up. Marginals that are measured together have one loss."""

    shares: tuple[Share, ...]
    confidence: Fraction
    together: tuple[Together, ...] = ()

    @property
    def losses(self) -> tuple[PrivacyLoss, ...]:
        """The losses that are charged: of each question, and of the questions that are measured together."""
        alone = (share.loss for share in self.shares if share.loss is not None)
        return (*alone, *(group.loss for group in self.together))

    @property
    def cost(self) -> Cost:
        """The total. A question that is named twice is asked and paid once."""
        return Cost.from_loss(reduce(compose, self.losses))

    def __str__(self) -> str:
        lines = [f"{Cost.from_loss(share.loss)}: {share.sql}" for share in self.shares if share.loss is not None]
        for group in self.together:
            count = len(group.strategy.blocks)
            many = f" ({count} measurements)" if count > 1 else ""
            lines.append(f"{Cost.from_loss(group.loss)} together, by the best strategy{many}:")
            for place, margins in zip(group.places, group.margins, strict=True):
                shown = ", ".join(f"{name} ±{margin:.4g}" for name, margin in margins.items())
                lines.append(f"  {shown}: {self.shares[place].sql}")
        return "\n".join([f"{self.cost} in all", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        groups = {place: group for group in self.together for place in group.places}
        rows = []
        for place, share in enumerate(self.shares):
            group = groups.get(place)
            loss = share.loss if group is None else group.loss
            margins = share.margin if group is None else group.margins[group.places.index(place)]
            cost = "" if loss is None else f"{Cost.from_loss(loss)}{'' if group is None else ' together'}"
            rows.append([cost, ", ".join(f"{name} ±{margin:,.4g}" for name, margin in margins.items()), share.sql])
        table = make_table(("cost", "margins", "question"), rows)
        return make_card(f"{self.cost} in all", table, make_note("Nothing is asked yet: ask_all(workload) spends."))


def plan_workload(
    desk: Desk, wanted: Wanted, confidence: Number, epsilon: Number | None = None, rho: Number | None = None
) -> Workload:
    """The smallest loss, to three digits, for the margins of every question; or one loss for all questions.

    A question that is named twice gets the smaller margin. One loss is shared evenly; marginals that are measured
    together put their shares together, and have the least sum of their mean squared errors.
    """
    level = read_probability(confidence, "confidence")
    if epsilon is None and rho is None:
        needed = _read_questions(desk, wanted)
        losses: list[PureDP | ZCDP] = [
            find_least_epsilon(desk, query, margins, level) for query, margins in needed.values()
        ]
    else:
        texts = _read_texts(wanted)
        needed = {sql: (_bind(desk, sql), dict[str, float]()) for sql in texts}
        whole = choose_loss(needed[texts[0]][0], epsilon, rho)
        losses = list(split_evenly(whole, len(needed)))
    shares = [Share(sql, margins, loss) for (sql, (_, margins)), loss in zip(needed.items(), losses, strict=True)]
    together = []
    for group in _find_groups(desk, [query for query, _ in needed.values()]):
        members = [shares[marginal.place] for marginal in group.marginals]
        alone = [losses[marginal.place] for marginal in group.marginals]
        if members[0].margin:
            made = plan_for_margins(desk, group, [share.margin for share in members], alone, level)
        else:
            made = plan_for_loss(desk, group, alone, level)
        if made is not None:
            together.append(made)
            for place in made.places:
                shares[place] = replace(shares[place], loss=None)
    return Workload(tuple(shares), level, tuple(together))


def _bind(desk: Desk, sql: str) -> Query:
    query = bind(parse(sql), desk.dataset)
    refuse_several(query, "ask_all")
    refuse_epsilon(query.dp_options, "the workload decides what is spent")
    return query


def _find_groups(desk: Desk, queries: Sequence[Query]) -> list[Group]:
    """Marginals first; then ranges, of the questions that are in no group of marginals."""
    planned = [(place, query, desk.plan(query, PureDP(1))) for place, query in enumerate(queries)]
    marginals = find_marginal_groups(planned)
    taken = {marginal.place for group in marginals for marginal in group.marginals}
    return [
        *marginals,
        *find_range_groups([planned_group for planned_group in planned if planned_group[0] not in taken]),
    ]


def _read_questions(desk: Desk, wanted: object) -> dict[str, tuple[Query, dict[str, float]]]:
    needed: dict[str, tuple[Query, dict[str, float]]] = {}
    for sql, margin in _read_pairs(wanted):
        query, margins = needed.get(sql, (None, {}))
        query = query or _bind(desk, sql)
        for name, most in _read_margins(query, margin).items():
            margins[name] = min(most, margins.get(name, most))
        needed[sql] = (query, margins)
    return needed


def _read_list(wanted: object) -> Sequence[object]:
    if not isinstance(wanted, Sequence) or isinstance(wanted, (str, bytes)):
        raise InvalidParameter("questions", "must be a list of questions", describe_kind(wanted), HINT)
    if not wanted:
        raise InvalidParameter("questions", "must be at least one", "none", HINT)
    return wanted


def _read_texts(wanted: object) -> list[str]:
    listed = _read_list(wanted)
    for question in listed:
        if not isinstance(question, str):
            rule = "must be SQL texts without margins, where epsilon or rho is given"
            raise InvalidParameter("questions", rule, describe_kind(question), HINT)
    return list(dict.fromkeys(str(question) for question in listed))


def _read_pairs(wanted: object) -> list[tuple[str, Margin]]:
    found: list[tuple[str, Margin]] = []
    for pair in _read_list(wanted):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidParameter("questions", "must be pairs of SQL text and a margin", describe_kind(pair), HINT)
        found.append((pair[0], pair[1]))
    return found


def _read_margins(query: Query, margin: Margin) -> dict[str, float]:
    if isinstance(margin, Mapping):
        return check_margins(margin)
    return check_margins({name: margin for name, post in query.columns if not isinstance(post, KeyRef)})


def ask_workload(desk: Desk, workload: Workload, analyst: str, request: str | None = None) -> list[Answer]:
    """Answer all questions for one charge, in their order. Asking the same workload again is free.

    `request` is recorded with the charge: see `ask`.
    """
    asked: dict[int, PlannedQuery] = {}
    records: list[dict[str, object]] = []
    queries: list[Query] = []
    for place, share in enumerate(workload.shares):
        tree = parse(share.sql)
        query = bind(tree, desk.dataset)
        refuse_several(query, "ask_all")
        refuse_epsilon(query.dp_options, "the workload decides what is spent")
        records.append(record_question(tree, query, share.margin or None))
        queries.append(query)
        if share.loss is not None:
            planned = desk.plan(query, share.loss)
            if planned.plan.cells is None:
                hint = "Ask it on its own, or declare the key's values."
                raise InvalidParameter("questions", "must have declared keys", "one with an undeclared key", hint)
            asked[place] = PlannedQuery(query, planned, workload.confidence)
    groups = _match_groups(desk, queries, workload.together)
    blocks = [(together, group, together.make_plans(group)) for together, group in groups]
    plans: list[BoundedPlan] = [question.planned.plan for question in asked.values()]
    certified = certify_together([*plans, *(plan for _, _, made in blocks for plan in made)])

    def write_questions() -> str:
        more = {} if request is None else {"request": request}
        return write_record("ask_all", *records, confidence=workload.confidence, **more)

    answered = desk.answer(certified, desk.admit(analyst), write_questions)
    answers = {
        place: present_answer(desk, question, released, answered.receipt.part(released.certificate))
        for (place, question), released in zip(asked.items(), answered.released, strict=False)
    }
    begin = len(asked)
    for together, group, made in blocks:
        released = ReleasedMarginals(group, together.strategy, answered.released[begin : begin + len(made)])
        answers |= _present_group(desk, released, answered, workload.confidence)
        begin += len(made)
    return [answers[place] for place in range(len(workload.shares))]


def _match_groups(desk: Desk, queries: Sequence[Query], together: Sequence[Together]) -> list[tuple[Together, Group]]:
    """The groups of the questions as they are planned now, each with what was planned for it."""
    found = {tuple(marginal.place for marginal in group.marginals): group for group in _find_groups(desk, queries)}
    if not all(planned.places in found for planned in together):
        hint = "Make the plan again: plan(questions)."
        raise InvalidParameter("workload", "must be planned with the catalog as it is", "one of another catalog", hint)
    return [(planned, found[planned.places]) for planned in together]


def _present_group(
    desk: Desk, released: ReleasedMarginals, answered: Answered, confidence: Fraction
) -> dict[int, Answer]:
    """The answers of a group. A block that several of them use is counted in the cost of the first."""
    answers: dict[int, Answer] = {}
    counted: set[int] = set()
    for marginal in released.group.marginals:
        own = [number for number in released.list_used(marginal) if number not in counted]
        counted |= set(own)
        answers[marginal.place] = released.present(desk, marginal, answered.receipt, confidence, own)
    return answers
