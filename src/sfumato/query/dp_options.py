"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...): the privacy options of a question, read before it is parsed."""

import re
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import UnsupportedSyntax

KNOWN = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
SAME = {"kappa": "max_groups_contributed"}  # ZetaSQL's older name
GROUPS = re.compile("[0-9]{1,7}")
MOST_GROUPS = 10**6
MOST_CHARACTERS = 200
HINT = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, privacy_unit_column=id) ..."


@dataclass(frozen=True, slots=True)
class DpOptions:
    """The options as they were written. `None` means that the question does not have the option."""

    epsilon: str | None = None
    delta: str | None = None
    max_groups_contributed: int | None = None
    privacy_unit_column: str | None = None
    where: str = ""  # " at line:column", for refusals
    report_format: bool = False  # asked for, and left out: an answer has its own forms


def take_dp_options(tokens: list[Token]) -> DpOptions | None:
    """Remove the OPTIONS of the outermost SELECT from the list and return them. None: there are none.

    The OPTIONS of a SELECT inside another are those of the whole question, which has one price.
    """
    found: DpOptions | None = None
    place = 0
    while place < len(tokens):
        kind = tokens[place].token_type
        following = [token.text.upper() for token in tokens[place + 1 : place + 4]]
        if kind is TokenType.SELECT and following[:2] == ["WITH", "DIFFERENTIAL_PRIVACY"]:
            where = _locate(tokens[place + 1])
            if found is not None:
                hint = "Give OPTIONS once: the whole question has one price."
                raise UnsupportedSyntax("syntax", f"A second SELECT has OPTIONS{where}.", hint)
            if following[2:] != ["OPTIONS"]:
                raise UnsupportedSyntax("syntax", f"OPTIONS is missing after DIFFERENTIAL_PRIVACY{where}.", HINT)
            closing = (at for at in range(place, len(tokens)) if tokens[at].token_type is TokenType.R_PAREN)
            end = next(closing, None)
            opening = tokens[place + 4] if place + 4 < len(tokens) else None
            if end is None or opening is None or opening.token_type is not TokenType.L_PAREN:
                raise UnsupportedSyntax("syntax", f"OPTIONS needs a list in brackets{where}.", HINT)
            found = replace(_read_options(tokens[place + 5 : end]), where=where)
            del tokens[place + 1 : end + 1]
        place += 1
    return found


def refuse_epsilon(options: DpOptions | None, instead: str) -> None:
    """Refuse an epsilon in OPTIONS if something else (`instead`) already determines what is spent."""
    if options is not None and options.epsilon is not None:
        hint = "Leave epsilon out of OPTIONS, or give epsilon only there."
        raise UnsupportedSyntax("syntax", f"OPTIONS has an epsilon{options.where}, but {instead}.", hint)


def _locate(token: Token) -> str:
    return f" at {token.line}:{max(token.col - (token.end - token.start), 1)}"


def _read_options(tokens: list[Token]) -> DpOptions:
    found: dict[str, str] = {}
    option: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.COMMA:
            option.append(token)
            continue
        if option:
            name = SAME.get(option[0].text.lower(), option[0].text.lower())
            where = _locate(option[0])
            if name not in KNOWN:
                hint = f"The options are {', '.join(KNOWN)}."
                raise UnsupportedSyntax("syntax", f"There is no option '{name[:40]}'{where}.", hint)
            if name in found:
                raise UnsupportedSyntax("syntax", f"The option {name} is given twice{where}.", "Give it once.")
            if len(option) < 3 or option[1].token_type is not TokenType.EQ:
                raise UnsupportedSyntax("syntax", f"The option {name} has no value{where}.", f"Write {name}=...")
            found[name] = _read_value(option[2:])
        option = []
    groups = found.pop("max_groups_contributed", None)
    if groups is not None and not (GROUPS.fullmatch(groups) and 1 <= int(groups) <= MOST_GROUPS):
        message = f"max_groups_contributed must be a whole number from 1 to {MOST_GROUPS:,}{_locate(tokens[0])}."
        raise UnsupportedSyntax("syntax", message, "Write max_groups_contributed=3, for example.")
    most = None if groups is None else int(groups)
    return DpOptions(found.get("epsilon"), found.get("delta"), most, found.get("privacy_unit_column"))


def _read_value(tokens: list[Token]) -> str:
    """The text after the equals sign: one value, or names separated by dots."""
    text = "".join(token.text for token in tokens)
    names = all(token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) for token in tokens[::2])
    dotted = names and len(tokens) % 2 and all(token.token_type is TokenType.DOT for token in tokens[1::2])
    if (len(tokens) > 1 and not dotted) or len(text) > MOST_CHARACTERS:
        raise UnsupportedSyntax("syntax", f"An option needs one short value{_locate(tokens[0])}.", HINT)
    return text
