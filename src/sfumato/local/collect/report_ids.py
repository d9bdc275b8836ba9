"""Ids of reports: 16 random bytes, made on the device and used once."""

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.local.collect.report_files import ID_BYTES, Ids
from sfumato.local.randomisers.report_forms import Counts, Reports


def compare_ids(ids: Ids, periods: Counts, reports: Reports) -> tuple[Counts, npt.NDArray[np.bool_], int]:
    """The order of the ids, whether each is the first of its id, and how many others differ from their first."""
    halves = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))  # the sort is stable: the first of equal ids stays first
    ordered = halves[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    if new.all():
        return order, new, 0
    leader = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    same = periods[order] == periods[leader]
    equal = reports[order] == reports[leader]
    same &= equal.all(axis=1) if equal.ndim == 2 else equal
    return order, new, int((~same).sum())


def cut_ids(ids: Ids) -> list[bytes]:
    """The ids one by one."""
    names = ids.tobytes()
    return [names[start : start + ID_BYTES] for start in range(0, len(names), ID_BYTES)]


def read_id(text: str) -> bytes:
    """Read an id in hex."""
    try:
        name = bytes.fromhex(text)
    except (ValueError, TypeError):
        name = b""
    if len(name) != ID_BYTES or name.hex() != text:
        raise InvalidParameter("report_id", "must be the 32 hexadecimal digits of a report's id", "something else")
    return name
