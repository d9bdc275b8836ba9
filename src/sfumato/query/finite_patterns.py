"""Regular expressions that stand for finitely many texts -> comparisons with these texts, in linear time.

'^A[12]$' is IN ('A1', 'A2'), '^B' is STARTS_WITH(x, 'B'), 'cat|dog' is CONTAINS(x, 'cat') OR CONTAINS(x, 'dog').
Letters, digits and common signs, classes such as [12] and [a-f], ( | ), ? and the anchors are read; nothing else is.
"""

from collections.abc import Callable
from itertools import product

from sqlglot import exp

MOST_TEXTS = 100
MOST_LETTERS = 200
PLAIN = frozenset(" -_/:,;'\"@#&=<>!~%")  # signs that stand for themselves in a regular expression
SPECIAL = frozenset("\\.+*?()[]{}|^$")
Texts = list[str]


class _TooHard(Exception):
    """The pattern has something else, or too many texts."""


def list_texts(pattern: str) -> tuple[Texts, bool, bool] | None:
    """The texts that a pattern stands for, and whether it is anchored at the start and at the end. None: not finite."""
    if len(pattern) > MOST_LETTERS or not pattern.isascii():
        return None
    start, inner = pattern.startswith("^"), pattern.removeprefix("^")
    end = inner.endswith("$") and not inner.endswith("\\$")
    inner = inner.removesuffix("$") if end else inner
    try:
        texts, place = _read_alternatives(inner, 0)
    except _TooHard:
        return None
    outside = _has_bar_outside(inner)
    if place < len(inner) or "" in texts or (outside and (start or end)):  # ^a|b$ is (^a)|(b$)
        return None
    return texts, start, end


def _has_bar_outside(pattern: str) -> bool:
    depth, escaped = 0, False
    for letter in pattern:
        depth += not escaped and (letter == "(") - (letter == ")")
        if letter == "|" and not depth and not escaped:
            return True
        escaped = letter == "\\" and not escaped
    return False


def _read_alternatives(pattern: str, place: int) -> tuple[Texts, int]:
    found: Texts = []
    while True:
        texts, place = _read_sequence(pattern, place)
        found += texts
        if place >= len(pattern) or pattern[place] != "|":
            return list(dict.fromkeys(found)), place
        place += 1


def _read_sequence(pattern: str, place: int) -> tuple[Texts, int]:
    texts = [""]
    while place < len(pattern) and pattern[place] not in "|)":
        part, place = _read_atom(pattern, place)
        if place < len(pattern) and pattern[place] == "?":
            part, place = [*part, ""], place + 1
            if place < len(pattern) and pattern[place] in "?+*":
                raise _TooHard
        if len(texts) * len(part) > MOST_TEXTS:
            raise _TooHard
        texts = ["".join(pair) for pair in product(texts, part)]
    return texts, place


def _read_atom(pattern: str, place: int) -> tuple[Texts, int]:
    letter = pattern[place]
    if letter == "(":
        place += 3 if pattern.startswith("(?:", place) else 1
        texts, place = _read_alternatives(pattern, place)
        if place >= len(pattern) or pattern[place] != ")":
            raise _TooHard
        return texts, place + 1
    if letter == "[":
        return _read_class(pattern, place + 1)
    if letter == "\\" and pattern[place + 1 : place + 2] and pattern[place + 1] in SPECIAL:
        return [pattern[place + 1]], place + 2
    if letter.isalnum() or letter in PLAIN:
        return [letter], place + 1
    raise _TooHard


def _read_class(pattern: str, place: int) -> tuple[Texts, int]:
    close = pattern.find("]", place)
    inside = pattern[place:close]
    if close <= place or not all(letter.isalnum() or letter in "-_ " for letter in inside) or inside[0] == "-":
        raise _TooHard
    found: Texts = []
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            first, last = inside[at], inside[at + 2]
            same = any(kind(first) and kind(last) for kind in (str.isdigit, str.islower, str.isupper))
            if not same or first > last:
                raise _TooHard
            found += [chr(code) for code in range(ord(first), ord(last) + 1)]
            at += 3
        elif inside[at] == "-":
            raise _TooHard
        else:
            found.append(inside[at])
            at += 1
    return list(dict.fromkeys(found)), close + 1


def compare_with_texts(value: exp.Expr, pattern: exp.Expr | None, *, whole: bool) -> exp.Expr | None:
    """The condition that a value matches a pattern: all of it (`whole`), or a part. None: the pattern is not finite."""
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return None
    found = list_texts(str(pattern.this))
    if found is None:
        return None
    texts, start, end = found
    literals = [exp.Literal.string(text) for text in texts]
    if whole or (start and end):
        return exp.In(this=value.copy(), expressions=literals)
    make: Callable[..., exp.Expr] = exp.StartsWith if start else exp.EndsWith if end else exp.Contains
    parts = [make(this=value.copy(), expression=literal) for literal in literals]
    return exp.Paren(this=exp.or_(*parts))
