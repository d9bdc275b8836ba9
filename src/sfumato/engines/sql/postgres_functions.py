"""Functions that PostgreSQL lacks, total for every value. Part of the trusted perimeter: claim K-26.

They are made in each session, in its own temporary schema: a database keeps nothing of them, and they are always those
of this version of Sfumato. Doubles are compared as exact whole numbers of 2**-1074, the smallest double.
"""

from functools import cache

from sfumato.row_meanings.text_meanings import lower_case, raise_case

FLOAT = "double precision"
OVERFLOW = (2**54 - 1) * 2**970  # from here on, a number is rounded to infinity
SCALE = 1_074
LAST_LETTER = 0x2_0000  # no character from here on has two cases


def _write(name: str, parameters: str, result: str, body: str, *, stable: bool = False) -> str:
    kind = "STABLE" if stable else "IMMUTABLE"
    return (
        f"CREATE FUNCTION pg_temp.sfumato_{name}({parameters}) RETURNS {result} LANGUAGE plpgsql {kind} STRICT "
        f"PARALLEL SAFE AS $body$ {body} $body$"
    )


def _write_plain(name: str, parameters: str, result: str, value: str, *, stable: bool = False) -> str:
    """A function of one expression, which PostgreSQL puts in its place."""
    kind = "STABLE" if stable else "IMMUTABLE"
    return (
        f"CREATE FUNCTION pg_temp.sfumato_{name}({parameters}) RETURNS {result} LANGUAGE sql {kind} PARALLEL SAFE "
        f"AS $body$ SELECT {value} $body$"
    )


def _write_arithmetic() -> list[str]:
    both = f"x {FLOAT}, y {FLOAT}"
    not_finite = "x = 'NaN' OR y = 'NaN' OR abs(x) = 'inf' OR abs(y) = 'inf'"
    infinite = f"CASE WHEN made > 0 THEN 'inf'::{FLOAT} ELSE '-inf'::{FLOAT} END"
    zero = f"CASE WHEN made > 0 THEN '0'::{FLOAT} ELSE '-0'::{FLOAT} END"
    usual = "abs({0}) BETWEEN 1e-150::double precision AND 1e150::double precision OR {0} = 0"
    return [
        _write(
            "exact", f"x {FLOAT}", "numeric",
            "DECLARE bits bigint := ('x' || encode(float8send(x), 'hex'))::bit(64)::bigint; "
            "exponent int := (bits >> 52) & 2047; digits numeric := bits & 4503599627370495; BEGIN "
            "IF exponent = 0 THEN exponent := 1; ELSE digits := digits + 4503599627370496; END IF; "
            "IF bits < 0 THEN digits := -digits; END IF; RETURN digits * power(2::numeric, exponent - 1); END",
        ),
        _write(
            "add", both, FLOAT,
            f"DECLARE made numeric; BEGIN IF abs(x) <= 8e307::{FLOAT} AND abs(y) <= 8e307::{FLOAT} THEN RETURN x + y; "
            f"END IF; IF {not_finite} THEN RETURN x + y; END IF; "
            f"made := pg_temp.sfumato_exact(x) + pg_temp.sfumato_exact(y); "
            f"IF abs(made) >= {OVERFLOW * 2**SCALE} THEN RETURN {infinite}; END IF; RETURN x + y; END",
        ),
        _write("subtract", both, FLOAT, "BEGIN RETURN pg_temp.sfumato_add(x, -y); END"),
        _write(
            "multiply", both, FLOAT,
            "DECLARE made numeric; BEGIN "
            f"IF ({usual.format('x')}) AND ({usual.format('y')}) THEN RETURN x * y; END IF; "
            f"IF {not_finite} OR x = 0 OR y = 0 THEN RETURN x * y; END IF; "
            f"made := pg_temp.sfumato_exact(x) * pg_temp.sfumato_exact(y); "
            f"IF abs(made) >= {OVERFLOW * 2 ** (2 * SCALE)} THEN RETURN {infinite}; END IF; "
            f"IF abs(made) <= {2 ** (SCALE - 1)} THEN RETURN {zero}; END IF; RETURN x * y; END",
        ),
        _write(
            "divide", both, FLOAT,
            "DECLARE made numeric; size numeric; BEGIN "
            f"IF y = 0 THEN RETURN NULL; END IF; "
            f"IF ({usual.format('x')}) AND ({usual.format('y')}) THEN RETURN x / y; END IF; "
            f"IF {not_finite} OR x = 0 THEN RETURN x / y; END IF; "
            "made := pg_temp.sfumato_exact(x); size := pg_temp.sfumato_exact(y); "
            "IF size < 0 THEN made := -made; size := -size; END IF; "
            f"IF abs(made) >= {OVERFLOW} * size THEN RETURN {infinite}; END IF; "
            f"IF abs(made) * {2 ** (SCALE + 1)} <= size THEN RETURN {zero}; END IF; RETURN x / y; END",
        ),
        _write(
            "remainder", both, FLOAT,
            "DECLARE step int; made numeric; BEGIN "
            "IF y = 0 THEN RETURN NULL; END IF; "
            f"IF x = 'NaN' OR y = 'NaN' OR abs(x) = 'inf' THEN RETURN 'NaN'; END IF; "
            "IF abs(x) < abs(y) THEN RETURN x; END IF; "
            "made := mod(pg_temp.sfumato_exact(x), pg_temp.sfumato_exact(y)); "
            "IF made = 0 THEN RETURN x * 0; END IF; "
            # the remainder is a whole number below 2**53 of the finer of both steps
            "step := least(pg_temp.sfumato_step(x), pg_temp.sfumato_step(y)); "
            f"RETURN div(made, power(2::numeric, step))::{FLOAT} * pg_temp.sfumato_two_to(step - {SCALE}); END",
        ),
        _write(
            "step", f"x {FLOAT}", "int",
            "BEGIN RETURN greatest((('x' || encode(float8send(x), 'hex'))::bit(64)::bigint >> 52) & 2047, 1) - 1; END",
        ),
        _write(
            "two_to", f"x {FLOAT}", FLOAT,
            f"BEGIN IF x = 'NaN' THEN RETURN x; END IF; IF x > 1023 THEN RETURN 'inf'; END IF; "
            f"IF x < -{SCALE} THEN RETURN 0; END IF; RETURN power(2::{FLOAT}, x); END",
        ),
        _write(
            "round", f"x {FLOAT}", FLOAT,
            "DECLARE whole double precision := trunc(x); BEGIN "
            "IF abs(x) < 4503599627370496 AND abs(x - whole) >= 0.5 THEN RETURN whole + sign(x); END IF; "
            "RETURN whole; END",
        ),
        _write(
            "whole", f"x {FLOAT}, bits int", "bigint",
            f"BEGIN IF round(x) >= -power(2::{FLOAT}, bits - 1) AND round(x) < power(2::{FLOAT}, bits - 1) "
            "THEN RETURN x::bigint; END IF; RETURN NULL; END",
        ),
    ]  # fmt: skip


def _write_texts() -> list[str]:
    plain = ("text", "boolean", "smallint", "integer", "bigint", "numeric")
    casts = [_write_plain("text", f"x {kind}", "text", "x" if kind == "text" else "x::text") for kind in plain]
    casts += [_write_plain("text", f"x {kind}", "text", "x::text", stable=True) for kind in ("date", "timestamp")]
    # as Python and DuckDB write doubles: 1.0, 1e+16, 1e-05, inf
    double = (
        "DECLARE made text; BEGIN IF x = 'NaN' THEN RETURN 'nan'; END IF; "
        "IF abs(x) = 'inf' THEN RETURN CASE WHEN x > 0 THEN 'inf' ELSE '-inf' END; END IF; "
        "IF abs(x) >= 1e16 OR (abs(x) < 1e-4 AND x <> 0) THEN RETURN x::text; END IF; "
        "IF x = 0 THEN RETURN CASE WHEN x::text = '-0' THEN '-0.0' ELSE '0.0' END; END IF; "
        "made := x::text::numeric::text; RETURN CASE WHEN x = floor(x) THEN made || '.0' ELSE made END; END"
    )
    day = (
        "DECLARE y int; m int; d int; most int; BEGIN "
        "IF x !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' THEN RETURN NULL; END IF; "
        "y := substr(x, 1, 4); m := substr(x, 6, 2); d := substr(x, 9, 2); "
        "most := CASE WHEN m = 2 THEN CASE WHEN y % 4 = 0 AND (y % 100 <> 0 OR y % 400 = 0) THEN 29 ELSE 28 END "
        "WHEN m IN (4, 6, 9, 11) THEN 30 ELSE 31 END; "
        "IF y < 1 OR m NOT BETWEEN 1 AND 12 OR d NOT BETWEEN 1 AND most THEN RETURN NULL; END IF; "
        "RETURN make_date(y, m, d); END"
    )
    cases = []
    for name, change in (("upper", raise_case), ("lower", lower_case)):
        letters = list_letters(name)
        before, after = "".join(letters), "".join(map(change, letters))
        body = (
            f'BEGIN IF octet_length(x) = char_length(x) THEN RETURN {name}(x COLLATE "C"); END IF; '
            f"RETURN translate(x, '{before}', '{after}'); END"
        )
        cases.append(_write(name, "x text", "text", body))
    return [*casts, _write("text", f"x {FLOAT}", "text", double), _write("day", "x text", "date", day), *cases]


@cache
def list_letters(name: str) -> tuple[str, ...]:
    """The characters that another letter takes the place of, the usual ones first."""
    change = raise_case if name == "upper" else lower_case
    points = (point for point in range(1, LAST_LETTER) if not 0xD800 <= point < 0xE000)
    return tuple(chr(point) for point in points if change(chr(point)) != chr(point))


def _write_dates() -> list[str]:
    moments = "x timestamp, y timestamp"
    month = "(extract(year FROM {0}) * 12 + extract(month FROM {0}))"
    return [
        _write_plain("months", moments, "bigint", f"({month.format('x')} - {month.format('y')})::bigint"),
        _write_plain("seconds", moments, "bigint", "extract(epoch FROM x - y)::bigint"),
    ]


@cache
def list_functions() -> tuple[str, ...]:
    """The statements that make the functions."""
    return (*_write_arithmetic(), *_write_texts(), *_write_dates())
