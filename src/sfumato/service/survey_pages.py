"""The pages of a survey: for respondents, for anyone who checks the document, and for the owner."""

import json
import math
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from starlette.responses import HTMLResponse

from sfumato.errors import QueryError
from sfumato.kernel.exact import write_plain
from sfumato.local.collect.collector import Collector, name_parts
from sfumato.local.collect.published_results import publish_results
from sfumato.local.collect.results import Line, Results
from sfumato.local.survey.domains import YesNo
from sfumato.local.survey.key_ring import read_ring
from sfumato.local.survey.manifest import Manifest
from sfumato.local.survey.survey_words import format_epsilon
from sfumato.service.survey_settings import SurveySettings

PAGES = Path(__file__).with_name("pages")
MOST_LINES = 200  # of estimates on the owner's page


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(name)


def show_respondent(manifest: Manifest, settings: SurveySettings) -> HTMLResponse:
    consent = Path(settings.consent).read_text(encoding="utf-8").split("\n\n") if settings.consent else []
    text = _template("respondent.html").render(
        survey=manifest,
        sure=_bound_certainty(float(manifest.price)),
        epsilon=format_epsilon(manifest.price),
        delta=_round_delta(manifest.price_delta) if manifest.price_delta else "",
        consent=consent,
        address=manifest.endpoint or "reports",
    )
    return HTMLResponse(text)


def _round_delta(delta: Decimal) -> str:
    """Three digits, rounded up: a person reads the same text here and on the page's buttons."""
    places = Decimal(1).scaleb(delta.adjusted() - 2)
    return f"{delta.quantize(places, ROUND_UP).normalize():f}"


def show_manifest(manifest: Manifest, settings: SurveySettings) -> HTMLResponse:
    rows = [
        ("hash (SHA-256 of the signed statement)", manifest.digest),
        ("id", manifest.id),
        ("signed with the key", manifest.public_key),
        *([("this key", _describe_key(manifest, settings.keys))] if settings.keys else []),
        ("epsilon of one report, computed from the table", write_plain(manifest.table.epsilon)),
        ("epsilon of all reports on one answer", write_plain(manifest.price)),
        *(
            [("delta of one answer, computed from the table", write_plain(manifest.price_delta))]
            * bool(manifest.price_delta)
        ),
        ("most epsilon in total", write_plain(manifest.lifetime_epsilon)),
        ("runs", f"{manifest.created:%Y-%m-%d} to {manifest.expires:%Y-%m-%d}"),
        ("results are shown", f"from {manifest.minimum_batch:,} reports on{name_parts(manifest)}"),
    ]
    document = json.dumps(manifest.statement, indent=2, ensure_ascii=False)[:200_000]
    return HTMLResponse(_template("manifest.html").render(survey=manifest, rows=rows, document=document))


def _describe_key(manifest: Manifest, place: str) -> str:
    """What the team's present list says about the survey's key."""
    ring = read_ring(Path(place).read_bytes())
    found = next((key for key in ring.keys if key.public_key == manifest.public_key), None)
    if found is None:
        return "is not in the team's list of trusted keys"
    if found.revoked:
        return "was revoked: do not answer this survey"
    valid = f"may sign surveys from {found.begins:%Y-%m-%d} until {found.ends:%Y-%m-%d}"
    return valid if found.may_have_signed(manifest) else f"{valid}: this survey is from another time"


@dataclass(frozen=True, slots=True)
class _Period:
    """A period on the owner's page."""

    number: int
    received: int
    published: int
    sentences: tuple[tuple[str, str], ...]  # an estimate, and what fake reports could do to it
    hidden: int  # estimates that are not listed
    results: Results | None
    local: str
    delta: str
    shuffled: str


def show_owner(collectors: list[Collector]) -> HTMLResponse:
    surveys = []
    for collector in collectors:
        received, published = collector.periods(), collector.published_periods()
        surveys.append(
            {
                "manifest": collector.manifest,
                "parts": name_parts(collector.manifest),
                "counts": collector.count_received().to_dict(),
                "periods": [
                    _describe_period(collector, number, count, published.get(number, 0))
                    for number, count in sorted(received.items(), reverse=True)
                ],
            }
        )
    return HTMLResponse(_template("owner.html").render(surveys=surveys))


def _describe_period(collector: Collector, number: int, received: int, published: int) -> _Period:
    try:
        found = publish_results(collector, number, publish=False)
    except QueryError:
        return _Period(number, received, published, (), 0, None, "", "", "")
    several = isinstance(collector.manifest.domain, YesNo)
    sentences = tuple(
        (write_sentence(line, found, questions=several), _bound_fakes(line, found)) for line in found.lines[:MOST_LINES]
    )
    return _Period(
        number, received, published, sentences, max(len(found.lines) - MOST_LINES, 0), found,
        format_epsilon(found.local_epsilon), format_epsilon(found.local_delta) if found.local_delta else "",
        write_plain(found.shuffle_bound.epsilon),
    )  # fmt: skip


def write_sentence(line: Line, found: Results, *, questions: bool = False) -> str:
    """An estimate in a plain sentence, such as: 25 % ± 2 points answered “yes” (95 % confidence)."""
    half = (line.high - line.low) / 2
    middle = (line.high + line.low) / 2
    sure = f"{100 * found.confidence:g} % confidence"
    if found.kind == "mean":
        digits = max(0, 1 - math.floor(math.log10(half))) if 0 < half < math.inf else 2
        return f"The mean is {middle:.{digits}f} ± {half:.{digits}f} ({sure})."
    digits = 0 if half >= 0.02 else 1 if half >= 0.002 else 2
    share = min(max(100 * middle, 0.0), 100.0)
    answered = "said yes to" if questions else "answered"  # also for a word that was found
    if line.low <= 0 and line.high >= 1:
        return f"Too few reports to say which share {answered} “{line.label}”: any share is possible ({sure})."
    return f"{share:.{digits}f} % ± {100 * half:.{digits}f} points {answered} “{line.label}” ({sure})."


def _bound_fakes(line: Line, found: Results) -> str:
    if line.moved == math.inf:
        return "Fake reports could have moved it without a bound."
    share = f"{float(100 * found.fakes):g} %"
    moved = f"{line.moved:.3g}" if found.kind == "mean" else f"{100 * line.moved:.2g} points"
    return f"If {share} of the reports are fake, they can have moved it by at most {moved}."


def _bound_certainty(epsilon: float) -> str:
    """How sure a reader can become of an answer that was as likely as not: 1 / (1 + e**-epsilon), rounded up."""
    percent = math.ceil(100 / (1 + math.exp(-epsilon)))
    return f"at most {percent} %" if percent < 100 else "more than 99 %"
