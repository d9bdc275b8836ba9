"""Repeats one question many times. The data is measured once; the real release draws new noise each time."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import product
from math import isfinite

import numpy as np

from sfumato.answers.answer import Cost
from sfumato.answers.combined_releases import RunningMeans
from sfumato.answers.intervals import has_interval
from sfumato.answers.make_answer import Payment, make_answer
from sfumato.answers.output_values import evaluate
from sfumato.answers.released_values import Reading, compute_aggregate
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released, _add_noise, release_with
from sfumato.kernel.reservation import Reservation
from sfumato.query.bind import bind
from sfumato.query.parse import parse

LEVEL = Fraction(95, 100)


@dataclass(frozen=True)
class MeasuredQuestion:
    """A question, its exact aggregates, and its true answer per key."""

    query: object
    planned: object
    certificate: Certificate
    exact: object
    truth: dict

    def answer(self, level=LEVEL, wider=Fraction(1), releases=1):
        """One answer with new noise. Negative controls use noise that is `wider` than stated."""
        drawn = [self._release(wider) for _ in range(releases)]
        first, *others = (Reading.from_release(released) for released in drawn)
        reading = reduce(RunningMeans.add, others, RunningMeans.start(first)).to_reading() if others else first
        loss = self.certificate.loss
        cost = Cost.from_loss(loss)
        paid = Payment(1, cost, False, "", cost, cost, None, loss)
        return make_answer(self.query, self.planned, self.certificate, reading, level, paid, lambda _: {})

    def _release(self, wider):
        if wider == 1:
            return release_with(self.exact, Reservation(1, self.certificate), SYSTEM)
        measurements = tuple(
            replace(certified, noise=_widen(certified.noise, wider)) for certified in self.certificate.measurements
        )
        other = replace(self.certificate, measurements=measurements)
        return replace(_add_noise(self.exact, other, 1, SYSTEM), certificate=self.certificate)

    def check_coverage(self, answer):
        """For each row and column: does the interval contain the true value?"""
        keys = [name for name, post in self.query.columns if not has_interval(post, self.planned.formulas)]
        found = []
        for row, ends in zip(answer.rows, answer.intervals, strict=True):
            truth = self.truth[tuple(row[name] for name in keys)]
            found.append(
                {
                    name: name in ends
                    and ends[name][0] <= value + 1e-9 * abs(value)
                    and value - 1e-9 * abs(value) <= ends[name][1]
                    for name, value in truth.items()
                    if isfinite(value)
                }
            )
        return found


def measure_question(curator, sql, epsilon=None, rho=None):
    """Bind, plan, certify and measure once."""
    query = bind(parse(sql), curator.dataset)
    planned = curator.desk.plan(query, PureDP(epsilon) if rho is None else ZCDP(rho))
    certificate = certify(planned.plan)
    exact = curator.engine.aggregate(planned.plan)
    return MeasuredQuestion(query, planned, certificate, exact, _compute_truth(query, planned, certificate, exact))


def _widen(noise, factor):
    match noise:
        case LaplaceNoise(scale):
            return LaplaceNoise(scale * factor)
        case GaussianNoise(variance):
            return GaussianNoise(variance * factor**2)
        case _:
            return noise


def _compute_truth(query, planned, certificate, exact):
    """The answer without noise, per key."""
    integers = {name: tuple(values.tolist()) for name, values in exact._integers.items()}
    integers |= {name: (0,) * len(bins) for name, bins in exact._bins.items()}
    reading = Reading.from_release(Released(1, certificate, integers, exact._keys))
    cells = list(exact._keys if exact._keys is not None else product(*(key.values or () for key in query.keys)))
    keys = [np.array([cell[index] for cell in cells] + [None], object)[:-1] for index in range(len(query.keys))]
    aggregates = [compute_aggregate(formula, reading.values) for formula in planned.formulas]
    columns = {name: np.broadcast_to(evaluate(post, aggregates, keys), len(cells)) for name, post in query.columns}
    numbers = {name for name, post in query.columns if has_interval(post, planned.formulas)}
    named = [name for name in columns if name not in numbers]
    return {
        tuple(columns[name][cell] for name in named): {name: float(columns[name][cell]) for name in numbers}
        for cell in range(len(cells))
    }
