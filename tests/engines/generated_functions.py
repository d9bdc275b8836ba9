"""Random questions that nest every row-level function, from a seed: the analyst's SQL, and plain DuckDB's for the same.

Roots, logarithms and exponentials stand outermost only: their last bit may differ from plain DuckDB's, and a floor or a
comparison would make a whole step of it.
"""

from collections.abc import Iterator
from random import Random

from generated_questions import Question

Both = tuple[str, str]  # the analyst's text, and plain DuckDB's
TABLES = {
    "patients": {"whole": "age", "real": "income", "text": "job", "listed": "city", "truth": "smoker", "day": "born"},
    "visits": {"whole": "site", "real": "cost", "text": "kind", "listed": "kind", "truth": "urgent", "day": "day"},
}
BUCKETS = "CASE WHEN {0} < 0 THEN 0 WHEN {0} >= 100 THEN 11 ELSE FLOOR({0} / 10) + 1 END"


def same(text: str, *parts: Both) -> Both:
    """The same form in both systems."""
    return text.format(*(one for one, _ in parts)), text.format(*(two for _, two in parts))


def other(text: str, plain: str, *parts: Both) -> Both:
    """A form that plain DuckDB writes in another way."""
    return text.format(*(one for one, _ in parts)), plain.format(*(two for _, two in parts))


class Functions:
    """Random expressions over one table, of each type."""

    def __init__(self, random: Random, table: str) -> None:
        self.random, self.table = random, table
        self.columns = {kind: (name, name) for kind, name in TABLES[table].items()}

    def pick(self, *forms: Both) -> Both:
        return self.random.choice(forms)

    def number(self, depth: int) -> Both:
        """A number with bounds."""
        if depth == 0:
            return self.pick(self.columns["whole"], self.columns["real"], ("3", "3"), ("2.25", "2.25"))
        one, two, truth = self.number(depth - 1), self.number(depth - 1), self.truth(depth - 1)
        text, day = self.text(depth - 1), self.day(depth - 1)
        positive = same("ABS({})", one)
        forms = [
            other("SAFE_ADD({}, {})", "({} + {})", one, two), other("SAFE_SUBTRACT({}, {})", "({} - {})", one, two),
            other("SAFE_MULTIPLY({}, 2)", "({} * 2)", one), other("SAFE_NEGATE({})", "(0 - {})", one),
            same("({} + PI())", one), other("DAY(TIMESTAMP({}))", "DAY({})", day),
            other("CHOOSE({}, 5, 7)", "CASE TRUNC({}) WHEN 1 THEN 5 WHEN 2 THEN 7 END", one),
            same("({} + {})", one, two), same("({} - {})", one, two), same("({} * 2)", one), same("({} / 4)", one),
            same("ABS({})", one), same("FLOOR({})", one), same("CEIL({})", one), same("CEILING({})", one),
            same("ROUND({})", one), same("ROUND({}, 1)", one), same("TRUNC({})", one),
            other("TRUNCATE({})", "TRUNC({})", one), same("SIGN({})", one), other("SQUARE({})", "({0} * {0})", one),
            same("POWER({}, 2)", one), same("POW({}, 2)", one), same("LEAST({}, {})", one, two),
            same("GREATEST({}, {}, 1)", one, two), same("MOD({}, 7)", positive), same("({} % 5)", positive),
            other("({} // 3)", "FLOOR({} / 3)", positive), other("DIV({}, 3)", "FLOOR({} / 3)", positive),
            other("WIDTH_BUCKET({0}, 0, 100, 10)", BUCKETS, self.columns["whole"]),
            same("COALESCE({}, {})", one, two), same("IFNULL({}, 1)", one), other("NVL({}, 1)", "IFNULL({}, 1)", one),
            other("NVL2({}, {}, 1)", "CASE WHEN {} IS NOT NULL THEN {} ELSE 1 END", one, two),
            same("NULLIF({}, 3)", one), other("IF({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END", truth, one, two),
            other("IFF({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END", truth, one, two),
            other("IIF({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END", truth, one, two),
            other("DECODE({}, 'Rome', 1, 'a', 2, 0)", "CASE {} WHEN 'Rome' THEN 1 WHEN 'a' THEN 2 ELSE 0 END",
                  self.columns["listed"]),
            same("CAST({} AS INTEGER)", one), same("TRY_CAST({} AS INTEGER)", one),
            other("SAFE_CAST({} AS INTEGER)", "TRY_CAST({} AS INTEGER)", one), same("CAST({} AS INTEGER)", truth),
            same("LEAST(LENGTH({}), 9)", text), same("LEAST(LEN({}), 9)", text),
            other("LEAST(CHAR_LENGTH({}), 9)", "LEAST(LENGTH({}), 9)", text),
            other("LEAST(CHARACTER_LENGTH({}), 9)", "LEAST(LENGTH({}), 9)", text),
            same("LEAST(STRPOS({}, 'i'), 9)", text), same("LEAST(INSTR({}, 't'), 9)", text),
            same("LEAST(POSITION('h' IN {}), 9)", text), same("YEAR({})", day), same("QUARTER({})", day),
            same("MONTH({})", day), same("WEEK({})", day), same("DAY({})", day), same("DAYOFMONTH({})", day),
            same("DAYOFWEEK({})", day), same("DAYOFYEAR({})", day), same("ISODOW({})", day),
            same("EXTRACT(dow FROM {})", day), same("DATE_PART('month', {})", day),
            same("DATE_DIFF('day', {}, DATE '2011-01-01')", day), same("DATEDIFF('month', {}, DATE '2011-01-01')", day),
            other("EXTRACT(year FROM AGE(DATE '2030-01-01', {0}))", "DATE_SUB('year', {0}, DATE '2030-01-01')", day),
            other("TIMESTAMPDIFF(YEAR, {0}, DATE '2030-01-01')", "DATE_SUB('year', {0}, DATE '2030-01-01')", day),
            other("TIMESTAMPDIFF(WEEK, {0}, DATE '2011-01-01')", "DATE_SUB('week', {0}, DATE '2011-01-01')", day),
        ]  # fmt: skip
        if self.table == "visits":
            forms += [("HOUR(seen)", "HOUR(seen)"), ("MINUTE(seen)", "MINUTE(seen)")] * 3
        return self.pick(*forms)

    def smooth(self, depth: int) -> Both:
        """A number whose last bit may differ."""
        one = self.number(depth)
        positive = same("ABS({})", one)
        return self.pick(
            one, same("SQRT({})", positive), same("LN({} + 1)", positive), same("LOG10({} + 1)", positive),
            same("LOG2({} + 1)", positive), same("LOG({} + 1)", positive), same("EXP(LEAST({}, 3))", one),
        )  # fmt: skip

    def text(self, depth: int) -> Both:
        if depth == 0:
            return self.pick(self.columns["text"], self.columns["listed"], ("'smith'", "'smith'"))
        one, two, day = self.text(depth - 1), self.text(depth - 1), self.day(depth - 1)
        month = "STRFTIME({}, '%Y-%m')"
        return self.pick(
            same("UPPER({})", one), other("UCASE({})", "UPPER({})", one), same("LOWER({})", one),
            other("LCASE({})", "LOWER({})", one), same("TRIM({})", one), same("LTRIM({})", one), same("RTRIM({})", one),
            other("BTRIM({})", "TRIM({})", one), same("SUBSTR({}, 2, 3)", one), same("SUBSTRING({}, 1, 2)", one),
            same("LEFT({}, 2)", one), same("RIGHT({}, 2)", one), same("CONCAT({}, '-', {})", one, two),
            same("({} || {})", one, two), same("REPLACE({}, 'i', 'y')", one), same("SPLIT_PART({}, 'i', 2)", one),
            same("SPLIT_PART({}, 't', -1)", one), other("SUBSTRING_INDEX({}, 'i', 1)", "SPLIT_PART({}, 'i', 1)", one),
            same("LPAD({}, 4, '*')", one),
            same("RPAD({}, 3, '*')", one), same("COALESCE({}, '?')", one), same("NULLIF({}, 'a')", one),
            same(month, day), other("TO_CHAR({}, 'YYYY-MM')", month, day),
            other("DATE_FORMAT({}, '%Y-%m')", month, day),
            other("FORMAT_DATE('%Y-%m', {})", month, day), same("DAYNAME({})", day), same("MONTHNAME({})", day),
        )  # fmt: skip

    def day(self, depth: int) -> Both:
        if depth == 0:
            return self.columns["day"]
        one = self.day(depth - 1)
        return self.pick(
            other("DATE_TRUNC('month', {})", "CAST(DATE_TRUNC('month', {}) AS DATE)", one),
            other("DATETRUNC('week', {})", "CAST(DATE_TRUNC('week', {}) AS DATE)", one),
            other("({} + INTERVAL 40 DAY)", "CAST({} + INTERVAL 40 DAY AS DATE)", one),
            other("DATE_ADD({}, INTERVAL 3 DAY)", "CAST({} + INTERVAL 3 DAY AS DATE)", one),
            other("DATE_SUB({}, INTERVAL 2 MONTH)", "CAST({} - INTERVAL 2 MONTH AS DATE)", one),
            other("DATEADD(day, 7, {})", "CAST({} + INTERVAL 7 DAY AS DATE)", one),
            same("LAST_DAY({})", one), same("CAST({} AS DATE)", one), other("DATE({})", "CAST({} AS DATE)", one),
        )  # fmt: skip

    def truth(self, depth: int) -> Both:
        if depth == 0:
            return self.pick(self.columns["truth"], same("{} > 2", self.columns["whole"]))
        one, two = self.truth(depth - 1), self.truth(depth - 1)
        number, text, day = self.number(depth - 1), self.text(depth - 1), self.day(depth - 1)
        column = self.columns["text"]
        return self.pick(
            same("{} > 3", number), same("{} <= {}", number, self.number(depth - 1)), same("{} = 'smith'", text),
            same("{} LIKE 's%'", text), same("{} ILIKE '%I%'", text), same("STARTS_WITH({}, 's')", text),
            other("STARTSWITH({}, 's')", "STARTS_WITH({}, 's')", text), same("PREFIX({}, 's')", text),
            same("ENDS_WITH({}, 'h')", text), other("ENDSWITH({}, 'h')", "ENDS_WITH({}, 'h')", text),
            same("SUFFIX({}, 'h')", text), same("CONTAINS({}, 'mi')", text),
            same("REGEXP_MATCHES({}, '^(a|b|smith)$')", column), same("REGEXP_FULL_MATCH({}, 'a|b')", column),
            other("REGEXP_LIKE({}, '^sm')", "STARTS_WITH({}, 'sm')", column),
            other("REGEXP_CONTAINS({}, 'mit')", "CONTAINS({}, 'mit')", column),
            same("{} > DATE '1980-06-15'", day), same("{} > MAKE_DATE(1990, 5, 17)", day),
            other("{} < DATE_FROM_PARTS(2000, 1, 1)", "{} < MAKE_DATE(2000, 1, 1)", day),
            other("{} > TO_DATE('1985-01-01')", "{} > DATE '1985-01-01'", day),
            same("{} IS NULL", number), same("{} IS NOT NULL", text), same("{} IN (1, 2, 3)", number),
            same("{} BETWEEN 1 AND 4", number), same("NOT ({})", one), same("({} AND {})", one, two),
            same("({} OR {})", one, two), same("{} IS DISTINCT FROM {}", number, self.number(depth - 1)),
        )  # fmt: skip


def function_questions(seed: int) -> Iterator[Question]:
    """An endless sequence of questions: sums, conditions, and groups."""
    random = Random(seed)
    while True:
        table = random.choice(list(TABLES))
        say = Functions(random, table)
        value, condition = say.smooth(random.choice((1, 2, 2))), say.truth(random.choice((1, 2, 2)))
        sums = same("SELECT SUM({0}) AS a0, COUNT({0}) AS a1, AVG({0}) AS a2", value)
        where = same(f" FROM {table} WHERE {{}}", condition)
        text, plain = (one + two for one, two in zip(sums, where, strict=True))
        if random.random() < 0.3:
            key = random.choice((say.text(1), same("LEAST(GREATEST(FLOOR({}), 0), 9)", say.number(1))))
            begin = same("SELECT {} AS k0, COUNT(*) AS a0", key)
            text, plain = (one + two + " GROUP BY 1" for one, two in zip(begin, where, strict=True))
        yield Question(text, plain)
