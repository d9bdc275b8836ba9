"""What a survey asks, of whom, and what it costs, in words: for prompts, notebooks and the command line."""

from decimal import ROUND_CEILING, Context, Decimal
from typing import assert_never

from sfumato.kernel.exact import write_plain
from sfumato.local.survey.domains import AnyWord, Categories, Domain, Numbers, YesNo
from sfumato.local.survey.manifest import Manifest

MOST_LABELS = 12


def list_survey_facts(manifest: Manifest) -> list[tuple[str, str]]:
    """The facts that a person wants to know before answering. Losses are computed from the table, and rounded up."""
    mechanism = manifest.permanent.describe()["mechanism"]
    delta = manifest.price_delta
    return [
        ("answers", describe_answers(manifest.domain)),
        ("one report", f"ε = {format_epsilon(manifest.table.epsilon)}, computed from the table ({mechanism})"),
        ("all reports on one answer", f"ε = {format_epsilon(manifest.price)}{_describe_memo(manifest)}"),
        *([("one answer", f"δ = {format_epsilon(delta)}, computed from the table")] if delta else []),
        ("in total", f"at most ε = {manifest.lifetime_epsilon}"),
        ("asked", _describe_periods(manifest)),
        ("runs", f"{manifest.created:%Y-%m-%d} to {manifest.expires:%Y-%m-%d}"),
    ]


def describe_answers(domain: Domain) -> str:
    """The possible answers; of many, the first."""
    match domain:
        case Numbers():
            return f"a number from {domain.lower} to {domain.upper}"
        case AnyWord(words):
            if words.alphabet:
                return f"any word: its first {words.length} characters, of the {len(words.alphabet)} of the alphabet"
            return f"any word: its first {words.length} bytes in UTF-8"
        case YesNo():
            return f"yes or no to each of {_list_labels(domain.labels)}"
        case Categories():
            return _list_labels(domain.labels)
        case _:
            assert_never(domain)


def format_epsilon(epsilon: Decimal) -> str:
    """Write an epsilon with six digits, rounded up: never less than the true one."""
    return write_plain(Context(prec=6, rounding=ROUND_CEILING).plus(epsilon).normalize())


def _list_labels(labels: tuple[str, ...]) -> str:
    more = len(labels) - MOST_LABELS
    return ", ".join(labels[:MOST_LABELS]) + (f" and {more:,} more" if more > 0 else "")


def _describe_memo(manifest: Manifest) -> str:
    if manifest.memo is None:
        return " for each report" if manifest.period_days else ""
    sent = "randomised again for each report" if manifest.memo.instantaneous else "sent without change"
    return f": a permanent report is kept for {manifest.memo.periods} periods and {sent}"


def _describe_periods(manifest: Manifest) -> str:
    if not manifest.period_days:
        return "once"
    often = f"every {manifest.period_days} days"
    return f"{often}; the epsilon in total allows {manifest.affordable_periods:,} of {manifest.periods:,} periods"
