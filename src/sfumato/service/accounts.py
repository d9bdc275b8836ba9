"""Who may ask what: users, grants and the log, in one database that all workers share."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import sqlalchemy as sa

from sfumato.catalog.analysts import DEFAULT, check_analysts, find_analyst, read_analyst
from sfumato.catalog.budget import Budget
from sfumato.errors import InvalidParameter, PermissionDenied
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import write_plain
from sfumato.number_arguments import Number, read_positive_decimal
from sfumato.private_files import locked, make_private, make_private_folder, write_once
from sfumato.service.account_tables import (
    ACCOUNTS,
    DATASETS,
    GRANTS,
    LOG,
    SESSIONS,
    STATE,
    USERS,
    add_missing_columns,
)
from sfumato.service.account_versions import Remembered, VersionReader
from sfumato.service.group_commit import WAIT_SECONDS, GroupCommit, begin_writing, find_driver
from sfumato.service.passwords import NOBODY, hash_password, verify_password

Role = Literal["owner", "analyst"]
Written = TypeVar("Written")
_ADD_LINE = 'INSERT INTO service_log (time, "user", action, dataset, detail) VALUES (?, ?, ?, ?, ?)'


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may sign in. The name is also the analyst's name in the ledger."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Grant:
    """What one analyst may learn of one dataset: a limit, perhaps one for each question, perhaps an end."""

    user: str
    dataset: str
    epsilon: str
    delta: str = "0"
    per_query: str = ""
    per_query_delta: str = ""
    expires: str = ""

    @property
    def ended(self) -> bool:
        return bool(self.expires) and self.expires <= write_now()


class Accounts:
    """The accounts of a service. Passwords and tokens are stored as hashes only. Every change is in the log."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.absolute().parent)
        make_private(path)
        key = Path(f"{path}.key")
        write_once(key, SYSTEM.take(32).tobytes().hex().encode())
        self._key = key.read_bytes()
        self._engine, self._quick_engine = (
            sa.create_engine(f"sqlite:///{path.absolute()}", hide_parameters=True) for _ in range(2)
        )
        sa.event.listen(self._engine, "connect", _set_up)
        sa.event.listen(self._quick_engine, "connect", _set_up_quick)
        with locked(Path(f"{path}.lock")):
            ACCOUNTS.create_all(self._engine)
            with self.transaction() as connection:
                add_missing_columns(connection)
        self._group, self._quick_group = GroupCommit(self._engine), GroupCommit(self._quick_engine)
        self._grants: Remembered[tuple[str, str], Grant] = Remembered()
        with self.transaction() as connection:
            if connection.execute(sa.select(STATE.c.single)).first() is None:
                connection.execute(STATE.insert().values(single=1, grants_version=1))
        self._versions = VersionReader(path.absolute())

    def close(self) -> None:
        """Close the connections."""
        self._versions.close()
        self._group.close()
        self._quick_group.close()
        self._engine.dispose()
        self._quick_engine.dispose()

    def add_user(self, name: str, role: Role = "analyst", password: str = "", *, by: str = "") -> User:
        """Add somebody. Without a password they use tokens only."""
        name = read_analyst(name)
        if find_analyst(name, [DEFAULT]) is not None:
            raise InvalidParameter("name", f"must not look like {DEFAULT!r}", "such a name", "Choose another name.")
        if role not in get_args(Role):
            raise InvalidParameter("role", f"must be one of {', '.join(get_args(Role))}", "another")
        stored = hash_password(password) if password else ""
        with self.transaction() as connection:
            known = connection.execute(sa.select(USERS.c.name)).scalars().all()
            check_analysts([*known, name])  # a name that looks like another one is refused, as in the catalog
            connection.execute(USERS.insert().values(name=name, role=role, password=stored, active=True))
            raise_version(connection)  # an owner is admitted to every dataset
            write_line(connection, by, "add user", "", f"{name} ({role})")
        return User(name, role)

    def disable_user(self, name: str, *, by: str = "") -> None:
        """End somebody's access at once. Their entries in the ledger stay."""
        with self.transaction() as connection:
            changed = connection.execute(USERS.update().where(USERS.c.name == name).values(active=False))
            if not changed.rowcount:
                raise _build_unknown_user(name)
            connection.execute(SESSIONS.delete().where(SESSIONS.c.user == name))
            raise_version(connection, access=True)
            write_line(connection, by, "disable user", "", name)

    def list_users(self) -> list[dict[str, Any]]:
        """Everybody, without what they sign in with."""
        columns = (USERS.c.name, USERS.c.role, USERS.c.active)
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(sa.select(*columns).order_by(USERS.c.name)).mappings()]

    def find_active(self, user: str) -> User | None:
        """The user of this name; None if nobody with access has it."""
        with self.reading() as connection:
            wanted = sa.select(USERS.c.name, USERS.c.role).where(USERS.c.name == user, USERS.c.active)
            found = connection.execute(wanted).first()
        return None if found is None else User(*found)

    def require_active(self, user: str) -> None:
        """Refuse a name that nobody with access has."""
        if self.find_active(user) is None:
            raise _build_unknown_user(user)

    def set_password(self, name: str, password: str, *, by: str = "") -> None:
        """Set somebody's password, in place of an earlier one. It ends their sessions."""
        stored = hash_password(password)
        with self.transaction() as connection:
            changed = connection.execute(USERS.update().where(USERS.c.name == name).values(password=stored))
            if not changed.rowcount:
                raise _build_unknown_user(name)
            connection.execute(SESSIONS.delete().where(SESSIONS.c.user == name))
            write_line(connection, by, "set password", "", name)

    def check_password(self, name: str, password: str) -> User | None:
        """The user, if the password is theirs. An unknown name takes as long as a wrong password."""
        with self.reading() as connection:
            columns = (USERS.c.name, USERS.c.role, USERS.c.password, USERS.c.active)
            found = connection.execute(sa.select(*columns).where(USERS.c.name == name)).first()
        stored = found.password if found is not None and found.password else NOBODY
        right = verify_password(stored, password)
        return User(found.name, found.role) if found is not None and right and found.active else None

    def set_grant(
        self,
        user: str,
        dataset: str,
        epsilon: Number,
        *,
        delta: Number = 0,
        per_query: Number | None = None,
        per_query_delta: Number | None = None,
        expires: datetime | None = None,
        by: str = "",
        check: Callable[["Grant"], None] = lambda _: None,
    ) -> Grant:
        """Grant an analyst a limit on a dataset, in place of an earlier grant. What they spent stays spent.

        `expires` without a time zone is in UTC, whichever machine it is set on. `check` may refuse the grant.
        """
        limit = Budget(epsilon, delta)
        single = "" if per_query is None else write_plain(read_positive_decimal(per_query, "per_query"))
        single_delta = "" if per_query_delta is None else write_plain(Budget(1, per_query_delta).delta)
        if single_delta and not single:
            raise InvalidParameter("per_query_delta", "must come with per_query", "nothing", "Give both.")
        ends = "" if expires is None else write_time(expires if expires.tzinfo else expires.replace(tzinfo=UTC))
        grant = Grant(
            user,
            dataset,
            write_plain(read_positive_decimal(epsilon, "epsilon")),
            write_plain(limit.delta),
            single,
            single_delta,
            ends,
        )
        check(grant)
        with self.transaction() as connection:
            if connection.execute(sa.select(USERS.c.name).where(USERS.c.name == user)).first() is None:
                raise _build_unknown_user(user)
            same = (GRANTS.c.user == user, GRANTS.c.dataset == dataset)
            connection.execute(GRANTS.delete().where(*same))
            connection.execute(GRANTS.insert().values({part: getattr(grant, part) for part in Grant.__slots__}))
            raise_version(connection)
            write_line(connection, by, "grant", dataset, describe_grant(grant))
        return grant

    def remove_grant(self, user: str, dataset: str, *, by: str = "") -> None:
        """End an analyst's access to a dataset."""
        with self.transaction() as connection:
            connection.execute(GRANTS.delete().where(GRANTS.c.user == user, GRANTS.c.dataset == dataset))
            raise_version(connection)
            write_line(connection, by, "remove grant", dataset, user)

    def add_dataset(self, name: str, folder: Path, *, by: str = "") -> None:
        """Serve a registered dataset from now on, in every worker."""
        with self.transaction() as connection:
            if connection.execute(sa.select(DATASETS.c.name).where(DATASETS.c.name == name)).first() is not None:
                raise InvalidParameter("name", "must be new", "the name of another dataset", "Choose another name.")
            connection.execute(DATASETS.insert().values(name=name, folder=str(folder)))
            raise_version(connection)
            write_line(connection, by, "register dataset", name)

    def list_datasets(self) -> dict[str, Path]:
        """The folders of the registered datasets."""
        with self.reading() as connection:
            return {row.name: Path(row.folder) for row in connection.execute(sa.select(DATASETS))}

    def list_grants(self, dataset: str | None = None) -> list[Grant]:
        """The grants of a dataset, or all."""
        wanted = sa.select(*(GRANTS.c[part] for part in Grant.__slots__)).order_by(GRANTS.c.dataset, GRANTS.c.user)
        wanted = wanted if dataset is None else wanted.where(GRANTS.c.dataset == dataset)
        with self.reading() as connection:
            return [Grant(*row) for row in connection.execute(wanted)]

    def find_grant(self, user: User, dataset: str, version: int | None = None) -> Grant | None:
        """An analyst's grant; None if there is none or it has ended. `version` is that of the grants, if just read."""
        wanted = (user.name, dataset)
        found = self._grants.find(
            self.read_version() if version is None else version, wanted, lambda: self._read_grant(*wanted)
        )
        return None if found is None or found.ended else found

    def _read_grant(self, user: str, dataset: str) -> Grant | None:
        return next((grant for grant in self.list_grants(dataset) if grant.user == user), None)

    def read_version(self) -> int:
        """A number that rises whenever a grant changes."""
        return self._versions.read().grants

    def read_access_version(self) -> int:
        """A number that rises whenever a user or a token changes."""
        return self._versions.read().access

    def log(self, user: str, action: str, dataset: str = "", detail: str = "") -> None:
        """Write down who did what. Never a password, a token or a value from the data."""
        self.write(lambda connection: write_line(connection, user, action, dataset, detail))

    def list_log(self, most: int = 1000, before: int | None = None) -> list[Mapping[str, Any]]:
        """The newest lines of the log (before a number, if it is given), newest first."""
        wanted = sa.select(LOG).order_by(LOG.c.number.desc()).limit(most)
        wanted = wanted if before is None else wanted.where(LOG.c.number < before)
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(wanted).mappings()]

    def hash_secret(self, secret: str) -> str:
        """The keyed hash under which a secret is stored."""
        return hmac.new(self._key, secret.encode(), hashlib.sha256).hexdigest()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """A connection to the accounts that excludes other writers. What it writes is durable when the block ends."""
        with self._engine.begin() as connection:
            begin_writing(connection)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection to the accounts that writes nothing."""
        with self._engine.connect() as connection:
            yield connection

    def write(self, work: Callable[[sa.Connection], Written]) -> Written:
        """Do some work in a transaction that it may share with others. It is durable when this returns."""
        return self._group.run(work)

    def write_quickly(self, work: Callable[[sa.Connection], Written]) -> Written:
        """`write`, for what the ledger holds too. A killed process does not undo it; a power failure may."""
        return self._quick_group.run(work)


def make_secret() -> str:
    """A secret of 256 random bits, in letters that an address may hold."""
    return urlsafe_b64encode(SYSTEM.take(32).tobytes()).decode().rstrip("=")


def describe_grant(grant: Grant) -> str:
    """A grant in one line."""
    single_delta = f", delta {grant.per_query_delta}" if grant.per_query_delta else ""
    single = f", at most epsilon {grant.per_query}{single_delta} for a question" if grant.per_query else ""
    delta = f", delta {grant.delta}" if grant.delta != "0" else ""
    ends = f", until {grant.expires}" if grant.expires else ""
    return f"{grant.user}: epsilon {grant.epsilon}{delta}{single}{ends}"


def require_owner(user: User) -> None:
    """Refuse what only an owner may do."""
    if user.role != "owner":
        raise PermissionDenied("owner-only", "Only an owner may do this.", "Ask the owner of the dataset.")


def write_now() -> str:
    """The time now, in the form in which times are stored and compared."""
    return write_time(datetime.now(UTC))


def write_time(moment: datetime) -> str:
    """A time in the form in which times are stored and compared."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_line(connection: sa.Connection, user: str, action: str, dataset: str = "", detail: str = "") -> None:
    """Write a line of the log in a transaction. Never a password, a token or a value from the data."""
    find_driver(connection).execute(_ADD_LINE, (write_now(), user, action, dataset, detail)).close()


def raise_version(connection: sa.Connection, *, access: bool = False) -> None:
    """Tell all workers that grants have changed; or, with `access`, users or tokens."""
    version = STATE.c.access_version if access else STATE.c.grants_version
    connection.execute(STATE.update().values({version: version + 1}))


def _build_unknown_user(name: str) -> InvalidParameter:
    hint = "Add them first: sfumato user add NAME. `sfumato user list` shows everybody."
    return InvalidParameter("user", "must be the name of an active user", "another", hint)


def _set_up(connection: Any, record: object) -> None:  # noqa: ANN401 - the driver's
    for pragma in ("journal_mode = WAL", f"busy_timeout = {1000 * WAIT_SECONDS}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()
    connection.execute("PRAGMA synchronous = FULL").close()


def _set_up_quick(connection: Any, record: object) -> None:  # noqa: ANN401 - the driver's
    """No wait for the disk: SQLite keeps the order of transactions, and a power failure loses the last ones."""
    _set_up(connection, record)
    connection.execute("PRAGMA synchronous = NORMAL").close()
