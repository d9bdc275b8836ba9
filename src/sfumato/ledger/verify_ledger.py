"""Check a whole ledger: hashes, signatures, sums, answers, the index, and entries that were seen before."""

from sfumato.ledger.audit import Verification, audit
from sfumato.ledger.entries import SCHEMA_VERSION
from sfumato.ledger.entry_queries import find_number
from sfumato.ledger.guarded_database import GuardedDatabase
from sfumato.ledger.index_contents import compare_index
from sfumato.ledger.last_verified import read_verified, remember_verified
from sfumato.ledger.ledger_opening import Identity
from sfumato.ledger.schema import read_version


def verify_ledger(guarded: GuardedDatabase, identity: Identity, *, full: bool, head: str | None) -> Verification:
    """Verify the ledger with this identity. See `Ledger.verify`."""
    known, keyring = guarded.list_known(), guarded.keyring
    with guarded.database.read() as rows:
        before = read_verified(keyring) if keyring and not full else None
        key = keyring.public_key if keyring else ""
        found = audit(rows, identity.ledger_id, identity.population, known, key, before)
        if found.ok and read_version(rows) >= SCHEMA_VERSION:  # an older ledger that is only read has no index
            found = compare_index(rows, found)
        if found.ok and head is not None and find_number(rows, head) is None:
            found = Verification(False, found.entries, None, "No entry has the expected hash.")
        if found.ok and keyring:
            remember_verified(keyring, rows.read_head(lock=False))
    return found
