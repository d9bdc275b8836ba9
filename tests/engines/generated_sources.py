"""Random items of FROM: tables, subqueries, CTEs, joins, unions and rows per person."""

from dataclasses import replace
from itertools import count

from generated_expressions import DATE, LINK, LISTED, MOMENT, REAL, TEXT, TRUTH, WHOLE, Expressions, Rows

COLUMNS = {
    "patients": {"age": WHOLE, "income": REAL, "city": LISTED, "smoker": TRUTH, "job": TEXT, "born": DATE},
    "visits": {
        "visit_id": LINK, "cost": REAL, "site": WHOLE, "kind": TEXT, "day": DATE, "urgent": TRUTH, "seen": MOMENT,
    },
    "tests": {"visit_id": LINK, "level": REAL, "grade": WHOLE, "note": TEXT},
    "polls": {"score": WHOLE, "site": WHOLE, "answer": LISTED, "weight": REAL},
    "sites": {"site": WHOLE, "region": LISTED, "beds": REAL, "opened": DATE},
}  # fmt: skip
WITH_PERSON = ("patients", "visits")


class Sources:
    """Writes the FROM clause of a question. Names are never used twice."""

    def __init__(self, say: Expressions) -> None:
        self.say = say
        self._numbers = count(1)

    def any_rows(self) -> Rows:
        """A source for a question: rows that belong to people, and sometimes rows that are people."""
        if self.say.chance(8):
            polls = self.table("polls")
            return polls if self.say.chance(40) else self._with_public(polls)
        if self.say.chance(5):
            name = self.say.pick("patients", "visits", "tests")
            return Rows(name, tuple(COLUMNS[name].items()), "pid" if name in WITH_PERSON else None)
        return self.rows(self.say.pick(0, 1, 1, 2, 2, 3))

    def rows(self, depth: int) -> Rows:
        """Rows that belong to people, with at most this depth of nesting."""
        if depth <= 0:
            return self.table(self.say.pick("patients", "visits", "visits", "tests"))
        return self.say.pick(
            lambda: self.table(self.say.pick("patients", "visits", "tests")),
            lambda: self._projected(self.rows(depth - 1)),
            lambda: self._projected(self.rows(depth - 1)),
            lambda: self._joined(depth - 1),
            lambda: self._joined(depth - 1),
            lambda: self._with_public(self._visits(depth - 1)),
            lambda: self._union(depth - 1),
            lambda: self._per_person(self._named(depth - 1)),
        )()

    def table(self, name: str) -> Rows:
        alias = self._name()
        columns = tuple((f"{alias}.{column}", kind) for column, kind in COLUMNS[name].items())
        person = f"{alias}.pid" if name in WITH_PERSON else None
        return Rows(f"{name} {self.say.pick('', 'AS ')}{alias}", columns, person)

    def _name(self) -> str:
        return f"q{next(self._numbers)}"

    def _column(self) -> str:
        return f"c{next(self._numbers)}"

    def _named(self, depth: int) -> Rows:
        """Rows with a named column for the person, from so few tables that they can be joined again."""
        while True:
            rows = self.rows(depth)
            if rows.person is not None and rows.tables <= 2:
                return rows

    def _visits(self, depth: int) -> Rows:
        rows = self.table("visits")
        return rows if depth <= 0 or self.say.chance(50) else self._projected(rows, everything=True)

    def _item(self, select: str, rows: Rows, columns: dict[str, str], *, person: bool) -> Rows:
        """A SELECT as an item of FROM: in brackets, with WITH inside or outside; or as a part of WITH itself."""
        alias, way = self._name(), self.say.pick("inside", "outside", "part", *["inside"] * len(rows.parts))
        shown = tuple((f"{alias}.{name}", kind) for name, kind in columns.items())
        made = Rows("", shown, f"{alias}.pid" if person else None, (), rows.tables)
        if way == "inside":
            return replace(made, text=f"({written_with(rows.parts)}{select}) {alias}")
        if way == "outside":
            return replace(made, text=f"({select}) AS {alias}", parts=rows.parts)
        part = self._name()
        return replace(made, text=f"{part} {alias}", parts=(*rows.parts, f"{part} AS ({select})"))

    def _projected(self, rows: Rows, *, everything: bool = False) -> Rows:
        """SELECT of columns and expressions, WHERE."""
        columns: dict[str, str] = {}
        shown = [f"{rows.person} AS pid"] if rows.person else []
        star = rows.alone and self.say.chance(20)
        for name, kind in rows.columns:
            bare = name.split(".")[-1]
            if bare not in columns and (star or everything or kind == LINK or self.say.chance(60)):
                columns[bare] = kind
                shown.append(name if self.say.chance(50) else f"{name} AS {bare}")
        if star:
            shown = [self.say.pick("*", f"{rows.columns[0][0].split('.')[0]}.*")]
        for _ in range(self.say.pick(0, 1, 2) if columns else 1):
            name = self._column()
            columns[name], text = self._computed(rows)
            shown.append(f"{text} AS {name}")
        select = f"SELECT {', '.join(shown)} FROM {rows.text}{self.say.where(rows, 50)}"
        return self._item(select, rows, columns, person=rows.person is not None)

    def _computed(self, rows: Rows) -> tuple[str, str]:
        """An expression and its kind."""
        say, texts, dates = self.say, rows.of(TEXT, LISTED), rows.of(DATE)
        if texts and say.chance(25):
            return TEXT, f"COALESCE({say.pick(*texts)}, 'none')"
        if dates and say.chance(25):
            return DATE, f"DATE_TRUNC('{say.pick('month', 'week', 'year')}', {say.pick(*dates)})"
        if say.chance(20):
            return TRUTH, f"({say.truth(rows, 1)})"
        if say.chance(20):
            return LISTED, f"CASE WHEN {say.truth(rows, 1)} THEN 'n' WHEN {say.truth(rows, 0)} THEN 'Rome' END"
        return REAL, say.number(rows)

    def _joined(self, depth: int) -> Rows:
        """Two sources about the same people, by the person; or visits and tests, by the visit."""
        say, outer = self.say, self.say.chance(40)
        if say.chance(20):
            one, two = self.table("visits"), self.table("tests")
            one, two = (two, one) if say.chance(30) else (one, two)
            link, on = "visit_id", f"ON {one.of(LINK)[0]} = {two.of(LINK)[0]}"
        else:
            one = self.table(say.pick(*WITH_PERSON)) if say.chance(30) else self._named(depth)
            two = self._per_person(self._named(depth - 1)) if say.chance(40) else self._named(depth)
            two = two if two.alone else self._projected(two)
            link, on = "pid", say.pick(f"ON {one.person} = {two.person}", f"ON {two.person} = {one.person}")
        both = self._beside(one, two)
        if one.alone and say.chance(25):
            on = f"USING ({link})"
        elif say.chance(35):
            on += f" AND {say.truth(two if outer else both, 1)}"
        elif not outer and one.of(WHOLE) and two.of(WHOLE) and say.chance(25):
            on += f" AND {say.pick(*one.of(WHOLE))} = {say.pick(*two.of(WHOLE))}"
        word = say.pick("LEFT JOIN", "LEFT OUTER JOIN") if outer else say.pick("JOIN", "INNER JOIN")
        return replace(both, text=f"{one.text} {word} {two.text} {on}")

    def _beside(self, one: Rows, two: Rows) -> Rows:
        columns, parts = one.columns + two.columns, one.parts + two.parts
        return Rows("", columns, one.person or two.person, parts, one.tables + two.tables, alone=False)

    def _with_public(self, rows: Rows) -> Rows:
        """Joined with the public table, in which a site may stand twice."""
        say, sites = self.say, self.table("sites")
        mine = next(name for name, _ in rows.columns if name.endswith(".site"))
        on = say.pick("ON", "ON", "USING")
        both = replace(self._beside(rows, sites), tables=rows.tables)
        if on == "USING":
            return replace(both, text=f"{rows.text} {say.pick('JOIN', 'LEFT JOIN')} {sites.text} USING (site)")
        on = f"ON {mine} = {sites.columns[0][0]}"
        if say.chance(20):
            return replace(both, text=f"{sites.text} JOIN {rows.text} {on}")
        on += f" AND {say.truth(sites, 0)}" if say.chance(25) else ""
        return replace(both, text=f"{rows.text} {say.pick('JOIN', 'LEFT JOIN')} {sites.text} {on}")

    def _union(self, depth: int) -> Rows:
        """UNION ALL of two or three SELECTs with columns of the same kinds."""
        say, sides = self.say, [self._named(depth) for _ in range(self.say.pick(2, 2, 3))]
        kinds = say.random.sample([REAL, REAL, TEXT, TRUTH, DATE], k=say.pick(1, 2, 3))
        columns = {self._column(): kind for kind in kinds}
        selects = []
        for side in sides:
            shown = [f"{side.person} AS pid"]
            for name, kind in columns.items():
                there = side.of(kind, LISTED) if kind == TEXT else side.of(kind)
                literal = "DATE '2024-02-29'" if kind == DATE else say.literal(kind)
                other = say.number(side) if kind == REAL else literal
                shown.append(f"{say.pick(*there) if there and say.chance(70) else other} AS {name}")
            selects.append(f"SELECT {', '.join(shown)} FROM {side.text}{say.where(side, 50)}")
        parts = tuple(part for side in sides for part in side.parts)
        whole = Rows("", (), None, parts, max(side.tables for side in sides))
        return self._item(" UNION ALL ".join(selects), whole, columns, person=True)

    def _per_person(self, rows: Rows) -> Rows:
        """One row for each person, with HAVING or without."""
        say, columns = self.say, {"n": WHOLE}
        shown = [f"{rows.person} AS pid", "COUNT(*) AS n"]
        for _ in range(say.pick(1, 2, 3)):
            name, value = self._column(), f"{say.pick('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}({say.number(rows)})"
            if say.chance(20):
                value += f" - {say.pick('MIN', 'AVG')}({say.number(rows, 1)})"
            elif say.chance(15):
                value = f"SUM(CASE WHEN {say.truth(rows, 1)} THEN 1 ELSE 0 END)"
            columns[name] = REAL
            shown.append(f"{value} AS {name}")
        having = ""
        if say.chance(40):
            value = say.pick("COUNT(*)", f"SUM({say.number(rows, 1)})", f"MAX({say.number(rows, 0)})")
            having = f" HAVING {value} {say.pick('>', '<=', '<>')} {say.pick('1', '2', '0.5')}"
        select = f"SELECT {', '.join(shown)} FROM {rows.text}{say.where(rows)} GROUP BY {say.pick(rows.person, '1')}"
        return replace(self._item(select + having, rows, columns, person=True), tables=0)


def written_with(parts: tuple[str, ...]) -> str:
    """WITH and its parts, where there are any."""
    return f"WITH {', '.join(parts)} " if parts else ""
