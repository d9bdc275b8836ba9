"""`make audit`: audit everything, print a table, and fail on a violation. It takes minutes, on all cores."""

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import Empty

for folder in ("", "engines", "audit"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

from audit_bench import Bench  # noqa: E402
from audit_cases import Row, list_batches, list_cases, run_case  # noqa: E402
from audited_engines import MISSING  # noqa: E402

SAMPLES = {"mechanism": 20_000, "oracle": 2_000, "aggregate": 2_000, "random": 0}
BAD = ("violated", "failed")
LONGEST_SILENCE = 1.0  # seconds until a process that ended without its rows is noticed
_rows = None  # where this process puts its rows


def begin(rows):
    global _rows  # noqa: PLW0603 - of a process of its own
    _rows = rows


def run(batch):
    """Run cases that share their datasets. Each row is shown as soon as it is there."""
    with Bench() as bench:
        for case in batch:
            _rows.put(run_one(case, bench))


def run_one(case, bench):
    began = time.monotonic()
    try:
        row = run_case(case, SAMPLES[case.kind], bench)
    except Exception as error:  # a defect of the audit, or a question that fails: both must be seen
        row = Row(case.text, "", None, None, 0, "failed", f"{type(error).__name__}: {error}")
    return replace(row, seconds=time.monotonic() - began)


def run_all(cases):
    """The rows of all cases, as they come. A process that ends early raises its error here."""
    context = multiprocessing.get_context("spawn")
    rows = context.Queue()
    with ProcessPoolExecutor(os.cpu_count(), context, begin, (rows,)) as pool:
        batches = [pool.submit(run, batch) for batch in list_batches(cases)]
        for _ in cases:
            while True:
                try:
                    yield rows.get(timeout=LONGEST_SILENCE)
                    break
                except Empty:
                    for batch in batches:
                        if batch.done():
                            batch.result()


def show(row, place):
    bound = "" if row.lower_bound is None else f"{row.lower_bound:.3f}"
    share = "" if row.share is None else f"{100 * row.share:.0f} %"
    samples = f"{row.samples:,}" if row.samples else "replay"
    parts = f"{place:>9}  {row.what:72}  {row.claim:34}  {bound:>7}  {share:>6}  {samples:>7}  {row.seconds:>5.1f}"
    print(f"{parts}  {row.verdict}", flush=True)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = [case for case in list_cases() if only in case.text]
    started = time.monotonic()
    heads = ("case", "what", "claim", "bound", "share", "samples", "s")
    print("{:>9}  {:72}  {:34}  {:>7}  {:>6}  {:>7}  {:>5}  verdict".format(*heads))
    if MISSING:
        print(f"*** {MISSING} ***")
    bad, counted = [], {}
    for place, row in enumerate(run_all(cases), 1):
        show(row, f"{place}/{len(cases)}")
        counted[row.verdict] = counted.get(row.verdict, 0) + 1
        if row.verdict in BAD:
            bad.append(row)
    print(f"\n{len(cases)} audits in {(time.monotonic() - started) / 60:.1f} minutes: {counted}")
    print("bound: with 95 % confidence the loss is at least this. share: of a certified sensitivity, by replay.")
    for row in bad:
        print(f"\n{row.verdict.upper()}: {row.what}\n{row.detail}")
    sys.exit(1 if bad or not cases else 0)


if __name__ == "__main__":
    main()
