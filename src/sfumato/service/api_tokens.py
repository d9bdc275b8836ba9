"""API tokens: 256 random bits that are shown once. Only a keyed hash of each is stored."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM
from sfumato.number_arguments import read_whole_number
from sfumato.service.account_tables import TOKENS, USERS
from sfumato.service.account_versions import Remembered
from sfumato.service.accounts import Accounts, User, make_secret, raise_version, write_line, write_now, write_time

PREFIX = "sfm"  # so that a leaked token is recognised
DAYS, MOST_DAYS = 90, 3650


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is listed: without its secret, which nobody can read again."""

    id: str
    user: str
    label: str
    created: str
    expires: str
    revoked: bool


class Tokens:
    """The tokens of a service, shared by its workers."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._known: Remembered[str, tuple[User, str]] = Remembered()  # and when they expire

    def make(self, user: str, days: int = DAYS, label: str = "", *, by: str = "") -> str:
        """A new token of 256 random bits. It is shown once: only a keyed hash of it is stored."""
        lasts = timedelta(days=min(read_whole_number(days, "days", 1), MOST_DAYS))
        secret = make_secret()
        name = SYSTEM.take(6).tobytes().hex()
        self._accounts.require_active(user)
        with self._accounts.transaction() as connection:
            now = datetime.now(UTC)
            connection.execute(
                TOKENS.insert().values(
                    id=name,
                    digest=self._accounts.hash_secret(secret),
                    user=user,
                    label=label,
                    created=write_time(now),
                    expires=write_time(now + lasts),
                    revoked=False,
                )
            )
            write_line(connection, by, "make token", "", f"{name} for {user}")
        return f"{PREFIX}_{name}_{secret}"

    def revoke(self, name: str, *, by: str = "") -> None:
        """Revoke a token by its id. It is refused from the next request on."""
        with self._accounts.transaction() as connection:
            changed = connection.execute(TOKENS.update().where(TOKENS.c.id == name).values(revoked=True))
            if not changed.rowcount:
                raise InvalidParameter("id", "must be the id of a token", "another", "`sfumato user list` shows them.")
            raise_version(connection, access=True)
            write_line(connection, by, "revoke token", "", name)

    def find_user(self, token: str) -> User | None:
        """Whose token this is; None if it is unknown, revoked or expired, or if its user was disabled."""
        parts = token.split("_", 2)
        if len(parts) != 3 or parts[0] != PREFIX:
            return None
        digest = self._accounts.hash_secret(parts[2])
        found = self._known.find(self._accounts.read_access_version(), digest, lambda: self._find_token(digest))
        return None if found is None or found[1] <= write_now() else found[0]

    def _find_token(self, digest: str) -> tuple[User, str] | None:
        """The user of a token that was not revoked, and when it expires."""
        columns = (USERS.c.name, USERS.c.role, TOKENS.c.expires)
        joined = sa.select(*columns).join_from(TOKENS, USERS, TOKENS.c.user == USERS.c.name)
        with self._accounts.reading() as connection:
            found = connection.execute(joined.where(TOKENS.c.digest == digest, ~TOKENS.c.revoked, USERS.c.active))
            row = found.first()
        return None if row is None else (User(row.name, row.role), str(row.expires))

    def list(self) -> list[Token]:
        """All tokens, without their secret parts."""
        columns = [TOKENS.c[part] for part in Token.__slots__]
        with self._accounts.reading() as connection:
            return [Token(*row) for row in connection.execute(sa.select(*columns).order_by(TOKENS.c.created))]
