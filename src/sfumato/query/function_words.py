"""Row-level functions in SQL text: their names, the types that CAST may name, and the shapes of their syntax."""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_TWO = ("this", "expression")
NUMBER_FUNCTIONS = (
    "ABS", "FLOOR", "CEIL", "CEILING", "ROUND", "TRUNC", "TRUNCATE", "SIGN", "LEAST", "GREATEST", "MOD", "DIV", "SQRT",
    "SQUARE", "LN", "LOG", "LOG10", "LOG2", "EXP", "POWER", "POW", "WIDTH_BUCKET", "HISTOGRAM",
    "PI", "SAFE_ADD", "SAFE_SUBTRACT", "SAFE_MULTIPLY", "SAFE_NEGATE",
)  # fmt: skip
TEXT_FUNCTIONS = (
    "UPPER", "UCASE", "LOWER", "LCASE", "TRIM", "LTRIM", "RTRIM", "BTRIM", "SUBSTR", "SUBSTRING", "LEFT", "RIGHT",
    "INITCAP", "LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH", "CONCAT", "REPLACE", "LPAD", "RPAD", "STARTS_WITH",
    "STARTSWITH", "PREFIX", "ENDS_WITH", "ENDSWITH", "SUFFIX", "CONTAINS", "STRPOS", "INSTR", "POSITION", "SPLIT_PART",
    "SUBSTRING_INDEX",
    "REGEXP_MATCHES", "REGEXP_LIKE", "REGEXP_FULL_MATCH", "REGEXP_CONTAINS",
)  # fmt: skip
DATE_FUNCTIONS = (
    "DATE_ADD", "DATE_SUB", "DATEADD", "DATEDIFF", "DATE_PART", "DATETRUNC", "MAKE_DATE", "DATE_FROM_PARTS", "LAST_DAY",
    "AGE", "STRFTIME", "TO_CHAR", "DATE_FORMAT", "FORMAT_DATE", "TO_DATE", "DATE", "DAYOFMONTH", "ISODOW",
    "DAYNAME", "MONTHNAME", "SECOND", "EPOCH", "UNIX_SECONDS", "TIMESTAMPDIFF", "TIMESTAMP",
)  # fmt: skip
CHOOSING_FUNCTIONS = ("COALESCE", "IFNULL", "NVL", "NVL2", "NULLIF", "IF", "IFF", "IIF", "DECODE", "CHOOSE")
CAST_FUNCTIONS = ("CAST", "TRY_CAST", "SAFE_CAST")
ROW_FUNCTIONS = (*NUMBER_FUNCTIONS, *TEXT_FUNCTIONS, *DATE_FUNCTIONS, *CHOOSING_FUNCTIONS, *CAST_FUNCTIONS)
MOST_ARGUMENTS = {  # the parser would silently drop what follows
    "LOG10": 1, "LOG2": 1, "STRFTIME": 2, "DATE_ADD": 2, "DATEDIFF": 3, "DATETRUNC": 2, "DATE": 1, "LAST_DAY": 1,
    "STRPOS": 2, "INSTR": 2, "LTRIM": 2, "RTRIM": 2, "TRIM": 2, "TO_CHAR": 2, "LEFT": 2, "RIGHT": 2, "MOD": 2,
    "SUBSTR": 3, "SUBSTRING": 3, "IF": 3, "IIF": 3, "REPLACE": 3, "LPAD": 3, "RPAD": 3, "WIDTH_BUCKET": 4,
    "MAKE_DATE": 3, "DATE_FROM_PARTS": 3, "LENGTH": 1, "LEN": 1, "CHAR_LENGTH": 1, "CHARACTER_LENGTH": 1, "NULLIF": 2,
    "ROUND": 2, "TRUNC": 2, "TRUNCATE": 2, "CONTAINS": 2, "IFNULL": 2, "NVL": 2, "LOG": 2, "FLOOR": 1, "CEIL": 1,
    "CEILING": 1, "ISODOW": 1, "DAYOFMONTH": 1, "SIGN": 1, "UPPER": 1, "UCASE": 1, "LOWER": 1, "LCASE": 1,
    "NVL2": 3, "INITCAP": 1, "DAYNAME": 1, "MONTHNAME": 1, "SECOND": 1, "EPOCH": 1, "UNIX_SECONDS": 1,
    "SPLIT_PART": 3, "SUBSTRING_INDEX": 3, "TIMESTAMPDIFF": 3, "TIMESTAMP": 1,
    "SAFE_ADD": 2, "SAFE_SUBTRACT": 2, "SAFE_MULTIPLY": 2, "SAFE_NEGATE": 1, "SIN": 1, "COS": 1, "TAN": 1,
    "ASIN": 1, "ACOS": 1, "ATAN": 1, "SINH": 1, "COSH": 1, "TANH": 1, "DEGREES": 1, "RADIANS": 1, "CBRT": 1,
    "REGEXP_MATCHES": 2, "REGEXP_LIKE": 2, "REGEXP_FULL_MATCH": 2, "REGEXP_CONTAINS": 2,
}  # fmt: skip
SIGNS = {  # of row-level expressions
    TokenType.MOD, TokenType.DIV, TokenType.DPIPE, TokenType.DCOLON, TokenType.ILIKE, TokenType.ESCAPE,
    TokenType.DSTAR, TokenType.CARET,
}  # fmt: skip
SHAPES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Least: ("this", "expressions", "ignore_nulls"), exp.Greatest: ("this", "expressions", "ignore_nulls"),
    exp.Mod: _TWO, exp.IntDiv: _TWO, exp.Pow: _TWO, exp.Trunc: ("this", "decimals"), exp.Sign: ("this",),
    exp.TryCast: ("this", "to", "safe"), exp.DataType: ("this", "expressions", "nested"), exp.DataTypeParam: ("this",),
    exp.WidthBucket: ("this", "min_value", "max_value", "num_buckets"), exp.Sqrt: ("this",), exp.Ln: ("this",),
    exp.Log: _TWO, exp.Exp: ("this",), exp.Nullif: _TWO, exp.If: ("this", "true", "false"), exp.Upper: ("this",),
    exp.Lower: ("this",), exp.Trim: ("this", "expression", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.Left: _TWO, exp.Right: _TWO, exp.Length: ("this",), exp.Concat: ("expressions", "safe", "coalesce"),
    exp.DPipe: ("this", "expression", "safe"), exp.ILike: (*_TWO, "negate"), exp.Escape: (*_TWO, "negate"),
    exp.StartsWith: _TWO, exp.EndsWith: _TWO, exp.Contains: _TWO, exp.Replace: ("this", "expression", "replacement"),
    exp.Pad: ("this", "expression", "fill_pattern", "is_left"), exp.StrPosition: ("this", "substr"),
    exp.SplitPart: ("this", "delimiter", "part_index"), exp.SubstringIndex: ("this", "delimiter", "count"),
    exp.Interval: ("this", "unit"), exp.DateAdd: _TWO, exp.DateFromParts: ("year", "month", "day"),
    exp.LastDay: ("this",), exp.TimeToStr: ("this", "format"), exp.ToChar: ("this", "format"), exp.Date: ("this",),
    exp.DayOfMonth: ("this",), exp.DayOfWeekIso: ("this",), exp.Coalesce: ("this", "expressions"),
}  # fmt: skip
NOT_REQUIRED = {exp.Log: {"this"}, exp.Trim: {"this"}, exp.Interval: {"this"}}  # a node -> what it must have


def read_word(token: Token, after: Token | None) -> bool:
    """Is the token the word INTERVAL of INTERVAL 3 DAY? DIV before a bracket becomes a name, as the parser needs it."""
    if token.token_type is TokenType.DIV and token.text.upper() == "DIV" and _is_kind(after, TokenType.L_PAREN):
        token.token_type = TokenType.VAR
    if len(token.text) != len("INTERVAL") or token.text.upper() != "INTERVAL":
        return False
    return any(
        _is_kind(after, kind) for kind in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.L_PAREN)
    )


def is_within_function(tokens: Sequence[Token], index: int) -> bool:
    """Is it the FROM or FOR of EXTRACT(year FROM d), SUBSTRING(x FROM 1 FOR 2) or TRIM(LEADING '0' FROM x)?"""
    depth = 0
    for place in range(index - 1, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0:
            return tokens[place - 1].text.upper() in ("EXTRACT", "SUBSTRING", "TRIM")
    return False


def _is_kind(token: Token | None, kind: TokenType) -> bool:
    return token is not None and token.token_type is kind
