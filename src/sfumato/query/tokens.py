"""SQL text -> allow-listed tokens. This runs before the parser, which can take exponential time on hostile text."""

import difflib
import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from sqlglot.dialects import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from sfumato.errors import UnknownName, UnsupportedSyntax
from sfumato.query import function_words
from sfumato.query.dp_options import DpOptions, take_dp_options
from sfumato.query.hints import FIRST_WORD_HINTS, FUNCTION_HINTS, WORD_HINTS
from sfumato.query.named_arguments import PER_GROUP, PER_ROW, take_named_arguments
from sfumato.query.result_functions import RESULT_FUNCTIONS
from sfumato.query.token_forms import CASES, DECODE, SqlDialect, is_keyword_here, names_columns, rewrite_tokens

MOST_LETTERS = 20_000
MOST_TOKENS = 3_000
MOST_NESTING = 24

AGGREGATES = (
    "COUNT", "SUM", "AVG", "VARIANCE", "VAR_SAMP", "STDDEV", "STDDEV_SAMP", "MIN", "MAX", "MEDIAN", "QUANTILE_CONT",
    "PERCENTILE_CONT", "MODE", "TOP_K", "APPROX_COUNT_DISTINCT", "CORR", "COVAR_SAMP", "COVAR_POP",
    "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_SXX", "REGR_SYY", "REGR_SXY", "REGR_COUNT", "REGR_AVGX",
    "REGR_AVGY",
)  # fmt: skip
SAME_AGGREGATES = (  # other names for these, and aggregates that are computed from these
    "VAR", "VAR_POP", "VARIANCE_POP", "VARP", "VARIANCE_SAMP", "STD", "STDEV", "STDEVP", "STDDEV_POP", "STDDEVP",
    "MEAN", "COUNT_IF", "COUNTIF", "QUANTILE", "QUANTILE_DISC", "APPROX_QUANTILE", "APPROX_QUANTILES",
    "PERCENTILE_DISC", "ANY_VALUE",
)  # fmt: skip
DATES = (
    "DATE_TRUNC", "DATE_DIFF", "EXTRACT", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFYEAR", "HOUR",
    "MINUTE",
)  # fmt: skip
FUNCTIONS = (*AGGREGATES, *function_words.ROW_FUNCTIONS, *DATES)
KNOWN_FUNCTIONS = frozenset((*FUNCTIONS, *SAME_AGGREGATES, *RESULT_FUNCTIONS, PER_GROUP, PER_ROW))
MOST_ARGUMENTS = {"DATE_TRUNC": 2, "DATE_DIFF": 3, **function_words.MOST_ARGUMENTS}
CLAUSES = {
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY,
    TokenType.LIMIT, TokenType.ASC, TokenType.DESC, TokenType.WITH, TokenType.JOIN, TokenType.LEFT, TokenType.INNER,
    TokenType.OUTER, TokenType.ON, TokenType.USING, TokenType.UNION,
}  # fmt: skip
BEFORE_SUBQUERY = {
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ALL, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT,
    TokenType.DISTINCT,
}  # fmt: skip  # may precede a second SELECT
NAMED_TABLES = (TokenType.VAR, TokenType.IDENTIFIER)
DP_WORDS = re.compile("differential_privacy|anonymization", re.IGNORECASE)
SAME_WORD = 0.75  # how similar two names are if one is the other misspelt: LOWER is not FLOOR
BEGINNINGS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS}
WORDS = {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.IS,
    TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE,
    TokenType.END, TokenType.DISTINCT, TokenType.ALIAS,
}  # fmt: skip
SIGNS = {
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.STAR, TokenType.PLUS,
    TokenType.DASH, TokenType.SLASH, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE, TokenType.STRING,
}  # fmt: skip
ALWAYS_ALLOWED = WORDS | SIGNS | function_words.SIGNS
NESTING = {TokenType.L_PAREN: 1, TokenType.CASE: 1, TokenType.R_PAREN: -1, TokenType.END: -1}
UNCHECKED = ALWAYS_ALLOWED - NESTING.keys() - PREFIXES - {TokenType.STRING, TokenType.DIV}
DATE_TYPES = {TokenType.DATE, TokenType.TIMESTAMPNTZ}  # before a text: DATE '...', TIMESTAMP '...'
PLAIN_TEXT = re.compile(r"[\x20-\x7e\n\r\t]*")
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
QUOTED = re.compile(r"""('|").*?(?:\1|(?P<open>\Z))|--[^\n]*|/\*.*?(?:\*/|(?P<open_comment>\Z))""", re.DOTALL)
OTHER_ARGUMENTS = re.compile("decode|datediff|timestampdiff", re.IGNORECASE)
DIALECT = SqlDialect()
_OWN = threading.local()
BEGIN = "Begin with SELECT COUNT(*) FROM a table."
SHORTEN = "Ask a smaller question, or several questions."
RESERVED = "{} begins with __sfumato, which is reserved"
RESERVED_HINT = "Use another name."
NAME = re.compile(r"[^\W\d]\w*")
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,4})?")
ELSEWHERE = (
    "What it computes from a row can be stored as a column of the table. What it computes from groups can be computed "
    "from the answer's rows in Python: that is free."
)
ALLOWED = "Supported: SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, WITH and UNION ALL."


def read_tokens(sql: object, *, clauses: bool = True) -> tuple[list[Token], DpOptions | None]:
    """Read the tokens and the OPTIONS of a question. With clauses=False, read the tokens of one expression."""
    tokens = _split_tokens(sql)
    text = str(sql)
    while clauses and tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    tokens = rewrite_tokens(tokens, text)
    if not tokens:
        raise UnsupportedSyntax("syntax", "The text contains no question.", BEGIN)
    options = take_dp_options(tokens) if clauses and DP_WORDS.search(text) else None
    if any(token.token_type is TokenType.FARROW for token in tokens) or "anon_" in text.lower():
        reported = take_named_arguments(tokens)
        options = replace(options or DpOptions(), report_format=True) if reported else options
    if clauses and tokens[0].token_type not in BEGINNINGS:
        word = tokens[0].text.upper()
        close = difflib.get_close_matches(word, ("SELECT", "WITH"), 1)
        meant = f"Did you mean {close[0]}?" if close else BEGIN
        hint = FIRST_WORD_HINTS.get(word) or WORD_HINTS.get(word, meant)
        raise _build_token_refusal(tokens[0], text, "A question is one SELECT statement, but this begins with {}", hint)
    _check_tokens(tokens, text, clauses=clauses)
    if OTHER_ARGUMENTS.search(text):
        _rename_by_arguments(tokens)
    return tokens, options


def _rename_by_arguments(tokens: Sequence[Token]) -> None:
    """Rename functions that the parser knows with other arguments."""
    for place, (token, after) in enumerate(pairwise(tokens)):
        if token.text.upper() == DECODE and _is_kind(after, TokenType.L_PAREN):
            token.text = CASES
        elif token.text.upper() == "DATEDIFF" and count_commas(tokens, place) == 1:
            token.text = "DATEDIFF_DAYS"  # DATEDIFF(last, first), of MySQL and Spark
        elif token.text.upper() == "TIMESTAMPDIFF" and count_commas(tokens, place) == 2:
            token.text = "COMPLETE_UNITS"


def _split_tokens(sql: object) -> list[Token]:
    if not isinstance(sql, str) or not sql.strip():
        raise UnsupportedSyntax("syntax", "The question must be SQL text.", BEGIN)
    if len(sql) > MOST_LETTERS:
        raise UnsupportedSyntax("syntax", f"The question is longer than {MOST_LETTERS:,} characters.", SHORTEN)
    _refuse_invisible(sql)
    try:
        tokens = list(_find_tokenizer().tokenize(sql))
    except SqlglotError:
        opened = [found.start() for found in QUOTED.finditer(sql) if "" in found.groupdict().values()]
        place = locate_offset(sql, opened[0]) if opened else ""
        raise UnsupportedSyntax("syntax", f"A quote or a comment is not closed{place}.", "Close it.") from None
    if not tokens:
        raise UnsupportedSyntax("syntax", "The text contains no question.", BEGIN)
    if len(tokens) > MOST_TOKENS:
        raise UnsupportedSyntax("syntax", f"The question has more than {MOST_TOKENS:,} words and signs.", SHORTEN)
    return tokens


def _find_tokenizer() -> Tokenizer:
    """The tokenizer of this thread: making one takes as long as using it."""
    found: Tokenizer | None = getattr(_OWN, "tokenizer", None)
    if found is None:
        found = _OWN.tokenizer = DIALECT.tokenizer()
    return found


def refuse_name(name: str) -> None:
    """Refuse an output name that SQL could not give: one that is empty, invisible or reserved."""
    if not name.strip() or len(name) > MOST_LETTERS:
        raise UnsupportedSyntax("syntax", "A column of the answer needs a name that is not blank.", "Name it.")
    _refuse_invisible(name)
    if _is_reserved(name):
        raise UnsupportedSyntax("syntax", f"{RESERVED.format(repr(shorten(name)))}.", RESERVED_HINT)


def locate_offset(sql: str, offset: int) -> str:
    """Write " at line:column" of a character. Both count from 1."""
    return f" at {sql.count(chr(10), 0, offset) + 1}:{offset - sql.rfind(chr(10), 0, offset)}"


def _refuse_invisible(text: str) -> None:
    if PLAIN_TEXT.fullmatch(text):
        return
    hidden = [letter for letter in set(text) if unicodedata.category(letter) in INVISIBLE and letter not in "\n\r\t"]
    if hidden:
        place = locate_offset(text, min(map(text.index, hidden)))
        raise UnsupportedSyntax("syntax", f"There is an invisible character{place}.", "Type it again as plain text.")


def _check_tokens(tokens: Sequence[Token], sql: str, *, clauses: bool) -> None:  # noqa: PLR0912 - one a rule
    """Check every token in one pass: its kind, how deeply it is nested, and that brackets are balanced."""
    most_nesting = MOST_NESTING if clauses else MOST_NESTING - 1  # a frame puts brackets around an expression
    nesting = prefixes = 0
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.token_type in UNCHECKED:
            prefixes = 0
            continue
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if (len(token.text) == 8 or token.token_type is TokenType.DIV) and function_words.read_word(token, after):
            continue  # INTERVAL
        kind = token.token_type
        if kind in NESTING:
            nesting += NESTING[kind]
            if kind is TokenType.L_PAREN:
                opened.append(token.start)
            elif kind is TokenType.R_PAREN:
                if not opened:
                    raise _build_token_refusal(token, sql, "{} closes no bracket", "Leave it out.")
                opened.pop()
        prefixes = prefixes + 1 if kind in PREFIXES else 0
        if nesting + prefixes > most_nesting:
            place = locate_offset(sql, token.start)
            raise UnsupportedSyntax("syntax", f"The question is too deeply nested{place}.", SHORTEN)
        if kind is TokenType.STRING and _is_kind(after, TokenType.STRING):
            raise _build_token_refusal(token, sql, "Another text follows {}", "Write one text, or 'a' || 'b'.")
        if kind in (TokenType.FOR, TokenType.FROM) and function_words.is_within_function(tokens, index):
            continue
        if kind in (TokenType.LEFT, TokenType.RIGHT) and _is_kind(after, TokenType.L_PAREN):
            _check_arguments(tokens, index, sql)
        elif kind not in ALWAYS_ALLOWED and not is_keyword_here(tokens, index):
            before = tokens[index - 1] if index else None
            distinct = kind is TokenType.FROM and _is_kind(before, TokenType.DISTINCT)
            if _is_kind(after, TokenType.L_PAREN) and kind in NAMED_TABLES and names_columns(tokens, index):
                continue
            _check_word(token, before, after, sql, clauses=clauses or distinct)
            if token.text.upper() in MOST_ARGUMENTS:
                _check_arguments(tokens, index, sql)
    if opened:
        place = locate_offset(sql, opened[-1])
        raise UnsupportedSyntax("syntax", f"A bracket is not closed{place}.", "Close it with ')'.")


def _check_arguments(tokens: Sequence[Token], index: int, sql: str) -> None:
    most = MOST_ARGUMENTS[tokens[index].text.upper()]
    if count_commas(tokens, index) >= most:
        raise _build_token_refusal(tokens[index], sql, f"{{}} takes {most} values", "Leave the others out.")


def count_commas(tokens: Sequence[Token], index: int) -> int:
    """The commas between the arguments of the function at a place."""
    depth = commas = 0
    for token in tokens[index + 1 :]:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth <= 0:
            break
        commas += depth == 1 and token.token_type is TokenType.COMMA
    return commas


def _check_word(token: Token, before: Token | None, after: Token | None, sql: str, *, clauses: bool) -> None:
    """Refuse a word that is not on a list. A keyword that is only a name here becomes a name for the parser too."""
    kind = token.token_type
    if kind in CLAUSES:
        _check_clause(token, before, after, sql, clauses=clauses)
    elif kind is TokenType.NUMBER:
        if not NUMBER.fullmatch(token.text):
            raise _build_token_refusal(token, sql, "{} is not a number", "Write it as 12, 1.5 or 1e6.")
    elif _is_reserved(token.text):
        raise _build_token_refusal(token, sql, RESERVED, RESERVED_HINT)
    elif kind is TokenType.IDENTIFIER:
        if _is_kind(after, TokenType.L_PAREN):
            raise _build_function_refusal(token, sql)
    elif (kind is TokenType.ALL and _is_kind(before, TokenType.UNION)) or (
        kind in DATE_TYPES and _is_kind(after, TokenType.STRING)
    ):
        return
    elif kind in DuckDB.Parser.ID_VAR_TOKENS and NAME.fullmatch(token.text):
        _check_name(token, before, after, sql)
        token.token_type = TokenType.VAR
    else:
        hint = WORD_HINTS.get(token.text.upper(), ALLOWED)
        if NAME.fullmatch(token.text):
            hint += f' If it is the name of a column, write it in double quotes: "{token.text}".'
        raise _build_token_refusal(token, sql, "{} is not supported", hint)


def _check_clause(token: Token, before: Token | None, after: Token | None, sql: str, *, clauses: bool) -> None:
    kind = token.token_type
    if not clauses:
        raise _build_token_refusal(token, sql, "{} cannot be used in an expression", "Leave it out.")
    if kind is TokenType.SELECT and before is not None and before.token_type not in BEFORE_SUBQUERY:
        raise _build_token_refusal(token, sql, "There is a second {}", WORD_HINTS["SELECT"])


def _check_name(token: Token, before: Token | None, after: Token | None, sql: str) -> None:
    word = token.text.upper()
    if word in WORD_HINTS and not (_is_kind(after, TokenType.L_PAREN) and word in KNOWN_FUNCTIONS):
        hint = f'{WORD_HINTS[word]} If it is the name of a column, write it in double quotes: "{token.text}".'
        raise _build_token_refusal(token, sql, "{} is not supported", hint)
    within_group = word == "GROUP" and before is not None and before.text.upper() == "WITHIN"
    if _is_kind(after, TokenType.L_PAREN) and word not in KNOWN_FUNCTIONS and not within_group:
        raise _build_function_refusal(token, sql)


def _is_kind(token: Token | None, kind: TokenType) -> bool:
    return token is not None and token.token_type is kind


def _is_reserved(name: str) -> bool:
    plain = name.lower() if name.isascii() else unicodedata.normalize("NFKC", name).casefold()
    return plain.startswith("__sfumato")


def shorten(name: str) -> str:
    return name if len(name) <= 40 else name[:40] + "..."


def _build_token_refusal(token: Token, sql: str, what: str, hint: str) -> UnsupportedSyntax:
    """An error about a token. `what` has {} in the place of the token and its position."""
    shown = f"'{shorten(token.text)}'{locate_offset(sql, token.start)}"
    return UnsupportedSyntax("syntax", f"{what.format(shown)}.", hint)


def _build_function_refusal(token: Token, sql: str) -> UnknownName:
    name = token.text.upper()
    message = f"There is no function '{shorten(token.text)}'{locate_offset(sql, token.start)}."
    if name in FUNCTION_HINTS:
        return UnknownName("unknown-name", message, FUNCTION_HINTS[name])
    close = difflib.get_close_matches(name, sorted(KNOWN_FUNCTIONS), 1, SAME_WORD)
    hint = f"Did you mean {close[0]}?" if close else ELSEWHERE
    return UnknownName("unknown-name", message, f"{hint} docs/sql.md lists all functions.")
