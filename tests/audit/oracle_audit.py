"""The statistical-query oracle end to end: curator, charge, prepaid ledger, two queries of which one is adaptive."""

import pandas as pd

import sfumato as sf
from sfumato.lab.auditing.mechanism_audit import audit

PAIRS = {"replace-one": ([False], [True]), "add-remove": ([True, True], [True])}
BUDGET = sf.Budget(epsilon=10_000_000)


def protect(rows, neighbours):
    public = {"rows": len(rows)} if neighbours == "replace-one" else {}
    data, columns = pd.DataFrame({"y": rows}, dtype=bool), {"y": sf.Boolean(nullable=False)}
    return sf.protect(data, name="people", unit=sf.ROW, columns=columns, neighbours=neighbours, budget=BUDGET, **public)


def ask_two(curator, epsilon=1):
    """All that a new oracle shows: two answers, the second query chosen from the first, and the noisy count."""
    oracle = curator.statistical_queries(k=2, epsilon=epsilon)
    first = oracle.mean("y")
    second = oracle.mean("NOT y" if first > 0.5 else "CASE WHEN y THEN 1 ELSE 0 END")
    return first, second, oracle.noisy_rows


def audit_oracle(neighbours, samples, claim=1, epsilon=1):
    """Audit the claim on two datasets that differ in one row. The oracle spends `epsilon`."""
    first, second = (protect(rows, neighbours) for rows in PAIRS[neighbours])
    with first, second:
        return audit(lambda curator: ask_two(curator, epsilon), first, second, claim, samples=samples)
