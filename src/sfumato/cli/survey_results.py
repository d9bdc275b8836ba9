# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Surveys without a trusted curator, after the device: simulate, ingest, results, plot."""

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

if TYPE_CHECKING:
    from sfumato.local.collect.collector import Received
    from sfumato.local.collect.results import Results
    from sfumato.local.collect.simulation import Progress
    from sfumato.local.survey.signed_survey import Survey

PLOTS = (".svg", ".png")

Source = Annotated[str, typer.Argument(metavar="SURVEY", help="The survey: a file, or an https address.")]
PublicKey = Annotated[
    str | None, typer.Option("--public-key", help="The key of whoever asks, in hex; any other is refused.", metavar="K")
]
State = Annotated[Path, typer.Option(help="The collector's file.", metavar="FILE")]
Period = Annotated[int | None, typer.Option(help="Which period; by default the last with enough.", metavar="N")]
Confidence = Annotated[str, typer.Option(help="How often an interval holds.", metavar="P")]
Together = Annotated[bool, typer.Option("--simultaneous", help="Intervals that hold all together.")]
Fakes = Annotated[str, typer.Option(help="Percent of reports that may be made up.", metavar="PERCENT")]
Delta = Annotated[str, typer.Option(help="The delta of the shuffled epsilon.", metavar="D")]
COLLECTED = Path("collected.db")


def simulate(
    source: Source,
    *,
    people: Annotated[int, typer.Option(help="How many made-up people.", metavar="N")] = 1_000_000,
    shares: Annotated[
        str | None, typer.Option(help="The population's shares, with commas between them.", metavar="S,S,S")
    ] = None,
    workers: Annotated[int, typer.Option(help="How many workers collect.", metavar="N")] = 2,
    folder: Annotated[
        Path | None, typer.Option("--keep", help="Keep the reports and the collected files here.", metavar="DIR")
    ] = None,
    fakes: Fakes = "1",
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse: made-up people answer, devices randomise, workers collect, and the result meets the truth."""
    with refusals(as_json):
        from sfumato.local.collect.simulation import simulate as run

        loaded = _load(source, public_key)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as scratch, _bar(people) as progress:
            place = Path(scratch) if folder is None else folder
            place.mkdir(parents=True, exist_ok=True)
            given = None if shares is None else shares.split(",")
            found = run(
                loaded.manifest, people, place, shares=given, workers=workers, progress=progress, fakes=_share(fakes)
            )
        seconds = time.perf_counter() - started
        truth = [float(each) for each in found.population]
        inside = sum(line.low <= each <= line.high for line, each in zip(found.results.lines, truth, strict=True))
        if as_json:
            print_json(
                {
                    **found.results.to_dict(),
                    "received": found.received.to_dict(),
                    "population": truth,
                    "asked": [float(each) for each in found.asked],
                    "intervals_that_hold": inside,
                    "seconds": round(seconds, 2),
                }
            )
            return
        print_results(found.results, truth)
        say(f"{inside} of {len(truth)} intervals hold the population's truth.")
        say(f"{people:,} people, from the device to the result, in {seconds:.1f} seconds.", "green")


def ingest(
    source: Source,
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="Reports, as .jsonl or .parquet.")] = None,
    *,
    state: State = COLLECTED,
    merge: Annotated[list[Path] | None, typer.Option(help="Add what another worker collected.", metavar="FILE")] = None,
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Collect reports: each counts once; what is malformed is counted and left out."""
    with refusals(as_json):
        from sfumato.local.collect.collector import Collector, Received

        for path in (*(files or ()), *(merge or ())):
            if not path.is_file():
                raise Usage(f"There is no file {path}.", "Nothing was collected.")
        if not files and not merge:
            raise Usage("Say which files of reports to collect, or which workers' files to add.", "Or both.")
        collector = Collector(_load(source, public_key).manifest, state)
        total = Received()
        with working("Collecting"):
            for path in files or ():
                total += collector.ingest(path)
            for path in merge or ():
                total += collector.merge(path)
        whole, periods = collector.received(), collector.periods()
        if as_json:
            print_json({"received": total.to_dict(), "total": whole.to_dict(), "periods": periods})
            return
        print_table(
            ["", "counted", "came again", "malformed", "of another survey"],
            [_counts("now", total), _counts("in all", whole)],
            right=[1, 2, 3, 4],
        )
        waits = collector.manifest.minimum_batch
        for period, people in periods.items():
            short = "" if people >= waits else f" The survey waits for {waits:,}."
            say(f"Period {period}: {_reports(people)}.{short}")


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
    """What the reports say: unbiased with intervals, and consistent; what it cost each person; what fakes could do."""
    with refusals(as_json):
        found, waiting = _found(
            source, public_key, state, period,
            confidence=confidence, simultaneous=simultaneous, fakes=fakes, delta=delta,
        )  # fmt: skip
        if as_json:
            print_json({**found.to_dict(), "waiting": waiting})
            return
        print_results(found)
        if waiting:
            say(f"Not in it yet: {_reports(waiting)}. What came later is shown when a whole batch of it has come.")


def plot(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The picture: .svg or .png.")],
    *,
    state: State = COLLECTED,
    period: Period = None,
    confidence: Confidence = "0.95",
    simultaneous: Together = False,
    public_key: PublicKey = None,
    as_json: AsJson = False,
) -> None:
    """Draw the result: bars with intervals, and dots where the consistent estimates lie."""
    with refusals(as_json):
        if out.suffix.lower() not in PLOTS or not out.absolute().parent.is_dir():
            raise Usage(f"A plot is a file that ends in {' or '.join(PLOTS)}, in a folder that is there.", "")
        found, _ = _found(source, public_key, state, period, confidence=confidence, simultaneous=simultaneous)
        with working(f"Saving {out}"):
            found.plot().save(str(out), format="png" if out.suffix.lower() == ".png" else "svg")
        if as_json:
            print_json({"file": str(out)})
            return
        say(f"Saved {out}.")


def print_results(found: "Results", truth: list[float] | None = None) -> None:
    """The local epsilon first; estimates, each with its name; then what else is known."""
    from sfumato.kernel.exact import plain
    from sfumato.local.collect.results import shown_epsilon

    local, long = shown_epsilon(found.local_epsilon), shown_epsilon(found.longitudinal_epsilon)
    say(found.question, "bold")
    kept = "" if found.local_epsilon == found.longitudinal_epsilon else f"; all reports on one answer: ε = {long}"
    say(f"Local ε = {local}: each report by itself, whoever sees it{kept}.", "green")
    scope = "all together" if found.simultaneous else "each by itself"
    places = _places(min(line.high - line.low for line in found.lines))
    rows = [
        [
            line.label,
            f"{line.unbiased:.{places}f}",
            f"{line.low:.{places}f} to {line.high:.{places}f}",
            f"{line.consistent:.{places}f}",
            "anywhere" if line.moved == float("inf") else f"±{line.moved:.2g}",
            *([] if truth is None else [f"{truth[place]:.{places}f}"]),
        ]
        for place, line in enumerate(found.lines)
    ]
    percent = f"{float(100 * found.fakes):g} %"
    headings = [found.kind, "unbiased", f"{100 * found.confidence:g} % interval", "consistent", f"{percent} fakes"]
    print_table(headings + ([] if truth is None else ["truth"]), rows, right=range(1, 6 if truth is not None else 5))
    say(
        f"{_reports(found.people)} of period {found.period}. Intervals are for the population, {scope}, around the "
        "unbiased estimates, which may lie outside of what is possible; the consistent ones are the nearest possible."
    )
    say(f"If {percent} of the reports were made up, an estimate could have moved as far as the column says.")
    bound = found.shuffled
    say(f"Shuffled among {bound.people:,}: at most ε = {plain(bound.epsilon)} with δ = {plain(bound.delta)}, if", "dim")
    for each in found.assumptions:
        say(f"  - {each}", "dim")


def _places(width: float) -> int:
    """So many decimals that the narrowest interval is told to two digits: more would be noise."""
    return min(max(1 - math.floor(math.log10(width)), 0), 12) if 0 < width < math.inf else 4


def _load(source: str, public_key: str | None) -> "Survey":
    from sfumato.local.survey.signed_survey import Survey

    with working("Checking the survey"):
        return Survey.load(source, public_key=public_key)


def _found(
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
    """The result, and how many reports of its period wait for the rest of their batch."""
    from sfumato.local.collect.collector import Collector
    from sfumato.local.collect.results import results_of

    if not state.is_file():
        raise Usage(f"There is no file {state}.", "Collect reports first: sfumato survey ingest SURVEY FILES")
    share = _share(fakes)
    collector = Collector(_load(source, public_key).manifest, state)
    with working("Estimating"):
        number, tally = collector.enough(period)
        found = results_of(
            collector.manifest,
            number,
            tally,
            confidence=confidence,
            simultaneous=simultaneous,
            fakes=share,
            delta=delta,
        )
    return found, collector.periods()[number] - tally.people


def _share(percent: str) -> str:
    """Percent as a share, exactly."""
    from decimal import Decimal, InvalidOperation

    try:
        share = Decimal(percent) / 100
    except InvalidOperation:
        share = Decimal(0)
    if not 0 < share < 1:
        raise Usage("--fakes takes a percentage between 0 and 100.", "For example --fakes 1.")
    return str(share)


def _reports(count: int) -> str:
    return f"{count:,} report{'s' * (count != 1)}"


def _counts(name: str, received: "Received") -> list[str]:
    return [name, *(f"{count:,}" for count in received.to_dict().values())]


@contextmanager
def _bar(people: int) -> Iterator["Progress"]:
    """A progress bar for each stage, on stderr, where somebody is there to see it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = to_stderr()
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        stages: dict[str, object] = {}

        def progress(stage: str, count: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=people)
            bar.advance(stages[stage], count)  # type: ignore[arg-type]

        yield progress
