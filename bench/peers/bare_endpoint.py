"""The peer of bench/serve.py: a FastAPI endpoint that checks a body and commits one row to SQLite, durably."""

import os
import sqlite3
import threading

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
_own = threading.local()


class Asked(BaseModel):
    """The body of a request, as the service's own."""

    sql: str
    epsilon: str


def _connect() -> sqlite3.Connection:
    if not hasattr(_own, "connection"):
        _own.connection = sqlite3.connect(os.environ["BARE_DATABASE"], isolation_level=None)
        for setting in ("busy_timeout = 30000", "journal_mode = WAL", "synchronous = FULL"):
            _own.connection.execute(f"PRAGMA {setting}")
        _own.connection.execute("CREATE TABLE IF NOT EXISTS asked (sql TEXT, epsilon TEXT)")
    found: sqlite3.Connection = _own.connection
    return found


@app.post("/bare")
def take(asked: Asked) -> dict[str, str]:
    """Commit the request, and answer."""
    connection = _connect()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO asked VALUES (?, ?)", (asked.sql, asked.epsilon))
    connection.execute("COMMIT")
    return {"status": "ok"}
