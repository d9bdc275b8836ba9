"""A ledger on a PostgreSQL server: its address, its schema, and connections whose commits are durable.

An address is `postgresql://user@host/database`, with `?schema=clinic` if the ledger has a schema of its own. One
database holds several ledgers, one in each schema. Without it, the ledger is in the schema that the server's search
path names first.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.extras import imported

POSTGRES = ("postgresql", "postgres")
SCHEMA = "schema"  # the part of the query of an address that is ours; the others are the driver's
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_NOT_DURABLE = (
    "The owner of the server can set fsync = on and restart it. "
    "Until then a crash of the machine could lose charges, so nothing is answered."
)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a ledger is on a server."""

    url: sa.URL
    schema: str | None

    @property
    def fingerprint(self) -> str:
        """A digest that names this place: the same for every user name, password and driver option."""
        host, port = (str(self.url.query.get(part, "")) for part in ("host", "port"))
        place = (
            self.url.host or host,
            str(self.url.port or port or 5432),
            self.url.database or "",
            self.schema or "",
        )
        return hashlib.sha256("\n".join(place).encode()).hexdigest()[:32]

    def make_engine(self, poolclass: type[sa.Pool] | None = None) -> sa.Engine:
        """Connections to the server. Each sees the ledger's schema only, and commits durably."""
        engine = sa.create_engine(self.url, hide_parameters=True, poolclass=poolclass)
        sa.event.listen(engine, "connect", self._set_up)
        return engine

    def _set_up(self, connection: Any, record: object) -> None:  # noqa: ANN401 - the driver's
        with connection.cursor() as cursor:
            if self.schema is not None:
                cursor.execute(f'SET search_path TO "{self.schema}"')  # a name of letters, digits and _
            cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
            fsync, durable = cursor.fetchone()
            if fsync != "on":
                message = "The server does not write commits to its disk: fsync is off."
                raise LedgerError("ledger-not-durable", message, _NOT_DURABLE)
            if durable == "off":  # stricter settings stay as they are
                cursor.execute("SET synchronous_commit TO on")
        connection.commit()


def is_server(address: str) -> bool:
    """Whether an address names a PostgreSQL server."""
    return address.split("://", 1)[0].split("+", 1)[0] in POSTGRES if "://" in address else False


def read_server_address(address: str) -> ServerAddress:
    """The address of a ledger on a server. A driver need not be named. The `postgres` extra must be installed."""
    _, rest = address.split("://", 1)
    url = sa.make_url(f"postgresql+psycopg://{rest}")
    imported("psycopg", "postgres")
    schema = url.query.get(SCHEMA)
    if schema is not None and (not isinstance(schema, str) or not _NAME.fullmatch(schema)):
        hint = "Use letters, digits and _, and begin with a letter or _: ?schema=clinic."
        raise LedgerError("ledger-unreachable", "The schema in the ledger's address is not a plain name.", hint)
    return ServerAddress(url.difference_update_query([SCHEMA]), schema)


def make_schema(connection: sa.Connection, schema: str | None) -> None:
    """Make the ledger's schema if it is missing. Others who begin a ledger in this database wait until this is done."""
    if connection.dialect.name != "postgresql":
        return
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('sfumato ledger'))"))
    if schema is not None:
        connection.execute(sa.schema.CreateSchema(schema, if_not_exists=True))
