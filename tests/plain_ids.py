"""The canonical text of an id in plain Python. Tests compare the SQL with it."""

import re
import unicodedata

from sfumato.ingest.ids import HYPHENS, SPACES, UUID, normalise_number


def id_text(value):
    """The canonical text of an id that is a text."""
    trimmed = unicodedata.normalize("NFC", value.replace("\0", "")).strip(SPACES)
    if re.fullmatch(UUID, trimmed):
        return re.sub(UUID, HYPHENS, trimmed).lower()
    found = normalise_number(trimmed)
    return (trimmed or None) if found is None else found
