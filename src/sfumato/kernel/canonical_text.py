"""One text for one value: what digests, hashes and signatures are computed of."""

import json

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr
)


def write_canonical(thing: object) -> str:
    """The JSON text of a thing: names sorted, no spaces, ASCII only. An auditor can compute it again.

    Claim: K-24. Equal values of JSON's own types have one text, and different values have different ones.
    Requires: dictionaries have text as names; other types have a repr of their own (caller).
    Relies on: Python's json module.
    Checked by: tests/kernel/test_plan.py::test_digests_tell_plans_apart
    """
    return _ENCODER.encode(thing)
