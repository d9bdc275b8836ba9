"""Counters for Prometheus, summed over all workers. Their labels are fixed here: none comes from the data."""

import mmap
import os
import re
import struct
from pathlib import Path

from sfumato.kernel.entropy import SYSTEM

ROUTES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.DOTALL))
    for name, pattern in (
        ("ask", r"/v1/datasets/[^/]+/queries|/datasets/[^/]+/ask"),
        ("preview", r"/v1/datasets/[^/]+/(queries|workloads):preview|/datasets/[^/]+/ask:preview"),
        ("workload", r"/v1/datasets/[^/]+/workloads"),
        ("job", r"/v1/jobs.*|/jobs/.*"),
        ("ledger", r"/v1/datasets/[^/]+/ledger.*"),
        ("sign-in", r"/signin.*|/signout"),
        ("report", r"/surveys/collect/.*"),
        ("survey", r"/surveys.*|/v1/surveys.*"),
        ("register", r"/register.*"),
        ("answer", r"/answers/.*"),
        ("api", r"/v1/.*"),
        ("static", r"/static/.*"),
        ("page", r".*"),
    )
)
CODES = ("2xx", "3xx", "400", "401", "403", "404", "409", "413", "422", "429", "4xx", "500", "503", "5xx")
_NAMES = tuple(name for name, _ in ROUTES)
_SLOT = struct.Struct("<Qd")  # requests, seconds
_SIZE = _SLOT.size * len(_NAMES) * len(CODES)


class Metrics:
    """The counters of this process, in a file that the other workers can read. Files of ended workers still count."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        with (folder / f"{os.getpid()}-{SYSTEM.take(4).tobytes().hex()}.counters").open("w+b") as file:
            file.truncate(_SIZE)
            self._own = mmap.mmap(file.fileno(), _SIZE)

    def close(self) -> None:
        self._own.close()

    def count(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request. It runs on the event loop only, so that no two threads write."""
        place = _SLOT.size * (_find_route(path) * len(CODES) + _find_code(status))
        number, before = _SLOT.unpack_from(self._own, place)
        _SLOT.pack_into(self._own, place, number + 1, before + seconds)

    def write(self) -> str:
        """All counters in the text format of Prometheus."""
        sums = [[0, 0.0] for _ in range(len(_NAMES) * len(CODES))]
        for path in sorted(self._folder.glob("*.counters")):
            content = path.read_bytes()
            for total, (number, seconds) in zip(sums, _SLOT.iter_unpack(content[:_SIZE]), strict=False):
                total[0] += number
                total[1] += seconds
        lines = ["# HELP sfumato_requests_total Requests by what they were for and how they ended.",
                 "# TYPE sfumato_requests_total counter"]  # fmt: skip
        labels = [f'route="{name}",code="{code}"' for name in _NAMES for code in CODES]
        shown = [(label, total) for label, total in zip(labels, sums, strict=True) if total[0]]
        lines += [f"sfumato_requests_total{{{label}}} {total[0]}" for label, total in shown]
        lines += ["# HELP sfumato_request_seconds_total Time that requests took.",
                  "# TYPE sfumato_request_seconds_total counter"]  # fmt: skip
        lines += [f"sfumato_request_seconds_total{{{label}}} {total[1]:.6f}" for label, total in shown]
        return "\n".join(lines) + "\n"


def clear_metrics(folder: Path) -> None:
    """Begin to count from zero, before the workers start."""
    for path in folder.glob("*.counters"):
        path.unlink()


def _find_route(path: str) -> int:
    return next(place for place, (_, pattern) in enumerate(ROUTES) if pattern.fullmatch(path))


def _find_code(status: int) -> int:
    if str(status) in CODES:
        return CODES.index(str(status))
    return CODES.index(f"{min(max(status // 100, 2), 5)}xx")
