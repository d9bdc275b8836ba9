"""One text for one value: what digests, hashes and signatures are computed of."""

import json

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr
)


def write_canonical(thing: object) -> str:
    """The JSON text of a thing: names sorted, no spaces, ASCII only. An auditor can compute it again.

    Equal values of JSON's own types have one text, and different values have different ones. Dictionaries have text as
    names. A value of another type is written by its repr.
    """
    return _ENCODER.encode(thing)
