"""Audit any mechanism: measure a lower bound on its privacy loss from samples, and compare it with a claim."""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.lab.auditing.audit_result import CONFIDENCE, FAMILYWISE_ERROR, AuditResult, Verdict
from sfumato.lab.auditing.binomial_limits import find_lower_limit, find_upper_limit
from sfumato.lab.auditing.event_search import MOST_EVENTS, Event, find_events
from sfumato.lab.auditing.output_features import MOST_SEARCHED, MOST_TEXTS
from sfumato.lab.auditing.sampled_runs import Runs, Vocabulary, count_searched, sample_batches, sample_runs
from sfumato.lab.auditing.tested_claims import TestedClaim
from sfumato.lab.auditing.text_numbers import FROM_END, FROM_START, MOST_NUMERALS, is_partly_searched
from sfumato.number_arguments import Number, read_positive_decimal, read_whole_number

DEFAULT_SAMPLES = 20_000
LEAST_SAMPLES = 40
BOUND_ERROR = (1 - CONFIDENCE) / (2 * MOST_EVENTS)  # of each limit of each event, for the reported bound
VERDICT_ERROR = FAMILYWISE_ERROR / (2 * MOST_EVENTS)  # of each limit of each event, for the verdict
SUSPICIOUS = 0.2  # of the runs that repeat the output before them exactly, though outputs vary
MOST_NEEDED = 1 << 40

Hits = tuple[int, int]  # on the first and on the second dataset


def audit(  # noqa: PLR0917 - its callers name what they pass
    mechanism: Callable[..., Any],
    first: object,
    second: object,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    samples: int = DEFAULT_SAMPLES,
    *,
    batch: bool = False,
) -> AuditResult:
    """Run `mechanism(data)` on two neighbouring datasets and report how much its outputs differ.

    The mechanism is any callable; everything that it returns or raises is observed. `samples` is the number of runs on
    each dataset. Runs must be independent: a mechanism with a state has to make it anew in every call. With
    batch=True, `mechanism(data, count)` returns `count` outputs at once (an array with one row per run is fastest).

    Claims: `epsilon`, `epsilon` with `delta`, or `rho` (zCDP, optionally with `delta`). Without a claim, only the
    bound is reported (on epsilon, at `delta`).

    The bound holds with 95 % confidence, and a mechanism that keeps its claim is called "violated" with probability at
    most 1e-6. Proof: the events (at most MOST_EVENTS, each with its direction) are fixed by the first half of the
    runs. On the independent second half, each of the two Clopper-Pearson limits of an event is wrong with probability
    at most e; with e = error / (2 MOST_EVENTS), all limits hold together with probability 1 - error at least. Then
    TestedClaim.bound at those limits is a lower bound on the loss, for every event.
    """
    loss = read_claim(epsilon, delta, rho)
    runs = read_whole_number(samples, "samples", LEAST_SAMPLES)
    if not callable(mechanism):
        raise InvalidParameter("mechanism", "must be callable", describe_kind(mechanism), "For example lambda data: …")
    if not isinstance(batch, bool):
        raise InvalidParameter("batch", "must be True or False", describe_kind(batch))
    _check_signature(mechanism, (first, runs) if batch else (first,))
    sample = sample_batches if batch else sample_runs
    collected, words = sample(mechanism, (first, second), runs)
    claim = TestedClaim.from_loss(loss, float(delta))
    return judge_runs(collected, words, claim, loss)


def read_claim(epsilon: Number | None, delta: Number, rho: Number | None) -> PrivacyLoss | None:
    """The claimed loss; None if there is no claim."""
    if delta is None:
        raise InvalidParameter(
            "delta", "must be a number from 0 to 1", describe_kind(delta), "delta=0 is a pure claim."
        )
    if epsilon is not None and rho is not None:
        raise InvalidParameter("rho", "must not be given together with epsilon", "both", "A claim has one parameter.")
    loss: PrivacyLoss | None = None
    if rho is not None:
        loss = ZCDP(read_positive_decimal(rho, "rho"), delta)
    elif epsilon is not None:
        # epsilon = 0 is a valid claim: the output does not depend on the data
        loss = PureDP(epsilon) if not delta else ApproxDP(epsilon, delta)
    else:
        ApproxDP(0, delta)  # checks delta
    return loss


def _check_signature(mechanism: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    """Refuse a mechanism that cannot be called so. Otherwise each run would be the same TypeError, on any data."""
    try:
        signature = inspect.signature(mechanism)
    except (TypeError, ValueError):  # compiled functions may have none
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        call = "mechanism(data, count)" if len(arguments) > 1 else "mechanism(data)"
        hint = f"{error}. For example lambda data: mechanism(data, …)."
        raise InvalidParameter(
            "mechanism", f"must accept the call {call}", f"the signature {signature}", hint
        ) from None


@np.errstate(invalid="ignore")  # an output may hold a signalling NaN, and bytes may read as one
def judge_runs(
    runs: tuple[Runs, Runs], words: Vocabulary, claim: TestedClaim, loss: PrivacyLoss | None, comparisons: int = 1
) -> AuditResult:
    """Search for events in one half of the runs, and test them in the other half.

    `comparisons` is the number of audits whose results hold together, with the errors of one.
    """
    samples = runs[0].count
    searched = np.arange(count_searched(samples))
    tested = np.arange(count_searched(samples), samples)
    search = (runs[0].select(searched), runs[1].select(searched))
    test = (runs[0].select(tested), runs[1].select(tested))
    events = find_events(search, words, claim)
    found = [(event, _count(event, test)) for event in events]
    bounds = [_bound(event, hits, tested.size, BOUND_ERROR / comparisons, claim) for event, hits in found]
    proofs = [_bound(event, hits, tested.size, VERDICT_ERROR / comparisons, claim) for event, hits in found]
    place = int(np.argmax(bounds))
    verdict, needed = None, None
    if claim.value is not None:
        verdict, needed = _judge(bounds, proofs, found, tested.size, claim)
        if verdict == "violated":
            place = int(np.argmax(proofs))
    unseen = sorted(runs[0].unseen | runs[1].unseen)
    if unseen and verdict == "consistent":
        verdict = "inconclusive"
    event, hits = found[place]
    return AuditResult(
        lower_bound=bounds[place],
        verdict=verdict,
        event=event.text,
        hits=hits,
        samples=samples,
        claim=loss,
        parameter="rho" if claim.parameter == "rho" else "epsilon",
        delta=claim.delta,
        samples_needed=needed,
        notes=(*_note_repetition(runs), *_note_unseen(unseen), *_note_unsearched(runs, words)),
    )


def _count(event: Event, runs: tuple[Runs, Runs]) -> Hits:
    """How often an event happened on the two datasets."""
    return int(event.holds(runs[0]).sum()), int(event.holds(runs[1]).sum())


def _bound(event: Event, hits: Hits, trials: int, error: float, claim: TestedClaim) -> float:
    """A lower bound on the parameter that is wrong with probability at most 2 * error."""
    more, less = hits[event.likelier], hits[1 - event.likelier]
    return claim.bound(find_lower_limit(more, trials, error), find_upper_limit(less, trials, error))


def _judge(
    bounds: list[float], proofs: list[float], found: list[tuple[Event, Hits]], trials: int, claim: TestedClaim
) -> tuple[Verdict, int | None]:
    """The verdict, and how many samples per dataset would tell if these cannot."""
    if any(claim.exceeds(proof) for proof in proofs):
        return "violated", None
    if not claim.exceeds(_compute_clearest_bound(trials, claim)):  # not even an event that always and never happens
        return "inconclusive", _count_needed(lambda size: _compute_clearest_bound(size, claim), claim)
    place = int(np.argmax(bounds))
    if not claim.exceeds(bounds[place]):
        return "consistent", None
    event, hits = found[place]

    def expect_bound(size: int) -> float:
        scaled = round(hits[0] * size / trials), round(hits[1] * size / trials)
        return _bound(event, scaled, size, VERDICT_ERROR, claim)

    return "inconclusive", _count_needed(expect_bound, claim)


def _compute_clearest_bound(trials: int, claim: TestedClaim) -> float:
    """The bound if an event happens in every run on one dataset and in none on the other."""
    return claim.bound(find_lower_limit(trials, trials, VERDICT_ERROR), find_upper_limit(0, trials, VERDICT_ERROR))


def _count_needed(bound_with: Callable[[int], float], claim: TestedClaim) -> int | None:
    """The least number of samples, to two digits, with which such a bound would exceed the claim."""
    tested = LEAST_SAMPLES
    while not claim.exceeds(bound_with(tested)):
        tested = tested * 5 // 4
        if tested > MOST_NEEDED:
            return None
    digits: int = 10 ** max(0, int(math.log10(2 * tested)) - 1)
    return -(-2 * tested // digits) * digits


def _note_unseen(unseen: list[str]) -> tuple[str, ...]:
    """Say what was not looked into: a difference there would be missed, so the verdict is not "consistent"."""
    return (f"Not observed: {'; '.join(unseen)}. Return plain values to have them audited.",) if unseen else ()


def _note_unsearched(runs: tuple[Runs, Runs], words: Vocabulary) -> Iterator[str]:
    """Say which numbers and texts were not searched on their own. The verdict stands: the exact output has them."""
    numbers, texts = ({*getattr(runs[0], kind), *getattr(runs[1], kind)} for kind in ("numbers", "texts"))
    for found, most, kind in ((numbers, MOST_SEARCHED, "numbers"), (texts, MOST_TEXTS, "texts")):
        if len(found) > most:
            yield f"Of {len(found)} {kind}, the {most} that differ most were searched; others with the whole output."
    if any(is_partly_searched(str(text)) for text in words.texts.values):
        yield (
            f"Of long texts, the first {FROM_START} and the last {FROM_END} characters and the first {MOST_NUMERALS} "
            "numerals were searched one by one; the rest as a part of the text."
        )


def _note_repetition(runs: tuple[Runs, Runs]) -> tuple[str, ...]:
    """Say so if outputs repeat as if the noise were seeded: then the runs are not independent."""
    for part, name in zip(runs, ("first", "second"), strict=True):
        different = np.unique(part.outputs).size
        repeated = float((part.outputs[1:] == part.outputs[:-1]).mean())
        expected = float(((np.bincount(part.outputs) / part.count) ** 2).sum())  # of independent runs
        if different == 1:
            return (f"All runs on the {name} dataset gave the same output: there is no noise, or it is seeded.",)
        if repeated > expected + SUSPICIOUS:
            return (
                f"{100 * repeated:.0f} % of the runs on the {name} dataset repeat the output before them: the noise "
                "may be seeded. The confidence assumes independent runs.",
            )
    return ()
