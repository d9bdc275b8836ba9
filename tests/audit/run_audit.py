"""`make audit`: audit everything, print a table, and fail on a violation. It takes minutes, on all cores."""

import multiprocessing
import os
import sys
import time
from itertools import chain
from pathlib import Path

for folder in ("", "engines", "audit"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

from audit_cases import Bench, Row, list_batches, list_cases, run_case  # noqa: E402

SAMPLES = {"mechanism": 20_000, "oracle": 2_000, "aggregate": 3_000, "random": 0}


def run(batch):
    """Run cases that share their datasets."""
    with Bench() as bench:
        return [run_one(case, bench) for case in batch]


def run_one(case, bench):
    try:
        return run_case(case, SAMPLES[case.kind], bench)
    except Exception as error:  # a defect of the audit, or a question that fails: both must be seen
        return Row(case.text, "", None, None, 0, "failed", f"{type(error).__name__}: {error}")


def show(row):
    bound = "" if row.lower_bound is None else f"{row.lower_bound:.3f}"
    share = "" if row.share is None else f"{100 * row.share:.0f} %"
    samples = f"{row.samples:,}" if row.samples else "replay"
    print(f"{row.what:72}  {row.claim:34}  {bound:>7}  {share:>6}  {samples:>7}  {row.verdict}", flush=True)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = [case for case in list_cases() if only in case.text]
    begin = time.monotonic()
    heads = ("what", "claim", "bound", "share", "samples")
    print("{:72}  {:34}  {:>7}  {:>6}  {:>7}  verdict".format(*heads))
    bad, counted = [], {}
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for row in chain.from_iterable(pool.imap(run, list_batches(cases))):
            show(row)
            counted[row.verdict] = counted.get(row.verdict, 0) + 1
            if row.verdict in ("violated", "failed"):
                bad.append(row)
    print(f"\n{len(cases)} audits in {(time.monotonic() - begin) / 60:.1f} minutes: {counted}")
    print("bound: with 95 % confidence the loss is at least this. share: of a certified sensitivity, by replay.")
    for row in bad:
        print(f"\n{row.verdict.upper()}: {row.what}\n{row.detail}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
