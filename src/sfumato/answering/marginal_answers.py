"""The answers of marginals that were measured together, from the released blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.answering.desk import Desk
from sfumato.answering.marginal_group import Marginal, MarginalGroup
from sfumato.answering.plan_digests import bundle_and_name, certify_and_name
from sfumato.answering.receipt import Receipt, compute_population_cost
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.disclosure import ReleasedLoss, write_statement
from sfumato.answers.explanation import MeasurementSummary, describe_block
from sfumato.answers.make_answer import Payment, SharedBlocks, make_answer
from sfumato.answers.marginal_values import add_residuals, find_marginal_noise, find_residuals, find_step
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.answers.proofs import STRATEGY_CLAIMS, cite
from sfumato.answers.released_values import Reading, ReleasedVector
from sfumato.kernel.release import Released
from sfumato.planning.marginal_strategies import Keys, MarginalStrategy

TOGETHER = (
    "The question was measured together with the other marginals of its workload, by the strategy with the least "
    "squared error of all of them: {blocks} measurements, each with its own share of the cost, of which this answer "
    "uses {used}. The answers of the workload agree with each other: they add up to the same totals, up to the "
    "rounding of whole numbers. Their noises are not independent."
)


@dataclass(frozen=True)
class ReleasedMarginals:
    """The released blocks of a group of marginals."""

    group: MarginalGroup
    strategy: MarginalStrategy
    released: tuple[Released, ...]

    @cached_property
    def _residuals(self) -> dict[Keys, Any]:
        measured = [one.certificate.measurements[0] for one in self.released]
        values = [
            np.array(one.integers[self.group.name], np.float64) * find_step(self.strategy, number, certified)
            for number, (one, certified) in enumerate(zip(self.released, measured, strict=True))
        ]
        return find_residuals(self.strategy, values)

    def read(self, marginal: Marginal) -> Reading:
        """The released values of one question: its cells without those for NULL, in the order of its keys."""
        whole = add_residuals(self.strategy, self._residuals, marginal.keys)
        axes = [marginal.keys.index(key) for key in marginal.order]
        shown = [len(key.values or ()) for key in marginal.planned.plan.keys]
        values = whole.transpose(axes)[tuple(slice(size) for size in shown)].ravel()
        measured = [one.certificate.measurements[0] for one in self.released]
        noise = find_marginal_noise(self.strategy, measured, marginal.keys)
        return Reading((ReleasedVector(self.group.name, values, noise, 1.0),))

    def list_used(self, marginal: Marginal) -> list[int]:
        """The blocks that an answer is computed from."""
        return [one.block for one in self.strategy.weigh(marginal.keys)]

    def present(
        self, desk: Desk, marginal: Marginal, receipt: Receipt, confidence: Fraction, counted: Sequence[int]
    ) -> Answer:
        """The answer to one question. Of the receipt, it shows the blocks in `counted`."""
        used = [self.released[number] for number in self.list_used(marginal)]
        loss = ReleasedLoss(
            bundle_and_name([one.certificate for one in used]).loss, (), tuple({one.entry_number for one in used})
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
                    one.certificate.plans[0], one.certificate, ReleasedLoss.from_release(one), sensitivities,
                    one.entry_number, receipt.head,
                )
                for one in used
            ]  # fmt: skip
            return {"parts": [desk.signer.sign(statement) for statement in statements]}

        planned = marginal.planned
        certificate = certify_and_name(planned.plan)
        sentence = TOGETHER.format(blocks=len(self.released), used=len(used))
        shared = SharedBlocks(
            tuple(self._summarise(one, confidence) for one in self.list_used(marginal)), cite(sentence, STRATEGY_CLAIMS)
        )
        return make_answer(marginal.query, planned, certificate, self.read(marginal), confidence, paid, sign, shared)

    def _summarise(self, number: int, confidence: Fraction) -> MeasurementSummary:
        certificate, block = self.released[number].certificate, self.strategy.blocks[number]
        measured = certificate.measurements[0]
        step = find_step(self.strategy, number, measured)
        return replace(
            describe_block(certificate.plans[0], measured, step, confidence), of=" in each" if block.keys else ""
        )
