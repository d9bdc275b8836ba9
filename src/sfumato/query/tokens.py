"""SQL text -> tokens, each of which is on a list. It comes before the parser, which can take exponential time."""

import difflib
import re
import unicodedata
from collections.abc import Sequence

from sqlglot.dialects import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import UnknownName, UnsupportedSyntax
from sfumato.query.dp_options import DpOptions, take_dp_options

MOST_LETTERS = 20_000
MOST_TOKENS = 3_000
MOST_NESTING = 24

AGGREGATES = (
    "COUNT", "SUM", "AVG", "VARIANCE", "VAR_SAMP", "STDDEV", "STDDEV_SAMP", "MIN", "MAX", "MEDIAN", "QUANTILE_CONT",
    "PERCENTILE_CONT", "MODE", "TOP_K",
)  # fmt: skip
DATES = (
    "DATE_TRUNC", "DATE_DIFF", "EXTRACT", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFYEAR", "HOUR",
    "MINUTE",
)  # fmt: skip
FUNCTIONS = (*AGGREGATES, "ABS", "FLOOR", "CEIL", "CEILING", "COALESCE", "ROUND", *DATES)
ARGUMENTS = {"DATE_TRUNC": 2, "DATE_DIFF": 3}  # of more, the parser would drop the last without a word
CLAUSES = {
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY,
    TokenType.LIMIT, TokenType.ASC, TokenType.DESC, TokenType.WITH, TokenType.JOIN, TokenType.LEFT, TokenType.INNER,
    TokenType.OUTER, TokenType.ON, TokenType.USING, TokenType.UNION,
}  # fmt: skip
SUBQUERY = {TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ALL}  # what may stand before a second SELECT
PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS}
WORDS = {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.IS,
    TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE,
    TokenType.END, TokenType.DISTINCT, TokenType.ALIAS,
}  # fmt: skip
SIGNS = {
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.STAR, TokenType.PLUS,
    TokenType.DASH, TokenType.SLASH, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE, TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER,
}  # fmt: skip
MOMENTS = {TokenType.DATE, TokenType.TIMESTAMPNTZ}  # before a text: DATE '...', TIMESTAMP '...'
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of letters
NAME = re.compile(r"[^\W\d]\w*")
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,4})?")
ALLOWED = "SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, WITH and UNION ALL are."
HINTS = {  # of what is not supported, the nearest thing that is
    "OVER": "Use GROUP BY; there are no windows.",
    "PARTITION": "Use GROUP BY; there are no windows.",
    "FILTER": "Write SUM(CASE WHEN ... THEN 1 ELSE 0 END), or use WHERE.",
    "INTERSECT": "Ask each question on its own.",
    "EXCEPT": "Ask each question on its own.",
    "EXISTS": "Join the other table on the person, or count its rows for each person in a subquery.",
    "SELECT": "A subquery stands in brackets after FROM or JOIN, or in WITH.",
    "RIGHT": "Write LEFT JOIN, with the private table on the left.",
    "FULL": "Write JOIN or LEFT JOIN.",
    "CROSS": "Write JOIN ... ON the person's id.",
    "NATURAL": "Write JOIN ... USING (id).",
    "RECURSIVE": "Write WITH alone.",
    "QUALIFY": "Use HAVING.",
    "OFFSET": "Use LIMIT alone: all rows of an answer cost the same.",
    "ILIKE": "Use LIKE.",
    "ESCAPE": "Write LIKE without ESCAPE.",
    "INTERVAL": "Write the day out: DATE '2026-01-31'.",
    "CAST": "Columns have their declared types; a day is written DATE '2026-01-31'.",
    "TRY_CAST": "Columns have their declared types; a day is written DATE '2026-01-31'.",
    "::": "Columns have their declared types; a day is written DATE '2026-01-31'.",
    "ALL": "List the keys or columns.",
    ";": "Ask one question, and leave out ';'.",
    "%": "Use + - * / and FLOOR.",
    "//": "Use FLOOR(a / b).",
    "||": "Compare the texts one by one.",
    "?": "Write the value itself.",
    "$": "Write the value itself.",
    ":": "Write the value itself.",
    "ROLLUP": "Write GROUP BY with a list of keys.",
    "CUBE": "Write GROUP BY with a list of keys.",
}
FUNCTION_HINTS = {
    "QUANTILE": "Did you mean QUANTILE_CONT(x, 0.9)?",
    "APPROX_QUANTILE": "Did you mean QUANTILE_CONT(x, 0.9)?",
    "PERCENTILE_DISC": "Did you mean PERCENTILE_CONT?",
    "APPROX_TOP_K": "Did you mean TOP_K(x, 3)?",
    "DATE_PART": "Write EXTRACT(year FROM day), or YEAR(day).",
    "DATEDIFF": "Did you mean DATE_DIFF('day', a, b)?",
    "MEAN": "Did you mean AVG?",
    "IF": "Write CASE WHEN ... THEN ... ELSE ... END.",
    "IFNULL": "Did you mean COALESCE?",
    "DATE": "A day is written DATE '2026-01-31'; that of a moment is DATE_TRUNC('day', moment).",
}


def read_tokens(sql: object, *, clauses: bool = True) -> tuple[list[Token], DpOptions | None]:
    """The tokens of a question, and its options; without clauses, the tokens of one expression."""
    if not isinstance(sql, str) or not sql.strip():
        raise UnsupportedSyntax("syntax", "The question must be SQL text.", "Begin with SELECT COUNT(*) FROM a table.")
    if len(sql) > MOST_LETTERS:
        raise UnsupportedSyntax("syntax", f"The question is over {MOST_LETTERS:,} letters.", "Ask for less at once.")
    hidden = [letter for letter in set(sql) if unicodedata.category(letter) in INVISIBLE and letter not in "\n\r\t"]
    if hidden:
        first = min(map(sql.index, hidden))
        hint = "Type it again as plain text."
        raise UnsupportedSyntax("syntax", f"There is an invisible letter{locate_offset(sql, first)}.", hint)
    try:
        tokens: list[Token] = list(DuckDB().tokenize(sql))
    except SqlglotError:
        raise UnsupportedSyntax("syntax", "A quote or a comment is not closed.", "Close it; quote with ''.") from None
    if clauses and tokens and tokens[-1].token_type is TokenType.SEMICOLON and not tokens[-1].comments:
        tokens.pop()
    if not tokens:
        raise UnsupportedSyntax("syntax", "There is no question in this text.", "Begin with SELECT COUNT(*) FROM.")
    if len(tokens) > MOST_TOKENS:
        raise UnsupportedSyntax("syntax", f"The question is over {MOST_TOKENS:,} words.", "Ask for less at once.")
    _check_nesting(tokens, sql)
    options = take_dp_options(tokens) if clauses else None
    if clauses and tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH):
        hint = HINTS.get(tokens[0].text.upper(), "Begin with SELECT COUNT(*) FROM a table.")
        raise _token_refusal(tokens[0], sql, "A question is one SELECT statement, and this begins with '{}'", hint)
    for index, token in enumerate(tokens):
        _check_arguments(tokens, index, sql)
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        extracts = index > 2 and tokens[index - 3].text.upper() == "EXTRACT" and token.token_type is TokenType.FROM
        _check(token, tokens[index - 1] if index else None, after, sql, clauses=clauses or extracts)
    return tokens, options


def locate_offset(sql: str, offset: int) -> str:
    """line:column of a letter, counted from 1."""
    return f" at {sql.count(chr(10), 0, offset) + 1}:{offset - sql.rfind(chr(10), 0, offset)}"


def _check_nesting(tokens: Sequence[Token], sql: str) -> None:
    depth = run = brackets = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in (TokenType.L_PAREN, TokenType.CASE)) - (kind in (TokenType.R_PAREN, TokenType.END))
        brackets += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if brackets < 0:
            raise _token_refusal(token, sql, "'{}' closes nothing", "Leave it out.")
        run = run + 1 if kind in PREFIXES else 0
        if depth + run > MOST_NESTING:
            raise UnsupportedSyntax(
                "syntax",
                f"The question is too deeply nested{locate_offset(sql, token.start)}.",
                "Ask for less at once.",
            )
    if brackets:
        raise UnsupportedSyntax("syntax", "A bracket is not closed.", "Close it with ')'.")


def _check_arguments(tokens: Sequence[Token], index: int, sql: str) -> None:
    most = ARGUMENTS.get(tokens[index].text.upper())
    if most is None:
        return
    depth = commas = 0
    for each in tokens[index + 1 :]:
        depth += (each.token_type is TokenType.L_PAREN) - (each.token_type is TokenType.R_PAREN)
        if depth <= 0:
            break
        commas += depth == 1 and each.token_type is TokenType.COMMA
    if commas >= most:
        raise _token_refusal(tokens[index], sql, f"'{{}}' takes {most} values", "Leave the others out.")


def _check(token: Token, before: Token | None, after: Token | None, sql: str, *, clauses: bool) -> None:  # noqa: PLR0912
    """Refuse what is not on the list; a word that is only a name here becomes one for the parser too."""
    kind, word = token.token_type, token.text.upper()
    calls = after is not None and after.token_type is TokenType.L_PAREN
    if token.comments:
        raise _token_refusal(token, sql, "There is a comment beside '{}'", "Leave comments out.")
    if kind is not TokenType.STRING and unicodedata.normalize("NFKC", token.text).casefold().startswith("__sfumato"):
        raise _token_refusal(token, sql, "'{}' is a name of Sfumato's own", "Use a name that begins otherwise.")
    if kind in CLAUSES:
        if not clauses:
            raise _token_refusal(token, sql, "'{}' does not belong in an expression", "Leave it out.")
        if kind is TokenType.SELECT and before is not None and before.token_type not in SUBQUERY:
            raise _token_refusal(token, sql, "There is a second '{}'", HINTS["SELECT"])
        if kind is TokenType.UNION and (after is None or after.token_type is not TokenType.ALL):
            raise _token_refusal(token, sql, "'{}' drops duplicates, which may be two people's", "Use UNION ALL.")
    elif kind is TokenType.ALL and before is not None and before.token_type is TokenType.UNION:
        return
    elif kind is TokenType.NUMBER and not NUMBER.fullmatch(token.text):
        raise _token_refusal(token, sql, "'{}' is not a number", "Write it as 12, 1.5 or 1e6.")
    elif kind is TokenType.IDENTIFIER and calls:
        raise _function_refusal(token, sql)
    elif kind in WORDS or kind in SIGNS or (kind in MOMENTS and _is_text(after)):
        return
    elif kind in DuckDB.Parser.ID_VAR_TOKENS and NAME.fullmatch(token.text):
        if word in HINTS:
            hint = f'{HINTS[word]} A column of that name goes in double quotes: "{token.text}".'
            raise _token_refusal(token, sql, "'{}' is not supported", hint)
        within = word == "GROUP" and before is not None and before.text.upper() == "WITHIN"
        if calls and word not in FUNCTIONS and not within:
            raise _function_refusal(token, sql)
        token.token_type = TokenType.VAR
    else:
        raise _token_refusal(token, sql, "'{}' is not supported", HINTS.get(word, ALLOWED))


def _is_text(token: Token | None) -> bool:
    return token is not None and token.token_type is TokenType.STRING


def _shorten(token: Token) -> str:
    return token.text if len(token.text) <= 40 else token.text[:40] + "..."


def _token_refusal(token: Token, sql: str, what: str, hint: str) -> UnsupportedSyntax:
    return UnsupportedSyntax("syntax", f"{what.format(_shorten(token))}{locate_offset(sql, token.start)}.", hint)


def _function_refusal(token: Token, sql: str) -> UnknownName:
    name = token.text.upper()
    close = difflib.get_close_matches(name, FUNCTIONS, 1)
    hint = FUNCTION_HINTS.get(name) or (f"Did you mean {close[0]}?" if close else "")
    message = f"There is no function '{_shorten(token)}'{locate_offset(sql, token.start)}."
    return UnknownName("unknown-name", message, f"{hint} Functions: {', '.join(FUNCTIONS)}.".strip())
