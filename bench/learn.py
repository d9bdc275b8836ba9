"""The estimators beside two peers and beside models that are not private: accuracy and speed. Run by `make bench`.

Same data, same declared bounds, same ε, same splits and the same neighbouring relation for all. A row ends in "met" or
"MISSED"; the program fails if any row is missed. `--markdown` writes the tables into docs/learning-accuracy.md. Each
library has a script in `peers/`, and the peers an environment of their own, made when it is first needed. Scores
are stored there until a script, the data or the code of the estimator changes, so a run that was interrupted goes on
where it ended; `--fresh` measures again. Times are never stored.

- **adult**: ROC AUC of every estimator on the census extract (`--data`), at δ = 1e-6. Peers: diffprivlib (always pure)
  and DP-EBM of interpret-core.
- **sets**: scores on other sets beside diffprivlib: a signed-rank test over the seeds for each row, at the 1 % level
  with Holm's correction. No row may be significantly worse, and most must be significantly better.
- **regression**: R² of linear regression beside least squares.
- **speed**: `fit` on 1 M rows beside the model that is not private, where one scan gives all statistics. `--busy` takes
  processor time in place of elapsed time, for a machine that does other work.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from peers.environments import ROOT
from peers.fit_times import LIMIT as MOST_TIME
from peers.fit_times import ROUNDS, measure_fits
from peers.learned_scores import NO_NOISE, OURS, PLAIN, Said, Scores, Task, ask_library
from peers.learning_sets import MILLION, list_classified, list_measured, read_adult
from peers.page_tables import write_table
from peers.paired_test import LEVEL, compute_p_value, correct_for_many, count_needed_seeds, find_verdict
from rich.console import Console
from rich.table import Table

PAGE = ROOT / "docs" / "learning-accuracy.md"
SECTIONS = ("adult", "sets", "regression", "speed")
SEEDS, QUICK_SEEDS, QUICK_ROWS = 20, 3, 20_000
DELTA = 1e-6
ADULT_EPSILONS, EPSILONS = ("0.5", "1", "4"), ("0.1", "1", "10")
TARGETS = {"0.5": 0.895, "1": 0.900, "4": 0.905}
PEER, BOOSTED_PEER = "diffprivlib", "interpret"
LEAST_R2, ENOUGH_ROWS = 0.3, 5_000

ADD, REPLACE = "add-remove", "replace-one"
NEIGHBOURS = {  # the relation that diffprivlib's noise is calibrated for: see peers/diffprivlib_models.py
    "GaussianNB": ADD,
    "LogisticRegression": REPLACE,
    "DecisionTreeClassifier": ADD,
    "RandomForestClassifier": ADD,
    "LinearRegression": REPLACE,
    "KMeans": ADD,
    "PCA": REPLACE,
    "HistogramDensity": ADD,
    "CategoricalNB": ADD,
    "BoostedAdditiveClassifier": ADD,  # of DP-EBM: see peers/interpret_models.py
}
CLASSIFIERS = ("GaussianNB", "LogisticRegression", "DecisionTreeClassifier", "RandomForestClassifier")
BOOSTED = ("BoostedAdditiveClassifier",)
ADULT_MODELS = (*CLASSIFIERS, "CategoricalNB", *BOOSTED)
# clusters and components of each set, and whether the density of its first column is estimated
SHAPES = {
    "breast cancer": (2, 5, True),
    "wine": (3, 3, True),
    "digits": (10, 10, False),  # its first column is constant
    "iris": (3, 2, True),
    "rand any visit": (4, 3, True),
    "million": (5, 3, True),
}
SCORE_NAMES = {
    "accuracy": "accuracy",
    "r2": "R²",
    "clusters": "variance explained",
    "components": "variance captured",
    "density": "1 - total variation",
}


@dataclass(frozen=True)
class Options:
    seeds: int
    rows: int
    data: Path
    only: tuple[str, ...]
    fresh: bool
    quick: bool
    markdown: bool
    busy: bool

    def wants(self, *names: str) -> bool:
        """Whether one of the names was asked for; everything is wanted if none was named."""
        return not self.only or any(name in self.only for name in names)


class Report:
    """Prints each table when its section is complete, and counts the limits that were missed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.console = Console(width=170)
        self.missed = 0

    def judge(self, met: bool, *, possible: bool = True) -> str:
        if not possible:
            return "not judged"
        self.missed += not met
        return "met" if met else "MISSED"

    def show(self, section: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> None:
        table = Table(*heads, title=title)
        for cells in rows:
            table.add_row(*cells)
        self.console.print(table)
        self.console.print(*notes, sep="\n", highlight=False)
        if self.options.markdown:
            write_table(PAGE, section, heads, rows, notes)


@dataclass(frozen=True)
class Row:
    """One comparison: a model on a set at an epsilon."""

    name: str
    model: str
    score: str
    epsilon: str
    ours: Scores
    theirs: Scores
    plain: Scores


@dataclass(frozen=True)
class Answers:
    """What the libraries said about one data set."""

    ours: Said
    plain: Said
    theirs: Said

    def find_rows(self, task: Task) -> list[Row]:
        none = Scores()
        return [
            Row(
                task.data.name,
                model,
                score,
                epsilon,
                self.ours.get((model, epsilon), none),
                self.theirs.get((model, epsilon), none),
                self.plain.get((model, NO_NOISE), none),
            )
            for model, (score, _) in task.models.items()
            for epsilon in task.epsilons
        ]


def format_mean(scores: Scores) -> str:
    """The mean over the seeds, and its standard error."""
    if not scores.values:
        return "cannot" if scores.trouble else "none"
    mean, error = np.mean(scores.values), np.std(scores.values, ddof=1) / np.sqrt(len(scores.values))
    if abs(mean) >= 100:
        return f"{mean:,.3g}"
    return f"{mean:.3f} ± {error:.3f}"


def run_adult(options: Options, report: Report) -> None:
    models = {name: ("auc", NEIGHBOURS[name]) for name in ADULT_MODELS if options.wants("adult", name)}
    if not models:
        return
    if not (options.data / "adult.csv").exists():
        report.console.print(f"Adult: no {options.data / 'adult.csv'}. Name its folder with --data.")
        return
    task = Task(read_adult(options.data), models, ADULT_EPSILONS, DELTA, options.seeds)
    ours, plain = (ask_library(name, task, fresh=options.fresh, console=report.console) for name in (OURS, PLAIN))
    theirs: Said = {}
    for peer, namesakes in ((PEER, CLASSIFIERS), (BOOSTED_PEER, BOOSTED)):
        shared = replace(task, models={name: how for name, how in models.items() if name in namesakes})
        theirs |= ask_library(peer, shared, fresh=options.fresh, console=report.console)
    rows = Answers(ours, plain, theirs).find_rows(task)
    judged = judge_rows(rows, report)
    lines = []
    for epsilon in ADULT_EPSILONS if len(models) == len(ADULT_MODELS) else ():
        best = max((row for row in rows if row.epsilon == epsilon and row.ours.values), key=mean_of_ours, default=None)
        value = mean_of_ours(best) if best else 0.0
        name, target = best.model if best else "none", TARGETS[epsilon]
        verdict = report.judge(value >= target)
        lines.append([f"best: {name}", epsilon, f"{value:.4f}", "", "", f"≥ {target:.3f}", verdict])
    for row, (p_value, verdict, outcome) in zip(rows, judged, strict=True):
        cells = [row.model, row.epsilon, *map(format_mean, (row.ours, row.theirs, row.plain))]
        lines.append([*cells, p_value, f"{verdict} {outcome}".strip()])
    heads = ("Estimator", "ε", "Sfumato", "Namesake of a peer", "Not private", "p, or target", "")
    report.show("adult", f"Adult: ROC AUC, δ = 1e-6, {options.seeds} splits", heads, lines, *find_troubles(rows))


def mean_of_ours(row: Row) -> float:
    return float(np.mean(row.ours.values))


def judge_rows(rows: Sequence[Row], report: Report) -> list[tuple[str, str, str]]:
    """For each row: the adjusted p-value, better / worse / tie, and whether its limit was met."""
    compared = [row for row in rows if row.ours.values and row.theirs.values]
    adjusted = correct_for_many([compute_p_value(row.ours.values, row.theirs.values) for row in compared])
    of_row = {id(row): value for row, value in zip(compared, adjusted, strict=True)}
    possible = report.options.seeds >= count_needed_seeds(len(compared)) if compared else False
    judged = []
    for row in rows:
        if not row.ours.values:
            judged.append(("", "no figure of Sfumato", report.judge(met=False)))
        elif id(row) not in of_row:
            judged.append(("", "no peer", ""))
        else:
            p_value = of_row[id(row)]
            verdict = find_verdict(row.ours.values, row.theirs.values, p_value)
            judged.append((f"{p_value:.2g}", verdict, report.judge(verdict != "worse", possible=possible)))
    return judged


def find_troubles(rows: Sequence[Row]) -> list[str]:
    """Why a library has no figure, once for each reason."""
    named = [
        (library, row.model, scores.trouble)
        for row in rows
        for library, scores in (("Sfumato", row.ours), ("the peer", row.theirs))
        if scores.trouble
    ]
    return list(dict.fromkeys(f"{model} of {library}: {trouble}" for library, model, trouble in named))


def make_tasks(options: Options) -> Iterator[Task]:
    """The other sets, one task for each set. A set is loaded when its turn comes."""
    for name, load in list_classified(options.rows).items():
        clusters, components, density = SHAPES[name]
        scores = dict.fromkeys(CLASSIFIERS, "accuracy") | {"KMeans": "clusters", "PCA": "components"}
        scores |= {"HistogramDensity": "density"} if density else {}
        wanted = {model: score for model, score in scores.items() if options.wants("sets", name, model)}
        models = {model: (score, NEIGHBOURS[model]) for model, score in wanted.items()}
        if models:
            yield Task(load(), models, EPSILONS, 0.0, options.seeds, clusters, components)
    for name, load in list_measured(options.rows).items():
        if options.wants("sets", "regression", name, "LinearRegression"):
            yield Task(load(), {"LinearRegression": ("r2", REPLACE)}, EPSILONS, 0.0, options.seeds)


def run_sets(options: Options, report: Report) -> None:
    """The sections `sets` and `regression`: the rows of linear regression have two limits."""
    rows: list[Row] = []
    sizes: dict[str, int] = {}
    for task in make_tasks(options):
        said = (ask_library(name, task, fresh=options.fresh, console=report.console) for name in (OURS, PLAIN, PEER))
        rows += Answers(*said).find_rows(task)
        sizes[task.data.name] = len(task.data.target)
    if not rows:
        return
    judged = judge_rows(rows, report)
    lines = [
        [
            row.name,
            row.model,
            SCORE_NAMES[row.score],
            row.epsilon,
            *map(format_mean, (row.ours, row.theirs, row.plain)),
            p_value,
            verdict,
            outcome,
        ]
        for row, (p_value, verdict, outcome) in zip(rows, judged, strict=True)
    ]
    heads = ("Set", "Estimator", "Score", "ε", "Sfumato", PEER, "Not private", f"p (limit {LEVEL:g})", "Sfumato is", "")
    report.show("sets", f"Other sets: mean score over {options.seeds} splits", heads, lines, *find_troubles(rows))
    verdicts = [verdict for _, verdict, _ in judged if verdict in ("better", "worse", "tie")]
    counts = {verdict: verdicts.count(verdict) for verdict in ("better", "tie", "worse")}
    possible = not options.only and options.seeds >= count_needed_seeds(len(verdicts) or 1)
    outcome = report.judge(counts["better"] > len(verdicts) / 2, possible=possible)
    report.console.print(f"{len(verdicts)} rows: {counts}. Most must be better: {outcome}")
    show_regression([row for row in rows if row.model == "LinearRegression"], sizes, report)


def show_regression(rows: Sequence[Row], sizes: dict[str, int], report: Report) -> None:
    lines = []
    for row in rows:
        limited = np.mean(row.plain.values) > LEAST_R2 and sizes[row.name] * float(row.epsilon) >= ENOUGH_ROWS
        met = bool(row.ours.values) and mean_of_ours(row) >= 0
        cells = [row.name, f"{sizes[row.name]:,}", row.epsilon, *map(format_mean, (row.ours, row.theirs, row.plain))]
        lines.append([*cells, "≥ 0" if limited else "none", report.judge(met) if limited else ""])
    heads = ("Set", "Rows", "ε", "Sfumato", PEER, "Least squares", "Limit", "")
    if lines:
        report.show("regression", f"Linear regression: mean R² over {report.options.seeds} splits", heads, lines)


def run_speed(options: Options, report: Report) -> None:
    if not options.wants("speed"):
        return
    rows = [
        [
            fit.model,
            fit.where,
            f"{fit.ours:.2f} s",
            f"{fit.plain:.2f} s",
            f"{fit.ratio:.2f}",
            f"≤ {MOST_TIME:g}" if fit.scans == 1 else f"none: {fit.scans} scans",
            report.judge(fit.ratio <= MOST_TIME) if fit.scans == 1 else "",
        ]
        for fit in measure_fits(options.rows, time.process_time if options.busy else time.perf_counter)
    ]
    heads = ("Estimator", "Data", "Sfumato", "Not private", "Ratio", "Limit", "")
    kind = "Processor time" if options.busy else "Elapsed time"
    note = f"{kind}: medians of {ROUNDS} fits, in turns with the model that is not private."
    report.show("speed", f"Time of fit on {options.rows:,} rows", heads, rows, note)


def read_options() -> Options:
    reader = argparse.ArgumentParser(description="Estimators beside peers: accuracy and speed.")
    reader.add_argument("--seeds", type=int, help=f"number of splits ({SEEDS}, or {QUICK_SEEDS} with --quick)")
    folder = os.environ.get("SFUMATO_BENCH_DATA") or ROOT.parent / "shared" / "data"
    reader.add_argument("--data", type=Path, default=folder, help="folder of adult.csv (or SFUMATO_BENCH_DATA)")
    known = f"a section ({', '.join(SECTIONS)}), a set or an estimator; may be repeated"
    reader.add_argument("--only", action="append", default=[], metavar="NAME", help=known)
    reader.add_argument("--quick", action="store_true", help="fewer splits and rows; significance is not judged")
    reader.add_argument("--fresh", action="store_true", help="measure every score again")
    reader.add_argument("--busy", action="store_true", help="speed: processor time in place of elapsed time")
    reader.add_argument("--markdown", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    chosen = reader.parse_args()
    names = {*SECTIONS, *NEIGHBOURS, *list_classified(), *list_measured()}
    if unknown := [name for name in chosen.only if name not in names]:
        reader.error(f"--only {unknown[0]}: not one of {', '.join(sorted(names))}")
    return Options(
        seeds=chosen.seeds or (QUICK_SEEDS if chosen.quick else SEEDS),
        rows=QUICK_ROWS if chosen.quick else MILLION,
        data=Path(chosen.data),
        only=tuple(chosen.only),
        fresh=chosen.fresh,
        quick=chosen.quick,
        markdown=chosen.markdown,
        busy=chosen.busy,
    )


def main() -> None:
    options = read_options()
    report = Report(options)
    run_adult(options, report)
    run_sets(options, report)
    run_speed(options, report)
    sys.exit(f"{report.missed} limits missed" if report.missed else 0)


if __name__ == "__main__":
    main()
