"""The answers of marginals that were measured together, from the released blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.answering.desk import Desk
from sfumato.answering.marginal_group import Marginal, MarginalGroup
from sfumato.answering.plan_digests import bundle_and_name, certify_and_name
from sfumato.answering.range_group import RangeGroup
from sfumato.answering.receipt import Receipt, compute_population_cost
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.disclosure import ReleasedLoss, write_statement
from sfumato.answers.make_answer import Payment, SharedBlocks, make_answer
from sfumato.answers.marginal_values import Floats, add_residuals, find_marginal_noise, find_residuals, find_step
from sfumato.answers.measurement_summary import MeasurementSummary, describe_block, describe_pieces
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.answers.proofs import STRATEGY_CLAIMS, cite
from sfumato.answers.released_values import Reading, ReleasedVector
from sfumato.kernel.release import Released
from sfumato.planning.marginal_strategies import Keys, MarginalStrategy
from sfumato.planning.range_strategies import RangeStrategy

TOGETHER = (
    "The question was measured together with other questions of its workload, by the strategy with the least squared "
    "error of all of them{parts}. The answers of the workload agree with each other: they add up to the same totals, "
    "up to the rounding of whole numbers. Their noises are not independent."
)


@dataclass(frozen=True)
class ReleasedMarginals:
    """The released blocks of a group of marginals."""

    group: MarginalGroup | RangeGroup
    strategy: MarginalStrategy | RangeStrategy
    released: tuple[Released, ...]

    @cached_property
    def _values(self) -> list[Floats]:
        """The values of the blocks, in units."""
        measured = [part.certificate.measurements[0] for part in self.released]
        return [
            np.array(one.integers[self.group.name], np.float64) * find_step(self.strategy, number, certified)
            for number, (one, certified) in enumerate(zip(self.released, measured, strict=True))
        ]

    @cached_property
    def _residuals(self) -> dict[Keys, Floats]:
        if isinstance(self.strategy, RangeStrategy):
            raise AssertionError("ranges have no residuals")
        return find_residuals(self.strategy, self._values)

    def read(self, marginal: Marginal) -> Reading:
        """The released values of one question: its cells without those for NULL, in the order of its keys."""
        values = self._compute(marginal)
        measured = [part.certificate.measurements[0] for part in self.released]
        noise = find_marginal_noise(self.strategy, measured, marginal.keys)
        return Reading((ReleasedVector(self.group.name, values, noise, 1.0),))

    def _compute(self, marginal: Marginal) -> Floats:
        if isinstance(self.strategy, RangeStrategy):
            return np.array([np.dot(self.strategy.readings[marginal.order[0]], self._values[0])])
        whole = add_residuals(self.strategy, self._residuals, marginal.keys)
        axes = [marginal.keys.index(key) for key in marginal.order]
        shown = [len(key.values or ()) for key in marginal.planned.plan.keys]
        return whole.transpose(axes)[tuple(slice(size) for size in shown)].ravel()

    def list_used(self, marginal: Marginal) -> list[int]:
        """The blocks that an answer is computed from."""
        return [used.block for used in self.strategy.weigh(marginal.keys)]

    def present(
        self, desk: Desk, marginal: Marginal, receipt: Receipt, confidence: Fraction, counted: Sequence[int]
    ) -> Answer:
        """The answer to one question. Of the receipt, it shows the blocks in `counted`."""
        used = [self.released[number] for number in self.list_used(marginal)]
        loss = ReleasedLoss(
            bundle_and_name([part.certificate for part in used]).loss,
            (),
            tuple({part.entry_number for part in used}),
        )
        paid_for = [self.released[number].certificate for number in counted]
        own = desk.ledger.read_own_remaining(receipt.analyst)
        taken = receipt.part(bundle_and_name(paid_for)) if paid_for else receipt.free()
        paid = Payment(
            used[0].entry_number, taken.cost, receipt.cached, receipt.head,
            Cost.from_loss(desk.ledger.read_remaining()), compute_population_cost(taken.taken),
            None if own is None else Cost.from_loss(own), loss.whole,
        )  # fmt: skip

        def sign(sensitivities: Sequence[ColumnSensitivity]) -> dict[str, Any]:
            statements = [
                write_statement(
                    part.certificate.plans[0], part.certificate, ReleasedLoss.from_release(part), sensitivities,
                    part.entry_number, receipt.head,
                )
                for part in used
            ]  # fmt: skip
            return {"parts": [desk.signer.sign(statement) for statement in statements]}

        planned = marginal.planned
        certificate = certify_and_name(planned.plan)
        blocks = len(self.released)
        several = f": {blocks} measurements, each with its own share of the cost, of which it uses {len(used)}"
        sentence = TOGETHER.format(parts=several if blocks > 1 else "")
        shared = SharedBlocks(
            tuple(self._summarise(part, confidence) for part in self.list_used(marginal)),
            cite(sentence, STRATEGY_CLAIMS),
        )
        return make_answer(marginal.query, planned, certificate, self.read(marginal), confidence, paid, sign, shared)

    def _summarise(self, number: int, confidence: Fraction) -> MeasurementSummary:
        certificate = self.released[number].certificate
        measured = certificate.measurements[0]
        describe = describe_pieces if isinstance(self.strategy, RangeStrategy) else describe_block
        return describe(certificate.plans[0], measured, find_step(self.strategy, number, measured), confidence)
