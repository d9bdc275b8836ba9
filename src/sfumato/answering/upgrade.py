"""Improve an answer by paying the difference: the releases of one question are combined."""

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.answering.ask_together import refuse_several
from sfumato.answering.certified_plans import certify_plan, read_stored
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.plan_digests import certify_and_name
from sfumato.answering.present_answer import CombinedReleases, PlannedQuery, present_answer
from sfumato.answering.prices import choose_loss
from sfumato.answering.question_record import record_question, write_record
from sfumato.answering.receipt import Receipt
from sfumato.answers.answer import Answer
from sfumato.answers.combined_releases import RunningMeans
from sfumato.answers.disclosure import ReleasedLoss
from sfumato.answers.released_values import Reading, share_mixing
from sfumato.errors import LedgerError, UnsupportedSyntax
from sfumato.kernel.exact import sum_exactly, write_plain
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.plan import BoundedPlan, Choice
from sfumato.kernel.release import Released
from sfumato.ledger.charging import list_shares
from sfumato.ledger.earlier_releases import EarlierReleases
from sfumato.ledger.ledger import AlreadyAnswered
from sfumato.ledger.loss_sums import write_loss
from sfumato.ledger.spending import read_charge
from sfumato.number_arguments import Number, read_probability
from sfumato.query.bind import bind
from sfumato.query.parse import parse

EACH_PART = (
    "The releases of this question were charged together, so none of them can be improved alone. Upgrade each part as "
    "a question of its own (one set of keys of ROLLUP, one SELECT of UNION ALL), or ask() this question with more."
)
MOST_TRIES = 100  # of processes that upgrade one question at once; at every try, one of them succeeds


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases of one question that an analyst has: their entries, their loss together, and their weighted mean."""

    entries: tuple[int, ...]
    loss: PrivacyLoss
    shares: tuple[PrivacyLoss, ...]  # the loss of each measurement, in all releases together
    combined: RunningMeans
    newest: Released
    epsilon: Fraction  # of those with Laplace noise
    rho: Fraction  # of those with Gaussian noise

    @classmethod
    def from_one(cls, released: Released) -> "Releases":
        """One release."""
        loss, combined = released.certificate.loss, RunningMeans.start(Reading.from_release(released))
        shares = list_shares(released.certificate)
        return cls((released.entry_number,), loss, shares, combined, released, *_read_amounts(loss))

    def add(self, released: Released) -> "Releases":
        """With one more."""
        loss, combined = released.certificate.loss, self.combined.add(Reading.from_release(released))
        epsilon, rho = _read_amounts(loss)
        shares = tuple(map(compose, self.shares, list_shares(released.certificate)))
        return Releases(
            (*self.entries, released.entry_number),
            compose(self.loss, loss),
            shares,
            combined,
            released,
            self.epsilon + epsilon,
            self.rho + rho,
        )

    def find_missing(self, wanted: PureDP | ZCDP) -> PureDP | ZCDP | None:
        """The loss that is missing for a total of `wanted`; None: nothing is missing."""
        if isinstance(wanted, PureDP):
            more = Fraction(wanted.epsilon) - self.epsilon
            return PureDP(sum_exactly(more)) if more > 0 else None
        more = Fraction(wanted.rho) - self.rho
        return ZCDP(sum_exactly(more)) if more > 0 else None

    @property
    def combined_releases(self) -> CombinedReleases:
        """All of them, to be presented like one release."""
        reading = share_mixing(self.combined.to_reading(), Reading.from_release(self.newest))
        return CombinedReleases(reading, ReleasedLoss(self.loss, self.shares, self.entries))

    def summarise(self, through: int) -> dict[str, Any]:
        """What the ledger stores with the newest release, so that older ones need not be read again."""
        return {
            "through": through,
            "entries": list(self.entries),
            "loss": write_loss(self.loss),
            "shares": [write_loss(share) for share in self.shares],
            "epsilon": write_plain(sum_exactly(self.epsilon)),
            "rho": write_plain(sum_exactly(self.rho)),
            "combined": self.combined.to_json(),
        }


def upgrade(
    desk: Desk,
    sql: str,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    confidence: Number = "0.95",
    analyst: str = DEFAULT_ANALYST,
) -> Answer:
    """Pay the difference to this epsilon (or rho) in all, and combine all releases that the analyst has.

    Processes that upgrade the same question at once share one charge.
    """
    tree = parse(sql)
    query = bind(tree, desk.dataset)
    refuse_several(query, "upgrade", EACH_PART)
    level, wanted = read_probability(confidence, "confidence"), choose_loss(query, epsilon, rho)
    who, record = desk.admit(analyst), write_record("upgrade", record_question(tree, query), confidence=level)
    planned = desk.plan(query, wanted)
    certificate = certify_and_name(planned.plan)
    if certificate.cells is None or any(isinstance(part.quantity, Choice) for part in planned.plan.measurements):
        hint = "Ask it again with a larger epsilon."
        raise UnsupportedSyntax("upgrade", "Only counts, sums and what is computed from them can be improved.", hint)
    if isinstance(certificate.loss, ZCDP | GDP):  # Gaussian noise costs less under this budget: count its rho
        wanted = ZCDP(certificate.loss.to_zcdp().rho)
    for _ in range(MOST_TRIES):
        earlier = desk.ledger.find_earlier(certificate.answer_key, who)
        before = _combine_earlier(planned.plan, earlier)
        more = wanted if before is None else before.find_missing(wanted)
        if before is not None and more is None:
            stored = earlier.rest[-1] if earlier.rest or earlier.summed_up is None else earlier.summed_up[1]
            receipt = Receipt(who, earlier.head, stored.taken, cached=True)
            asked = PlannedQuery(query, planned, level)
            return present_answer(desk, asked, before.newest, receipt, before.combined_releases)
        now = desk.plan(query, more or wanted)
        now = replace(now, plan=replace(now.plan, repeat=0 if before is None else len(before.entries)))

        def combine(released: Released, before: Releases | None = before) -> Releases:
            return Releases.from_one(released) if before is None else before.add(released)

        def summarise(released: Released, through: int = earlier.through) -> dict[str, Any]:
            return combine(released).summarise(through)

        with suppress(AlreadyAnswered):  # by another process, meanwhile: look again, and use its answer
            answered = charge_and_release(desk.engine, desk.ledger, certify_plan(now.plan), who, record, summarise)
            (released,) = answered.released
            asked = PlannedQuery(query, now, level)
            return present_answer(desk, asked, released, answered.receipt, combine(released).combined_releases)
    hint = "Nothing was lost. Try again when fewer processes upgrade it."
    raise LedgerError("ledger-busy", "Other processes upgraded this question at the same time.", hint)


def _combine_earlier(plan: BoundedPlan, earlier: EarlierReleases) -> Releases | None:
    """All releases that the analyst has, from the newest summary on."""
    made: Releases | None = None
    if earlier.summed_up is not None:
        summary, stored = earlier.summed_up
        made = Releases(
            tuple(summary["entries"]),
            read_charge(summary["loss"]),
            tuple(read_charge(share) for share in summary["shares"]),
            RunningMeans.from_json(summary["combined"]),
            read_stored(plan, stored),
            Fraction(summary["epsilon"]),
            Fraction(summary["rho"]),
        )
    for stored in earlier.rest:
        released = read_stored(plan, stored)
        made = Releases.from_one(released) if made is None else made.add(released)
    return made


def _read_amounts(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """The epsilon of a pure loss, and the rho of a zCDP or Gaussian-DP loss."""
    match loss:
        case PureDP(epsilon):
            return Fraction(epsilon), Fraction(0)
        case ZCDP(rho):
            return Fraction(0), Fraction(rho)
        case GDP(mu_squared):
            return Fraction(0), Fraction(mu_squared) / 2
        case _:
            return Fraction(0), Fraction(0)
