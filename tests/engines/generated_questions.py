"""Random valid questions about the clinic of hostile_clinic.py, from a seed: the same ones in every run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

WHOLE, REAL, TRUTH, LISTED, TEXT, DATE, MOMENT, LINK = "whole", "real", "truth", "listed", "text", "date", "moment", "link"
COLUMNS = {
    "patients": {"age": WHOLE, "income": REAL, "city": LISTED, "smoker": TRUTH, "job": TEXT, "born": DATE},
    "visits": {
        "visit_id": LINK, "cost": REAL, "site": WHOLE, "kind": TEXT, "day": DATE, "urgent": TRUTH, "seen": MOMENT,
    },
    "tests": {"visit_id": LINK, "level": REAL, "grade": WHOLE, "note": TEXT},
    "polls": {"score": WHOLE, "site": WHOLE, "answer": LISTED, "weight": REAL},
    "sites": {"site": WHOLE, "region": LISTED, "beds": REAL, "opened": DATE},
}  # fmt: skip
OF_PEOPLE = ("patients", "visits", "tests")
NUMBERS = (WHOLE, REAL)
LITERALS = {
    WHOLE: ("0", "1", "2", "3", "40", "-7"),
    REAL: ("0", "0.5", "3", "-2.25", "1e-3", "12.7"),
    LISTED: ("'Rome'", "'O''slo'", "'n'", "'yes'", "'Bern'", "''"),
    TEXT: ("'smith'", "'priest'", "''", "'ß:a'", "'a'"),
    DATE: ("DATE '2024-02-29'", "DATE '1980-06-01'", "'2024-05-31'", "DATE '2100-01-01'"),
    MOMENT: ("TIMESTAMP '2024-03-31 01:30:00'", "'2024-01-01 00:00:00'", "DATE '2024-06-01'"),
    TRUTH: ("TRUE", "FALSE"),
}
STORED = ("income", "cost", "level", "weight", "beds")
PATTERNS = ("'s%'", "'%i%'", "'_'", "'%'", "'O''_%o'", "'.%'")


@dataclass(frozen=True)
class Question:
    """SQL as an analyst writes it, and the same without what other systems do not know or do after the release."""

    text: str
    plain: str


@dataclass(frozen=True)
class Rows:
    """What follows FROM, how its columns are written, and the parts of WITH that it needs."""

    text: str
    columns: tuple[tuple[str, str], ...]
    person: str | None
    parts: tuple[str, ...] = ()
    tables: int = 1  # private ones that meet in a row
    alone: bool = True  # one item of FROM, which may stand at the right of JOIN

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.columns if kind in kinds]


class Generator:
    """Writes questions. What it writes is nearly always accepted; a refusal is for the caller to leave out."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._names = count(1)

    def name(self) -> str:
        return f"q{next(self._names)}"

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, *several):
        return self.random.choice(several)

    def literal(self, kind: str) -> str:
        return self.random.choice(LITERALS[kind])

    # expressions over a row

    def number(self, rows: Rows, depth: int = 2) -> str:
        columns = rows.of(*NUMBERS)
        if not columns or self.chance(5):
            return self.literal(REAL)
        one = self.random.choice(columns)
        if depth == 0 or self.chance(30):
            return one
        inner = self.number(rows, depth - 1)
        dates = rows.of(DATE, MOMENT)
        forms = [
            f"{one} {self.pick('+', '-', '*')} {inner}",
            f"({inner} {self.pick('+', '-')} {self.literal(REAL)}) * {self.pick('0.1', '3', '-2')}",
            f"{inner} / (ABS({one}) + {self.pick('1', '0.5', '7')})",
            f"{one} / {self.pick('3', '-0.7', '1e3')}",
            f"-({inner})",
            f"{self.pick('ABS', 'FLOOR', 'CEIL')}({inner})",
            f"COALESCE({one}, {self.literal(WHOLE)})",
            f"CASE WHEN {self.truth(rows, depth - 1)} THEN {inner} WHEN {self.truth(rows, 0)} THEN {one} ELSE 2 END",
            f"CASE WHEN {self.truth(rows, depth - 1)} THEN {inner} END",
        ]
        if dates:
            day = self.random.choice(dates)
            forms += [
                f"EXTRACT({self.pick('month', 'year', 'day', 'week', 'dow', 'doy', 'quarter')} FROM {day})",
                f"DATE_DIFF('{self.pick('day', 'month', 'week', 'year')}', {day}, DATE '2024-03-01')",
            ]
        return self.random.choice(forms)

    def varying(self, rows: Rows) -> str:
        """A number that is not a constant."""
        if not rows.of(*NUMBERS):
            return f"CASE WHEN {self.truth(rows, 1)} THEN 1 ELSE 0.5 END"
        while True:
            made = self.number(rows)
            if any(name in made for name, _ in rows.columns):
                return made

    def truth(self, rows: Rows, depth: int = 2) -> str:
        if depth and self.chance(40):
            one, two = self.truth(rows, depth - 1), self.truth(rows, depth - 1)
            return self.pick(f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})")
        sign = self.pick("=", "<>", "<", "<=", ">", ">=")
        numbers = [
            f"{self.number(rows, max(depth - 1, 0))} {sign} {self.literal(REAL)}",
            f"{self.number(rows, 0)} {sign} {self.number(rows, 0)}",
            f"{self.number(rows, 0)} / {self.number(rows, 0)} {sign} {self.literal(REAL)}",
            f"{self.number(rows, 0)} BETWEEN {self.pick('-3', '0', '1.5')} AND {self.pick('2', '30.5')}",
            f"{self.number(rows, 0)} IN (1, 2, {self.literal(WHOLE)})",
        ]
        others = []
        for kind in (LISTED, TEXT):
            for column in rows.of(kind):
                others += [
                    f"{column} {self.pick('=', '<>', '<', '>=')} {self.literal(kind)}",
                    f"{column} {self.pick('', 'NOT ')}LIKE {self.random.choice(PATTERNS)}",
                    f"{column} IN ({self.literal(kind)}, {self.literal(kind)})",
                ]
        for kind in (DATE, MOMENT):
            for column in rows.of(kind):
                others += [f"{column} {sign} {self.literal(kind)}"]
        others += [f"{column} IS {self.pick('', 'NOT ')}NULL" for column, kind in rows.columns if kind != LINK]
        others += rows.of(TRUTH)
        return self.random.choice(numbers if not others or self.chance(40) else others)

    def where(self, rows: Rows, percent: int = 60) -> str:
        if not self.chance(percent):
            return ""
        return " WHERE " + " AND ".join(self.truth(rows) for _ in range(self.pick(1, 1, 2)))

    # sources

    def table(self, name: str) -> Rows:
        alias = self.name()
        columns = tuple((f"{alias}.{column}", kind) for column, kind in COLUMNS[name].items())
        person = f"{alias}.pid" if name in ("patients", "visits") else None
        return Rows(f"{name} {self.pick('', 'AS ')}{alias}", columns, person)

    def person_rows(self, depth: int) -> Rows:
        """Rows that belong to people, with as much nesting as is left."""
        if depth <= 0:
            return self.table(self.pick("patients", "visits", "visits", "tests"))
        return self.pick(
            lambda: self.table(self.pick(*OF_PEOPLE)),
            lambda: self.projected(self.person_rows(depth - 1)),
            lambda: self.projected(self.person_rows(depth - 1)),
            lambda: self.joined(depth - 1),
            lambda: self.joined(depth - 1),
            lambda: self.with_public(self.visits(depth - 1)),
            lambda: self.union(depth - 1),
            lambda: self.per_person(self.named(depth - 1)),
        )()

    def named(self, depth: int) -> Rows:
        """Rows whose person has a name here."""
        while True:
            rows = self.person_rows(depth)
            if rows.person is not None and rows.tables <= 2:
                return rows

    def visits(self, depth: int) -> Rows:
        rows = self.table("visits")
        return rows if depth <= 0 or self.chance(50) else self.projected(rows, everything=True)

    def item(self, select: str, rows: Rows, columns: dict[str, str], *, person: bool) -> Rows:
        """A SELECT as an item of FROM: in brackets, with WITH inside or without; or as a part of the outer WITH."""
        alias = self.name()
        made = Rows("", tuple((f"{alias}.{name}", kind) for name, kind in columns.items()),
                    f"{alias}.pid" if person else None, (), rows.tables)  # fmt: skip
        way = self.random.randrange(3)
        if way == 0:
            within = f"WITH {', '.join(rows.parts)} " if rows.parts else ""
            return replace(made, text=f"({within}{select}) {alias}")
        if way == 1:
            return replace(made, text=f"({select}) AS {alias}", parts=rows.parts)
        part = self.name()
        return replace(made, text=f"{part} {alias}", parts=(*rows.parts, f"{part} AS ({select})"))

    def projected(self, rows: Rows, *, everything: bool = False) -> Rows:
        """SELECT of columns and expressions, WHERE."""
        columns: dict[str, str] = {}
        shown = []
        if rows.person:
            shown.append(f"{rows.person} AS pid")
        for name, kind in rows.columns:
            bare = name.split(".")[-1]
            if bare not in columns and (everything or kind == LINK or self.chance(60)):
                columns[bare] = kind
                shown.append(name if self.chance(50) else f"{name} AS {bare}")
        for _ in range(self.random.randrange(3)):
            name, kind, text = self.computed(rows)
            columns[name] = kind
            shown.append(f"{text} AS {name}")
        if not columns:
            columns["one"] = REAL
            shown.append(f"{self.number(rows)} AS one")
        return self.item(f"SELECT {', '.join(shown)} FROM {rows.text}{self.where(rows, 50)}", rows, columns,
                         person=rows.person is not None)  # fmt: skip

    def computed(self, rows: Rows) -> tuple[str, str, str]:
        name, texts, dates = f"c{next(self._names)}", rows.of(TEXT, LISTED), rows.of(DATE)
        if texts and self.chance(25):
            return name, TEXT, f"COALESCE({self.random.choice(texts)}, 'none')"
        if dates and self.chance(25):
            return name, DATE, f"DATE_TRUNC('{self.pick('month', 'week', 'year')}', {self.random.choice(dates)})"
        if self.chance(20):
            return name, TRUTH, f"({self.truth(rows, 1)})"
        if self.chance(20):
            return name, LISTED, f"CASE WHEN {self.truth(rows, 1)} THEN 'n' WHEN {self.truth(rows, 0)} THEN 'Rome' END"
        return name, REAL, self.number(rows)

    def joined(self, depth: int) -> Rows:
        """Two sources about the same people; visits and tests also by the visit."""
        if self.chance(20):
            one, two = self.table("visits"), self.table("tests")
            if self.chance(30):
                one, two = two, one
            on = f"ON {one.of(LINK)[0]} = {two.of(LINK)[0]}"
            if self.chance(30):
                on = "USING (visit_id)"
        else:
            one, two = self.named(depth), self.named(depth)
            two = two if two.alone else self.projected(two)
            if self.chance(30):
                one = self.table(self.pick("patients", "visits"))
            if self.chance(40):
                two = self.per_person(self.named(depth - 1))
            on = f"ON {one.person} = {two.person}" if self.chance(70) else f"ON {two.person} = {one.person}"
            if self.chance(25):
                on = "USING (pid)"
        outer = self.chance(40)
        if on.startswith("ON") and self.chance(35):
            on += f" AND {self.truth(two if outer else self.beside(one, two), 1)}"
        if on.startswith("ON") and not outer and one.of(WHOLE) and two.of(WHOLE) and self.chance(15):
            on += f" AND {self.random.choice(one.of(WHOLE))} = {self.random.choice(two.of(WHOLE))}"
        word = self.pick("LEFT JOIN", "LEFT OUTER JOIN") if outer else self.pick("JOIN", "INNER JOIN")
        both = self.beside(one, two)
        return replace(both, text=f"{one.text} {word} {two.text} {on}")

    def beside(self, one: Rows, two: Rows) -> Rows:
        return Rows("", one.columns + two.columns, one.person or two.person, one.parts + two.parts,
                    one.tables + two.tables, alone=False)  # fmt: skip

    def with_public(self, rows: Rows) -> Rows:
        """Joined with the public table, by the site or, with more rows each, by nothing better than the region."""
        sites = self.table("sites")
        mine = next(name for name, _ in rows.columns if name.endswith(".site"))
        on = f"ON {mine} = {sites.columns[0][0]}" if self.chance(70) else "USING (site)"
        both = replace(self.beside(rows, sites), tables=rows.tables)
        if self.chance(20) and on.startswith("ON"):
            return replace(both, text=f"{sites.text} JOIN {rows.text} {on}")
        if self.chance(25) and on.startswith("ON"):
            on += f" AND {self.truth(sites, 0)}"
        return replace(both, text=f"{rows.text} {self.pick('JOIN', 'LEFT JOIN')} {sites.text} {on}")

    def union(self, depth: int) -> Rows:
        """UNION ALL of two or three SELECTs with columns of the same kinds."""
        sides = [self.named(depth) for _ in range(self.pick(2, 2, 3))]
        kinds = self.random.sample([REAL, REAL, TEXT, TRUTH, DATE], k=self.pick(1, 2, 3))
        columns = {f"c{next(self._names)}": kind for kind in kinds}
        selects = []
        for side in sides:
            shown = [f"{side.person} AS pid"]
            for name, kind in columns.items():
                there = side.of(kind, LISTED) if kind == TEXT else side.of(kind)
                other = self.number(side) if kind == REAL else "DATE '2024-02-29'" if kind == DATE else self.literal(kind)
                value = self.random.choice(there) if there and self.chance(70) else other
                shown.append(f"{value} AS {name}")
            selects.append(f"SELECT {', '.join(shown)} FROM {side.text}{self.where(side, 50)}")
        whole = Rows("", (), None, sum((side.parts for side in sides), ()), max(side.tables for side in sides))
        return self.item(" UNION ALL ".join(selects), whole, columns, person=True)

    def per_person(self, rows: Rows) -> Rows:
        """One row for each person, HAVING or not."""
        columns: dict[str, str] = {"n": WHOLE}
        shown = [f"{rows.person} AS pid", "COUNT(*) AS n"]
        for _ in range(self.pick(1, 2, 3)):
            name, function = f"c{next(self._names)}", self.pick("SUM", "AVG", "MIN", "MAX", "COUNT")
            columns[name] = REAL
            value = f"{function}({self.number(rows)})"
            if self.chance(20):
                value = f"{value} - {self.pick('MIN', 'AVG')}({self.number(rows, 1)})"
            elif self.chance(15):
                value = f"SUM(CASE WHEN {self.truth(rows, 1)} THEN 1 ELSE 0 END)"
            shown.append(f"{value} AS {name}")
        having = ""
        if self.chance(40):
            value = self.pick("COUNT(*)", f"SUM({self.number(rows, 1)})", f"MAX({self.number(rows, 0)})")
            having = f" HAVING {value} {self.pick('>', '<=', '<>')} {self.pick('1', '2', '0.5')}"
        group = self.pick(rows.person, "1")
        select = f"SELECT {', '.join(shown)} FROM {rows.text}{self.where(rows)} GROUP BY {group}{having}"
        return replace(self.item(select, rows, columns, person=True), tables=0)

    # the question itself

    def key(self, rows: Rows) -> str | None:
        whole, real, listed = rows.of(WHOLE), rows.of(REAL), rows.of(LISTED, TRUTH)
        dates, texts = rows.of(DATE), rows.of(TEXT)
        forms = [f"CASE WHEN {self.truth(rows, 1)} THEN 'x' WHEN {self.truth(rows, 0)} THEN 'y' ELSE 'z' END"]
        forms += [self.random.choice(listed)] * 3 if listed else []
        if whole:
            one = self.random.choice(whole)
            forms += [one, one, f"FLOOR({one} / 10)", f"COALESCE({one}, -1)", f"{one} * 2 - 1"]
        if real:
            one = self.random.choice(real)
            forms += [f"FLOOR({one} / 10)", f"CEIL({one} / 4)", f"CEIL(-{one})"]
            stored = [each for each in real if each.split(".")[-1] in STORED]  # a person's own are on a coarser grid
            forms += [f"FLOOR({each} * 1e6)" for each in stored[:1]]
        if dates:
            one = self.random.choice(dates)
            forms += [one, f"DATE_TRUNC('month', {one})", f"EXTRACT(dow FROM {one})", f"YEAR({one})"]
        if texts:
            one = self.random.choice(texts)
            forms += [one, one, one, f"COALESCE({one}, '?')", f"CASE WHEN {self.truth(rows, 0)} THEN {one} END"]
        forms += [f"DATE_TRUNC('month', {one})" for one in rows.of(MOMENT)]
        return self.random.choice(forms)

    def aggregate(self, rows: Rows) -> tuple[str, str]:
        """An aggregate, and how a system writes it that knows no TOP_K and takes no mean of truths."""
        number, values = self.varying(rows), rows.of(WHOLE, LISTED, TRUTH)
        column = self.random.choice([name for name, kind in rows.columns if kind != LINK] or ["1"])
        truth, fraction = self.truth(rows, 1), self.pick("0.5", "0.9", "0.25", "0.01")
        if self.chance(5):
            return f"AVG({truth})", f"AVG(CAST({truth} AS INTEGER))"
        if values and self.chance(6):
            return f"TOP_K({self.random.choice(values)}, 2)", "NULL"
        forms = ["COUNT(*)", "COUNT(*)", f"COUNT({column})", f"COUNT({number})", f"SUM({truth})", f"SUM({number})"]
        forms += [f"SUM({number})", f"AVG({number})", f"AVG({number})", f"VARIANCE({number})", f"STDDEV({number})"]
        forms += [f"{self.pick('MIN', 'MAX', 'MEDIAN')}({number})", f"QUANTILE_CONT({number}, {fraction})"]
        forms += [f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {number}{self.pick('', ' DESC')})"]
        forms += [f"COUNT(DISTINCT {rows.person})"] * 3 if rows.person else []
        forms += [f"MODE({self.random.choice(values)})"] * 2 if values else []
        chosen = self.random.choice(forms)
        return chosen, chosen

    def question(self, rows: Rows) -> Question:
        keys = list(dict.fromkeys(self.key(rows) for _ in range(self.pick(0, 0, 1, 1, 1, 2))))
        aggregates = [self.aggregate(rows) for _ in range(self.pick(1, 1, 2, 3))]
        grouped = ""
        if keys:
            named, numbers = [f"k{index}" for index in range(len(keys))], [str(index + 1) for index in range(len(keys))]
            grouped = f" GROUP BY {', '.join(self.pick(keys, named, numbers))}"
        within = f"WITH {', '.join(rows.parts)} " if rows.parts else ""
        after = self.pick("", "", " HAVING COUNT(*) > 2", " ORDER BY 1 LIMIT 3") if keys else ""
        whence = f" FROM {rows.text}{self.where(rows)}{grouped}"
        texts = []
        for way in (0, 1):
            shown = [f"{key} AS k{index}" for index, key in enumerate(keys)]
            shown += [f"{each[way]} AS a{index}" for index, each in enumerate(aggregates)]
            texts.append(f"{within}SELECT {', '.join(shown)}{whence}")
        return Question(texts[0] + after, texts[1])

    def any_rows(self) -> Rows:
        if self.chance(8):
            polls = self.table("polls")
            return polls if self.chance(40) else self.with_public(polls)
        return self.person_rows(self.pick(0, 1, 1, 2, 2, 3))


def questions(seed: int) -> Iterator[Question]:
    """Questions without end."""
    generator = Generator(seed)
    while True:
        yield generator.question(generator.any_rows())
