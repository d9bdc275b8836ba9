"""The clock of the thirty-day cap. While a process runs, it advances at most as fast as time passes.

A device has no trusted clock. Setting the system's clock forward while the process runs does not shorten the thirty
days. A process that starts later believes the system's clock; an announcement of the team that asks bounds it.
"""

import time
from datetime import UTC, datetime, timedelta


def _count_running_seconds() -> float:
    """Seconds that passed, also while the machine was suspended if the system counts them."""
    counted_asleep = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if counted_asleep is None else time.clock_gettime(counted_asleep)


class _RunningClock:
    """The last time that was read, and when."""

    def __init__(self) -> None:
        self._wall, self._running = datetime.now(UTC), _count_running_seconds()

    def read(self) -> datetime:
        running = _count_running_seconds()
        self._wall = min(datetime.now(UTC), self._wall + timedelta(seconds=running - self._running))
        self._running = running
        return self._wall


_CLOCK = _RunningClock()


def read_device_clock() -> datetime:
    """The system's time, but not later than the time that was read before plus the time that has passed since."""
    return _CLOCK.read()
