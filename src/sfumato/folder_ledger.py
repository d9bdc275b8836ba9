"""The ledger of a dataset: where it is, how it is begun once, and the owner's commands that change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sfumato.arguments import check_file_path, check_path
from sfumato.catalog.budget import Budget
from sfumato.catalog.budget_edit import write_budget
from sfumato.catalog.catalog_file import load_catalog, set_ledger_id
from sfumato.catalog.catalog_keys import FILE
from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, LedgerError, describe_kind
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.adoption import Adoption, adopt
from sfumato.ledger.backup import back_up, restore
from sfumato.ledger.keyring import find_home
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.ledger_address import resolve_address
from sfumato.ledger.server_address import is_server, read_server_address
from sfumato.private_files import locked, make_private, make_private_folder, tighten

LEDGER = "ledger.db"
ExpectedHead = str | tuple[int, str] | None


def find_address(folder: Path, dataset: Dataset) -> str:
    """The ledger's path or URL. A path in the catalog is relative to the folder."""
    return resolve_address(folder, dataset.ledger or LEDGER)


def open_ledger(folder: Path, dataset: Dataset, address: str, expected_head: ExpectedHead) -> Ledger:
    """Open the ledger of a folder. If the catalog names no ledger id yet, begin one, or join the one at the address.

    The caller holds the folder's lock if the catalog names no id. After a crash at any step, the next call joins the
    ledger that this call began.
    """
    if dataset.ledger_id is not None:
        return _open(address, dataset.ledger_id, dataset, expected_head)
    books = _begin_or_join(address, dataset, expected_head)
    try:
        set_ledger_id(folder, books.ledger_id)
    except BaseException:
        books.close()
        raise
    return books


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """Where a ledger without a folder is, and the path beside which its id and its signing key are stored."""

    address: str
    notes: Path

    @property
    def key(self) -> Path:
        """The file of the key that signs its answers."""
        return Path(f"{self.notes}.key")


def find_place(ledger: str | Path) -> LedgerPlace:
    """The place of a ledger that is given as a path or as the URL of a server.

    The notes of a ledger on a server are in this user's own folder (SFUMATO_HOME), because a server that lost the
    ledger would also have lost them.
    """
    if isinstance(ledger, str) and is_server(ledger):
        folder = make_private_folder(make_private_folder(find_home()) / "servers")
        return LedgerPlace(ledger, folder / read_server_address(ledger).fingerprint)
    if isinstance(ledger, str) and "://" in ledger:
        hint = "Give the path of a file, or a URL such as postgresql://user@host/database?schema=clinic."
        raise InvalidParameter("ledger", "must be a path, or the URL of a PostgreSQL server", "another URL", hint)
    path = check_file_path(ledger, "ledger")
    return LedgerPlace(str(path), path)


def open_ledger_at(place: LedgerPlace, dataset: Dataset) -> Ledger:
    """Open the ledger at a place, or begin it. Its id is in the notes, so a lost ledger is not begun anew."""
    known = Path(f"{place.notes}.id")
    try:
        with locked(known):
            tighten(known)
            ledger_id = known.read_text().strip()
            if ledger_id:
                return _open(place.address, ledger_id, dataset, None)
            books = _begin_or_join(place.address, dataset, None)
            known.write_text(books.ledger_id)
            return books
    except OSError as error:
        message = f"The ledger's id cannot be stored in {known.parent}: {error.strerror}."
        raise LedgerError("ledger-unreachable", message, f"Check that {known.parent} is a folder of yours.") from None


def read_ledger(folder: Path, dataset: Dataset) -> Ledger:
    """Open the ledger of a folder to list and verify it. It may be a copy, or in a read-only folder.

    Before the first question there is no ledger; then this returns an empty one in memory.
    """
    if dataset.ledger_id is None:
        return create_ledger(None, dataset)
    return Ledger.read(find_address(folder, dataset), dataset.ledger_id, dataset.population, list_sublimits(dataset))


def set_budget(place: str | Path, budget: Budget | None = None) -> None:
    """Change the budget of a folder with a catalog, or of a ledger that `protect` made. The ledger records it.

    Without `budget`, the catalog's budget is used. A budget below what is already spent is allowed: then nothing more
    can be charged.
    """
    on_server = isinstance(place, str) and is_server(place)
    folder = Path() if on_server else check_path(place, "place")
    if budget is not None and not isinstance(budget, Budget):
        hint = "For example sf.Budget(epsilon=5)."
        raise InvalidParameter("budget", "must be a budget", describe_kind(budget), hint)
    if on_server or not (folder / FILE).exists():
        if budget is None:
            raise InvalidParameter("budget", "must be given for a ledger without a catalog", "nothing (None)")
        found = find_place(place) if on_server else LedgerPlace(str(folder), folder)
        ledger_id, population = _read_identity_at(found)
        with Ledger.open(found.address, ledger_id, population) as books:
            books.set_limit(Limit(budget.loss))
        return
    dataset = load_catalog(folder)
    wanted = budget or dataset.budget
    if dataset.ledger_id is not None:
        address = find_address(folder, dataset)
        own = list_sublimits(dataset)
        with Ledger.open(address, dataset.ledger_id, dataset.population, None, own) as books:
            books.set_limit(Limit(wanted.loss))
    write_budget(folder, wanted)


def adopt_ledger(folder: Path, *, accept_missing: bool = False, accept_key: bool = False) -> Adoption:
    """Declare that the ledger of this folder is the one that continues. The ledger records it."""
    dataset, ledger_id = _load_with_ledger(folder)
    address, population = find_address(folder, dataset), dataset.population
    return adopt(address, ledger_id, population, accept_missing=accept_missing, accept_key=accept_key)


def back_up_ledger(folder: Path, target: Path) -> None:
    """Write the folder's ledger, as it is now, to a new file."""
    dataset, _ = _load_with_ledger(folder)
    back_up(find_address(folder, dataset), target)


def restore_ledger(folder: Path, backup: Path, *, accept_missing: bool = False, accept_key: bool = False) -> Adoption:
    """Replace the folder's ledger by a backup. The ledger records it."""
    dataset, ledger_id = _load_with_ledger(folder)
    address, population = find_address(folder, dataset), dataset.population
    return restore(address, ledger_id, population, backup, accept_missing=accept_missing, accept_key=accept_key)


def _load_with_ledger(folder: Path) -> tuple[Dataset, str]:
    dataset = load_catalog(folder)
    if dataset.ledger_id is None:
        hint = "It begins with the first question: sfumato ask."
        raise LedgerError("ledger-missing", "This dataset has no ledger yet.", hint)
    return dataset, dataset.ledger_id


def list_sublimits(dataset: Dataset) -> Mapping[str, PrivacyLoss]:
    """The analysts' own limits."""
    return {analyst: budget.loss for analyst, budget in dataset.analysts.items()}


def create_ledger(address: str | None, dataset: Dataset) -> Ledger:
    """Create a ledger as the dataset declares it: at an address, or in memory (None)."""
    limit = Limit(dataset.budget.loss)
    return Ledger.create(address, dataset.population, limit, list_sublimits(dataset), dataset.neighbours)


def _open(address: str, ledger_id: str, dataset: Dataset, expected_head: ExpectedHead) -> Ledger:
    limit, own = Limit(dataset.budget.loss), list_sublimits(dataset)
    return Ledger.open(address, ledger_id, dataset.population, limit, own, expected_head, dataset.neighbours)


def _begin_or_join(address: str, dataset: Dataset, expected_head: ExpectedHead) -> Ledger:
    """Create a ledger, or join the one at this address if it is about the same population.

    Joining forgets no charge. A ledger may be there because another dataset about these people began it, or because
    a process ended before it wrote down the ledger's id.
    """
    found = Ledger.read_identity(address)
    if found is None and expected_head is None:
        try:
            return create_ledger(address, dataset)
        except LedgerError as error:
            if error.code != "ledger-exists":
                raise
        found = Ledger.read_identity(address)  # another dataset has begun it in the meantime
    if found is None:
        raise LedgerError("ledger-missing", "There is no ledger at this address.", "Check the address.")
    if found.population != dataset.population:
        message = "The ledger at this address is about another population."
        hint = "Datasets about the same people declare the same population; others need a ledger of their own."
        raise LedgerError("ledger-foreign", message, hint)
    return _open(address, found.ledger_id, dataset, expected_head)


def _read_identity_at(place: LedgerPlace) -> tuple[str, str]:
    """The id and the population of the ledger that `protect` made at this place."""
    known = Path(f"{place.notes}.id")
    there = is_server(place.address) or Path(place.address).exists()
    found = Ledger.read_identity(place.address) if there else None
    if found is None or not known.exists() or known.read_text().strip() != found.ledger_id:
        hint = "Name a folder with a catalog.toml, or what was given as ledger= to protect."
        raise LedgerError("ledger-missing", "There is no ledger of yours at this place.", hint)
    return found.ledger_id, found.population


def make_lock_file(folder: Path) -> Path:
    """The file that is locked while a folder is opened for the first time. It is made if it does not exist."""
    path = folder / ".sfumato" / "lock"
    make_private(path)
    return path
