"""Neighbours as files and frames: one person's records change nobody else's pinned rows, whatever they hold.

D and D' differ in one person's records. Both are loaded from a file or a frame, whose dtypes are those that pandas or
polars infers for D and for D'. A load that is refused releases nothing. Otherwise everybody else's pinned rows are
equal in every column, and no aggregate moves by more than is certified.
"""

import csv
import io
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from by_cell import list_by_cell
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from plain_ids import id_text

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.text_format import TextFormat
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError
from sfumato.ingest import frames
from sfumato.kernel.certify import certify
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {
    "who": sf.Id(), "n": sf.Integer(0, 9), "x": sf.Real(0, 10), "flag": sf.Boolean(),
    "code": sf.Category([1, 2]), "city": sf.Category(["1", "Rome", "true"]), "day": sf.Date("2000-01-01", "2030-12-31"),
    "seen": sf.DateTime("2000-01-01T00:00:00", "2030-12-31T00:00:00"), "note": sf.Text(),
}  # fmt: skip
QUESTIONS = [
    "SELECT COUNT(*) AS n, SUM(n) AS s, SUM(x) AS t FROM t",
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city",
    "SELECT code, flag, COUNT(*) AS n FROM t WHERE day > DATE '2010-01-01' GROUP BY code, flag",
    "SELECT COUNT(DISTINCT who) AS people, COUNT(note) AS c FROM t WHERE seen < TIMESTAMP '2020-01-01 00:00:00'",
]
ROME = timezone(timedelta(hours=2))
NAMES = list(COLUMNS)


def table(**keys):
    return Table("t", None, "who", COLUMNS, 2, 1, reading=TextFormat(**keys))


def pinned(data, declared):
    """The pinned rows by person, and what each question measures; None for a load that is refused."""
    engine = None
    with suppress(CatalogError):
        engine = DuckDBEngine.of_data(declared, data)
    if engine is None:
        return None
    try:
        names = [row[0] for row in engine._connection.execute("DESCRIBE t").fetchall()]
        rows = engine._connection.execute("SELECT * FROM t").fetchall()
        whose = names.index("__sfumato_unit")
        by_person = {}
        for row in rows:
            by_person.setdefault(str(row[whose]), []).append(tuple(map(str, row[:whose] + row[whose + 1 :])))
        return {who: sorted(mine) for who, mine in by_person.items()}, [
            list_by_cell(engine.aggregate(plan), plan) for plan in PLANS
        ]
    finally:
        engine.close()


def planned(question):
    dataset = Dataset("d", [table()], sf.Budget(epsilon=9, delta=1e-6))
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan


PLANS = [planned(question) for question in QUESTIONS]


def compare(with_me, without_me, mine):
    """Other people's values are parsed the same, and no measurement changes by more than is certified."""
    if with_me is None or without_me is None:
        return
    (people, measured), (others, before) = with_me, without_me
    assert {who: rows for who, rows in people.items() if who not in mine} == others
    for plan, one, two in zip(PLANS, measured, before, strict=True):
        certified = {measurement.name: measurement for measurement in certify(plan).measurements}
        moved = {}
        for where in one.keys() | two.keys():
            moved[where[0]] = moved.get(where[0], 0) + abs(one.get(where, 0) - two.get(where, 0))
        for name, far in moved.items():
            assert far <= certified[name].sensitivity.l1 * len(mine), (name, far)


words = st.sampled_from(
    [
        "",
        "1",
        "1.0",
        "01",
        "Rome",
        "rome",
        "true",
        "True",
        "2020-05-05",
        "2020-05-05T01:00:00+02:00",
        "x",
        "nan",
        "7",
        "é",
    ]
)
anything = st.one_of(
    words, st.none(), st.booleans(), st.integers(-3, 12), st.floats(-1, 11), st.sampled_from([1.0, 2.0, 1.5, 7.0]),
    st.sampled_from([np.float32(0.1), Decimal("1.00"), Decimal("2.50"), np.int8(2), np.bool_(True), pd.NA]),
    st.just(float("nan")),
    st.sampled_from([date(2020, 5, 5), datetime(2020, 5, 5, 1), datetime(2020, 5, 5, 1, tzinfo=ROME)]),
    st.just(datetime(2020, 5, 5, 23, tzinfo=UTC)),
    st.sampled_from([pd.Timestamp("2020-05-05T01:00", tz="Europe/Rome"), pd.Timestamp("2020-05-05")]),
)  # fmt: skip
# the others hold values of one type in each column, as a clean frame does
clean = st.fixed_dictionaries(
    {
        "n": st.integers(0, 9), "x": st.sampled_from([0.5, 1.0, 2.25]), "flag": st.booleans(),
        "code": st.sampled_from([1, 2]), "city": st.sampled_from([1, 1.0]) | st.just("Rome"),
        "day": st.sampled_from([date(2020, 5, 5), date(2011, 1, 1)]),
        "seen": st.sampled_from([datetime(2019, 5, 5, 1, tzinfo=ROME), datetime(2020, 5, 5, 1, tzinfo=ROME)]),
        "note": st.sampled_from(["a", "b"]),
    }
)  # fmt: skip
mine = st.fixed_dictionaries(dict.fromkeys(NAMES[1:], anything))
ids = st.sampled_from([7, 7.0, "7", "007", Decimal("7.00"), np.float32(7), " 7"])


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    others=st.lists(st.tuples(st.integers(1, 3), clean), min_size=1, max_size=8),
    me=st.lists(st.tuples(ids, mine), min_size=1, max_size=3),
    library=st.sampled_from(["pandas", "polars", "object", "subclass"]),
    place=st.integers(0, 8),
)
@example(
    others=[
        (
            1,
            dict(
                zip(
                    NAMES[1:],
                    [1, 0.5, True, 1, 1.0, date(2020, 5, 5), datetime(2020, 5, 5, 1, tzinfo=ROME), "a"],
                    strict=True,
                )
            ),
        )
    ]
    * 3,
    me=[(7, dict.fromkeys(NAMES[1:]))],
    library="pandas",
    place=0,
)
@example(
    others=[
        (
            1,
            dict(
                zip(
                    NAMES[1:],
                    [1, 0.5, True, 1, 1.0, date(2020, 5, 5), datetime(2020, 5, 5, 1, tzinfo=ROME), "a"],
                    strict=True,
                )
            ),
        )
    ]
    * 3,
    me=[(7, dict.fromkeys(NAMES[1:], "word"))],
    library="pandas",
    place=0,
)
def test_one_persons_values_change_no_frame_for_others(others, me, library, place):
    rest = [{"who": who, **row} for who, row in others]
    both = [*rest[:place], *({"who": who, **row} for who, row in me), *rest[place:]]
    compare(pinned(framed(both, library), table()), pinned(framed(rest, library), table()), {"7"})


class Subclass(pd.DataFrame):
    """A subclass, as other libraries' frames are subclasses of pandas' frame."""


def framed(rows, library):
    if library == "subclass":
        return Subclass(rows, columns=NAMES)
    if library == "pandas":
        return pd.DataFrame(rows, columns=NAMES)
    if library == "object":
        return pd.DataFrame(rows, columns=NAMES, dtype=object)
    columns = {}
    for name in NAMES:
        values = [row[name] for row in rows]
        try:
            columns[name] = pl.Series(name, values)
        except (TypeError, pl.exceptions.PolarsError, OverflowError, ValueError):
            columns[name] = pl.Series(name, values, dtype=pl.Object)
    return pl.DataFrame(columns)


PIECES = ["1", "x", ",", ";", "\n", "\r\n", "\r", '"', '""', '\\"', "é", "\0", " ", "7,1\n", '"7","1"', "\u2028", "nan"]
raw = st.lists(st.sampled_from(PIECES), max_size=8).map("".join).map(str.encode) | st.binary(max_size=8)


def written(rows, delimiter, end, encoding):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerows(rows)
    return text.getvalue().encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16-le"])
@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    others=st.lists(
        st.tuples(st.sampled_from(["1", "2", "03"]), st.lists(words, min_size=8, max_size=8)), min_size=1, max_size=6
    ),
    my_bytes=raw | st.lists(words | st.text(max_size=3), min_size=8, max_size=8),
    delimiter=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
    quoted_newlines=st.sampled_from([None, True, False]),
    on_error=st.sampled_from(["refuse", "skip"]),
    place=st.integers(0, 6),
)
def test_one_persons_record_changes_no_file_for_others(
    tmp_path_factory, encoding, others, my_bytes, delimiter, end, quoted_newlines, on_error, place
):
    """A record of random bytes, on a line of its own; or of random fields."""
    rest = [written([[who, *fields]], delimiter, end, encoding) for who, fields in others]
    if isinstance(my_bytes, list):
        with suppress(UnicodeEncodeError):
            my_bytes = written([["7", *my_bytes]], delimiter, end, encoding)
    if isinstance(my_bytes, list):
        return
    if isinstance(my_bytes, bytes) and not my_bytes.endswith(end.encode(encoding)):
        my_bytes += end.encode(encoding)
    folder = tmp_path_factory.mktemp("n")
    head = written([NAMES], delimiter, end, encoding)
    (folder / "with.csv").write_bytes(head + b"".join([*rest[:place], my_bytes, *rest[place:]]))
    (folder / "without.csv").write_bytes(head + b"".join(rest))
    keys = {"encoding": encoding, "delimiter": delimiter, "quoted_newlines": quoted_newlines}
    declared = table(**keys, on_error=on_error if quoted_newlines is False else "refuse")
    with_me, without_me = pinned(folder / "with.csv", declared), pinned(folder / "without.csv", declared)
    mine = set() if with_me is None or without_me is None else appeared(with_me[0], without_me[0], my_bytes, encoding)
    compare(with_me, without_me, mine)


def appeared(people, others, my_bytes, encoding):
    """To whom the random bytes belong: to nobody, to several people, or to another person whose id they contain."""
    told = {id_text(word) for word in my_bytes.decode(encoding, "replace").replace('"', " ").replace("\n", " ").split()}
    new = {who for who in people if who not in others}
    changed = {who for who in people if who in others and people[who] != others[who]}
    named = {who for who in changed if any(who == named_id or (named_id or "").startswith(who) for named_id in told)}
    for who in named:  # the bytes contain this person's id, so they add rows of this person
        new.add(who)
        people.pop(who)
        others.pop(who)
    return new


def test_the_neighbours_see_a_dtype_that_is_read_in_its_own_way(monkeypatch):
    """Negative control: with Python's str(), one person's text changes how everybody's booleans are parsed."""
    monkeypatch.setattr(frames, "spell_value", lambda value, exact=False: None if value is None else str(value))
    rest = [
        {"who": 1, **dict.fromkeys(NAMES[1:]), "x": np.float32(0.1)},
        {"who": 2, **dict.fromkeys(NAMES[1:]), "n": True},
    ]
    with pytest.raises(AssertionError):
        compare(
            pinned(framed([*rest, {"who": 7, **dict.fromkeys(NAMES[1:], "word")}], "pandas"), table()),
            pinned(pd.DataFrame(rest, columns=NAMES).astype({"x": "float32", "n": "boolean"}), table()),
            {"7"},
        )


def test_the_neighbours_see_a_record_that_swallows_others(tmp_path, monkeypatch):
    """Negative control: with quoted_newlines = true, two unclosed quotes swallow other people's records."""
    rest = b"".join(written([[str(who), *["1"] * 7, "a"]], ",", "\n", "utf-8") for who in range(1, 6))
    head = written([NAMES], ",", "\n", "utf-8")
    (tmp_path / "with.csv").write_bytes(head + b'7,1,1,1,1,1,1,1,"x\n' + rest + b'8,1,1,1,1,1,1,1,x"\n')
    (tmp_path / "without.csv").write_bytes(head + rest + b"8,1,1,1,1,1,1,1,x\n")
    assert pinned(tmp_path / "with.csv", table()) is None
    vouched = table(quoted_newlines=True)
    with_me, without_me = pinned(tmp_path / "with.csv", vouched), pinned(tmp_path / "without.csv", vouched)
    assert with_me is not None
    with pytest.raises(AssertionError):
        compare(with_me, without_me, {"7"})
    (tmp_path / "with.csv").write_bytes(head + b'7,1,1,1,1,1,1,1,"x\n' + rest)
    assert pinned(tmp_path / "with.csv", vouched) is None
