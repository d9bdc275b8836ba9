"""Functions of texts: their types and their possible values. A character is a Unicode code point.

A function of a category keeps public keys: its values are those of the declared values.
"""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import UnsupportedSyntax
from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.query.casts import cast_to_text
from sfumato.query.functions import choose, coalesce, compare, match_pattern, require_type, type_literal
from sfumato.query.hints import CHANGE_KEYS
from sfumato.query.mapped_values import map_values
from sfumato.query.query import Typed
from sfumato.row_meanings.text_meanings import lower_case, raise_case

MOST_CAPITALISED = 100  # values of a category that INITCAP takes
MOST_CHARACTERS = 1_000  # that LPAD and RPAD make
MOST_GROWTH = 1_000.0  # how many times as long REPLACE, CONCAT and LPAD may make a text


def change_text(function: str, one: Typed) -> Typed:
    """UPPER or LOWER: each character becomes one character."""
    require_type(function.upper(), one, "text")
    return _make_text(Call(function, (one.expression,)), one)


def capitalise_words(one: Typed) -> Typed:
    """INITCAP of a category: every word begins with a capital letter, and the others are small."""
    require_type("INITCAP", one, "text")
    if one.values is None or len(one.values) > MOST_CAPITALISED:
        message = f"INITCAP needs a text with at most {MOST_CAPITALISED} declared values."
        raise UnsupportedSyntax("syntax", message, CHANGE_KEYS)
    texts = [str(value) for value in one.values]
    conditions = [compare("=", one, type_literal(text)) for text in texts]
    outcomes = [type_literal(_capitalise(text)) for text in texts]
    return choose(conditions, outcomes, type_literal(None))


def _capitalise(text: str) -> str:
    made, inside = [], False
    for letter in text:
        made.append(lower_case(letter) if inside else raise_case(letter))
        inside = letter.isalnum()
    return "".join(made)


def measure_length(one: Typed) -> Typed:
    """LENGTH: the number of characters. A text that is not declared has no upper bound."""
    require_type("LENGTH", one, "text")
    call = Call("length", (one.expression,))
    return _bound_by_values(map_values(Typed(call, "number", one.nullable, 0.0, None, True), (one,)))


def _bound_by_values(made: Typed) -> Typed:
    numbers = [float(value) for value in made.values or () if isinstance(value, (int, float))]
    return replace(made, lower=min(numbers), upper=max(numbers)) if numbers else made


def trim_text(one: Typed, side: str, letters: str = " ") -> Typed:
    """TRIM of spaces, or of the given characters. Only U+0020 is a space."""
    require_type("TRIM", one, "text")
    return _make_text(Call("trim", (one.expression, Literal(letters)), side), one)


def cut_text(function: str, one: Typed, *counts: int) -> Typed:
    """SUBSTR from a place that counts from 1, LEFT or RIGHT."""
    require_type(function.upper(), one, "text")
    if any(count < 0 for count in counts) or (function == "substr" and counts[0] < 1):
        hint = "Write SUBSTR(x, 1, 3), LEFT(x, 3) or RIGHT(x, 3)."
        raise UnsupportedSyntax("syntax", f"{function.upper()} counts from 1, and forward only.", hint)
    return _make_text(Call(function, (one.expression, *map(Literal, counts))), one)


def replace_text(one: Typed, old: str, new: str) -> Typed:
    """REPLACE every occurrence of a text that is not empty."""
    require_type("REPLACE", one, "text")
    if not old:
        raise UnsupportedSyntax("syntax", "REPLACE of an empty text does nothing.", "Leave REPLACE out.")
    return _make_text(Call("replace", (one.expression, Literal(old), Literal(new))), one)


def split_text(one: Typed, mark: str, place: int) -> Typed:
    """SPLIT_PART: the part between two marks, counted from 1, or from -1 at the end. Empty if there is none."""
    require_type("SPLIT_PART", one, "text")
    if not mark or not 0 < abs(place) <= MOST_CHARACTERS:
        what = f"SPLIT_PART needs a mark, and the number of a part: 1 to {MOST_CHARACTERS:,}, or -1 for the last one."
        raise UnsupportedSyntax("syntax", what, "Write SPLIT_PART(x, '@', 2).")
    return _make_text(Call("split", (one.expression, Literal(mark), Literal(place))), one)


def pad_text(side: str, one: Typed, length: int, fill: str) -> Typed:
    """LPAD or RPAD to exactly `length` characters."""
    require_type("LPAD" if side == "left" else "RPAD", one, "text")
    if not 0 < length <= MOST_CHARACTERS or not fill:
        what = f"LPAD and RPAD need 1 to {MOST_CHARACTERS:,} characters, and a text to fill with."
        raise UnsupportedSyntax("syntax", what, "Write LPAD(x, 5, '0').")
    return _make_text(Call("pad", (one.expression, Literal(length), Literal(fill)), side), one)


def join_texts(arguments: Sequence[Typed], *, keep_null: bool) -> Typed:
    """x || y, which is NULL if one of them is; or CONCAT, which leaves NULL out."""
    if not arguments or (keep_null and any(argument.type == "null" for argument in arguments)):
        raise UnsupportedSyntax("syntax", "'||' with NULL is NULL.", "Leave NULL out, or write CONCAT.")
    texts = [cast_to_text(argument) if argument.type != "null" else type_literal("") for argument in arguments]
    if not keep_null:
        texts = [coalesce([text, type_literal("")]) if text.nullable else text for text in texts]
    joined = texts[0]
    for text in texts[1:]:
        nullable = joined.nullable or text.nullable
        made = Typed(Call("||", (joined.expression, text.expression)), "text", nullable)
        joined = map_values(made, (joined, text))
    _refuse_growth(joined.expression)
    return joined


def find_part(one: Typed, part: str) -> Typed:
    """STRPOS: where a text that is not empty begins in another, from 1; 0 if it does not occur."""
    require_type("STRPOS", one, "text")
    if not part:
        raise UnsupportedSyntax("syntax", "Every text contains the empty text.", "Look for at least one character.")
    call = Call("strpos", (one.expression, Literal(part)))
    return _bound_by_values(map_values(Typed(call, "number", one.nullable, 0.0, None, True), (one,)))


def check_part(function: str, one: Typed, part: str) -> Typed:
    """STARTS_WITH, ENDS_WITH or CONTAINS of a text that the analyst wrote."""
    if function == "contains":
        return compare(">", find_part(one, part), type_literal(0))
    side = "left" if function == "starts_with" else "right"
    return compare("=", cut_text(side, one, len(part)), type_literal(part))


def match_any_case(one: Typed, two: Typed) -> Typed:
    """ILIKE: LIKE of both in lower case."""
    pattern = two.expression.value if isinstance(two.expression, Literal) else None
    lowered = type_literal(lower_case(pattern)) if isinstance(pattern, str) else two
    return match_pattern(change_text("lower", one), lowered)


def _make_text(call: Call, one: Typed) -> Typed:
    _refuse_growth(call)
    return map_values(Typed(call, "text", one.nullable), (one,))


def _refuse_growth(expression: Expression) -> None:
    """Refuse a text that could become far longer than the texts it is made of: it would fill the memory."""
    if _measure_growth(expression) > MOST_GROWTH:
        what = f"This text could be more than {MOST_GROWTH:,.0f} times as long as the texts that it is made of."
        raise UnsupportedSyntax("syntax", what, "Use fewer or shorter texts.")


def _measure_growth(expression: Expression) -> float:
    match expression:
        case Call("replace", (one, Literal(str(old)), Literal(str(new)))):
            return _measure_growth(one) * max(1.0, len(new) / len(old))
        case Call("||" | "coalesce" | "case", arguments):
            return sum(map(_measure_growth, arguments))
        case Call(_, (one, *_)):
            return _measure_growth(one)
    return 1.0
