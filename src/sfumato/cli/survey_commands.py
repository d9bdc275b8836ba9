# ruff: noqa: PLC0415 - a command imports the packages that only it needs
"""Surveys in the local model, before and on the device: new, show, verify, announce, report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import survey_keys, survey_results, survey_serve
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say
from sfumato.cli.survey_source import PublicKey, Source, load

if TYPE_CHECKING:
    from sfumato.local.survey.manifest import Manifest
    from sfumato.local.survey.signed_survey import Survey

survey = typer.Typer(help="Run a survey in the local model: each device randomises its answer before sending it.")


@survey.command()
def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file for the signed survey.")],
    question: Annotated[str, typer.Argument(help="The question.")],
    *,
    epsilon: Annotated[str, typer.Option(help="The most epsilon that one report may cost.", metavar="E")],
    labels: Annotated[str | None, typer.Option(help="The answers, separated by commas.", metavar="A,B,C")] = None,
    labels_from: Annotated[
        Path | None, typer.Option(help="A file with one possible answer per line.", metavar="FILE")
    ] = None,
    lower: Annotated[str | None, typer.Option(help="The lower bound of a number.", metavar="X")] = None,
    upper: Annotated[str | None, typer.Option(help="The upper bound of a number.", metavar="X")] = None,
    questions: Annotated[
        str | None, typer.Option(help="Yes-or-no questions, separated by commas.", metavar="A,B,C")
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="Ask for any word, and find frequent ones: its first N characters.", metavar="N")
    ] = None,
    alphabet: Annotated[
        str, typer.Option(help="The characters of words. Default: all, as bytes of UTF-8.", metavar="CHARACTERS")
    ] = "",
    mechanism: Annotated[
        str | None, typer.Option(help="The mechanism. Default: the one of least variance.", metavar="NAME")
    ] = None,
    most_bits: Annotated[int | None, typer.Option(help="The most bits of a report.", metavar="N")] = None,
    delta: Annotated[
        str | None, typer.Option(help="The delta of --mechanism gaussian. Devices refuse it by default.", metavar="D")
    ] = None,
    every_days: Annotated[int, typer.Option(help="The length of a period in days; 0: ask once.", metavar="N")] = 0,
    keep_epsilon: Annotated[
        str | None, typer.Option(help="The epsilon of a permanent report that devices keep.", metavar="E")
    ] = None,
    keep_periods: Annotated[int, typer.Option(help="The number of periods for which they keep it.", metavar="N")] = 52,
    lifetime: Annotated[
        str | None,
        typer.Option(help="The most epsilon in total per person. Default: one answer.", metavar="E"),
    ] = None,
    minimum_batch: Annotated[int, typer.Option(help="Show no result from fewer reports.", metavar="N")] = 1000,
    endpoint: Annotated[str, typer.Option(help="The https address that receives reports.", metavar="URL")] = "",
    days: Annotated[int, typer.Option(help="The duration of the survey in days.", metavar="N")] = 365,
    key: Annotated[
        Path | None,
        typer.Option(help="The signing key's file; created if it does not exist. Default: FILE.key", metavar="KEY"),
    ] = None,
    people: Annotated[int, typer.Option(help="The expected number of people, for the margins.", metavar="N")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Make a survey: choose the mechanism, sign the document, and show the expected accuracy."""
    with refusals(as_json):
        answers = _read_labels(labels, labels_from)
        if (lower is None) != (upper is None) or sum(x is not None for x in (answers, lower, questions, words)) != 1:
            raise Usage(
                "Give exactly one kind of answer: --labels, or --lower and --upper, or --questions, or --words.",
                "For example --labels yes,no.",
            )
        if path.exists():
            raise Usage(f"The file {path} exists already.", "Choose another name: a published survey must not change.")
        from sfumato.local.survey.new_survey import Renewal, SurveyKey, new_survey

        asked: dict[str, Any] = {
            "epsilon": epsilon,
            "labels": answers,
            "bounds": None if lower is None or upper is None else (lower, upper),
            "questions": None if questions is None else questions.split(","),
            "words": words,
            "alphabet": alphabet,
            "mechanism": mechanism,
            "most_bits": most_bits,
            "delta": delta,
            "period_days": every_days,
            "renewal": None if keep_epsilon is None else Renewal(keep_epsilon, keep_periods),
            "lifetime_epsilon": lifetime,
            "minimum_batch": minimum_batch,
            "endpoint": endpoint,
            "days": days,
        }
        place = key or path.with_name(f"{path.name}.key")
        if not place.exists():  # try it first, so that a refused survey leaves no key file behind
            new_survey(question, key=SurveyKey(), **asked)
        made = new_survey(question, key=SurveyKey(place), **asked)
        with path.open("xb") as file:
            file.write(made.manifest.to_bytes())
        margin = _margin(made.manifest, people)
        if as_json:
            print_json({"file": str(path), **_describe(made.manifest), "people": people, "margin": margin})
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
        _print_survey(made)
        say(_describe_accuracy(made.manifest, people, margin))
        for warning in _find_warnings(made.manifest):
            say(warning, "yellow")
        say(f"Wrote {path}. Publish the public key too: {made.manifest.public_key}.", "green")


@survey.command()
def show(source: Source, *, public_key: PublicKey = None, as_json: AsJson = False) -> None:
    """Check a survey, and show its question and its epsilon, computed from its table."""
    with refusals(as_json):
        loaded = load(source, public_key)
        if as_json:
            print_json(_describe(loaded.manifest))
            return
        _print_survey(loaded)


@survey.command()
def verify(
    source: Source,
    *,
    public_key: Annotated[str, typer.Option("--public-key", help="The team's public key, in hex.", metavar="K")],
    as_json: AsJson = False,
) -> None:
    """Check the survey's signature against a key, and its table against the stated epsilon."""
    with refusals(as_json):
        loaded = load(source, public_key)
        if as_json:
            print_json({"ok": True, "id": loaded.id, "epsilon": _describe(loaded.manifest)["epsilon"]})
            return
        say("The signature is valid, and the table costs no more than the stated epsilon.", "green")


@survey.command()
def announce(
    source: Source,
    *,
    key: Annotated[Path, typer.Option(help="The file of the key that signed the survey.", metavar="KEY")],
    out: Annotated[Path | None, typer.Option(help="Write the announcement to this file.", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Sign the announcement that the present period has begun: devices can use it instead of their own clock."""
    with refusals(as_json):
        from sfumato.local.survey.new_survey import SurveyKey

        if not key.is_file():
            raise Usage(f"The file {key} does not exist.", "Give the key that signed the survey: --key FILE.")
        document = SurveyKey(key).announce(load(source).manifest)
        if out is None or as_json:
            typer.echo(document.decode().rstrip())
        if out is not None:
            out.write_bytes(document)
            if not as_json:
                say(f"Wrote {out}. Publish it beside the survey.", "green")


@survey.command(context_settings={"ignore_unknown_options": True})  # so that -1 is read as a value
def report(
    source: Source,
    value: Annotated[
        str, typer.Argument(help="A label, a number, a word, or yes and no separated by commas.", metavar="VALUE")
    ],
    *,
    public_key: PublicKey = None,
    cap: Annotated[str | None, typer.Option(help="The most epsilon that this answer may cost.", metavar="E")] = None,
    device: Annotated[
        Path | None, typer.Option(help="The file of your own ledger. Default: in your home.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Append the report to this file of JSON lines.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a survey: randomise the answer, charge your own ledger, and print the report as one line."""
    with refusals(as_json):
        loaded = load(source, public_key, cap=cap, device=device)
        made = loaded.report(_read_answer(loaded.manifest, value))
        cut = _find_cut(loaded.manifest, value)
        if cut is not None:
            typer.echo(f"The word is longer than this survey takes. What is reported: {cut}", err=True)
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(f"{made.to_json()}\n")
        if as_json or out is None:
            typer.echo(made.to_json())
            return
        from sfumato.local.survey.survey_words import format_epsilon

        cost = (
            "This is the same report as before, so it cost nothing."
            if made.repeated
            else f"It cost ε = {format_epsilon(made.epsilon)}."
        )
        say(f"Appended the report to {out}. {cost}")


def _read_labels(labels: str | None, labels_from: Path | None) -> list[str] | None:
    if labels is not None and labels_from is not None:
        raise Usage("Give --labels or --labels-from, not both.", "For example --labels yes,no.")
    if labels_from is not None:
        return [line for line in labels_from.read_text(encoding="utf-8").splitlines() if line]
    return None if labels is None else labels.split(",")


def _read_answer(manifest: "Manifest", text: str) -> object:
    """Read the text of the command line as an answer to this survey."""
    from sfumato.local.survey.domains import AnyWord, Categories, Numbers

    match manifest.domain:
        case Categories() | AnyWord():
            return text
        case Numbers():
            try:
                return float(text)
            except ValueError:
                raise Usage("The answer to this survey must be a number.", "For example 3.5.") from None
        case _:
            words = {"yes": True, "no": False, "true": True, "false": False, "1": True, "0": False}
            parts = [words.get(part.strip().lower()) for part in text.split(",")]
            if None in parts:
                raise Usage("The answer to this survey must be yes or no to each question.", "For example yes,no,yes.")
            return parts


def _find_cut(manifest: "Manifest", text: str) -> str | None:
    """What is reported of a word that is too long; None if it is not."""
    from sfumato.local.survey.domains import AnyWord

    if not isinstance(manifest.domain, AnyWord):
        return None
    words = manifest.domain.words
    kept = words.decode(words.encode(text))
    return None if kept == text else kept


def _describe_accuracy(manifest: "Manifest", people: int, margin: float) -> str:
    from sfumato.local.survey.domains import AnyWord, Categories, YesNo

    domain = manifest.domain
    if isinstance(domain, AnyWord):
        found = f"a word is found if about {100 * margin:.3g} % of the people have it"
        missing = "fake reports"
    elif isinstance(domain, Categories | YesNo):
        share = 100 / len(domain.labels) if isinstance(domain, Categories) else 50
        found = f"a share of {share:.3g} % is estimated to within ±{100 * margin:.3g} points (95 % confidence)"
        missing = "fake reports"
    else:
        found = f"the mean is estimated to within ±{margin:.4g} (95 % confidence)"
        missing = "fake reports, or the bias of numbers that are clamped to the bounds"
    return (
        f"With {people:,} people, {found}. This covers the randomisation and the sampling of the people. It does not "
        f"cover {missing}."
    )


def _margin(manifest: "Manifest", people: int) -> float:
    from sfumato.local.randomisers.heavy_hitters import HeavyHitters
    from sfumato.local.randomisers.questions import Questions
    from sfumato.local.randomisers.share_estimates import compute_normal_quantile
    from sfumato.number_arguments import read_whole_number

    table = manifest.table
    if isinstance(table, HeavyHitters):
        return table.find_least_share(people)
    if isinstance(table, Questions):
        from fractions import Fraction

        spread = table.variance_population(0.5) / read_whole_number(people, "people", 1)
        return float(compute_normal_quantile(Fraction(1, 20)) * spread**0.5)
    return table.margin(people)


def _describe(manifest: "Manifest") -> dict[str, Any]:
    """The survey in plain JSON, with the epsilon that is computed from its table."""
    from sfumato.kernel.exact import write_plain

    return {
        **manifest.statement,
        "epsilon": write_plain(manifest.table.epsilon),
        "longitudinal_epsilon": write_plain(manifest.price),
        "stated_epsilon": write_plain(manifest.epsilon),
        "public_key": manifest.public_key,
    }


def _print_survey(loaded: "Survey") -> None:
    from sfumato.local.collect.collector import name_parts
    from sfumato.local.survey.survey_words import list_survey_facts

    manifest = loaded.manifest
    say(manifest.question, "bold")
    *facts, dates = map(list, list_survey_facts(manifest))
    rows = [
        *facts,
        ["results", f"from {manifest.minimum_batch:,} reports on{name_parts(manifest)}"],
        dates,
        ["reports go to", manifest.endpoint or "no address: the application decides"],
        ["id", manifest.id],
        ["signed with", manifest.public_key],
    ]
    print_table(["survey", ""], rows)


def _find_warnings(manifest: "Manifest") -> list[str]:
    """Warnings for the team before it publishes the survey."""
    from sfumato.local.survey.device import Caps
    from sfumato.local.survey.survey_words import format_epsilon

    cap, found = Caps().per_survey, []
    if manifest.price_delta:
        found.append(
            "Devices refuse this survey by default, because its guarantee has a delta. People can allow one. At the "
            "same epsilon, the mechanism hybrid has no delta and a smaller margin."
        )
    if manifest.price > cap:
        found.append(
            f"Devices refuse this survey by default: the default cap for one survey is ε = {cap}. People can raise it."
        )
    elif manifest.lifetime_epsilon > cap:
        found.append(f"Devices stop at ε = {cap} by default: the default cap for one survey. People can raise it.")
    if manifest.affordable_periods < manifest.periods:
        found.append(
            f"A device can answer in {manifest.affordable_periods:,} of {manifest.periods:,} periods. Then its total "
            f"epsilon is spent, because one answer costs ε = {format_epsilon(manifest.price)}. Raise --lifetime, ask "
            "less often, or keep permanent reports for longer (--keep-epsilon, --keep-periods)."
        )
    return found


survey.command()(survey_results.simulate)
survey.command()(survey_results.ingest)
survey.command()(survey_results.results)
survey.command()(survey_results.plot)
survey.command()(survey_serve.serve)
survey.command()(survey_serve.relay)
survey.command()(survey_keys.keys)
