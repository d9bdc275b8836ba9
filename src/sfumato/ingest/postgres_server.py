"""Connections to the PostgreSQL server that holds the owner's data, and what to say when there is none.

An address is `postgresql://user@host/database`. Without one, it is the environment variable SFUMATO_POSTGRES, or what
PGHOST, PGUSER and PGDATABASE say. A password belongs to the environment or to ~/.pgpass.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sfumato.errors import CatalogError
from sfumato.extras import imported

if TYPE_CHECKING:
    import psycopg

VARIABLE = "SFUMATO_POSTGRES"
ADDRESS = re.compile(r"postgres(?:ql)?://\S*")
PASSWORD = re.compile(r"(?<=:)[^:/@]+(?=@)")
LEAST_VERSION = 140_000
SETTINGS = {  # texts of dates and doubles, and plans, must not depend on how a server or a role is set up
    "search_path": "pg_catalog, pg_temp", "timezone": "UTC", "datestyle": "ISO, YMD", "intervalstyle": "postgres",
    "extra_float_digits": "1", "standard_conforming_strings": "on", "row_security": "off", "client_encoding": "UTF8",
    "lock_timeout": "0", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0",
}  # fmt: skip
_server: ContextVar[str | None] = ContextVar("server", default=None)


@contextmanager
def use_server(url: str) -> Iterator[None]:
    """Read sources without an address (postgres:schema.table) from this server."""
    token = _server.set(url)
    try:
        yield
    finally:
        _server.reset(token)


def find_address(url: str | None) -> str:
    """The address that was given, that of the engine, or that of the environment; empty for the driver's own."""
    return url or _server.get() or os.environ.get(VARIABLE, "")


def connect(url: str | None = None) -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection that commits each statement by itself, with settings of its own."""
    imported("psycopg", "postgres")
    import psycopg  # noqa: PLC0415 - an extra

    address, failure = find_address(url), ""
    connection: psycopg.Connection | None = None
    try:
        connection = psycopg.connect(address, autocommit=True, connect_timeout=15, prepare_threshold=None)
        _set_up(connection)
    except psycopg.ProgrammingError:
        failure = "address"
    except psycopg.Error as error:
        failure = f"{getattr(error, 'sqlstate', '') or ''} {error}"
    if connection is None or failure:
        raise _explain(failure, PASSWORD.sub("...", address))
    return connection


def _set_up(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    info = connection.info
    if info.server_version < LEAST_VERSION:
        raise build_server_error("The PostgreSQL server is older than version 14.", "Use a server from version 14 on.")
    if info.parameter_status("server_encoding") != "UTF8":
        hint = "Make a database with ENCODING 'UTF8', and put the data there."
        raise build_server_error("The encoding of this database is not UTF-8.", hint)
    chosen = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in SETTINGS.items())
    connection.execute(f"SELECT {chosen}")


def build_server_error(message: str, hint: str) -> CatalogError:
    return CatalogError("postgres", message, hint)


def _explain(failure: str, address: str) -> CatalogError:
    """What went wrong, by what the server or the driver says. Their texts name users and databases, but no data."""
    where = address or "the server of the environment (PGHOST, PGUSER, PGDATABASE)"
    lower = failure.lower()
    if failure == "address":
        hint = "For example: postgresql://ann@db.example.org/clinic."
        return build_server_error("The address of the PostgreSQL server cannot be read.", hint)
    if "no password supplied" in lower or "password authentication failed" in lower or "28p01" in lower:
        hint = "Put it into ~/.pgpass or the environment variable PGPASSWORD."
        return build_server_error(f"The PostgreSQL server refused the password: {where}.", hint)
    if "does not exist" in lower:
        what = "role" if 'role "' in lower else "database"
        return build_server_error(f"The PostgreSQL server has no such {what}: {where}.", "Check the address.")
    if "permission denied" in lower or "28000" in lower:
        hint = "The owner of the server can allow it: GRANT CONNECT, TEMPORARY ON DATABASE … TO …."
        return build_server_error(f"The PostgreSQL server did not let this user in: {where}.", hint)
    hint = f"Is it running, and is the address right? It comes from engine = or source =, or from {VARIABLE}."
    return build_server_error(f"The PostgreSQL server cannot be reached: {where}.", hint)
