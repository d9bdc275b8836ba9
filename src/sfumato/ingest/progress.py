"""A progress bar for loads that take over two seconds, on stderr, where stderr is a terminal."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

PATIENCE = 2.0  # seconds before the bar
EVERY = 0.1


@contextmanager
def show_progress(
    connection: duckdb.DuckDBPyConnection, what: str, *, quiet: bool = False
) -> Iterator[Callable[[str], None]]:
    """Show how far this connection's statements are. Call what it gives with the name of each step.

    DuckDB reports progress only while its own bar is enabled; that bar's printing is switched off.
    """
    step = [what]
    if quiet or not is_terminal():
        yield lambda _: None
        return
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET enable_progress_bar = true")
    done = threading.Event()
    drawing = threading.Thread(target=_draw, args=(connection, step, done), daemon=True)
    drawing.start()
    try:
        yield lambda name: step.__setitem__(0, f"{what}: {name}")
    finally:
        done.set()
        drawing.join()
        connection.execute("SET enable_progress_bar = false")


def is_terminal() -> bool:
    """Whether stderr is a terminal; a program without a console has none, and one may have closed it."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _draw(connection: duckdb.DuckDBPyConnection, step: list[str], done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    from rich.console import Console  # noqa: PLC0415 - most loads draw nothing
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    parts = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        shown, task = step[0], bar.add_task(step[0], total=None)
        while not done.wait(EVERY):
            if step[0] != shown:
                shown = step[0]
                bar.reset(task, description=shown, total=None)
            percent = connection.query_progress()
            if percent > 0:  # a source of unknown size reports nothing: the bar then only moves
                bar.update(task, completed=percent, total=100)
