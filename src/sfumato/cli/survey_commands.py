# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Surveys without a trusted curator, before and on the device: new, show, verify, report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import survey_results
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working

if TYPE_CHECKING:
    from sfumato.local.survey.manifest import Manifest
    from sfumato.local.survey.signed_survey import Survey

survey = typer.Typer(help="Ask people whose answers nobody may hold: each device randomises before it sends.")

Source = Annotated[str, typer.Argument(metavar="SURVEY", help="The survey: a file, or an https address.")]
PublicKey = Annotated[
    str | None, typer.Option("--public-key", help="The key of whoever asks, in hex; any other is refused.", metavar="K")
]


@survey.command()
def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the signed survey.")],
    question: Annotated[str, typer.Argument(help="What people are asked.")],
    *,
    epsilon: Annotated[str, typer.Option(help="What one report may cost a person.", metavar="E")],
    labels: Annotated[str | None, typer.Option(help="The answers, with commas between them.", metavar="A,B,C")] = None,
    labels_from: Annotated[
        Path | None, typer.Option(help="A file with an answer on each line.", metavar="FILE")
    ] = None,
    lower: Annotated[str | None, typer.Option(help="For a number: its least.", metavar="X")] = None,
    upper: Annotated[str | None, typer.Option(help="For a number: its greatest.", metavar="X")] = None,
    questions: Annotated[
        str | None, typer.Option(help="Yes-or-no questions, with commas between them.", metavar="A,B,C")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Its name; by default the one of least variance.", metavar="NAME")
    ] = None,
    most_bits: Annotated[int | None, typer.Option(help="The most bits that a report may have.", metavar="N")] = None,
    every_days: Annotated[int, typer.Option(help="Ask again after so many days; 0: once.", metavar="N")] = 0,
    keep_epsilon: Annotated[
        str | None, typer.Option(help="Devices keep a permanent report of this epsilon.", metavar="E")
    ] = None,
    keep_periods: Annotated[int, typer.Option(help="For so many periods.", metavar="N")] = 52,
    lifetime: Annotated[
        str | None, typer.Option(help="The most that it may ever cost a person; by default one answer.", metavar="E")
    ] = None,
    minimum_batch: Annotated[int, typer.Option(help="No result before so many reports.", metavar="N")] = 1000,
    endpoint: Annotated[str, typer.Option(help="The https address that takes reports.", metavar="URL")] = "",
    days: Annotated[int, typer.Option(help="How long it runs.", metavar="N")] = 365,
    key: Annotated[
        Path | None,
        typer.Option(help="The file of the signing key; made if it is not there. Default: FILE.key", metavar="KEY"),
    ] = None,
    people: Annotated[int, typer.Option(help="How many people you expect, for margins.", metavar="N")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Make a survey: choose the table, sign the document, and show how wide the result will be."""
    with refusals(as_json):
        answers = _answers(labels, labels_from)
        if (lower is None) != (upper is None) or sum(x is not None for x in (answers, lower, questions)) != 1:
            raise Usage(
                "Say what may be answered: --labels, or --lower and --upper, or --questions, and only one.",
                "For example --labels yes,no.",
            )
        if path.exists():
            raise Usage(f"There is a file {path} already.", "Choose another name: a survey does not change.")
        from sfumato.local.survey.new_survey import Renewal, SurveyKey, new_survey

        asked: dict[str, Any] = {
            "epsilon": epsilon,
            "labels": answers,
            "bounds": None if lower is None or upper is None else (lower, upper),
            "questions": None if questions is None else questions.split(","),
            "mechanism": mechanism,
            "most_bits": most_bits,
            "period_days": every_days,
            "renewal": None if keep_epsilon is None else Renewal(keep_epsilon, keep_periods),
            "lifetime_epsilon": lifetime,
            "minimum_batch": minimum_batch,
            "endpoint": endpoint,
            "days": days,
        }
        place = key or path.with_name(f"{path.name}.key")
        if not place.exists():  # a rehearsal, so that a survey that is refused leaves no key behind
            new_survey(question, key=SurveyKey(), **asked)
        made = new_survey(question, key=SurveyKey(place), **asked)
        with path.open("xb") as file:
            file.write(made.manifest.to_bytes())
        margin = _margin(made.manifest, people)
        if as_json:
            print_json({"file": str(path), **_about(made.manifest), "people": people, "margin": margin})
            return
        if answers is not None and mechanism is None and keep_epsilon is None:
            from sfumato.local.randomisers.category_choice import choose

            say(str(choose(len(answers), epsilon, people=people, most_bits=most_bits)))
        if lower is not None and upper is not None and mechanism is None and keep_epsilon is None:
            from sfumato.local.randomisers.mean_choice import choose_mean

            say(str(choose_mean(lower, upper, epsilon, people=people, most_bits=most_bits)))
        if questions is not None and mechanism is None:
            from sfumato.local.randomisers.questions import compare_questions

            say(str(compare_questions(len(questions.split(",")), epsilon, people=people)))
        _print(made)
        whole = f"a share of 1 in {len(answers)}" if answers else "a share of one half" if questions else "the mean"
        say(f"With {people:,} people, {whole} is estimated to within ±{margin:.4g} (95 % confidence).")
        for warning in _warnings(made.manifest):
            say(warning, "yellow")
        say(f"Wrote {path}. Whoever answers checks it with the public key {made.manifest.public_key}.", "green")


@survey.command()
def show(source: Source, *, public_key: PublicKey = None, as_json: AsJson = False) -> None:
    """What a survey asks and costs: checked, and its epsilon derived from its table."""
    with refusals(as_json):
        loaded = load(source, public_key)
        if as_json:
            print_json(_about(loaded.manifest))
            return
        _print(loaded)


@survey.command()
def verify(
    source: Source,
    *,
    public_key: Annotated[str, typer.Option("--public-key", help="The key of whoever asks, in hex.", metavar="K")],
    as_json: AsJson = False,
) -> None:
    """Is the survey as the holder of this key signed it, and is its table worth what it states?"""
    with refusals(as_json):
        loaded = load(source, public_key)
        if as_json:
            print_json({"ok": True, "id": loaded.id, "epsilon": _about(loaded.manifest)["epsilon"]})
            return
        say("The signature holds, and the table costs no more than it states.", "green")


@survey.command(context_settings={"ignore_unknown_options": True})  # so that -1 is a value
def report(
    source: Source,
    value: Annotated[
        str, typer.Argument(help="A label; a number; or yes and no, with commas between them.", metavar="VALUE")
    ],
    *,
    public_key: PublicKey = None,
    cap: Annotated[str | None, typer.Option(help="The most that one answer may cost.", metavar="E")] = None,
    device: Annotated[
        Path | None, typer.Option(help="The file of your own books; by default in your home.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Append the report to this file of JSON lines.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a survey: the report is randomised and charged to your own books, then printed as one line."""
    with refusals(as_json):
        loaded = load(source, public_key, cap=cap, device=device)
        made = loaded.report(_value(loaded.manifest, value))
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(f"{made.to_json()}\n")
        if as_json or out is None:
            typer.echo(made.to_json())
            return
        from sfumato.local.collect.results import shown_epsilon

        cost = "nothing: it was made before" if made.repeated else f"ε = {shown_epsilon(made.epsilon)}"
        say(f"Appended to {out}. It cost {cost}.")


def load(source: str, public_key: str | None = None, *, cap: str | None = None, device: Path | None = None) -> "Survey":
    """The survey, checked."""
    from sfumato.local.survey.signed_survey import Survey

    with working("Checking the survey"):
        return Survey.load(source, public_key=public_key, cap=cap, device=device)


def _answers(labels: str | None, labels_from: Path | None) -> list[str] | None:
    if labels is not None and labels_from is not None:
        raise Usage("Say --labels or --labels-from, not both.", "For example --labels yes,no.")
    if labels_from is not None:
        return [line for line in labels_from.read_text(encoding="utf-8").splitlines() if line]
    return None if labels is None else labels.split(",")


def _value(manifest: "Manifest", text: str) -> object:
    """What the text of the command line means in this survey."""
    from sfumato.local.survey.domains import Categories, Numbers

    match manifest.domain:
        case Categories():
            return text
        case Numbers():
            try:
                return float(text)
            except ValueError:
                raise Usage("The answer to this survey is a number.", "For example 3.5.") from None
        case _:
            words = {"yes": True, "no": False, "true": True, "false": False, "1": True, "0": False}
            parts = [words.get(each.strip().lower()) for each in text.split(",")]
            if None in parts:
                raise Usage("The answer to this survey is yes or no to each question.", "For example yes,no,yes.")
            return parts


def _margin(manifest: "Manifest", people: int) -> float:
    from sfumato.local.randomisers.questions import Questions
    from sfumato.local.randomisers.share_estimates import normal_quantile
    from sfumato.number_arguments import whole_number

    table = manifest.table
    if isinstance(table, Questions):
        from fractions import Fraction

        spread = table.variance_population(0.5) / whole_number(people, "people", 1)
        return float(normal_quantile(Fraction(1, 20)) * spread**0.5)
    return table.margin(people)


def _about(manifest: "Manifest") -> dict[str, Any]:
    """The survey in plain JSON: what it says, and what follows from its table."""
    from sfumato.kernel.exact import plain

    return {
        **manifest.statement,
        "epsilon": plain(manifest.table.epsilon),
        "longitudinal_epsilon": plain(manifest.price),
        "stated_epsilon": plain(manifest.epsilon),
        "public_key": manifest.public_key,
    }


def _print(loaded: "Survey") -> None:
    from sfumato.local.collect.results import shown_epsilon
    from sfumato.local.survey.domains import Numbers, YesNo

    manifest, domain = loaded.manifest, loaded.domain
    say(manifest.question, "bold")
    if isinstance(domain, Numbers):
        answers = f"a number from {domain.lower} to {domain.upper}"
    else:
        shown = ", ".join(domain.labels[:12]) + (f" and {len(domain.labels) - 12} more" * (len(domain.labels) > 12))
        answers = f"yes or no to each of {shown}" if isinstance(domain, YesNo) else shown
    rows = [
        ["answers", answers],
        ["one report", f"ε = {shown_epsilon(loaded.epsilon)}, derived from the table ({_name(loaded)})"],
        ["all reports on one answer", f"ε = {shown_epsilon(loaded.longitudinal_epsilon)}" + _kept(manifest)],
        ["ever", f"at most ε = {manifest.lifetime_epsilon}"],
        ["asked", _asked(manifest)],
        ["result", f"not before {manifest.minimum_batch:,} reports"],
        ["runs", f"{manifest.created:%Y-%m-%d} to {manifest.expires:%Y-%m-%d}"],
        ["reports go to", manifest.endpoint or "wherever the application sends them"],
        ["id", manifest.id],
        ["signed with", manifest.public_key],
    ]
    print_table(["survey", ""], rows)


def _asked(manifest: "Manifest") -> str:
    if not manifest.period_days:
        return "once"
    often = f"every {manifest.period_days} days"
    return f"{often}: a device can answer in {manifest.affordable_periods:,} of {manifest.periods:,} periods"


def _warnings(manifest: "Manifest") -> list[str]:
    """What a team would rather know before it publishes."""
    from sfumato.local.collect.results import shown_epsilon
    from sfumato.local.survey.device import Caps

    cap, found = Caps().per_survey, []
    if manifest.price > cap:
        found.append(
            f"Devices refuse this by themselves: people give at most ε = {cap} to one survey, unless they say so."
        )
    elif manifest.lifetime_epsilon > cap:
        found.append(f"Devices stop at ε = {cap} by themselves, unless people allow a survey more.")
    if manifest.affordable_periods < manifest.periods:
        found.append(
            f"After {manifest.affordable_periods:,} of {manifest.periods:,} periods a device has given all that the "
            f"survey may ever have. An answer costs ε = {shown_epsilon(manifest.price)}: raise --lifetime, ask less "
            "often, or keep permanent reports for longer (--keep-epsilon, --keep-periods)."
        )
    return found


def _name(loaded: "Survey") -> str:
    return str(loaded.manifest.permanent.describe()["mechanism"])


def _kept(manifest: "Manifest") -> str:
    if manifest.memo is None:
        return " each time" if manifest.period_days else ""
    again = "with fresh coins for each" if manifest.memo.instantaneous else "sent as it is"
    return f": a permanent report is kept for {manifest.memo.periods} periods, {again}"


survey.command()(survey_results.simulate)
survey.command()(survey_results.ingest)
survey.command()(survey_results.results)
survey.command()(survey_results.plot)
