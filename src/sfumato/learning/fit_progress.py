"""A progress bar for fits that take longer than a second, on stderr, where stderr is a terminal.

It shows how much of a fit's price has been spent. The shares are public, so the bar says nothing about the data.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.ingest.progress import is_terminal

PATIENCE = 1.0  # seconds before the bar
EVERY = 0.1
_ONE_BAR = threading.Lock()  # a learning curve has a bar, and its fits have none


@dataclass
class FitProgress:
    """Of one fit: when it began, and which part of it is done, from 0 to 1."""

    done: float = 0.0
    begun: float = field(default_factory=time.monotonic)


@contextmanager
def draw_bar(what: str, progress: FitProgress) -> Iterator[None]:
    """Show `progress` as it changes, from a second after its beginning on."""
    if not is_terminal() or not _ONE_BAR.acquire(blocking=False):
        yield
        return
    finished = threading.Event()
    drawing = threading.Thread(target=_draw, args=(what, progress, finished), daemon=True)
    drawing.start()
    try:
        yield
    finally:
        finished.set()
        drawing.join()
        _ONE_BAR.release()


def _draw(what: str, progress: FitProgress, finished: threading.Event) -> None:
    if finished.wait(max(progress.begun + PATIENCE - time.monotonic(), 0.0)):
        return
    from rich.console import Console  # noqa: PLC0415 - most fits draw nothing
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    parts = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        while not finished.wait(EVERY):
            bar.update(task, completed=progress.done)
