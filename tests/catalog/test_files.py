"""A written catalog.toml is read back unchanged, and a wrong one is refused with a clear message."""

import os
import re
import stat
import string
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_file import load_catalog, set_ledger_id, write_catalog
from sfumato.catalog.columns import MOST_BOUND, Boolean, Category, Date, Id, Integer, Real, Text
from sfumato.catalog.dataset import ContributionBound, Dataset, Table
from sfumato.catalog.text_format import TextFormat
from sfumato.errors import CatalogError
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit

DESIGN = """\
[dataset]
name = "clinic"
population = "clinic-patients"      # people whose budget this is; default: the dataset's name
neighbours = "add-remove"

[budget]
epsilon = "3"
delta = "1e-6"
accounting = "basic"

[tables.patients]
source = "patients.csv"
unit_column = "patient_id"
columns.patient_id = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 120 }

[tables.visits]
source = "visits.parquet"
unit_column = "patient_id"          # or: unit_through = { column = "patient_id", table = "patients" }
max_rows_per_unit = 10
max_groups_per_unit = 4
columns.site = { type = "category", values = ["north", "south"] }
columns.cost = { type = "real", lower = 0, upper = 500 }

[tables.sites]
source = "sites.csv"
public = true
"""
LEAST = '[dataset]\nname = "d"\n[budget]\nepsilon = 1\n'
TABLE = LEAST + '[tables.t]\nunit = "row"\n'


def read(folder, text):
    (folder / "catalog.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_catalog(folder)


def refused(act, *words):
    with pytest.raises(CatalogError) as caught:
        act()
    assert caught.value.code == "catalog"
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_the_design_example_loads(tmp_path):
    clinic = read(tmp_path, DESIGN)
    assert (clinic.name, clinic.population, clinic.neighbours) == ("clinic", "clinic-patients", Neighbours.ADD_REMOVE)
    assert clinic.budget.loss == ApproxDP(3, "1e-6")
    assert clinic.ledger_id is None
    assert list(clinic.tables) == ["patients", "visits", "sites"]
    assert clinic.table("patients").columns == {"patient_id": Id(), "age": Integer(0, 120)}
    assert clinic.unit("visits") == PrivacyUnit("visits", "patient_id")
    assert clinic.table("visits")._bound == ContributionBound(10, 4)
    visits = {"site": Category(["north", "south"]), "cost": Real(0, 500), "patient_id": Id()}
    assert clinic.table("visits").columns == visits  # to name the unit's column is to declare it
    assert clinic.table("sites") == Table("sites", "sites.csv", ROW, {}, public=True)


def test_the_design_example_through_another_table(tmp_path):
    line = 'unit_column = "patient_id"          # or: '
    clinic = read(tmp_path, DESIGN.replace(line, ""))
    assert clinic.table("visits").unit_through == ("patient_id", "patients")
    assert clinic.unit("visits") == PrivacyUnit("visits", "patient_id")


def test_every_key_is_read(tmp_path):
    data = read(
        tmp_path,
        """
        [dataset]
        name = "d"
        neighbours = "replace-one"
        ledger_id = "7f"
        [budget]
        rho = 0.25
        delta = 1e-9
        accounting = "zcdp"
        [analysts.ana]
        rho = "0.1"
        [analysts."Bo B."]
        epsilon = 1
        delta = 1e-6
        [tables.t]
        unit = "row"
        rows = 12
        [tables.t.columns]
        a = { type = "date", lower = 1900-01-01, upper = "2025-12-31", nullable = false }
        b = { type = "boolean" }
        c = { type = "text", nullable = true }
        d = { type = "category", values = [1, 2] }
        e = { type = "category", values = [true] }
        f = { type = "real", lower = -0.1, upper = 1e3 }
        """,
    )
    assert data.ledger_id == "7f"
    assert data.budget.loss == ZCDP("0.25", "1e-9")
    assert data.analysts["ana"].loss == ZCDP("0.1")
    assert data.analysts["Bo B."] == Budget(1, "1e-6", "zcdp")
    columns = {
        "a": Date("1900-01-01", "2025-12-31", nullable=False),
        "b": Boolean(),
        "c": Text(),
        "d": Category([1, 2]),
        "e": Category([True]),
        "f": Real(-0.1, 1000),
    }
    assert data.table("t") == Table("t", None, ROW, columns, rows=12)


@pytest.mark.parametrize(
    "written", ['"0.1"', "0.1", "1e-1", "0.10", "0.1000000000000000000000000000000000000001", "2", '" 2 "']
)
def test_epsilons_are_exact(tmp_path, written):
    budget = read(tmp_path, LEAST.replace("1", written)).budget
    assert budget.loss == PureDP(Decimal(written.strip('" ')))


def test_windows_files_load(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbf" + DESIGN.replace("\n", "\r\n").encode()) == read(tmp_path, DESIGN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["dataset is missing"]),
        ('[dataset]\nname = "d"\n', ["budget is missing"]),
        (LEAST.replace("name", "nam"), ["dataset: there is no key 'nam' here.", "Did you mean name?"]),
        (LEAST + "[tabels.t]\n", ["there is no key 'tabels' here.", "Did you mean tables?"]),
        (LEAST + "[zzz]\n", ["there is no key 'zzz'", "Known here: dataset, budget, analysts, tables, views."]),
        (LEAST.replace('"d"', "3"), ["dataset: name must be text; got an int."]),
        (LEAST.replace('name = "d"', 'population = "p"'), ["dataset: name is missing"]),
        ('dataset = "d"\n[budget]\nepsilon = 1', ["dataset must be a section", "got text"]),
        (LEAST.replace("epsilon", "epsilons"), ["budget: there is no key 'epsilons'", "Did you mean epsilon?"]),
        (LEAST.replace("epsilon = 1", ""), ["budget: basic accounting takes epsilon"]),
        (LEAST.replace("= 1", "= 0"), ["budget: epsilon must be a number above zero; got zero."]),
        (LEAST.replace("= 1", "= nan"), ["budget: epsilon must be a number above zero; got NaN."]),
        (LEAST.replace("= 1", "= true"), ["budget: epsilon must be", "a truth value"]),
        (LEAST.replace("= 1", "= [1]"), ["budget: epsilon must be", "a list"]),
        (LEAST + "accounting = []", ["budget: accounting must be 'basic', 'zcdp' or 'gdp'"]),
        (LEAST + "[analysts.ana]\nepsilon = -1\n", ["analysts.ana: epsilon must be"]),
        (LEAST + "[analysts]\nana = 1\n", ["analysts.ana must be a section"]),
        (LEAST + "tables = 1", ["budget: there is no key 'tables'"]),
        (LEAST + "[tables]\nt = 1", ["tables.t must be a section"]),
        (LEAST + "[tables.t]\n", ["tables.t has no privacy unit", "unit_column", "public = true"]),
        (LEAST + '[tables.t]\nunit = "person"\n', ['tables.t: unit can only be "row" or "counts".', "unit_column"]),
        (LEAST + "[tables.t]\nunit = []\n", ['tables.t: unit can only be "row" or "counts".']),
        (TABLE + 'unit_column = "p"\n', ["tables.t: unit_column and unit contradict each other"]),
        (TABLE + "public = true\nmax_rows_per_unit = 2\n", ["tables.t: max_rows_per_unit"]),
        (TABLE + 'public = "yes"\n', ["tables.t: public must be true or false"]),
        (TABLE + "rows = 5\n", ["tables.t: rows makes the number of rows public", "replace-one"]),
        (TABLE + "max_row_per_unit = 5\n", ["tables.t: there is no key", "Did you mean max_rows_per_unit?"]),
        (TABLE + "source = 5\n", ["tables.t: source must be text"]),
        (TABLE + "columns = 5\n", ["tables.t.columns must be a section"]),
        (TABLE + "columns.a = 5\n", ["tables.t.columns.a must be a section"]),
        (TABLE + "columns.a = { lower = 0 }\n", ["tables.t.columns.a: type must be one of integer, real"]),
        (
            TABLE + 'columns.a = { type = "int" }\n',
            ["tables.t.columns.a: type must be one of", "Did you mean integer?"],
        ),
        (
            TABLE + "columns.a = { type = [] }\n",
            ["columns.a: type must be one of", "Known here: integer"],
        ),
        (TABLE + 'columns.a = { type = "Timestamp" }\n', ["Timestamp is called datetime here."]),
        (TABLE + 'columns.a = { type = "varchar" }\n', ["varchar is called text (or category, with its values) here."]),
        (TABLE + 'columns.a = { type = "integer", lower = 0 }', ["columns.a: upper is missing", "lower, upper"]),
        (TABLE + 'columns.a = { type = "category" }', ["columns.a: values is missing"]),
        (TABLE + 'columns.a = { type = "text", lower = 0 }', ["columns.a: there is no key 'lower'"]),
        (TABLE + 'columns.a = { type = "id", nullable = true }', ["columns.a: there is no key 'nullable'"]),
        (TABLE + 'columns.a = { type = "text", nulable = true }', ["Did you mean nullable?"]),
        (TABLE + 'columns.a = { type = "text", nullable = 1 }', ["columns.a: nullable must be true or false"]),
        (TABLE + 'columns.a = { type = "category", values = "ab" }', ["columns.a: values must be a list"]),
        (TABLE + 'columns.a = { type = "category", values = [0.5] }', ["columns.a: values must be all texts"]),
        (TABLE + 'columns.a = { type = "integer", lower = 0.5, upper = 1 }', ["columns.a: lower must be a whole"]),
        (TABLE + 'columns.a = { type = "real", lower = inf, upper = 1 }', ["columns.a: lower must be a number"]),
        (TABLE + 'columns.a = { type = "date", lower = 1900-01-01T00:00:00, upper = "1900-01-01" }', ["a date"]),
        (TABLE + 'columns.a = { type = "text" }\ncolumns.A = { type = "text" }', ["tables.t: columns:", "same name"]),
        (LEAST + '[tables.t]\nunit_column = "a"\ncolumns.A = { type = "text" }', ["must be declared as an id"]),
        (LEAST + "[tables.t]\nunit_column = 3\n", ["tables.t: the unit must be a column's name"]),
        (LEAST + '[tables.t]\nunit_through = "a"\n', ["tables.t.unit_through must be a section"]),
        (LEAST + '[tables.t]\nunit_through = { column = "a" }\n', ["tables.t.unit_through: table is missing"]),
        (LEAST + '[tables.t]\nunit_through = { column = "a", table = 3 }\n', ["tables.t: unit_through must name"]),
        (LEAST + '[tables.t]\nunit_through = { column = "a", table = "u" }\n', ["unit_through names no table: 'u'"]),
        (LEAST + '[tables."a\\nb"]\nunit = "row"\n', ["a table's name must not hold control characters: 'a\\nb'"]),
        ("a = \n", ["catalog.toml is not TOML", "line 1"]),
        ('[dataset]\nname = "d"\n[dataset]\n', ["catalog.toml is not TOML", "line 3"]),
        (b"[dataset]\nname = '\xff'\n", ["catalog.toml, line 2: the text is not UTF-8"]),
        (LEAST.replace("= 1", "= 1" + "0" * 5000), ["too long"]),
        (LEAST.replace("= 1", "= 1e99999999999999999999"), ["too long"]),
        ("a = " + "[" * 5000, ["nesting too deep"]),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, words):
    refused(lambda: read(tmp_path, text), *words)


def test_the_brief_example(tmp_path):
    text = LEAST + '[tables.patients]\nunit = "row"\ncolumns.age = { type = "integer", lower = 120, upper = 0 }'
    error = refused(lambda: read(tmp_path, text))
    assert error.message == "tables.patients.columns.age: lower (120) must not exceed upper (0)."
    assert error.hint == "Swap them: lower = 0, upper = 120."


def test_a_missing_catalog_is_named_by_its_whole_path(tmp_path, monkeypatch):
    """The folder "." at the end of a sentence would read as the folder above."""
    monkeypatch.chdir(tmp_path)
    refused(lambda: load_catalog("."), f"There is no catalog.toml in {tmp_path}.", "sfumato init")


def test_files_out_of_reach(tmp_path):
    refused(lambda: load_catalog(tmp_path), f"There is no catalog.toml in {tmp_path}", "sfumato init")
    (tmp_path / "catalog.toml").mkdir()
    refused(lambda: load_catalog(tmp_path), "cannot be read")
    refused(lambda: write_catalog(Dataset("d", [], Budget(1)), tmp_path), "cannot be written")
    refused(lambda: write_catalog(Dataset("d", [], Budget(1)), tmp_path / "none"), "cannot be written")
    assert os.listdir(tmp_path) == ["catalog.toml"]


CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"'\\\n\r\t\x00\x7f[]{}#=.,é ")
names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]) | st.sampled_from("\"'\\.# =[]" + string.ascii_letters),
    min_size=1,
    max_size=12,
).filter(lambda name: name.strip() and not name.casefold().startswith("__sfumato"))
days = st.dates()
reals = st.floats(-MOST_BOUND, MOST_BOUND)


def pairs(values):
    return st.tuples(values, values).map(sorted)


flags = st.booleans()
declarations = st.one_of(
    st.builds(lambda pair, flag: Integer(*pair, nullable=flag), pairs(st.integers(-MOST_BOUND, MOST_BOUND)), flags),
    st.builds(lambda pair, flag: Real(*pair, nullable=flag), pairs(reals), flags),
    st.builds(lambda pair, flag: Date(*pair, nullable=flag), pairs(days), flags),
    st.builds(
        lambda values, flag: Category(values, nullable=flag),
        st.lists(st.text(CHARACTERS), min_size=1, max_size=5, unique=True)
        | st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=5, unique=True)
        | st.lists(st.booleans(), min_size=1, unique=True),
        flags,
    ),
    st.builds(Boolean, nullable=flags),
    st.builds(Text, nullable=flags),
    st.just(Id()),
)
written = st.floats(1e-30, 1e30).map(lambda value: float(f"{value:.12g}"))  # others look computed, and are refused
amounts = st.decimals("1e-12", "1e6", allow_nan=False) | st.integers(1, 10**9) | written
deltas = st.sampled_from([0, "1e-6", 1e-9, "0.5", 1e-30])


def budgets(accounting):
    if accounting == "basic":
        return st.builds(Budget, amounts, deltas)
    exchanged = st.builds(Budget, st.sampled_from([1, "0.3", 7.5]), st.just("1e-6"), st.just("zcdp"))
    return st.builds(lambda rho, delta: Budget(None, delta, "zcdp", rho), amounts, deltas) | exchanged


def folded(name):
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def unique(values, **limits):
    return st.lists(values, unique_by=folded, **limits)


readings = st.builds(
    TextFormat,
    st.sampled_from(["utf-8", "Latin-1", "utf_16", "windows-1252"]),
    st.sampled_from([None, ";", "tab", "|", "\t", "\\", "#", " "]),
    st.sampled_from([".", ","]),
    st.sampled_from([None, "%d/%m/%Y", "%Y-%m-%d %H:%M:%S.%f"]),
    st.just("refuse"),
    st.none() | flags,
) | st.just(TextFormat(on_error="skip", quoted_newlines=False))


@st.composite
def tables(draw, name, replace_one):
    columns = {column: draw(declarations) for column in draw(unique(names, min_size=1, max_size=4))}
    source = draw(st.none() | names)
    kind = draw(st.sampled_from(["row", "person", "public"]))
    if kind == "row":
        return Table(name, source, ROW, columns, rows=draw(st.none() | st.integers(1, 10**12)) if replace_one else None)
    if kind == "public":
        return Table(name, source, ROW, columns, public=True, reading=draw(readings))
    unit = draw(st.sampled_from(sorted(columns)))
    most = st.integers(1, 10**6)
    columns[unit] = Id()
    number = draw(st.none() | most) if replace_one else None
    return Table(name, source, unit, columns, draw(most), draw(most), people=number, reading=draw(readings))


@st.composite
def datasets(draw):
    neighbours = draw(st.sampled_from(Neighbours))
    accounting = draw(st.sampled_from(["basic", "zcdp"]))
    made = [draw(tables(name, neighbours is Neighbours.REPLACE_ONE)) for name in draw(unique(names, max_size=3))]
    people = [table for table in made if isinstance(table.unit, str)]
    if people and all(table.name.casefold() != "through" for table in made):
        owner = draw(st.sampled_from(people))
        made.append(Table("through", None, None, {owner.unit: Id()}, unit_through=(owner.unit, owner.name)))
    analysts = {name: draw(budgets(accounting)) for name in draw(unique(names, max_size=2))}
    population, ledger_id = draw(st.none() | names), draw(st.none() | names)
    return Dataset(draw(names), made, draw(budgets(accounting)), population, neighbours, ledger_id, analysts)


@settings(deadline=None, max_examples=200)
@given(data=datasets())
def test_what_is_written_reads_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("catalog")
    write_catalog(data, folder)
    assert load_catalog(folder) == data
    assert repr(load_catalog(folder)) == repr(data)  # order, types and signs too
    text = (folder / "catalog.toml").read_bytes()
    write_catalog(load_catalog(folder), folder)
    assert (folder / "catalog.toml").read_bytes() == text


def test_dump_is_a_fixed_point_of_the_design_example(tmp_path):
    clinic = read(tmp_path, DESIGN)
    write_catalog(clinic, tmp_path)
    once = (tmp_path / "catalog.toml").read_text()
    assert load_catalog(tmp_path) == clinic
    write_catalog(load_catalog(tmp_path), tmp_path)
    assert (tmp_path / "catalog.toml").read_text() == once
    comments = re.sub(r" +#.*", "", DESIGN)
    implied = 'upper = 500 }\ncolumns.patient_id = { type = "id" }'
    assert once == comments.replace("upper = 500 }", implied).replace("1e-6", "0.000001")


def test_a_dump_that_would_not_read_back_is_not_written(tmp_path):
    refused(lambda: write_catalog(Dataset("d", [], Budget(Decimal("1e-900"))), tmp_path), "epsilon")
    assert not os.listdir(tmp_path)


def test_a_failed_dump_leaves_the_old_file(tmp_path, monkeypatch):
    read(tmp_path, DESIGN)

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        refused(
            lambda: write_catalog(Dataset("d", [], Budget(1)), tmp_path), "cannot be written: No space left on device"
        )
    assert (tmp_path / "catalog.toml").read_text() == DESIGN
    assert os.listdir(tmp_path) == ["catalog.toml"]


def test_a_dump_keeps_the_files_mode(tmp_path):
    clinic = read(tmp_path, DESIGN)
    (tmp_path / "catalog.toml").chmod(0o600)
    write_catalog(clinic, tmp_path)
    assert stat.S_IMODE((tmp_path / "catalog.toml").stat().st_mode) == 0o600


class TestLedgerId:
    def after(self, folder, text, ledger_id="abc"):
        before = read(folder, text)
        set_ledger_id(folder, ledger_id)
        assert load_catalog(folder).ledger_id == ledger_id
        assert load_catalog(folder).tables == before.tables
        return (folder / "catalog.toml").read_bytes().decode()

    def test_a_line_is_added_below_the_others(self, tmp_path):
        line = 'neighbours = "add-remove"\n'
        assert self.after(tmp_path, DESIGN) == DESIGN.replace(line, line + 'ledger_id = "abc"\n')

    def test_the_line_is_changed_and_its_comment_survives(self, tmp_path):
        text = DESIGN.replace("\n\n[budget]", '\nledger_id  =  \'o"ld\'  # "mine"\n# more\n\n[budget]')
        assert self.after(tmp_path, text) == text.replace("'o\"ld'", '"abc"')
        assert self.after(tmp_path, text, 'q"\\') == text.replace("'o\"ld'", '"q\\"\\\\"')

    def test_other_ledger_ids_are_not_touched(self, tmp_path):
        text = DESIGN + 'columns.ledger_id = { type = "text" }\n[analysts.ledger_id]\nepsilon = 1\n'
        assert self.after(tmp_path, text).count("abc") == 1

    @pytest.mark.parametrize("head", ["[dataset]", "[ dataset ] # here", '["dataset"]', "  [dataset]"])
    def test_heads_of_every_shape(self, tmp_path, head):
        text = DESIGN.replace("[dataset]", head)
        line = 'neighbours = "add-remove"\n'
        assert self.after(tmp_path, text) == text.replace(line, line + 'ledger_id = "abc"\n')

    def test_windows_line_ends_survive(self, tmp_path):
        text = "\ufeff" + LEAST.replace("\n", "\r\n")
        assert self.after(tmp_path, text) == text.replace('"d"\r\n', '"d"\r\nledger_id = "abc"\r\n')

    def test_a_section_at_the_end_of_the_file(self, tmp_path):
        text = '[budget]\nepsilon = 1\n[dataset]\nname = "d"'
        assert self.after(tmp_path, text) == text + '\nledger_id = "abc"\n'

    @pytest.mark.parametrize(
        "text",
        [
            'dataset.name = "d"\n[budget]\nepsilon = 1\n',
            'dataset = { name = "d" }\n[budget]\nepsilon = 1\n',
            LEAST.replace("[budget]", 'ledger_id = """old"""\n[budget]'),
        ],
    )
    def test_what_cannot_be_edited_is_left_alone(self, tmp_path, text):
        read(tmp_path, text)
        refused(lambda: set_ledger_id(tmp_path, "abc"), "place of ledger_id", 'ledger_id = "abc"')
        assert (tmp_path / "catalog.toml").read_text() == text

    def test_wrong_ids_and_missing_files_are_refused(self, tmp_path):
        refused(lambda: set_ledger_id(tmp_path, "abc"), "There is no catalog.toml")
        read(tmp_path, DESIGN)
        refused(lambda: set_ledger_id(tmp_path, "a\nb"), "dataset: ledger_id must not hold control characters")
        assert (tmp_path / "catalog.toml").read_text() == DESIGN
