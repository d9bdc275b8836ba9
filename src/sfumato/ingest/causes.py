"""Why values of a column were lost: the likely cause, and the option or the change that reads them.

It looks at lost values, so it runs on the owner's path only. What it returns names a cause and holds no value.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Integer, Real

MOST_OF = 0.5  # of the lost values must show a cause
MISSING = {"na", "n/a", "nan", "none", "null", "nil", "-", "--", ".", "?", "missing", "unknown", "n.a.", "#n/a", "\\n"}
YES_NO = {"yes", "no", "y", "n", "ja", "nein", "oui", "non", "si", "sí", "on", "off", "x"}
MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
EXCEL = (20_000, 80_000)  # days since 1899-12-30: from 1954 to 2119
SENTINEL = 0.5  # of the clamped values are one value


@dataclass(frozen=True, slots=True)
class Cause:
    """In sentences, without a value of the data."""

    cause: str
    fix: str


Recognised: TypeAlias = tuple[Callable[[str], bool], Cause]


def option(name: str, value: str) -> str:
    """How to give an option of reading, in Python, in the catalog and on the command line."""
    flag = f"--{name.replace('_', '-')}"
    return f'Read it with {name}="{value}" (command line: {flag} {_quote_for_shell(value)}).'


def explain_lost(declared: ColumnDeclaration, lost: Sequence[str]) -> Cause:
    """The likely cause why these values became NULL: the first that half of them show."""
    texts = [text.strip() for text in lost]
    for shows, cause in (*_recognise_text(lost), *_recognise_type(declared, texts)):
        if _show_most(shows, texts if shows not in (_is_damaged, _is_twice_encoded) else lost):
            return cause
    return _give_example(declared)


def explain_clamped(declared: ColumnDeclaration, clamped: Sequence[str]) -> Cause:
    """Clamped values: bounds that are too narrow, or a code that stands for a missing value."""
    if isinstance(declared, (Integer, Real, Date, DateTime)):
        bounds = f"{_write_plainly(declared.lower)} to {_write_plainly(declared.upper)}"
    else:
        bounds = "declared"
    fix = "Widen the bounds if such values are possible; keep them if outliers are to be limited."
    if len(clamped) > 1 and Counter(clamped).most_common(1)[0][1] > SENTINEL * len(clamped):
        cause = f"They lie outside of the bounds {bounds}, and most of them are one value: perhaps a code for missing."
        return Cause(cause, f"Leave missing values empty in the source. {fix}")
    return Cause(f"They lie outside of the bounds {bounds}.", fix)


ROUNDED = Cause(
    "They are not whole numbers, but the column is declared as integer.", "Declare the column as real to keep them."
)


def _show_most(shows: Callable[[str], bool], texts: Sequence[str]) -> bool:
    return bool(texts) and sum(map(shows, texts)) >= MOST_OF * len(texts)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _is_damaged(text: str) -> bool:
    return "\ufffd" in text or re.search("[\x80-\x9f]", text) is not None


def _is_twice_encoded(text: str) -> bool:
    """UTF-8 that was read as Latin-1 or Windows-1252: two letters for one."""
    return re.search("[\xc2-\xc5][\x80-\xbf\u0152-\u0178\u2013-\u203a\u20ac\u2122]", text) is not None


def _recognise_text(lost: Sequence[str]) -> tuple[Recognised, ...]:
    found = Cause("The text is not encoded as the load reads it.", option("encoding", "latin-1"))
    twice = Cause("The text is UTF-8, but was read in another encoding.", option("encoding", "utf-8"))
    missing = Cause(
        "They are words or signs for a missing value.", "Leave missing values empty in the source, or keep them NULL."
    )
    return (_is_damaged, found), (_is_twice_encoded, twice), (lambda text: text.casefold() in MISSING, missing)


def _recognise_type(declared: ColumnDeclaration, texts: Sequence[str]) -> tuple[Recognised, ...]:
    match declared:
        case Integer() | Real():
            return _recognise_numbers(texts)
        case Date() | DateTime():
            return _recognise_days(texts, moments=isinstance(declared, DateTime))
        case Category():
            return _recognise_categories(declared)
        case Boolean():
            cause = Cause("They are other words for true and false.", "Write true and false, or declare a category.")
            return ((lambda text: text.casefold() in YES_NO, cause),)
    return ()


def _recognise_numbers(texts: Sequence[str]) -> tuple[Recognised, ...]:
    sign = r"[-+(]?"
    number = rf"{sign}[\d.,'\s\u00a0\u202f]*\d[\d.,'\s\u00a0\u202f]*\)?"
    money = r"(?:[$€£¥₹]|usd|eur|gbp|chf|kr\.?|zł)"
    thousands = rf"{sign}\d{{1,3}}(?:[,'\s\u00a0\u202f]\d{{3}})+(?:\.\d+)?"
    comma = rf"{sign}(?:\d+|\d{{1,3}}(?:[.'\s\u00a0\u202f]\d{{3}})+),\d+"
    separated = _matches(thousands)
    commas = _matches(comma)
    # 1,234 can be read both ways: as a decimal comma only if another value can be read as nothing else
    only_comma = any(commas(text) and not separated(text) for text in texts)
    without = "Remove {} in the source, or declare the column as text."
    found: list[Recognised] = [
        (_matches(rf"{number}\s*%"), Cause("They have a percent sign.", without.format("the sign"))),
        (
            lambda text: re.fullmatch(rf"-?\s*{money}\s*{number}|{number}\s*{money}", text, re.IGNORECASE) is not None,
            Cause("They have a currency sign.", without.format("the sign")),
        ),
    ]
    if only_comma:
        found.append((commas, Cause("They have a decimal comma.", option("decimal", ","))))
    point = "They have a decimal point, but another decimal mark is declared."
    found += [
        (_matches(r"[-+]?\d*\.\d+"), Cause(point, option("decimal", "."))),
        (separated, Cause("They have separators of thousands.", without.format("the separators"))),
        (_matches(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}.*"), Cause("They are dates.", "Declare the column as date.")),
        (
            _matches("true|false|yes|no|y|n"),
            Cause("They are truth values, but the column is declared as a number.", "Declare the column as boolean."),
        ),
        (
            _matches(rf"{number}\s*[^\W\d].*"),
            Cause("They have a unit or a text after the number.", without.format("it")),
        ),
        (
            lambda text: re.search(r"\d", text) is None,
            Cause(
                "They are text, but the column is declared as a number.",
                "Declare the column as text, or as a category with its values.",
            ),
        ),
    ]
    return tuple(found)


def _recognise_days(texts: Sequence[str], *, moments: bool) -> tuple[Recognised, ...]:
    time = r"(?:[T\s]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
    found: list[Recognised] = []
    for separator in ("/", ".", "-"):
        for year, letter in ((r"\d{4}", "%Y"), (r"\d{2}", "%y")):
            shows = _matches(rf"\d{{1,2}}[{separator}]\d{{1,2}}[{separator}]{year}{time}")
            order = _choose_order([text for text in texts if shows(text)], separator)
            form = _add_time(separator.join((*order, letter)), texts, moments=moments)
            cause = f"They are days written as {_describe_format(form)}, not as the load reads days."
            if order == ("%d", "%m") and not _is_certain(texts, shows, separator):
                cause += " If the month comes first, swap %d and %m."
            found.append((shows, Cause(cause, option("date_format", form))))
    for pattern, plain in (
        (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
        (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
        (r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y.%m.%d"),
        (r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", "%Y%m%d"),
        (rf"\d{{1,2}} {MONTH} \d{{4}}", "%d %b %Y"),
        (rf"\d{{1,2}}-{MONTH}-\d{{4}}", "%d-%b-%Y"),
        (rf"{MONTH} \d{{1,2}}, \d{{4}}", "%b %d, %Y"),
    ):
        shows = _matches(pattern + time)
        full = any(re.search("[A-Za-z]{4,}", text) for text in texts if shows(text))
        form = _add_time(plain.replace("%b", "%B") if full else plain, texts, moments=moments)
        cause = f"They are days written as {_describe_format(form)}, not as the load reads days."
        found.append((shows, Cause(cause, option("date_format", form))))
    found += [
        (
            lambda text: re.fullmatch(r"\d{5}(?:\.\d+)?", text) is not None and EXCEL[0] <= float(text) <= EXCEL[1],
            Cause(
                "They are serial numbers of days, as spreadsheets keep them.",
                "In the spreadsheet, format the column as year-month-day, and save it again.",
            ),
        ),
        (
            _matches(r"\d{9,10}(?:\.\d+)?|\d{12,13}|\d{15,16}"),
            Cause("They are seconds since 1970, or parts of seconds.", "Write them as year-month-day in the source."),
        ),
    ]
    return tuple(found)


def _choose_order(texts: Sequence[str], separator: str) -> tuple[str, str]:
    """What comes first: the month, only where a second number exceeds 12 and no first one does."""
    firsts, seconds = (
        [int(text.split(separator)[part]) for text in texts if text.split(separator)[part].isdigit()] for part in (0, 1)
    )
    return ("%m", "%d") if max(seconds, default=0) > 12 >= max(firsts, default=0) else ("%d", "%m")


def _is_certain(texts: Sequence[str], shows: Callable[[str], bool], separator: str) -> bool:
    return any(int(text.split(separator)[0]) > 12 for text in texts if shows(text))


def _add_time(form: str, texts: Sequence[str], *, moments: bool) -> str:
    timed = [text for text in texts if ":" in text]
    if not moments or len(timed) < MOST_OF * len(texts) or not timed:
        return form
    return form + (" %H:%M:%S" if timed[0].count(":") > 1 else " %H:%M")


def _describe_format(form: str) -> str:
    words = {
        "%d": "day", "%m": "month", "%Y": "year", "%y": "year of two digits", "%b": "month", "%B": "month",
        "%H:%M:%S": "time", "%H:%M": "time",
    }  # fmt: skip
    for code, word in words.items():
        form = form.replace(code, word)
    return "year, month and day without separators" if form == "yearmonthday" else form


def _recognise_categories(declared: Category) -> tuple[Recognised, ...]:
    known = {str(value) for value in declared.values}
    plain = {text.strip().casefold() for text in known}
    spelled = Cause(
        "They are declared values in another case, or with spaces around them.",
        "Write them as they are declared, or declare them as they are written.",
    )
    found: list[Recognised] = [(lambda text: text.casefold() in plain, spelled)]
    if all(re.fullmatch(r"-?\d+", text) for text in known):
        fraction = Cause("They are numbers with a fraction, but the values are whole.", "Declare the column as real.")
        found.append((_matches(r"[-+]?\d*[.,]\d*[1-9]\d*"), fraction))
    return tuple(found)


def _give_example(declared: ColumnDeclaration) -> Cause:
    if isinstance(declared, Category):
        cause = "They are not among the declared values."
        return Cause(cause, "Add them to the column's values if they are public; questions see NULL otherwise.")
    kinds = {Integer: "whole numbers", Real: "numbers", Date: "days", DateTime: "moments", Boolean: "true or false"}
    cause = f"They cannot be read as {kinds.get(type(declared), 'text')}."
    return Cause(cause, "Correct them in the source, or declare the column as text.")


def _write_plainly(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else str(value)


def _quote_for_shell(value: str) -> str:
    return value if re.fullmatch(r"[\w,./%:=-]+", value) else f"'{value}'"
