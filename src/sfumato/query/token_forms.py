"""Spellings of other SQL dialects, rewritten token by token before the parser runs. None of them changes the meaning.

Comments, `names` and [names] in other quotes, numbers such as .01, TOP 5, SELECT ALL, a question in brackets, and
CLAMPED BETWEEN. `is_keyword_here` says where a word that is also a possible name is a keyword.
"""

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.dialects import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
ENDS_A_VALUE = (*NAMES, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
JOINS = (TokenType.JOIN, TokenType.OUTER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER)
ROW_WORDS = ("ROW", "ROWS")
FRAME_WORDS = ("UNBOUNDED", "CURRENT")
SAME_FUNCTIONS = {  # other names of functions, with the same arguments in the same order
    "TIMESTAMP_TRUNC": "DATE_TRUNC", "DATETIME_TRUNC": "DATE_TRUNC", "TIMESTAMP_DIFF": "DATE_DIFF",
    "DATETIME_DIFF": "DATE_DIFF", "TIMESTAMP_ADD": "DATE_ADD", "DATETIME_ADD": "DATE_ADD",
    "TIMESTAMP_SUB": "DATE_SUB", "DATETIME_SUB": "DATE_SUB", "FORMAT_TIMESTAMP": "FORMAT_DATE",
    "FORMAT_DATETIME": "FORMAT_DATE", "PERCENTILE": "QUANTILE_CONT", "APPROX_PERCENTILE": "QUANTILE_CONT",
    "PERCENTILE_APPROX": "QUANTILE_CONT", "DATEPART": "DATE_PART", "AVERAGE": "AVG", "COUNT_BIG": "COUNT",
    "DATETIME": "TIMESTAMP",
}  # fmt: skip
PLACES = {"OFFSET": 1, "SAFE_OFFSET": 1, "ORDINAL": 0, "SAFE_ORDINAL": 0}  # of BigQuery's lists: from 0, and from 1
SET_OPERATIONS = (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT)
ROLLUPS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)
BEFORE_TYPE = (TokenType.ALIAS, TokenType.DCOLON)
TYPE_NAMES = {"FLOAT64": TokenType.DOUBLE, "BIGNUMERIC": TokenType.DECIMAL}  # of BigQuery
DECODE = "DECODE"  # the parser knows another function of this name
CASES = "DECODE_CASES"
CASTS = ("CAST", "TRY_CAST", "SAFE_CAST")
NEVER_KEYWORDS = frozenset({  # the commonest kinds of which `is_keyword_here` knows no form: asking takes long
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.SELECT, TokenType.FROM, TokenType.WHERE,
    TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.JOIN, TokenType.ON,
})  # fmt: skip
COMPARISONS = (TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)
SIGNS = (
    TokenType.DCOLON, TokenType.FARROW, TokenType.NULLSAFE_EQ, TokenType.DPIPE, TokenType.L_BRACKET,
    TokenType.R_BRACKET, TokenType.PARTITION_BY, TokenType.MOD, TokenType.DIV,
)  # fmt: skip


class SqlTokenizer(DuckDB.Tokenizer):  # type: ignore[misc]  # sqlglot has no types here
    """DuckDB's tokenizer, with `names` in backticks and comments after #."""

    IDENTIFIERS = ('"', "`")
    COMMENTS = ("--", "#", ("/*", "*/"))


class SqlDialect(DuckDB):  # type: ignore[misc]
    """DuckDB's SQL with the quotes and comments of other dialects."""

    Tokenizer = SqlTokenizer


def rewrite_tokens(tokens: list[Token], sql: str) -> list[Token]:
    """The same question in tokens that the parser of DuckDB's SQL reads. The list itself is changed."""
    for token in tokens:
        token.comments = []
    words = {token.text.upper() for token in tokens}  # most questions need none of the following
    if not words.isdisjoint(TYPE_NAMES):
        _rename_types(tokens)
    if not words.isdisjoint(SAME_FUNCTIONS):
        _rename_functions(tokens)
    if not words.isdisjoint(PLACES):
        _count_places(tokens)
    if "." in words:
        _join_decimals(tokens)
    if "[" in words:
        _read_brackets(tokens, sql)
    if "`" in sql:
        _split_dotted_names(tokens, sql)
    while len(tokens) > 2 and _is_wrapped(tokens):
        del tokens[0], tokens[-1]
    special = not words.isdisjoint(("CLAMPED", "ANONYMIZATION"))
    for place in range(len(tokens) - 1, -1, -1):
        if tokens[place].token_type is TokenType.SELECT:
            _read_select(tokens, place)
        elif special and tokens[place].text.upper() == "CLAMPED":
            _read_clamped(tokens, place)
        elif special and tokens[place].text.upper() == "ANONYMIZATION":
            tokens[place] = _copy(tokens[place], TokenType.VAR, "DIFFERENTIAL_PRIVACY", tokens[place].start)
    return tokens


def _rename_types(tokens: list[Token]) -> None:
    """Read the types of BigQuery after AS and ::."""
    for before, token in pairwise(tokens):
        if before.token_type in BEFORE_TYPE and token.text.upper() in TYPE_NAMES:
            token.token_type = TYPE_NAMES[token.text.upper()]


def _rename_functions(tokens: list[Token]) -> None:
    """Write the known name of a function."""
    for place in range(len(tokens) - 1):
        word = tokens[place].text.upper()
        if tokens[place + 1].token_type is TokenType.L_PAREN and word in SAME_FUNCTIONS:
            tokens[place] = _copy(tokens[place], TokenType.VAR, SAME_FUNCTIONS[word], tokens[place].start)


def _count_places(tokens: list[Token]) -> None:
    """Write x[OFFSET(2)] as x[3]."""
    for place in range(len(tokens) - 5, 0, -1):
        before, name, opened, number, closed, after = tokens[place - 1 : place + 5]
        brackets = [text.token_type for text in (before, opened, closed, after)]
        listed = [TokenType.L_BRACKET, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.R_BRACKET]
        if brackets == listed and name.text.upper() in PLACES and number.text.isdigit():
            counted = str(int(number.text) + PLACES[name.text.upper()])
            tokens[place : place + 4] = [_copy(number, TokenType.NUMBER, counted, name.start)]


def _list_unnested(tokens: list[Token]) -> None:
    """Write x IN UNNEST([1, 2]) as x IN (1, 2)."""
    opened = [TokenType.IN, TokenType.UNNEST, TokenType.L_PAREN, TokenType.L_BRACKET]
    for place in range(len(tokens) - len(opened), -1, -1):
        if [token.token_type for token in tokens[place : place + len(opened)]] != opened:
            continue
        kinds = [token.token_type for token in tokens[place + len(opened) :]]
        length = kinds.index(TokenType.R_BRACKET) if TokenType.R_BRACKET in kinds else 0
        end = place + len(opened) + length
        nested = TokenType.L_BRACKET in kinds[:length]
        if length and not nested and kinds[length + 1 : length + 2] == [TokenType.R_PAREN]:
            del tokens[end]
            del tokens[place + 3], tokens[place + 1]


def names_columns(tokens: Sequence[Token], index: int) -> bool:
    """Is it the name in AS t (a, b) after a subquery, or in WITH t (a, b) AS (...)?"""
    before = tokens[index - 1].token_type if index else None
    if before is TokenType.ALIAS:
        return index > 1 and tokens[index - 2].token_type is TokenType.R_PAREN
    end = _find_end(tokens, index + 2)
    defined = end + 2 < len(tokens) and tokens[end + 1].token_type is TokenType.ALIAS
    if before in (TokenType.WITH, TokenType.COMMA):
        return defined and tokens[end + 2].token_type is TokenType.L_PAREN
    return False


def _join_decimals(tokens: list[Token]) -> None:
    """Make one number of '.' and '01'."""
    for place in range(len(tokens) - 2, -1, -1):
        dot, number = tokens[place], tokens[place + 1]
        bare = place == 0 or tokens[place - 1].token_type not in ENDS_A_VALUE
        joined = dot.token_type is TokenType.DOT and number.token_type is TokenType.NUMBER
        if joined and bare and dot.end + 1 == number.start and number.text[:1].isdigit():
            tokens[place : place + 2] = [_copy(number, TokenType.NUMBER, f"0.{number.text}", dot.start)]


def _read_brackets(tokens: list[Token], sql: str) -> None:
    """Read [a name] as a quoted name. A list of values, such as [0.25, 0.5], stays a list."""
    _list_unnested(tokens)
    place = 0
    while place < len(tokens):
        if tokens[place].token_type is TokenType.L_BRACKET:
            kinds = [token.token_type for token in tokens[place:]]
            end = place + kinds.index(TokenType.R_BRACKET) if TokenType.R_BRACKET in kinds else place
            inside = tokens[place + 1 : end]
            if inside and all(_is_word(token) for token in inside):
                text = sql[tokens[place].end + 1 : tokens[end].start]
                tokens[place : end + 1] = [_copy(tokens[end], TokenType.IDENTIFIER, text, tokens[place].start)]
        place += 1


def _is_word(token: Token) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.NUMBER) and token.text.replace("_", "a").isalnum()


def _split_dotted_names(tokens: list[Token], sql: str) -> None:
    """Read `clinic.visits` as `clinic`.`visits`, as BigQuery does."""
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        if token.token_type is TokenType.IDENTIFIER and sql[token.start] == "`" and "." in token.text:
            parts: list[Token] = []
            for name in token.text.split("."):
                parts += [_copy(token, TokenType.DOT, ".", token.start)] if parts else []
                parts.append(_copy(token, TokenType.IDENTIFIER, name, token.start))
            tokens[place : place + 1] = parts


def _is_wrapped(tokens: Sequence[Token]) -> bool:
    """Is the whole question in one pair of brackets?"""
    if tokens[0].token_type is not TokenType.L_PAREN or tokens[-1].token_type is not TokenType.R_PAREN:
        return False
    return _find_end(tokens, 1) == len(tokens) - 1


def _find_end(tokens: Sequence[Token], place: int) -> int:
    """The place of the bracket that closes the brackets around a place, or the end of the list."""
    depth = 0
    for at in range(place, len(tokens)):
        depth += (tokens[at].token_type is TokenType.L_PAREN) - (tokens[at].token_type is TokenType.R_PAREN)
        if depth < 0:
            return at
    return len(tokens)


def _read_select(tokens: list[Token], place: int) -> None:
    """Drop ALL after SELECT, and write TOP 5 as LIMIT 5 at the end of that SELECT."""
    if place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.ALL:
        del tokens[place + 1]
    at = place + 1
    if at < len(tokens) and tokens[at].token_type is TokenType.DISTINCT:
        at += 1
    words = tokens[at : at + 4]
    if len(words) < 3 or words[0].text.upper() != "TOP":
        return
    bracketed = words[1].token_type is TokenType.L_PAREN and words[3].token_type is TokenType.R_PAREN
    number = words[2] if bracketed else words[1]
    if number.token_type is not TokenType.NUMBER:
        return
    del tokens[at : at + (4 if bracketed else 2)]
    limit = _copy(number, TokenType.LIMIT, "LIMIT", number.start)
    end = _find_end(tokens, at)
    tokens[end:end] = [limit, _copy(number, TokenType.NUMBER, number.text, number.start)]


def _read_clamped(tokens: list[Token], place: int) -> None:
    """Write ANON_SUM(x CLAMPED BETWEEN 0 AND 9) as ANON_SUM(x, contribution_bounds_per_group => (0, 9))."""
    if place + 1 >= len(tokens) or tokens[place + 1].token_type is not TokenType.BETWEEN:
        return
    word, end = tokens[place], _find_end(tokens, place)
    middle = next((at for at in range(place, end) if tokens[at].token_type is TokenType.AND), None)
    if middle is None or end == len(tokens):
        return
    tokens.insert(end, _copy(word, TokenType.R_PAREN, ")", tokens[end].start))
    tokens[middle] = _copy(word, TokenType.COMMA, ",", tokens[middle].start)
    tokens[place : place + 2] = [
        _copy(word, TokenType.COMMA, ",", word.start),
        _copy(word, TokenType.VAR, "contribution_bounds_per_group", word.start),
        _copy(word, TokenType.FARROW, "=>", word.start),
        _copy(word, TokenType.L_PAREN, "(", word.start),
    ]


def _copy(token: Token, kind: TokenType, text: str, start: int) -> Token:
    return Token(kind, text, token.line, token.col, start, token.end)


def is_keyword_here(tokens: Sequence[Token], index: int) -> bool:  # noqa: PLR0911, PLR0912 - one return for each form
    """Is this token a keyword or sign of a supported form, in a place where it cannot be a name?"""
    token = tokens[index]
    kind, word = token.token_type, token.text.upper()
    if kind in NEVER_KEYWORDS and word not in ROW_WORDS:
        return False
    before = tokens[index - 1] if index else token
    after = tokens[index + 1] if index + 1 < len(tokens) else token
    follows_value = before.token_type in ENDS_A_VALUE
    match kind:
        case TokenType.FILTER | TokenType.OVER:
            named = kind is TokenType.OVER and after.token_type in NAMES
            return before.token_type is TokenType.R_PAREN and (named or after.token_type is TokenType.L_PAREN)
        case TokenType.NATURAL | TokenType.CROSS | TokenType.RIGHT | TokenType.FULL:
            return after.token_type in JOINS
        case TokenType.SEMI | TokenType.ANTI:
            return after.token_type is TokenType.JOIN
        case TokenType.ANY | TokenType.ALL | TokenType.SOME if before.token_type in COMPARISONS:
            nested = tokens[index + 2] if index + 2 < len(tokens) else after
            return after.token_type is TokenType.L_PAREN and nested.token_type in (TokenType.SELECT, TokenType.WITH)
        case TokenType.FETCH:
            return after.token_type in (TokenType.FIRST, TokenType.NEXT)
        case TokenType.FIRST | TokenType.NEXT:
            return before.token_type is TokenType.FETCH
        case TokenType.OFFSET:
            return after.token_type is TokenType.NUMBER
        case TokenType.ONLY:
            return before.text.upper() in ROW_WORDS
        case TokenType.QUALIFY | TokenType.WINDOW:
            return follows_value and after.token_type not in (TokenType.COMMA, TokenType.FROM, TokenType.EQ)
        case TokenType.ANY | TokenType.ALL if before.token_type in (TokenType.LIKE, TokenType.ILIKE):
            return after.token_type is TokenType.L_PAREN
        case TokenType.EXISTS:
            return after.token_type is TokenType.L_PAREN
        case TokenType.INTERSECT | TokenType.EXCEPT:
            return follows_value and after.token_type in (TokenType.SELECT, TokenType.ALL, TokenType.L_PAREN)
        case TokenType.ALL:
            listed = (*SET_OPERATIONS, TokenType.GROUP_BY)
            return before.token_type in listed or before.token_type is TokenType.L_PAREN
        case _ if kind in ROLLUPS:
            return after.token_type is TokenType.L_PAREN or before.token_type is TokenType.WITH
        case _ if kind in SIGNS:
            return True
    if word in ROW_WORDS or kind is TokenType.RANGE:
        frame = after.token_type in (TokenType.BETWEEN, TokenType.NUMBER) or after.text.upper() in FRAME_WORDS
        counted = before.token_type is TokenType.NUMBER or before.text.upper() == "CURRENT"
        return frame or counted or (before.token_type in (TokenType.FIRST, TokenType.NEXT))
    return kind in DuckDB.Parser.TYPE_TOKENS and _is_type(tokens, index)


def _is_type(tokens: Sequence[Token], index: int) -> bool:
    """Is the token the type of a cast: after ::, or after the AS of CAST(x AS ...)?"""
    before = tokens[index - 1] if index else tokens[index]
    if before.token_type is TokenType.DCOLON:
        return True
    if before.token_type is not TokenType.ALIAS:
        return False
    depth = 0
    for at in range(index - 1, 0, -1):
        depth += (tokens[at].token_type is TokenType.R_PAREN) - (tokens[at].token_type is TokenType.L_PAREN)
        if depth < 0:
            return tokens[at - 1].text.upper() in CASTS
    return False
