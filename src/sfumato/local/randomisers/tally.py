"""A tally: the number of reports, and how many support each category. Tallies of one survey can be added."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.report_forms import Counts


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The number of reports and the int64 counts; tallies are merged by addition, in any order."""

    people: int
    counts: Counts

    def __post_init__(self) -> None:
        if self.people < 0 or self.counts.dtype != np.int64 or self.counts.ndim != 1:
            raise InvalidParameter("tally", "must hold a number of people and int64 counts", "something else")
        if self.counts.size and not 0 <= int(self.counts.min()) <= int(self.counts.max()) <= self.people:
            raise InvalidParameter("tally", "must hold counts from 0 to the number of people", "other counts")

    @classmethod
    def empty(cls, size: int) -> "Tally":
        return cls(0, np.zeros(size, np.int64))

    def __add__(self, other: "Tally") -> "Tally":
        if self.counts.shape != other.counts.shape:
            raise InvalidParameter("tally", "must come from the same survey", "one of another length")
        return Tally(self.people + other.people, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.people == other.people and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and arrays have no hash

    def to_json(self) -> dict[str, object]:
        return {"people": self.people, "counts": self.counts.tolist()}

    @classmethod
    def from_json(cls, value: object) -> "Tally":
        match value:
            case {"people": int(people), "counts": list(counts)} if all(type(count) is int for count in counts):
                if isinstance(value, Mapping) and len(value) == 2 and all(0 <= count < 1 << 62 for count in counts):
                    return cls(people, np.array(counts, np.int64))
        raise InvalidParameter("tally", 'must be {"people": n, "counts": [...]}', "something else")
