"""Faults of reading, counts tables, public joins and bundles: a replay or an audit finds each of them."""

import re

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.ingest import count_survey, count_tables, csv_files, parsing, pinned_rows, public, table_reading, unit_rows
from sfumato.ingest.hidden_names import UNIT
from sfumato.kernel import bundle
from sfumato.kernel.neighbours import Neighbours
from sfumato.lab.auditing import pair_maker
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.query_audit import audit_pairs
from sfumato.lab.auditing.query_replay import NOT_SEARCHED, ReplayResult, replay_pairs
from sfumato.lab.auditing.question_pairs import make_pairs

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(0, 500),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "seen": sf.DateTime("2024-01-01T00:00:00", "2024-12-31T00:00:00"),
    "site": sf.Integer(1, 1000),
}
SITES = Table("sites", None, None, {"id": sf.Integer(1, 1000), "fee": sf.Real(0, 10)}, public=True)
PEOPLE = Dataset("d", [Table("t", None, "person", COLUMNS, 2, 2), SITES], sf.Budget(epsilon=3, delta="1e-6"))
ROWS = Dataset("d", [Table("t", None, sf.ROW, {"cost": COLUMNS["cost"]})], sf.Budget(epsilon=3))
COUNTS = Dataset(
    "d",
    [Table("t", None, sf.ROW, {"city": COLUMNS["city"], "n": sf.Integer(0, 50)}, count_column="n")],
    sf.Budget(epsilon=3),
)
COUNT = "SELECT COUNT(*) AS n FROM t"
TOTAL = "SELECT SUM(cost) AS s FROM t"
EARLY = "SELECT COUNT(*) AS n FROM t WHERE seen < TIMESTAMP '2024-06-01 12:00:00'"
FEES = "SELECT SUM(s.fee) AS f FROM t JOIN sites s ON t.site = s.id"
OF_COUNTS = "SELECT SUM(n) AS n FROM t"


def list_named(dataset, sql, folder, *words):
    stage = set_stage(dataset, sql)
    pairs = [pair for pair in make_pairs(stage, folder, 0, 1) if any(word in pair.name for word in words)]
    assert pairs
    return stage, pairs


def replay_named(dataset, sql, folder, *words):
    stage, pairs = list_named(dataset, sql, folder, *words)
    return ReplayResult(sql, "duckdb", tuple(replay_pairs(stage, sql, pairs, Setting())))


def keep_spellings(monkeypatch):
    """Two spellings of an id are two people."""
    monkeypatch.setattr(unit_rows, "merge_spellings", lambda found: found)


def count_nobody(monkeypatch):
    """Rows without an id are counted, and the load's own check does not count them."""
    select = pinned_rows._select_rows

    def select_wrongly(*parts, **options):
        return select(*parts, **options).replace(f' WHERE typed."{UNIT}" IS NOT NULL', "")

    monkeypatch.setattr(pinned_rows, "_select_rows", select_wrongly)
    monkeypatch.setattr(table_reading, "find_lost_rows", lambda *_: None)


def shift_moments(monkeypatch):
    """Moments of typed columns are read in another time zone than texts."""
    write = parsing.write_moment
    monkeypatch.setattr(parsing, "write_moment", lambda *parts: f"({write(*parts)} + INTERVAL 1 HOUR)")


def shorten_numbers(monkeypatch):
    """Numbers in texts lose digits."""
    parse = parsing._parse_number

    def parse_wrongly(column, kind, reading):
        found = parse(column, kind, reading)
        return found.replace("AS DOUBLE)", "AS FLOAT)") if kind == "VARCHAR" else found

    monkeypatch.setattr(parsing, "_parse_number", parse_wrongly)


def skip_another_line(monkeypatch):
    """A malformed line takes the last line with it."""
    copy = csv_files.copy_well_formed_lines

    def copy_wrongly(path, begin, dialect, to):
        malformed = copy(path, begin, dialect, to)
        to.write_bytes(b"".join(to.read_bytes().splitlines(keepends=True)[:-1]))
        return malformed

    monkeypatch.setattr(csv_files, "copy_well_formed_lines", copy_wrongly)


def raise_largest_counts(monkeypatch):
    """A count at its bound becomes two people more."""
    select = count_tables.select_counted

    def select_wrongly(table, source):
        wrong = r"CASE WHEN \1 >= \2 THEN \2 + 2 ELSE \1 END AS BIGINT"
        return re.sub(r"LEAST\((\S+), (\S+)\) AS BIGINT", wrong, select(table, source))

    for module in (count_tables, count_survey):
        monkeypatch.setattr(module, "select_counted", select_wrongly)


def forget_multiplicities(monkeypatch):
    """A private row meets one public row at most, says the description of the public table."""
    read = public.read_multiplicities
    monkeypatch.setattr(public, "read_multiplicities", lambda *parts: tuple((name, 1) for name, _ in read(*parts)))


FAULTS = [
    (PEOPLE, COUNT, keep_spellings, ("spellings",)),
    (PEOPLE, COUNT, count_nobody, ("rows without an id",)),
    (PEOPLE, EARLY, shift_moments, ("same literals",)),
    (ROWS, TOTAL, shorten_numbers, ("same records",)),
    (PEOPLE, COUNT, skip_another_line, ("malformed",)),
    (COUNTS, OF_COUNTS, raise_largest_counts, ("a count of 49",)),
    (PEOPLE, FEES, forget_multiplicities, ("_per_unit + 1 rows",)),
]


@pytest.mark.parametrize(
    ("dataset", "sql", "fault", "words"), FAULTS, ids=[fault.__name__ for _, _, fault, _ in FAULTS]
)
def test_a_replay_finds_faults_of_reading(dataset, sql, fault, words, monkeypatch, tmp_path):
    assert replay_named(dataset, sql, tmp_path, *words).verdict == "consistent"
    fault(monkeypatch)
    found = replay_named(dataset, sql, tmp_path, *words)
    assert found.verdict == "violated"
    assert NOT_SEARCHED in str(found)


def test_an_audit_finds_a_bundle_that_is_charged_too_little(monkeypatch, tmp_path):
    stage, pairs = list_named(PEOPLE, COUNT, tmp_path, "highest values, city 1")
    assert audit_pairs(stage, COUNT, pairs, Setting(), 200, 1).complete_faults == ()
    monkeypatch.setattr(bundle, "reduce", lambda _, losses: losses[0])
    found = audit_pairs(stage, COUNT, pairs, Setting(), 200, 1)
    assert any("charge of all releases" in fault for fault in found.complete_faults)
    assert NOT_SEARCHED in str(found)


def test_an_empty_text_is_not_compared_with_an_empty_field(monkeypatch, tmp_path):
    """An empty field of a CSV file is NULL. Also the person whom replace-one adds must have no empty text."""
    monkeypatch.setattr(pair_maker, "WORDS", ("",))
    table = Table("t", None, sf.ROW, {"word": sf.Text()}, 1, 1, rows=6)
    dataset = Dataset("d", [table], sf.Budget(epsilon=3, delta="1e-6"), neighbours=Neighbours.REPLACE_ONE)
    found = replay_named(dataset, "SELECT word, COUNT(*) AS n FROM t GROUP BY word", tmp_path, "CSV file")
    assert found.verdict == "consistent"
