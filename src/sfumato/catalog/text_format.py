"""The text format of a source: declared by the owner, never guessed from rows."""

import re
from dataclasses import dataclass

from sfumato.catalog.catalog_errors import build_catalog_error, show_value
from sfumato.catalog.columns import freeze, read_flag
from sfumato.errors import describe_kind

# Encodings without state: a wrong byte in one record never changes how another record is decoded.
ENCODINGS = {
    "utf-8": "utf-8", "utf8": "utf-8", "ascii": "utf-8", "utf-16": "utf-16", "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be", "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1",
    "iso-8859-2": "iso8859-2", "iso-8859-5": "iso8859-5", "iso-8859-7": "iso8859-7", "iso-8859-9": "iso8859-9",
    "iso-8859-15": "iso8859-15", "windows-1250": "cp1250", "windows-1251": "cp1251", "windows-1252": "cp1252",
    "windows-1253": "cp1253", "windows-1254": "cp1254", "cp1250": "cp1250", "cp1251": "cp1251", "cp1252": "cp1252",
    "cp1253": "cp1253", "cp1254": "cp1254", "cp437": "cp437", "cp850": "cp850", "mac-roman": "mac-roman",
}  # fmt: skip
ON_ERROR = ("refuse", "skip")
MARKS = (".", ",")
DIRECTIVES = "YmdHMSfyjbBIp"  # of a date_format: those on which DuckDB's strptime and Python's agree
KEYS = ("encoding", "delimiter", "decimal", "date_format", "on_error", "quoted_newlines")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a CSV file is split into records and fields, and how texts become numbers and dates.

    `delimiter` None: the one in the header line. `date_format` None: year, month, day. `on_error`: what happens to a
    malformed record; "skip" needs quoted_newlines = False, so that every line is a record. `quoted_newlines` None: a
    quoted field may hold line breaks, unless one of its lines would be a record by itself. True: it may hold those too.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str = "."
    date_format: str | None = None
    on_error: str = "refuse"
    quoted_newlines: bool | None = None

    def __post_init__(self) -> None:
        for key in ("encoding", "decimal", "on_error"):
            if not isinstance(getattr(self, key), str):
                raise build_catalog_error(f"{key} must be text; got {describe_kind(getattr(self, key))}.")
        encoding = ENCODINGS.get(self.encoding.strip().lower().replace("_", "-"))
        if encoding is None:
            raise build_catalog_error(
                f"encoding {show_value(self.encoding)} is not known.", f"Use one of {', '.join(ENCODINGS)}."
            )
        freeze(self, encoding=encoding)
        if self.quoted_newlines is not None:
            read_flag(self.quoted_newlines, "quoted_newlines")
        if self.delimiter is not None:
            freeze(self, delimiter=_read_delimiter(self.delimiter))
        if self.decimal not in MARKS:
            raise build_catalog_error(
                f'decimal must be "." or ","; got {show_value(self.decimal)}.', 'For 1,5 write decimal = ",".'
            )
        if self.date_format is not None:
            _check_format(self.date_format)
        if self.on_error not in ON_ERROR:
            raise build_catalog_error(f'on_error must be "refuse" or "skip"; got {show_value(self.on_error)}.')
        if self.on_error == "skip" and self.quoted_newlines is not False:
            hint = (
                "Declare quoted_newlines = false (--no-quoted-newlines) if no field of the file holds a line break; "
                "otherwise repair the record."
            )
            raise build_catalog_error('on_error = "skip" needs records that end at every line break.', hint)


def _read_delimiter(value: object) -> str:
    found = {"\\t": "\t", "tab": "\t"}.get(value, value) if isinstance(value, str) else None
    if found is None or len(found) != 1 or not (found == "\t" or " " <= found <= "~") or found == '"':
        hint = 'For example: delimiter = ";", or "\\t" for a tab.'
        raise build_catalog_error("delimiter must be one plain character other than a double quote.", hint)
    if found.isalnum() or found in "+-.":
        raise build_catalog_error(
            "delimiter must not be a letter, a digit, a sign or a point.", 'For example: delimiter = ";".'
        )
    return found


def _check_format(value: object) -> None:
    hint = 'For 31/12/2024 write date_format = "%d/%m/%Y".'
    if not isinstance(value, str) or not value.isprintable() or len(value) > 100:
        raise build_catalog_error("date_format must be a short text.", hint)
    used = re.findall(r"%(.?)", value)
    strange = [directive for directive in used if directive not in DIRECTIVES or not directive]
    if strange:
        raise build_catalog_error(
            f"date_format has {show_value('%' + strange[0])}, which is not known.", f"Use %{', %'.join(DIRECTIVES)}."
        )
    if len(used) != len(set(used)):
        raise build_catalog_error("date_format uses a part twice.", hint)
    months, years = {"m", "b", "B"} & set(used), {"Y", "y"} & set(used)
    if len(years) != 1 or not ({"j"} == ({"j"} & set(used)) or (months and "d" in used)):
        raise build_catalog_error("date_format must hold a year, a month and a day.", hint)


PLAIN_TEXT = TextFormat()
