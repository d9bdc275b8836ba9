"""PostgreSQL: the pinned tables are in a schema of the owner's database, and plans run there."""

import re
import sys
from typing import TYPE_CHECKING

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.engines.callable_package import CallablePackage
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.extras import imported

if TYPE_CHECKING:
    from sfumato.engines.postgres.postgres_backend import PostgresBackend

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
WITH_PASSWORD = re.compile(r"postgres(?:ql)?://[^/@]*:[^/@]+@|[?&]password=", re.IGNORECASE)


def choose(url: str = "", *, schema: str | None = "sfumato", timeout_seconds: int = 600) -> "PostgresBackend":
    """PostgreSQL as the engine of `sf.open` and `sf.protect`.

    `url` is postgresql://user@host/database. Without it: the environment variable SFUMATO_POSTGRES, or PGHOST, PGUSER
    and PGDATABASE. `schema` holds the pinned tables. Without one (None), the data is pinned on this machine and copied
    to temporary tables when it is opened. A statement that takes longer than `timeout_seconds` is ended.
    """
    for value, name in ((url, "url"), (schema or "", "schema")):
        if not isinstance(value, str):
            raise InvalidParameter(name, "must be a text", describe_kind(value))
    if schema is not None and (not NAME.fullmatch(schema) or schema.lower().startswith("pg_")):
        hint = "Use letters, digits and _, and begin with a letter or _."
        raise InvalidParameter("schema", "must be a plain name", "another text", hint)
    if (
        not isinstance(timeout_seconds, int)
        or isinstance(timeout_seconds, bool)
        or not 0 < timeout_seconds <= 2_000_000
    ):
        raise InvalidParameter("timeout_seconds", "must be a whole number of seconds, from 1 on", "another value")
    imported("psycopg", "postgres")
    from sfumato.engines.postgres.postgres_backend import PostgresBackend  # noqa: PLC0415 - an extra

    return PostgresBackend(url, schema, timeout_seconds)


def read_declared(declared: str) -> "PostgresBackend":
    """What a catalog declares: `engine = "postgres"`, or the URL of a server, with ?schema=… if it is another one."""
    if "://" not in declared:
        return choose()
    if WITH_PASSWORD.search(declared):
        hint = "Put it into ~/.pgpass or the environment variable PGPASSWORD."
        raise build_catalog_error("dataset: engine must not have a password in it.", hint)
    schema = re.search(r"[?&]schema=([^&]*)", declared)
    url = re.sub(r"schema=[^&]*&?", "", declared).rstrip("?&")
    return choose(url) if schema is None else choose(url, schema=schema[1])


sys.modules[__name__].__class__ = CallablePackage
