"""The order of every answer: check, charge, measure, add noise once, store. No other code has this order.

Part of the trusted perimeter. The charge is durable before the engine reads data, and the answer is durable before any
of it is returned.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sfumato.answering.certified_plans import CertifiedPlans
from sfumato.answering.receipt import CLOSED, LEFT_OPEN, STORED, Answered, Receipt
from sfumato.engines.engine import Engine
from sfumato.errors import KernelFault, LedgerError, QueryError
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates, Released
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.ledger import AlreadyAnswered, Ledger

Drawn = TypeVar("Drawn")
Summarise = Callable[[Released], Mapping[str, object]] | None


def charge_and_release(  # noqa: PLR0917 - one caller passes the last
    engine: Engine, ledger: Ledger, certified: CertifiedPlans, analyst: str, question: str, summarise: Summarise = None
) -> Answered:
    """Check, charge, measure, add noise once, store: in this order.

    `question` is recorded with the charge. `summarise` computes what an upgrade stores next to the answer.
    """
    for plan in certified.plans:
        engine.check(plan)
    reservation, taken = ledger.charge(analyst, certified.certificate, question)

    def release_and_store(exact: Sequence[ExactAggregates]) -> Answered:
        released, whole = certified.release(exact, reservation)
        summary = None if summarise is None else summarise(whole)
        head = ledger.store(reservation, whole, summary)
        return Answered(released, Receipt(analyst, head, taken, cached=False))

    return draw_once(engine, ledger, certified.plans, reservation, release_and_store)


def draw_once(
    engine: Engine,
    ledger: Ledger,
    plans: Sequence[BoundedPlan],
    reservation: Reservation,
    draw: Callable[[Sequence[ExactAggregates]], Drawn],
) -> Drawn:
    """Measure the plans, then draw their noise. If anything fails or interrupts from the draw on, close the charge.

    A failure after the draw may depend on the noise. If the charge stayed open, the analyst could resume it and draw
    again until the noise suits them. Closing a charge writes a constant text, so whether that succeeds does not depend
    on the noise (docs/claims/K-28.md). Every error says what became of the charge.
    """
    exact = [engine.aggregate(plan) for plan in plans]
    try:
        return draw(exact)
    except (QueryError, AlreadyAnswered):  # refused before the draw, or another request stored its answer first
        raise
    except LedgerError as error:
        outcome = _close(ledger, reservation)
        raise LedgerError(error.code, error.message, f"{error.hint} {outcome}".strip()) from error
    except Exception:  # its text and its cause may depend on data and noise: keep neither
        outcome = _close(ledger, reservation)
    except BaseException as interrupt:  # KeyboardInterrupt, SystemExit and the like: the caller's, not a failure
        interrupt.add_note(_close(ledger, reservation))
        raise
    raise KernelFault(f"The answer could not be made. {outcome}")


def _close(ledger: Ledger, reservation: Reservation) -> str:
    """Close a charge whose answer failed after the draw, and say what became of it."""
    try:
        return CLOSED if ledger.void(reservation) else STORED
    except Exception:
        return LEFT_OPEN
