"""Random questions about the clinic of hostile_clinic.py, from a seed: the same ones in every run."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from generated_expressions import DATE, LISTED, MOMENT, REAL, TEXT, TRUTH, WHOLE, Expressions, Rows
from generated_sources import Sources, written_with

STORED = ("income", "cost", "level", "weight", "beds")
FRACTIONS = ("0.5", "0.9", "0.25", "0.01")


@dataclass(frozen=True)
class Question:
    """The SQL of an analyst, and plain SQL for the same aggregates without post-processing."""

    text: str
    plain: str


def questions(seed: int) -> Iterator[Question]:
    """An endless sequence of questions. Nearly all are accepted; the caller skips those that are refused."""
    say = Expressions(Random(seed))
    sources = Sources(say)
    while True:
        yield _question(say, sources.any_rows())


def _question(say: Expressions, rows: Rows) -> Question:
    keys = list(dict.fromkeys(_key(say, rows) for _ in range(say.pick(0, 0, 1, 1, 1, 2))))
    aggregates = [_aggregate(say, rows) for _ in range(say.pick(1, 1, 2, 3))]
    places = range(len(keys))
    grouped = say.pick(keys, [f"k{place}" for place in places], [str(place + 1) for place in places])
    clause = f" GROUP BY {', '.join(grouped)}" if keys else ""
    after = say.pick("", "", " HAVING COUNT(*) > 2", " ORDER BY 1 LIMIT 3") if keys else ""
    whence = f" FROM {rows.text}{say.where(rows)}{clause}"
    texts = []
    for way in (0, 1):
        shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        shown += [f"{aggregate[way]} AS a{place}" for place, aggregate in enumerate(aggregates)]
        texts.append(f"{written_with(rows.parts)}SELECT {', '.join(shown)}{whence}")
    return Question(texts[0] + after, texts[1])


def _key(say: Expressions, rows: Rows) -> str:
    """Group keys: declared values, values that follow from bounds, or undeclared texts and numbers."""
    forms = [f"CASE WHEN {say.truth(rows, 1)} THEN 'x' WHEN {say.truth(rows, 0)} THEN 'y' ELSE 'z' END"]
    forms += 2 * rows.of(LISTED, TRUTH)
    for one in rows.of(WHOLE)[:2]:
        forms += [one, one, f"FLOOR({one} / 10)", f"COALESCE({one}, -1)", f"{one} * 2 - 1"]
    for one in rows.of(REAL)[:2]:
        forms += [f"FLOOR({one} / 10)", f"CEIL({one} / 4)", f"CEIL(-{one})"]
        if one.split(".")[-1] in STORED:  # a person's own totals are on a grid: so far they are not plain SQL's
            forms.append(f"FLOOR({one} * 1e6)")
    for one in rows.of(DATE)[:2]:
        forms += [one, f"DATE_TRUNC('month', {one})", f"EXTRACT(dow FROM {one})", f"YEAR({one})"]
    for one in rows.of(TEXT)[:2]:
        forms += [one, one, one, f"COALESCE({one}, '?')", f"CASE WHEN {say.truth(rows, 0)} THEN {one} END"]
    forms += [f"DATE_TRUNC('month', {one})" for one in rows.of(MOMENT)]
    return say.pick(*forms)


def _aggregate(say: Expressions, rows: Rows) -> tuple[str, str]:
    """An aggregate, and its plain SQL for systems without TOP_K and without the mean of booleans."""
    number, truth, listed = say.varying(rows), say.truth(rows, 1), rows.of(WHOLE, LISTED, TRUTH)
    if say.chance(5):
        return f"AVG({truth})", f"AVG(CAST({truth} AS INTEGER))"
    if listed and say.chance(6):
        return f"TOP_K({say.pick(*listed)}, 2)", "NULL"
    forms = ["COUNT(*)", "COUNT(*)", f"COUNT({say.pick(*rows.values, '1')})", f"COUNT({number})", f"SUM({truth})"]
    forms += [f"SUM({number})"] * 2 + [f"AVG({number})"] * 2 + [f"VARIANCE({number})", f"STDDEV({number})"]
    forms += [f"{say.pick('MIN', 'MAX', 'MEDIAN')}({number})", f"QUANTILE_CONT({number}, {say.pick(*FRACTIONS)})"]
    order = f"ORDER BY {number}{say.pick('', ' DESC')}"
    forms += [f"PERCENTILE_CONT({say.pick(*FRACTIONS)}) WITHIN GROUP ({order})"]
    forms += [f"COUNT(DISTINCT {rows.person})"] * 3 if rows.person else []
    forms += [f"{say.pick('MIN', 'MAX', 'MEDIAN')}({say.pick(*days)})"] if (days := rows.of(DATE, MOMENT)) else []
    plain = rows.of(WHOLE, LISTED, TRUTH, TEXT, DATE, MOMENT)
    plain += [one for one in rows.of(REAL) if one.split(".")[-1] in STORED]  # a person's own totals are on a grid
    forms += [f"COUNT(DISTINCT {say.pick(*plain)})"] * 2 if plain else []
    forms += [f"{say.pick('SUM', 'AVG')}(DISTINCT {say.pick(*rows.of(WHOLE))})"] if rows.of(WHOLE) else []
    forms += [f"MODE({say.pick(*listed)})"] * 2 if listed else []
    chosen = say.pick(*forms)
    return chosen, chosen
