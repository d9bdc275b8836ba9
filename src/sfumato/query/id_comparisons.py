"""Ids compared with values: customer_id = 17, customer_id IN ('a', 'b'), customer_id > 10.

Such a condition is about one row, as any other: noise covers each person as before. An id is compared by its canonical
text, so 7, '7' and '007' are one id. Which id is less is known of whole numbers only.
"""

import re
import unicodedata

from sqlglot import exp

from sfumato.kernel.expressions import UNIT, Call, Column, ColumnType, Literal, Scalar
from sfumato.query import functions
from sfumato.query.casts import read_number
from sfumato.query.constants import read_constant
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Typed
from sfumato.query.relation import Scope

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
SPACES = "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                           0x205F, 0x3000, 0xFEFF)))  # fmt: skip
WHOLE = re.compile(r"([+-]?)0*([0-9]+)(?:[.]0*)?")
HEX = "([0-9a-f]{4})"
UUID = re.compile(f"[{{]?(?:URN:UUID:)?([0-9a-f]{{8}})-?{HEX}-?{HEX}-?{HEX}-?([0-9a-f]{{12}})[}}]?", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?")
NUMBERS_ONLY = (
    "Which id is less is known only of whole numbers with at most 15 digits. An id of another form does not meet a "
    "condition with <, <=, >, >= or BETWEEN."
)


def find_id(node: exp.Expr, scope: Scope) -> tuple[str, Typed] | None:
    """The name and the text of an id column; None for anything else."""
    column = node.unnest()
    if not isinstance(column, exp.Column):
        return None
    item, name = scope.resolve(column)
    found = item.columns[name]
    if found.type != "id":
        return None
    if name not in item.person:
        return name, Typed(found.expression, "text", found.nullable)
    person, partner = Column(UNIT, ColumnType.ID, nullable=False), scope.find_partner(column)
    if partner is None:
        return name, Typed(person, "text", nullable=False)
    alone = Call("is null", (partner.expression,))  # a row of an outer join without a partner: its id is NULL
    return name, Typed(Call("case", (alone, Literal(None), person)), "text")


def compare_id(name: str, text: Typed, function: str, side: exp.Expr, *, mirrored: bool) -> Typed:
    """An id beside a constant. `mirrored`: the constant is on the left side."""
    value = read_constant(side)
    if isinstance(side, exp.Null):
        raise build_syntax_refusal(side, "A comparison with NULL is never true", f"Write {name} IS NULL.")
    if value is None or type(value.value) not in (int, float, str):
        raise build_syntax_refusal(side, f"{name} is an id, and is compared only with numbers and texts", hint(name))
    function = MIRRORED.get(function, function) if mirrored else function
    if function in ("=", "<>"):
        return functions.compare(function, text, functions.type_literal(spell_id(name, side, value.value)))
    if isinstance(value.value, str):
        what = f"Which id is less than a text is not known of {name}, which is an id"
        raise build_syntax_refusal(side, what, hint(name))
    add_caution(NUMBERS_ONLY)
    return functions.compare(function, read_number("text_integer", text), functions.type_literal(value.value))


def spell_id(name: str, side: exp.Expr, value: Scalar) -> str:
    """The canonical text of an id, as ingest/ids.py defines it. Numbers that are not whole are refused."""
    written = side.this if isinstance(side, exp.Literal) else str(value)  # a large number with all its digits
    text = unicodedata.normalize("NFC", str(written).replace("\0", "")).strip(SPACES)
    if parts := UUID.fullmatch(text):
        return "-".join(parts.groups()).lower()
    if number := WHOLE.fullmatch(text):
        return f"-{number[2]}" if number[1] == "-" and number[2] != "0" else number[2]
    if not text or NUMBER.fullmatch(text):
        raise build_syntax_refusal(side, f"{name} is an id, and this is no id", hint(name))
    return text.lower() if text.lower() in ("true", "false") else text


def hint(name: str) -> str:
    """What an id can be compared with."""
    return (
        f"Compare it with whole numbers or texts, as in {name} = 17 and {name} IN ('a17', 'b3'), or with ids in JOIN."
    )
