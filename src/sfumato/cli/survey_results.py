# ruff: noqa: PLC0415 - a command imports the packages that only it needs
"""Surveys in the local model, after the device: simulate, ingest, results, plot."""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, to_stderr, working
from sfumato.cli.survey_source import PublicKey, Source, load

if TYPE_CHECKING:
    from rich.progress import TaskID

    from sfumato.local.collect.results import Results
    from sfumato.local.collect.simulation import Progress

PLOTS = (".svg", ".png")

State = Annotated[Path, typer.Option(help="The collector's file.", metavar="FILE")]
Period = Annotated[int | None, typer.Option(help="Default: the last period with the minimum batch.", metavar="N")]
Confidence = Annotated[str, typer.Option(help="The confidence level of the intervals.", metavar="P")]
Together = Annotated[bool, typer.Option("--simultaneous", help="Make the intervals simultaneous.")]
Fakes = Annotated[str, typer.Option(help="The assumed percentage of fake reports.", metavar="PERCENT")]
Delta = Annotated[str, typer.Option(help="The delta of the bound for shuffled reports.", metavar="D")]
WORDS_NOTE = (
    "Each listed word is the word of some person, with the stated confidence for all of them together. A word that is "
    "not listed may be frequent too: it could not be told from noise. Fake reports can add and hide words."
)
COLLECTED = Path("collected.db")
HEADINGS = {"accepted": "counted", "foreign": "other survey"}
RARE = ("conflict", "untimely", "withdrawn")


def simulate(
    source: Source,
    *,
    people: Annotated[int, typer.Option(help="The number of simulated people.", metavar="N")] = 1_000_000,
    shares: Annotated[
        str | None, typer.Option(help="The population's shares, separated by commas.", metavar="S,S,S")
    ] = None,
    workers: Annotated[int, typer.Option(help="The number of workers that collect.", metavar="N")] = 2,
    folder: Annotated[
        Path | None,
        typer.Option("--keep", help="Keep the reports and the collected files here.", metavar="DIR"),
    ] = None,
    fakes: Fakes = "1",
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse a survey with simulated people, and compare the result with the truth."""
    with refusals(as_json):
        from sfumato.local.collect.simulation import simulate as run

        loaded = load(source, public_key)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as scratch, _show_progress(people) as progress:
            place = Path(scratch) if folder is None else folder
            place.mkdir(parents=True, exist_ok=True)
            given = None if shares is None else shares.split(",")
            found = run(
                loaded.manifest,
                people,
                place,
                shares=given,
                workers=workers,
                progress=progress,
                fakes=_read_share(fakes),
            )
        seconds = time.perf_counter() - started
        truth = [float(value) for value in found.population]
        lines = zip(found.results.lines, truth, strict=True)
        inside = sum(line.low <= value <= line.high for line, value in lines)
        if as_json:
            print_json(
                {
                    **found.results.to_dict(),
                    "received": found.received.to_dict(),
                    "population": truth,
                    "asked": [float(value) for value in found.asked],
                    "intervals_that_hold": inside,
                    "seconds": round(seconds, 2),
                }
            )
            return
        print_results(found.results, truth)
        say(f"{inside} of {len(truth)} intervals contain the true value.")
        say(f"Simulated {people:,} people in {seconds:.1f} seconds.", "green")


def ingest(
    source: Source,
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="Reports: .jsonl or .parquet.")] = None,
    *,
    state: State = COLLECTED,
    merge: Annotated[list[Path] | None, typer.Option(help="Merge another worker's file.", metavar="FILE")] = None,
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Collect reports. Each report counts once; malformed ones are left out and counted."""
    with refusals(as_json):
        from sfumato.local.collect.collector import Collector, name_parts
        from sfumato.local.collect.received_counts import ReceivedCounts

        for path in (*(files or ()), *(merge or ())):
            if not path.is_file():
                raise Usage(f"The file {path} does not exist.", "Nothing was collected.")
        if not files and not merge:
            raise Usage(
                "Give files of reports to collect, or workers' files to merge.",
                "For example reports.jsonl, or --merge other.db.",
            )
        collector = Collector(load(source, public_key).manifest, state)
        total = ReceivedCounts()
        with working("Collecting"):
            for path in files or ():
                total += collector.ingest(path)
            for path in merge or ():
                total += collector.merge(path)
        whole, periods = collector.count_received(), collector.periods()
        if as_json:
            print_json({"received": total.to_dict(), "total": whole.to_dict(), "periods": periods})
            return
        shown = ["accepted", "duplicate", "malformed", "foreign", *(name for name in RARE if whole.to_dict()[name])]
        print_table(
            ["", *(HEADINGS.get(name, name) for name in shown)],
            [
                [when, *(f"{counts.to_dict()[name]:,}" for name in shown)]
                for when, counts in (("now", total), ("total", whole))
            ],
            right=range(1, len(shown) + 1),
        )
        if total.conflict:
            say(f"Conflicts: {total.conflict:,}. Other reports had the same ids, and the first ones count.", "yellow")
        if total.untimely:
            say(f"Untimely: {_count_reports(total.untimely)} for periods that have not begun.", "yellow")
        waits = collector.manifest.minimum_batch
        for period, people in periods.items():
            few = "" if people >= waits else f" Results are shown from {waits:,} reports on"
            short = f"{few}{name_parts(collector.manifest)}." if few else ""
            say(f"Period {period}: {_count_reports(people)}.{short}")


def results(
    source: Source,
    *,
    state: State = COLLECTED,
    period: Period = None,
    confidence: Confidence = "0.95",
    simultaneous: Together = False,
    fakes: Fakes = "1",
    delta: Delta = "1e-6",
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Show the estimates with confidence intervals, the privacy loss, and the effect of fake reports."""
    with refusals(as_json):
        found, waiting = _make_results(
            source, public_key, state, period,
            confidence=confidence, simultaneous=simultaneous, fakes=fakes, delta=delta,
        )  # fmt: skip
        if as_json:
            print_json({**found.to_dict(), "waiting": waiting})
            return
        print_results(found)
        if waiting:
            say(f"Not included yet: {_count_reports(waiting)}. A whole minimum batch of them must arrive first.")


def plot(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file of the picture: .svg or .png.")],
    *,
    state: State = COLLECTED,
    period: Period = None,
    confidence: Confidence = "0.95",
    simultaneous: Together = False,
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Draw the results: bars with confidence intervals, and dots for the consistent estimates."""
    with refusals(as_json):
        if out.suffix.lower() not in PLOTS or not out.absolute().parent.is_dir():
            raise Usage(
                f"The file of a plot must end in {' or '.join(PLOTS)}, and its folder must exist.",
                "For example results.svg.",
            )
        found, _ = _make_results(source, public_key, state, period, confidence=confidence, simultaneous=simultaneous)
        if not found.lines:
            raise Usage("No word is frequent enough to be drawn.", "Collect more reports.")
        with working(f"Saving {out}"):
            found.plot().save(str(out), format="png" if out.suffix.lower() == ".png" else "svg")
        if as_json:
            print_json({"file": str(out)})
            return
        say(f"Saved {out}.")


def print_results(found: "Results", truth: list[float] | None = None) -> None:
    """Print the local epsilon, the estimates, and the bound for shuffled reports."""
    from sfumato.kernel.exact import write_plain
    from sfumato.local.survey.survey_words import format_epsilon

    local, long = format_epsilon(found.local_epsilon), format_epsilon(found.longitudinal_epsilon)
    say(found.question, "bold")
    total = "" if found.local_epsilon == found.longitudinal_epsilon else f" All reports on one answer: ε = {long}."
    with_delta = f" and δ = {format_epsilon(found.local_delta)}" if found.local_delta else ""
    say(f"Local ε = {local}{with_delta} for one report, whoever reads it.{total}", "green")
    scope = "simultaneous" if found.simultaneous else "each alone"
    missing = "fake reports" + (", or the bias of numbers that were clamped to the bounds" * (found.kind == "mean"))
    if not found.lines:
        say("No word is frequent enough to be told from noise. More reports, or a larger epsilon, would show more.")
    places = _choose_decimals(min((line.high - line.low for line in found.lines), default=0.0))
    rows = [
        [
            line.label,
            f"{line.unbiased:.{places}f}",
            f"{line.low:.{places}f} to {line.high:.{places}f}",
            f"{line.consistent:.{places}f}",
            "unbounded" if line.moved == float("inf") else f"±{line.moved:.2g}",
            *([] if truth is None else [f"{truth[place]:.{places}f}"]),
        ]
        for place, line in enumerate(found.lines)
    ]
    percent = f"{float(100 * found.fakes):g} %"
    headings = [found.kind, "unbiased", f"{100 * found.confidence:g} % interval", "consistent", f"{percent} fake"]
    if rows:
        print_table(
            headings + ([] if truth is None else ["truth"]), rows, right=range(1, 6 if truth is not None else 5)
        )
    if found.kind == "word":
        say(WORDS_NOTE)
    say(
        f"{_count_reports(found.people)} in period {found.period}. The confidence intervals are for the population, "
        f"{scope}. They cover the randomisation and the sampling of the people. They do not cover {missing}."
    )
    say(
        "Unbiased estimates can be impossible (below 0 or above 1, or outside the bounds); the consistent ones are the "
        f'nearest possible ones. "{percent} fake": by how much an estimate can have moved if {percent} of the reports '
        "are fake."
    )
    bound = found.shuffle_bound
    if found.local_delta:
        say(f"With a shuffler: {bound.assumptions[0]}", "dim")
        return
    say(
        f"With a shuffler and {bound.people:,} reports: at most ε = {write_plain(bound.epsilon)} with "
        f"δ = {write_plain(bound.delta)}, if all of this holds:",
        "dim",
    )
    for assumption in found.assumptions:
        say(f"  - {assumption}", "dim")


def _choose_decimals(width: float) -> int:
    """The number of decimals that shows the narrowest interval with two digits: more would be noise."""
    return min(max(1 - math.floor(math.log10(width)), 0), 12) if 0 < width < math.inf else 4


def _make_results(
    source: str,
    public_key: str | None,
    state: Path,
    period: int | None,
    *,
    confidence: str,
    simultaneous: bool,
    fakes: str = "1",
    delta: str = "1e-6",
) -> tuple["Results", int]:
    """The results, and the number of reports of the period that are not included yet."""
    from sfumato.local.collect.collector import Collector
    from sfumato.local.collect.published_results import publish_results

    if not state.is_file():
        raise Usage(f"The file {state} does not exist.", "Collect reports first: sfumato survey ingest SURVEY FILES")
    share = _read_share(fakes)
    collector = Collector(load(source, public_key).manifest, state)
    with working("Estimating"):
        found = publish_results(
            collector,
            period,
            confidence=confidence,
            simultaneous=simultaneous,
            fakes=share,
            delta=delta,
        )
    return found, collector.periods()[found.period] - found.people


def _read_share(percent: str) -> str:
    """Read a percentage as a share."""
    from decimal import Decimal, InvalidOperation

    try:
        share = Decimal(percent) / 100
    except InvalidOperation:
        share = Decimal(0)
    if not 0 < share < 1:
        raise Usage("--fakes takes a percentage between 0 and 100.", "For example --fakes 1.")
    return str(share)


def _count_reports(count: int) -> str:
    return f"{count:,} report{'s' * (count != 1)}"


@contextmanager
def _show_progress(people: int) -> Iterator["Progress"]:
    """Show a progress bar for each stage on stderr, if it is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = to_stderr()
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        stages: dict[str, TaskID] = {}

        def progress(stage: str, count: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=people)
            bar.advance(stages[stage], count)

        yield progress
