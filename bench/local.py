"""Local randomisers compared with pure-ldp and multi-freq-ldpy, as ratios of one run: 100 categories, epsilon 1.

Run by `make bench`. A line ends in "met" or "MISSED"; the program fails if any line is missed. Our reports use secure
randomness, theirs do not.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    FastLHClient,
    FastLHServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)
from rich.console import Console
from rich.table import Table

import sfumato as sf
from sfumato.local.survey.manifest import read_manifest

K, EPSILON = 100, 1.0
PEOPLE = 1_000_000
PEER_PEOPLE = {"krr": 200_000, "oue": 50_000, "olh": 50_000, "subset": 50_000}
HASHED_AGAIN = 2_000  # a peer hashes every category for every report; its time is linear, and few will do
ROUNDS = 3
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_PEOPLE = 300_000
SURVEYS, SURVEYED = 250, 20_000


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The shortest of a few times: the time of the work if nothing else disturbs it."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class Report:
    """The table, and whether every limit was met."""

    def __init__(self) -> None:
        self.table = Table("What", "Sfumato", "pure-ldp", "multi-freq-ldpy", "Ratio", "Limit", "", title="Local")
        self.missed = 0

    def line(self, what: str, shown: tuple[str, ...], ratio: float, limit: float, *, at_most: bool = False) -> None:
        met = ratio <= limit if at_most else ratio >= limit
        self.missed += not met
        bound = f"≤ {limit:g}" if at_most else f"≥ {limit:g}"
        self.table.add_row(what, *(*shown, "", "")[:3], f"{ratio:,.3g}", bound, "met" if met else "MISSED")

    def fact(self, what: str, *shown: str) -> None:
        self.table.add_row(what, *shown)


def rate(people: int, spent: float) -> str:
    return f"{people / spent / 1e6:,.2f} M/s"


def everyone(people: int) -> np.ndarray:
    return (np.arange(people) * 7919 % (K * K)) // K


def pure_clients() -> dict[str, object]:
    return {
        "krr": DEClient(EPSILON, K, index_mapper=int),
        "oue": UEClient(EPSILON, K, use_oue=True, index_mapper=int),
        "olh": LHClient(EPSILON, K, use_olh=True, index_mapper=int),
    }


def pure_servers() -> dict[str, Callable[[], object]]:
    return {
        "krr": lambda: DEServer(EPSILON, K, index_mapper=int),
        "oue": lambda: UEServer(EPSILON, K, use_oue=True, index_mapper=int),
        "olh": lambda: LHServer(EPSILON, K, use_olh=True, index_mapper=int),
    }


MULTI_CLIENTS = {
    "krr": lambda value: GRR_Client(value, K, EPSILON),
    "oue": lambda value: UE_Client(value, K, EPSILON),
    "olh": lambda value: LH_Client(value, K, EPSILON),
    "subset": lambda value: SS_Client(value, K, EPSILON),
}
MULTI_AGGREGATORS = {
    "krr": lambda reports: GRR_Aggregator_MI(reports, K, EPSILON),
    "oue": lambda reports: UE_Aggregator_MI(reports, EPSILON),
    "olh": lambda reports: LH_Aggregator_MI(reports, K, EPSILON),
    "subset": lambda reports: SS_Aggregator_MI(reports, K, EPSILON),
}


def pure_aggregate(server: object, reports: list[object]) -> None:
    for report in reports:
        server.aggregate(report)  # type: ignore[attr-defined]
    server.estimate(0, suppress_warnings=True)  # type: ignore[attr-defined]


def speed(report: Report) -> None:
    values = everyone(PEOPLE)
    for name in ("krr", "oue", "olh", "subset"):
        randomiser = sf.local.randomiser(name, k=K, epsilon=EPSILON)
        few = values[: PEER_PEOPLE[name]].tolist()
        client, multi = pure_clients().get(name), MULTI_CLIENTS[name]
        multi(3)  # compiled when first called
        reports = randomiser.randomise(values)
        ours = seconds(lambda r=randomiser: r.randomise(values)) / PEOPLE
        theirs = {"multi": seconds(lambda m=multi, f=few: [m(value) for value in f]) / len(few)}
        multi_reports = [multi(value) for value in few]
        if client:
            theirs["pure"] = seconds(lambda c=client, f=few: [c.privatise(value) for value in f]) / len(few)
            pure_reports = [client.privatise(value) for value in few]
        shown = (rate(1, ours), rate(1, theirs["pure"]) if client else "", rate(1, theirs["multi"]))
        report.line(f"{name}: reports made", shown, min(theirs.values()) / ours, 1)

        counted = HASHED_AGAIN if name == "olh" else len(few)
        ours = seconds(lambda r=randomiser, x=reports: r.estimate(x)) / PEOPLE
        aggregator = MULTI_AGGREGATORS[name]
        theirs = {"multi": seconds(lambda a=aggregator, x=multi_reports[:counted]: a(x)) / counted}
        if client:
            server = pure_servers()[name]
            theirs["pure"] = (
                seconds(
                    lambda s=server, x=pure_reports[:counted]: pure_aggregate(s(), x), 1 if name == "olh" else ROUNDS
                )
                / counted
            )
        shown = (rate(1, ours), rate(1, theirs["pure"]) if client else "", rate(1, theirs["multi"]))
        report.line(f"{name}: reports aggregated", shown, min(theirs.values()) / ours, 50 if name == "olh" else 1)
        if name == "olh":
            shared_seeds(report, ours, few)


def shared_seeds(report: Report, ours: float, few: list[int]) -> None:
    """The peer's quicker way: 1,000 seeds for all, at twice the formula's error."""
    client, server = (
        FastLHClient(EPSILON, K, 1000, use_olh=True, index_mapper=int),
        FastLHServer(EPSILON, K, 1000, use_olh=True, index_mapper=int),
    )
    reports = [client.privatise(value) for value in few]

    def aggregate() -> None:
        for one_report in reports:
            server.aggregate(one_report)

    peer = seconds(aggregate) / len(few)
    report.line("olh beside 1,000 shared seeds: aggregated", (rate(1, ours), rate(1, peer)), peer / ours, 1)


def accuracy(report: Report) -> None:
    """Squared error over all categories of many surveys, compared with the formula for the people asked."""
    values = everyone(SURVEYED)
    shares = np.bincount(values, minlength=K) / SURVEYED
    for name in ("krr", "subset", "oue", "sue", "olh", "hadamard"):
        randomiser = sf.local.randomiser(name, k=K, epsilon=EPSILON)
        formula = np.mean([randomiser.variance_asked(share) for share in shares]) / SURVEYED
        errors = [
            np.square(randomiser.estimate(randomiser.randomise(values)).frequency - shares).mean()
            for _ in range(SURVEYS)
        ]
        ratio = float(np.mean(errors) / formula)
        report.line(
            f"{name}: mean squared error beside the formula", (f"{np.mean(errors):.3g}",), ratio, 1.05, at_most=True
        )
    many = everyone(10_000_000)
    shares = np.bincount(many, minlength=K) / many.size
    randomiser = sf.local.randomiser("olh", k=K, epsilon=EPSILON)
    error = np.square(randomiser.estimate(randomiser.randomise(many)).frequency - shares).mean()
    formula = np.mean([randomiser.variance_asked(share) for share in shares]) / many.size
    report.line("olh, 10⁷ people: the same, one survey", (f"{error:.3g}",), float(error / formula), 2, at_most=True)


def beyond(randomiser: sf.local.Randomiser, people: int) -> float:
    """The most memory used beyond the answers and the reports, in MiB: to make reports, and to estimate from them."""
    values = everyone(people)
    tracemalloc.start()
    reports = randomiser.randomise(values)
    _, made = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    randomiser.estimate(reports)
    _, estimated = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return float(max(made - reports.nbytes, estimated - before) / 2**20)


def memory(report: Report) -> None:
    for name in ("krr", "subset", "oue", "olh", "hadamard"):
        randomiser = sf.local.randomiser(name, k=K, epsilon=EPSILON)
        few, many = beyond(randomiser, PEOPLE // 2), beyond(randomiser, 2 * PEOPLE)
        report.line(f"{name}: memory beyond 2 M reports, MiB", (f"{many:.1f} MiB",), many, 32, at_most=True)
        report.line(f"{name}: how much more than beyond 0.5 M", (f"{few:.1f} MiB",), many / few, 1.25, at_most=True)


def end_to_end(report: Report) -> None:
    values = everyone(PEOPLE)

    def survey() -> None:
        choice = sf.local.choose(K, EPSILON, people=PEOPLE)
        str(choice.estimate(choice.randomise(values), simultaneous=True))

    spent = seconds(survey, 1)
    report.line("A million people: choice, reports, estimate", (f"{spent:.2f} s",), spent, 60, at_most=True)


def words(report: Report) -> None:
    """Words without a list: how many are found, beside 16 kept prefixes, of words with shares in proportion to 1/i."""
    generator = np.random.default_rng(1)
    vocabulary = ["".join(generator.choice(list(LETTERS), 6)) for _ in range(2000)]
    shares = 1 / np.arange(1, 2001)
    people = generator.choice(2000, WORD_PEOPLE, p=shares / shares.sum())
    asked = sf.local.heavy_hitters(6, 4, alphabet=LETTERS)
    reports = asked.randomise([vocabulary[place] for place in people])
    started = time.perf_counter()
    found = asked.find(reports)
    spent = time.perf_counter() - started
    few = len(asked.find(reports, keep=16))
    wrong = sum(hitter.word not in vocabulary for hitter in found)
    report.line("Words found (300,000 people, ε = 4), beside 16 kept", (f"{len(found)}",), len(found) / few, 1.5)
    report.line("Listed words that nobody has", (f"{wrong}",), wrong, 0, at_most=True)
    report.fact("Time of the search", f"{spent:.1f} s")


def large_survey(report: Report) -> None:
    """The largest survey that a device takes: processor time, because a device is not a busy server."""
    labels = [f"https://site-{number}.example/page" for number in range(100_000)]
    document = sf.local.new_survey("Which?", epsilon=1, key=sf.local.SurveyKey(), labels=labels).manifest.to_bytes()
    started = time.process_time()
    read_manifest(document)
    spent = time.process_time() - started
    report.line("A survey of 100,000 labels: load and check", (f"{spent:.2f} s",), spent, 0.5, at_most=True)


def main() -> None:
    report = Report()
    for part in (speed, accuracy, memory, end_to_end, words, large_survey):
        part(report)
    Console(width=150).print(report.table)
    sys.exit(f"{report.missed} limits missed" if report.missed else 0)


if __name__ == "__main__":
    main()
