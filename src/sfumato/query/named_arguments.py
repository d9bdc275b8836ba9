"""SUM(x, contribution_bounds_per_group => (0, 9)) and ANON_SUM(x CLAMPED BETWEEN 0 AND 9), as BigQuery writes them.

The parser does not read named arguments, so they are taken out of the tokens: SUM(CLAMPED_PER_GROUP(x, 0, 9)).
`bounded_contributions.py` gives this its meaning.
"""

from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import UnsupportedSyntax

PER_GROUP, PER_ROW = "CLAMPED_PER_GROUP", "CLAMPED_PER_ROW"
BOUNDS = {"CONTRIBUTION_BOUNDS_PER_GROUP": PER_GROUP, "CONTRIBUTION_BOUNDS_PER_ROW": PER_ROW}
REPORT = "REPORT_FORMAT"
ANON = {
    "ANON_COUNT": "COUNT", "ANON_SUM": "SUM", "ANON_AVG": "AVG", "ANON_VAR_POP": "VAR_POP",
    "ANON_STDDEV_POP": "STDDEV_POP", "ANON_QUANTILES": "APPROX_QUANTILES", "ANON_PERCENTILE_CONT": "PERCENTILE_CONT",
}  # fmt: skip
HINT = "Write SUM(x, contribution_bounds_per_group => (0, 100))."


def take_named_arguments(tokens: list[Token]) -> bool:
    """Rewrite named arguments and ANON_ aggregates. Returns whether a report format was asked for, and left out."""
    for token in tokens:
        if token.token_type is TokenType.VAR and token.text.upper() in ANON:
            token.text = ANON[token.text.upper()]
    reported = False
    while arrows := [place for place, token in enumerate(tokens) if token.token_type is TokenType.FARROW]:
        reported |= _take_one(tokens, arrows[-1])  # it moves the tokens before it
    return reported


def _take_one(tokens: list[Token], arrow: int) -> bool:
    """Take out `, name => value`. Bounds go around the function's first argument."""
    name = tokens[arrow - 1].text.upper() if arrow else ""
    if arrow < 2 or tokens[arrow - 2].token_type is not TokenType.COMMA:
        what = "'=>' gives a named argument of a function, and this is not one."
        raise UnsupportedSyntax("syntax", what, "Write >= for 'at least', or = for 'equal to'.")
    if name not in (*BOUNDS, REPORT):
        known = ", ".join([*BOUNDS, REPORT]).lower()
        raise UnsupportedSyntax(
            "syntax", f"There is no argument named '{name.lower()[:40]}'.", f"The names are {known}."
        )
    opening = _find_opening(tokens, arrow)
    end = _find_argument_end(tokens, arrow + 1)
    value = tokens[arrow + 1 : end]
    del tokens[arrow - 2 : end]
    if name == REPORT:
        return True
    if len(value) < 5 or value[0].token_type is not TokenType.L_PAREN or value[-1].token_type is not TokenType.R_PAREN:
        raise UnsupportedSyntax("syntax", f"The argument {name.lower()} needs two bounds.", HINT)
    close = _find_argument_end(tokens, opening + 1)
    word = tokens[opening]
    wrapped = [
        _make(word, TokenType.VAR, BOUNDS[name]), _make(word, TokenType.L_PAREN, "("),
        *tokens[opening + 1 : close], _make(word, TokenType.COMMA, ","), *value[1:-1],
        _make(word, TokenType.R_PAREN, ")"),
    ]  # fmt: skip
    tokens[opening + 1 : close] = wrapped
    return False


def _find_opening(tokens: list[Token], place: int) -> int:
    depth = 0
    for at in range(place, -1, -1):
        depth += (tokens[at].token_type is TokenType.R_PAREN) - (tokens[at].token_type is TokenType.L_PAREN)
        if depth < 0:
            return at
    raise UnsupportedSyntax("syntax", "A named argument stands outside a function.", HINT)


def _find_argument_end(tokens: list[Token], place: int) -> int:
    """Where an argument ends: before a comma, or the bracket that closes the function."""
    depth = 0
    for at in range(place, len(tokens)):
        kind = tokens[at].token_type
        if depth == 0 and kind in (TokenType.COMMA, TokenType.R_PAREN):
            return at
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
    return len(tokens)


def _make(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
