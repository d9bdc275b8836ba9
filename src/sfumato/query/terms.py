"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...): what a question says of its own price, read before it is parsed."""

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import UnsupportedSyntax

KNOWN = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
HINT = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, privacy_unit_column=id) ..."


@dataclass(frozen=True, slots=True)
class Terms:
    """Epsilon, delta, the most groups of one person, and the column that tells people apart, as they were written."""

    epsilon: str | None = None
    delta: str | None = None
    max_groups_contributed: int | None = None
    privacy_unit_column: str | None = None


def take_terms(tokens: list[Token]) -> Terms | None:
    """The terms of the outermost SELECT, which are taken out of the list; None where there are none."""
    for place, token in enumerate(tokens[:-2]):
        following = [each.text.upper() for each in tokens[place + 1 : place + 4]]
        if token.token_type is TokenType.SELECT and following[:2] == ["WITH", "DIFFERENTIAL_PRIVACY"]:
            if following[2:] != ["OPTIONS"]:
                raise UnsupportedSyntax("syntax", "WITH DIFFERENTIAL_PRIVACY lacks its OPTIONS.", HINT)
            end = next((at for at in range(place, len(tokens)) if tokens[at].token_type is TokenType.R_PAREN), None)
            opening = tokens[place + 4] if place + 4 < len(tokens) else None
            if end is None or opening is None or opening.token_type is not TokenType.L_PAREN:
                raise UnsupportedSyntax("syntax", "OPTIONS has no list in brackets.", HINT)
            terms = _read(tokens[place + 5 : end])
            del tokens[place + 1 : end + 1]
            return terms
    return None


def _read(tokens: list[Token]) -> Terms:
    found: dict[str, str] = {}
    part: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.COMMA:
            part.append(token)
            continue
        if part:
            name = part[0].text.lower()
            if name not in KNOWN or name in found or len(part) < 3 or part[1].token_type is not TokenType.EQ:
                raise UnsupportedSyntax("syntax", f"OPTIONS takes {', '.join(KNOWN)}, each once.", HINT)
            found[name] = "".join(each.text for each in part[2:])[:200]
        part = []
    groups = found.pop("max_groups_contributed", None)
    if groups is not None and (not groups.isdigit() or not 1 <= int(groups[:9]) <= 10**6):
        raise UnsupportedSyntax("syntax", "max_groups_contributed is a whole number from 1.", "Write 3, for example.")
    return Terms(max_groups_contributed=None if groups is None else int(groups), **found)
