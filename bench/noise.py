"""Speed and memory of exact noise, as ratios to numpy's unsafe Laplace and opendp's exact noise in the same run.

Run by `make bench`. A line ends in "met" or "MISSED"; the program fails if any line is missed.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.rounded_gaussian import rounded_gaussian
from sfumato.kernel.samplers import discrete_gaussian, discrete_laplace

DRAWS = 1_000_000
PEER_DRAWS = 100_000  # opendp takes seconds a million; its time is linear, and is scaled up
ROUNDS = 9
SCALE = 10.0


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median time, after one call to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def together(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Median times of two pieces of work, taken in turns so that a busy machine troubles both alike."""
    ours()
    theirs()
    pairs = []
    for _ in range(2 * ROUNDS):
        pairs.append((seconds(ours, 1), seconds(theirs, 1)))
    return tuple(float(median) for median in np.median(np.array(pairs), axis=0))  # type: ignore[return-value]


def opendp_laplace(kind: str) -> Callable[[list[float]], object]:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind))
    return dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=SCALE)


def opendp_seconds(kind: str, values: np.ndarray) -> float:
    release, part = opendp_laplace(kind), values[:PEER_DRAWS].tolist()
    return seconds(lambda: release(part), 1) * DRAWS / PEER_DRAWS


class Report:
    """The table, and whether every limit was met."""

    def __init__(self) -> None:
        self.table = Table("What", "Sfumato", "Peer", "Ratio", "Limit", "", title="Exact noise")
        self.missed = 0

    def line(self, what: str, shown: tuple[str, str], ratio: float, limit: float, *, at_most: bool = True) -> None:
        met = ratio <= limit if at_most else ratio >= limit
        self.missed += not met
        bound = f"≤ {limit:g}" if at_most else f"≥ {limit:g}"
        self.table.add_row(what, *shown, f"{ratio:,.3g}", bound, "met" if met else "MISSED")

    def fact(self, what: str, ours: str, peer: str = "", ratio: str = "") -> None:
        self.table.add_row(what, ours, peer, ratio, "", "")


def ms(value: float) -> str:
    return f"{1e3 * value:,.1f} ms"


def bulk(report: Report) -> None:
    generator = np.random.default_rng()
    integers = np.arange(DRAWS)
    reals = np.linspace(0, 1e6, DRAWS)
    whole = sf.Laplace(sensitivity=SCALE, epsilon=1, of="integers")
    mechanism = sf.Laplace(sensitivity=SCALE, epsilon=1, of="reals")

    ours, numpy_ = together(
        lambda: discrete_laplace(Fraction(10), DRAWS, SYSTEM), lambda: generator.laplace(0, SCALE, DRAWS)
    )
    report.line("1 M integer draws, scale 10, beside numpy", (ms(ours), ms(numpy_)), ours / numpy_, 2.0)
    ours, numpy_ = together(lambda: whole.release(integers), lambda: integers + generator.laplace(0, SCALE, DRAWS))
    report.line("1 M integers released, beside numpy", (ms(ours), ms(numpy_)), ours / numpy_, 2.0)
    peer = opendp_seconds("i64", integers)
    report.line("1 M integers released, beside opendp", (ms(ours), ms(peer)), peer / ours, 200, at_most=False)
    ours, numpy_ = together(lambda: mechanism.release(reals), lambda: reals + generator.laplace(0, SCALE, DRAWS))
    report.line("1 M reals released, beside numpy", (ms(ours), ms(numpy_)), ours / numpy_, 4.0)
    peer = opendp_seconds("f64", reals)
    report.line("1 M reals released, beside opendp", (ms(ours), ms(peer)), peer / ours, 300, at_most=False)
    ours, numpy_ = together(
        lambda: discrete_gaussian(Fraction(100), DRAWS, SYSTEM), lambda: generator.normal(0, SCALE, DRAWS)
    )
    report.fact("1 M Gaussian draws, deviation 10, beside numpy", ms(ours), ms(numpy_), f"{ours / numpy_:.3g}")
    ours, numpy_ = together(
        lambda: rounded_gaussian(Fraction(100), DRAWS, SYSTEM), lambda: generator.normal(0, SCALE, DRAWS)
    )
    report.line("1 M rounded Gaussian draws, deviation 10, beside numpy", (ms(ours), ms(numpy_)), ours / numpy_, 5.0)


def one_at_a_time(report: Report) -> None:
    dp.enable_features("contrib")
    opendp = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=SCALE)

    def time_release(release: Callable[[object], object], value: object) -> float:
        return min(seconds(lambda: [release(value) for _ in range(500)], 1) for _ in range(30)) / 500

    peer = time_release(opendp, 42)
    kinds: tuple[tuple[str, Literal["integers", "reals"], float], ...]
    kinds = (("an integer", "integers", 42), ("a real", "reals", 42.5))
    for kind, of, value in kinds:
        ours = time_release(sf.Laplace(sensitivity=1, epsilon=0.1, of=of).release, value)
        report.line(f"One release of {kind}, µs", (f"{1e6 * ours:.1f} µs", f"{1e6 * peer:.1f} µs"), 1e6 * ours, 30)


def memory(report: Report) -> None:
    zeros: tuple[tuple[Literal["integers", "reals"], object], ...]
    zeros = (("integers", np.zeros(DRAWS, np.int64)), ("reals", np.zeros(DRAWS)))
    for what, value in zeros:
        mechanism = sf.Laplace(sensitivity=SCALE, epsilon=1, of=what)
        mechanism.release(value[:10])
        tracemalloc.start()
        result = mechanism.release(value)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        beyond = (peak - result.nbytes) / 2**20
        report.line(f"Memory beyond the result, 1 M {what}, MiB", (f"{beyond:.1f} MiB", ""), beyond, 64)


def shape_of_time(report: Report) -> None:
    per_draw = {
        draws: 1e9 * seconds(lambda n=draws: discrete_laplace(Fraction(10), n, SYSTEM), 5) / draws
        for draws in (100_000, 1_000_000, 10_000_000)
    }
    report.fact(
        "Linear in the draws: ns a draw of 10⁵, 10⁶, 10⁷",
        " · ".join(f"{nanoseconds:.1f}" for nanoseconds in per_draw.values()),
    )
    by_scale = {
        scale: 1e9 * seconds(lambda s=scale: discrete_laplace(Fraction(s), DRAWS, SYSTEM)) / DRAWS
        for scale in (20, 100, 500)
    }
    report.fact(
        "Same coins, values 25 times as large: ns a draw at scales 20, 100, 500",
        " · ".join(f"{nanoseconds:.1f}" for nanoseconds in by_scale.values()),
    )
    timed = []
    for _ in range(40_000):
        start = time.perf_counter_ns()
        drawn = int(discrete_laplace(Fraction(300), 1, SYSTEM)[0])
        timed.append((abs(drawn), time.perf_counter_ns() - start))
    quarters = np.array_split(np.array(sorted(timed)), 4)
    report.fact(
        "One draw by size of what was drawn, smallest to largest quarter, median µs",
        " · ".join(f"{np.median(quarter[:, 1]) / 1e3:.1f}" for quarter in quarters),
    )


def main() -> None:
    report = Report()
    for part in (bulk, one_at_a_time, memory, shape_of_time):
        part(report)
    Console(width=150).print(report.table)
    sys.exit(f"{report.missed} limits missed" if report.missed else 0)


if __name__ == "__main__":
    main()
