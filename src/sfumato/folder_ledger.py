"""The ledger of a dataset: where the catalog says it is, begun once, and changed only by the owner's own commands."""

from collections.abc import Mapping
from pathlib import Path

from sfumato.arguments import check_path
from sfumato.catalog.budget import Budget
from sfumato.catalog.budget_edit import write_budget
from sfumato.catalog.catalog_file import FILE, load_catalog, set_ledger_id
from sfumato.catalog.dataset import Dataset
from sfumato.errors import InvalidParameter, LedgerError, kind_of
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.adoption import Adoption, adopt
from sfumato.ledger.backup import back_up, restore
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.ledger_address import resolve_address
from sfumato.private_files import locked, make_private, tighten

LEDGER = "ledger.db"
ExpectedHead = str | tuple[int, str] | None


def address_of(folder: Path, dataset: Dataset) -> str:
    """The ledger's path or URL. A path in the catalog is seen from the folder."""
    return resolve_address(folder, dataset.ledger or LEDGER)


def open_ledger(folder: Path, dataset: Dataset, address: str, expected_head: ExpectedHead) -> Ledger:
    """The ledger of a folder; where the catalog names none yet, it is begun, or the one that is there is joined.

    The caller holds the folder's lock where the catalog names none. A crash at any step leaves what this call joins.
    """
    if dataset.ledger_id is not None:
        return _opened(address, dataset.ledger_id, dataset, expected_head)
    books = _begun(address, dataset, expected_head)
    try:
        set_ledger_id(folder, books.ledger_id)
    except BaseException:
        books.close()
        raise
    return books


def ledger_at(path: Path, dataset: Dataset) -> Ledger:
    """A ledger at a path, with its id in a file beside it: while that is there, a lost ledger is not begun anew."""
    known = Path(f"{path}.id")
    try:
        with locked(known):
            tighten(known)
            ledger_id = known.read_text().strip()
            if ledger_id:
                return _opened(str(path), ledger_id, dataset, None)
            books = _begun(str(path), dataset, None)
            known.write_text(books.ledger_id)
            return books
    except OSError as error:
        message = f"The ledger's id cannot be kept beside it: {error.strerror}."
        raise LedgerError("ledger-unreachable", message, f"Check that {path.parent} is a folder of yours.") from None


def read_ledger(folder: Path, dataset: Dataset) -> Ledger:
    """The ledger of a folder, to be listed and verified: also in a read-only folder, and of a copy.

    Before the first question there is none; then it is an empty one in memory.
    """
    if dataset.ledger_id is None:
        return new_ledger(None, dataset)
    return Ledger.read(address_of(folder, dataset), dataset.ledger_id, dataset.population, sublimits_of(dataset))


def set_budget(place: str | Path, budget: Budget | None = None) -> None:
    """Change the budget of a folder with a catalog, or of a ledger's file that `protect` made. It is an entry.

    Without a budget, the one that the catalog declares is taken. A budget below what is spent is allowed: nothing more
    can be charged then.
    """
    folder = check_path(place, "place")
    if budget is not None and not isinstance(budget, Budget):
        hint = "For example sf.Budget(epsilon=5)."
        raise InvalidParameter("budget", "must be a budget", kind_of(budget), hint)
    if not (folder / FILE).exists():
        if budget is None:
            raise InvalidParameter("budget", "must be given for a ledger without a catalog", "nothing (None)")
        ledger_id, population = _known_at(folder)
        with Ledger.open(str(folder), ledger_id, population) as books:
            books.set_limit(Limit(budget.loss))
        return
    dataset = load_catalog(folder)
    wanted = budget or dataset.budget
    if dataset.ledger_id is not None:
        address = address_of(folder, dataset)
        own = sublimits_of(dataset)
        with Ledger.open(address, dataset.ledger_id, dataset.population, None, own) as books:
            books.set_limit(Limit(wanted.loss))
    write_budget(folder, wanted)


def adopt_ledger(folder: Path, *, accept_missing: bool = False, accept_key: bool = False) -> Adoption:
    """Say that the ledger of this folder is the one that continues. It is an entry."""
    dataset, ledger_id = _with_ledger(folder)
    address, population = address_of(folder, dataset), dataset.population
    return adopt(address, ledger_id, population, accept_missing=accept_missing, accept_key=accept_key)


def back_up_ledger(folder: Path, target: Path) -> None:
    """Write the folder's ledger as it is now into a new file."""
    dataset, _ = _with_ledger(folder)
    back_up(address_of(folder, dataset), target)


def restore_ledger(folder: Path, backup: Path, *, accept_missing: bool = False, accept_key: bool = False) -> Adoption:
    """Put a backup in the place of the folder's ledger. It is an entry."""
    dataset, ledger_id = _with_ledger(folder)
    address, population = address_of(folder, dataset), dataset.population
    return restore(address, ledger_id, population, backup, accept_missing=accept_missing, accept_key=accept_key)


def _with_ledger(folder: Path) -> tuple[Dataset, str]:
    dataset = load_catalog(folder)
    if dataset.ledger_id is None:
        hint = "It begins with the first question: sfumato ask."
        raise LedgerError("ledger-missing", "This dataset has no ledger yet.", hint)
    return dataset, dataset.ledger_id


def sublimits_of(dataset: Dataset) -> Mapping[str, PrivacyLoss]:
    """The analysts' own limits."""
    return {who: each.loss for who, each in dataset.analysts.items()}


def new_ledger(address: str | None, dataset: Dataset) -> Ledger:
    """A new ledger as the dataset declares it: at an address, or in memory."""
    limit = Limit(dataset.budget.loss)
    return Ledger.create(address, dataset.population, limit, sublimits_of(dataset), dataset.neighbours)


def _opened(address: str, ledger_id: str, dataset: Dataset, expected_head: ExpectedHead) -> Ledger:
    limit, own = Limit(dataset.budget.loss), sublimits_of(dataset)
    return Ledger.open(address, ledger_id, dataset.population, limit, own, expected_head, dataset.neighbours)


def _begun(address: str, dataset: Dataset, expected_head: ExpectedHead) -> Ledger:
    """A new ledger; or the one that is there, if it is about the same people.

    To join a ledger forgets no charge. It may be there because another dataset about these people began it, or because
    a process ended before it wrote down the ledger's id.
    """
    found = Ledger.read_identity(address)
    if found is None and expected_head is None:
        try:
            return new_ledger(address, dataset)
        except LedgerError as error:
            if error.code != "ledger-exists":
                raise
        found = Ledger.read_identity(address)  # another dataset began it meanwhile
    if found is None:
        raise LedgerError("ledger-missing", "There is no ledger at this address.", "Check the address.")
    if found.population != dataset.population:
        message = "The ledger at this address is about another population."
        hint = "Datasets about the same people declare the same population; others need a ledger of their own."
        raise LedgerError("ledger-foreign", message, hint)
    return _opened(address, found.ledger_id, dataset, expected_head)


def _known_at(path: Path) -> tuple[str, str]:
    """The id and the population of a ledger that `protect` made here."""
    known = Path(f"{path}.id")
    found = Ledger.read_identity(str(path)) if path.exists() else None
    if found is None or not known.exists() or known.read_text().strip() != found.ledger_id:
        hint = "Name a folder with a catalog.toml, or the path that was given as ledger= to protect."
        raise LedgerError("ledger-missing", "There is no ledger at this path.", hint)
    return found.ledger_id, found.population


def lock_of(folder: Path) -> Path:
    """The file that is locked while a folder is opened for the first time."""
    path = folder / ".sfumato" / "lock"
    make_private(path)
    return path
