"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...): what a question says of its own price, read before it is parsed."""

import re
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import UnsupportedSyntax

KNOWN = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
GROUPS = re.compile("[0-9]{1,7}")
MOST_GROUPS = 10**6
MOST_CHARACTERS = 200
HINT = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, privacy_unit_column=id) ..."


@dataclass(frozen=True, slots=True)
class DpOptions:
    """Epsilon, delta, the most groups of one person, and the column that tells people apart, as they were written."""

    epsilon: str | None = None
    delta: str | None = None
    max_groups_contributed: int | None = None
    privacy_unit_column: str | None = None
    where: str = ""  # line:column, for refusals


def take_dp_options(tokens: list[Token]) -> DpOptions | None:
    """The options of the outermost SELECT, which are taken out of the list; None where there are none.

    A SELECT inside another has none of its own: the question has one price.
    """
    found: DpOptions | None = None
    place, depth = 0, 0
    while place < len(tokens):
        kind = tokens[place].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        following = [each.text.upper() for each in tokens[place + 1 : place + 4]]
        if kind is TokenType.SELECT and following[:2] == ["WITH", "DIFFERENTIAL_PRIVACY"]:
            where = _locate(tokens[place + 1])
            if depth or found is not None:
                hint = "Give OPTIONS to the outermost SELECT, once: the whole question has one price."
                raise UnsupportedSyntax("syntax", f"A SELECT inside the question has OPTIONS of its own{where}.", hint)
            if following[2:] != ["OPTIONS"]:
                raise UnsupportedSyntax("syntax", f"WITH DIFFERENTIAL_PRIVACY lacks its OPTIONS{where}.", HINT)
            end = next((at for at in range(place, len(tokens)) if tokens[at].token_type is TokenType.R_PAREN), None)
            opening = tokens[place + 4] if place + 4 < len(tokens) else None
            if end is None or opening is None or opening.token_type is not TokenType.L_PAREN:
                raise UnsupportedSyntax("syntax", f"OPTIONS has no list in brackets{where}.", HINT)
            found = replace(_read_options(tokens[place + 5 : end]), where=where)
            del tokens[place + 1 : end + 1]
        place += 1
    return found


def refuse_epsilon(options: DpOptions | None, instead: str) -> None:
    """Refuse a question that says what it spends, where something else decides it: neither would be what was asked."""
    if options is not None and options.epsilon is not None:
        hint = "Leave epsilon out of OPTIONS, or ask with that epsilon only."
        raise UnsupportedSyntax("syntax", f"OPTIONS has an epsilon{options.where}, but {instead}.", hint)


def _locate(token: Token) -> str:
    return f" at {token.line}:{max(token.col - (token.end - token.start), 1)}"


def _read_options(tokens: list[Token]) -> DpOptions:
    found: dict[str, str] = {}
    part: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.COMMA:
            part.append(token)
            continue
        if part:
            name = part[0].text.lower()
            if name not in KNOWN or name in found or len(part) < 3 or part[1].token_type is not TokenType.EQ:
                known = ", ".join(KNOWN)
                raise UnsupportedSyntax("syntax", f"OPTIONS takes {known}, each once{_locate(part[0])}.", HINT)
            found[name] = _read_value(part[2:])
        part = []
    groups = found.pop("max_groups_contributed", None)
    if groups is not None and not (GROUPS.fullmatch(groups) and 1 <= int(groups) <= MOST_GROUPS):
        raise UnsupportedSyntax("syntax", "max_groups_contributed is a whole number from 1.", "Write 3, for example.")
    return DpOptions(max_groups_contributed=None if groups is None else int(groups), **found)


def _read_value(tokens: list[Token]) -> str:
    """What stands behind the sign of equality, as it was written: one thing, or names with dots between them."""
    text = "".join(each.text for each in tokens)
    names = all(each.token_type in (TokenType.VAR, TokenType.IDENTIFIER) for each in tokens[::2])
    dotted = names and len(tokens) % 2 and all(each.token_type is TokenType.DOT for each in tokens[1::2])
    if (len(tokens) > 1 and not dotted) or len(text) > MOST_CHARACTERS:
        raise UnsupportedSyntax("syntax", f"An option has one short value{_locate(tokens[0])}.", HINT)
    return text
