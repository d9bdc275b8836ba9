"""The datasets that a service answers for: one Curator each, with the grants in force as the analysts' own limits."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.catalog.catalog_file import load_catalog
from sfumato.curator import Curator
from sfumato.errors import CatalogError, PermissionDenied
from sfumato.opening import open_folder
from sfumato.service.accounts import Accounts, Grant, User
from sfumato.service.grant_limits import list_limits

NO_ACCESS = PermissionDenied(
    "no-grant", "There is no dataset of this name that you may ask.", "Ask its owner for a grant."
)

BROKEN = PermissionDenied(
    "broken-grant",
    "Your grant cannot be counted in the accounting of this dataset.",
    "Ask its owner to grant it again: an epsilon, and a delta if the budget has one.",
)


@dataclass(slots=True)
class _Served:
    """An open dataset, the version of the grants that it was opened with, and how many requests use it."""

    curator: Curator
    broken: frozenset[str]  # whose grants cannot be counted, so that they are refused
    version: int
    users: int = 0
    replaced: bool = False


@dataclass(slots=True)
class ServedDatasets:
    """Opens datasets when they are first asked for, and again when a grant has changed.

    A request that has begun is finished on the Curator that it began with. Both charge the same ledger.
    """

    folders: dict[str, Path]  # given when the service was started
    accounts: Accounts
    _registered: tuple[int, dict[str, Path]] = field(
        default_factory=lambda: (0, {})
    )  # by owners on the pages, as of a version of the grants
    _open: dict[str, _Served] = field(default_factory=dict)
    _used: dict[int, _Served] = field(default_factory=dict)  # by the thread that uses it
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def find(cls, folders: Sequence[Path], accounts: Accounts) -> "ServedDatasets":
        """The datasets of these folders, by name. Two folders with one name are refused."""
        found: dict[str, Path] = {}
        for folder in folders:
            name = load_catalog(folder).name
            if name in found:
                hint = "Change the name under [dataset] in one of the catalogs."
                raise CatalogError("catalog", f"Two folders declare the dataset {name}.", hint)
            found[name] = folder
        return cls(found, accounts)

    def list_names(self, user: User) -> list[str]:
        """The datasets that this user may see: all for an owner, the granted ones for an analyst."""
        known = self._find_folders(self.accounts.read_version())
        if user.role == "owner":
            return sorted(known)
        granted = {
            grant.dataset for grant in self.accounts.list_grants() if grant.user == user.name and not grant.ended
        }
        return sorted(granted & known.keys())

    @contextmanager
    def using(self, name: str, user: User) -> Iterator[tuple[Curator, Grant | None]]:
        """The dataset, and the user's grant. A user without a grant is refused, as if there were no such dataset."""
        version = self.accounts.read_version()
        folder = self._find_folders(version).get(name)
        grant = None if folder is None else self.accounts.find_grant(user, name, version)
        if folder is None or (user.role != "owner" and grant is None):
            raise NO_ACCESS
        served = self._take(name, folder, version)
        thread = threading.get_ident()
        outer = self._used.get(thread)
        try:
            if user.name in served.broken:
                raise BROKEN
            self._used[thread] = served
            yield served.curator, grant
        finally:
            if outer is None:
                self._used.pop(thread, None)
            else:
                self._used[thread] = outer
            self._give_back(served)

    def interrupt(self, thread: int) -> None:
        """Stop what a thread measures on the dataset that it uses, if the engine can be stopped."""
        served = self._used.get(thread)
        stop = None if served is None else getattr(served.curator.engine, "interrupt", None)
        if stop is not None:
            stop(thread)

    def close(self) -> None:
        """Close all datasets."""
        with self._lock:
            for served in self._open.values():
                served.curator.close()
            self._open.clear()

    def list_all(self) -> list[str]:
        """The names of all datasets, for an owner who chooses a new one."""
        return sorted(self._find_folders(self.accounts.read_version()))

    def register(self, name: str, folder: Path, *, by: str) -> None:
        """Serve a new dataset from now on. It is opened first, so that one that cannot be served is refused here."""
        if name in self.folders:
            raise CatalogError("catalog", f"There is a dataset {name} already.", "Choose another name.")
        open_folder(folder).close()
        self.accounts.add_dataset(name, folder, by=by)

    def _find_folders(self, version: int) -> dict[str, Path]:
        """The folders of all datasets. Registered ones are read again when something has changed."""
        if self._registered[0] != version:
            self._registered = (version, {**self.accounts.list_datasets(), **self.folders})
        return self._registered[1]

    def _take(self, name: str, folder: Path, version: int) -> _Served:
        with self._lock:
            served = self._open.get(name)
            if served is None or served.version != version:
                opened = _Served(*self._open_dataset(name, folder), version)
                if served is not None:
                    served.replaced = True
                    if not served.users:
                        served.curator.close()
                served = self._open[name] = opened
            served.users += 1
            return served

    def _give_back(self, served: _Served) -> None:
        with self._lock:
            served.users -= 1
            if served.replaced and not served.users:
                served.curator.close()

    def _open_dataset(self, name: str, folder: Path) -> tuple[Curator, frozenset[str]]:
        owners = [user["name"] for user in self.accounts.list_users() if user["role"] == "owner" and user["active"]]
        limits, broken = list_limits(load_catalog(folder), owners, self.accounts.list_grants(name))
        return open_folder(folder, analysts=limits), broken
