"""A progress bar for fits that take longer than a second, on stderr, where stderr is a terminal."""

import threading
from collections.abc import Iterable, Iterator

from sfumato.ingest.progress import is_terminal

PATIENCE = 1.0  # seconds before the bar
EVERY = 0.1


def follow_steps(what: str, steps: Iterable[int], total: int) -> Iterator[int]:
    """Go through the steps, and show how many are done."""
    if not is_terminal():
        yield from steps
        return
    done, finished = [0], threading.Event()
    drawing = threading.Thread(target=_draw, args=(what, done, total, finished), daemon=True)
    drawing.start()
    try:
        for step in steps:
            yield step
            done[0] += 1
    finally:
        finished.set()
        drawing.join()


def _draw(what: str, done: list[int], total: int, finished: threading.Event) -> None:
    if finished.wait(PATIENCE):
        return
    from rich.console import Console  # noqa: PLC0415 - most fits draw nothing
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    parts = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        while not finished.wait(EVERY):
            bar.update(task, completed=done[0])
