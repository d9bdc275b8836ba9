"""Sign-in to pages: sessions in cookies, links that sign in once, and a limit on wrong passwords.

A cookie holds 256 random bits, of which only a keyed hash is stored. A form or a script that changes something must
also send the session's CSRF token, which another site cannot read.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from sfumato.errors import PermissionDenied
from sfumato.service.account_tables import FAILED_SIGN_INS, SESSIONS, USERS
from sfumato.service.accounts import Accounts, User, make_secret, write_line, write_now, write_time

LASTS = timedelta(hours=12)
WINDOW = timedelta(minutes=15)
MOST_FAILURES = 5  # of one name from one network
MOST_OF_NAME = 20  # of one name from all networks: somebody with many addresses is slowed down too
MOST_OF_NETWORK = 50  # of all names from one network: somebody who tries many names is slowed down too
WRONG = PermissionDenied("sign-in", "The name or the password is wrong.", "Ask the owner for a new password or a link.")
TOO_MANY = PermissionDenied(
    "too-many-attempts", "There were too many wrong passwords.", "Try again in 15 minutes, or use a sign-in link."
)


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is signed in."""

    user: User
    csrf: str

    def seal(self, text: str) -> str:
        """A short proof that this service wrote a text, for notices in addresses."""
        return hmac.new(self.csrf.encode(), text.encode(), "sha256").hexdigest()[:16]

    def read_sealed(self, text: str, seal: str) -> str:
        """The text, if this service wrote it for this session; otherwise nothing."""
        return text if hmac.compare_digest(seal.encode(), self.seal(text).encode()) else ""

    def allows(self, csrf: str) -> bool:
        """Did the request come from one of our own pages?"""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


class Sessions:
    """The sessions of a service, shared by its workers."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def sign_in(self, name: str, password: str, address: str = "") -> str:
        """Check a password that came from an address, and return the secret of a new session's cookie."""
        limits = self._list_limits(name, find_network(address))
        counted = self._count_attempt(limits)  # before the password is checked: attempts at the same time count too
        user = self._accounts.check_password(name, password)
        if user is None:
            raise WRONG
        of_name = list(limits)[:2]  # not the network: somebody may have a password of their own
        ended = FAILED_SIGN_INS.c.who.in_(of_name) | FAILED_SIGN_INS.c.number.in_(counted)
        with self._accounts.transaction() as connection:
            connection.execute(FAILED_SIGN_INS.delete().where(ended))
        return self._begin(user.name, "session", LASTS)

    def make_link(self, user: str, lasts: timedelta = timedelta(days=1)) -> str:
        """The secret of a link that signs somebody in once."""
        return self._begin(user, "link", lasts)

    def use_link(self, secret: str) -> str:
        """Use up a link, and return the secret of a new session's cookie."""
        with self._accounts.transaction() as connection:
            ours = (SESSIONS.c.digest == self._accounts.hash_secret(secret), SESSIONS.c.kind == "link")
            valid = (SESSIONS.c.expires > write_now(), SESSIONS.c.user == USERS.c.name, USERS.c.active)
            user = connection.execute(sa.select(SESSIONS.c.user).where(*ours, *valid)).scalar()
            used = connection.execute(SESSIONS.delete().where(*ours)).rowcount
        if user is None or not used:
            hint = "Ask the owner for a new link, or sign in with a password."
            raise PermissionDenied("sign-in", "This link is unknown, was used before, or has expired.", hint)
        return self._begin(str(user), "session", LASTS)

    def find(self, secret: str) -> Session | None:
        """Whose session a cookie belongs to; None if it has ended."""
        columns = sa.select(USERS.c.name, USERS.c.role).join_from(SESSIONS, USERS, SESSIONS.c.user == USERS.c.name)
        digest = self._accounts.hash_secret(secret)
        valid = (SESSIONS.c.digest == digest, SESSIONS.c.kind == "session", SESSIONS.c.expires > write_now())
        with self._accounts.reading() as connection:
            found = connection.execute(columns.where(*valid, USERS.c.active)).first()
        return None if found is None else Session(User(*found), self._accounts.hash_secret(f"csrf {secret}"))

    def end(self, secret: str) -> None:
        """Sign out."""
        with self._accounts.transaction() as connection:
            connection.execute(SESSIONS.delete().where(SESSIONS.c.digest == self._accounts.hash_secret(secret)))

    def _begin(self, user: str, kind: str, lasts: timedelta) -> str:
        secret, now = make_secret(), datetime.now(UTC)
        row = {"digest": self._accounts.hash_secret(secret), "user": user, "kind": kind,
               "expires": write_time(now + lasts)}  # fmt: skip
        with self._accounts.transaction() as connection:
            connection.execute(SESSIONS.delete().where(SESSIONS.c.expires <= write_time(now)))
            connection.execute(SESSIONS.insert().values(row))
            if kind == "session":
                write_line(connection, user, "sign in")
            else:
                write_line(connection, "", "make sign-in link", "", user)
        return secret

    def _list_limits(self, name: str, network: str) -> dict[str, int]:
        """What an attempt counts for, as keyed hashes, and how many failures each may have. No limit is for everybody.

        An address that nobody else has, such as that of a proxy on this machine, counts for nothing.
        """
        limits = {f"name {name} from {network}": MOST_FAILURES, f"name {name}": MOST_OF_NAME}
        limits |= {f"network {network}": MOST_OF_NETWORK} if network else {}
        return {self._accounts.hash_secret(what): most for what, most in limits.items()}

    def _count_attempt(self, limits: dict[str, int]) -> list[int]:
        """Count an attempt as a failure until it succeeds, and return its rows. Too many are refused."""
        now, who = datetime.now(UTC), FAILED_SIGN_INS.c.who
        with self._accounts.transaction() as connection:
            connection.execute(FAILED_SIGN_INS.delete().where(FAILED_SIGN_INS.c.time <= write_time(now - WINDOW)))
            for subject, most in limits.items():
                if (connection.execute(sa.select(sa.func.count()).where(who == subject)).scalar() or 0) >= most:
                    raise TOO_MANY
            made = (
                connection.execute(FAILED_SIGN_INS.insert().values(who=limited, time=write_time(now)))
                for limited in limits
            )
            return [row.inserted_primary_key[0] for row in made if row.inserted_primary_key]


def find_network(address: str) -> str:
    """The network that one sender has: an IPv4 address, or 64 bits of an IPv6 address. Empty for this machine's own."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return ""
    return str(ipaddress.ip_network((found, 32 if found.version == 4 else 64), strict=False))
