"""In an interactive session DuckDB draws a progress bar for long queries. It must not do so for ours."""

import subprocess
import sys

SHOWN = """
import pathlib, tempfile, duckdb, pandas as pd
import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.ingest import snapshot_file
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

def bar(connection):
    return connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()[0]

pinned = snapshot_file.pin
def seen(connection, *rest):
    print("pinning", bar(connection))
    return pinned(connection, *rest)
snapshot_file.pin = seen

print("theirs", bar(duckdb.connect()))
table = Table("t", "t.csv", "id", {"id": sf.Id(), "x": sf.Integer(0, 9)})
engine = DuckDBEngine.of_data(table, pd.DataFrame({"id": ["a"], "x": [1]}))
print("memory", bar(engine._connection), bar(engine._connection.cursor()))
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "t.csv").write_text("id,x\\na,1\\n")
    DuckDBEngine.prepare(folder / "s.duckdb", {"t": table}, folder)
    opened = DuckDBEngine.open(folder / "s.duckdb", {"t": table})
    print("file", bar(opened._connection.cursor()), bar(opened._empty._empty().cursor()))
    opened.close()
"""


def test_nothing_is_drawn_where_someone_types():
    """DuckDB treats `python -c` as interactive, and its own connections draw a bar there."""
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "theirs True",
        "memory False False",
        "pinning False",
        "file False False",
    ]
