"""A column that loses over 1 % warns with the likely cause and the option that fixes it."""

import warnings

import pandas as pd
import pytest

import sfumato as sf
from sfumato.ingest.causes import explain_clamped, explain_lost
from sfumato.ingest.load_report import MOST_LOST

DAYS, MOMENTS = sf.Date("2020-01-01", "2025-12-31"), sf.DateTime("2020-01-01T00:00:00", "2025-12-31T00:00:00")
WHOLE, REAL, CITY = sf.Integer(0, 100), sf.Real(0, 100), sf.Category(["Rome", "Oslo"])


@pytest.mark.parametrize(
    ("declared", "lost", "cause", "fix"),
    [
        (DAYS, ["31/12/2024", "01/02/2024"], "day/month/year", 'date_format="%d/%m/%Y"'),
        (DAYS, ["12/31/2024", "01/02/2024"], "month/day/year", "--date-format %m/%d/%Y"),
        (DAYS, ["01/02/2024"], "If the month comes first", 'date_format="%d/%m/%Y"'),
        (DAYS, ["31.12.2024"], "day.month.year", 'date_format="%d.%m.%Y"'),
        (DAYS, ["31-12-24"], "year of two digits", 'date_format="%d-%m-%y"'),
        (DAYS, ["2024/12/31"], "year/month/day", 'date_format="%Y/%m/%d"'),
        (DAYS, ["20241231"], "without separators", 'date_format="%Y%m%d"'),
        (DAYS, ["31 Dec 2024"], "day month year", "--date-format '%d %b %Y'"),
        (DAYS, ["December 31, 2024"], "month day, year", '"%B %d, %Y"'),
        (DAYS, ["2024-12-31"], "year-month-day", '"%Y-%m-%d"'),
        (MOMENTS, ["31/12/2024 23:59"], "day/month/year time", '"%d/%m/%Y %H:%M"'),
        (MOMENTS, ["31/12/2024 23:59:01"], "time", '"%d/%m/%Y %H:%M:%S"'),
        (DAYS, ["45657", "44197"], "as spreadsheets keep them", "year-month-day"),
        (DAYS, ["1735603200"], "since 1970", "year-month-day"),
        (REAL, ["1,5", "22,25"], "decimal comma", 'decimal="," (command line: --decimal ,)'),
        (REAL, ["1.234,5", "1,234"], "decimal comma", "--decimal ,"),
        (REAL, ["1,234", "12,345"], "separators of thousands", "Remove the separators"),
        (REAL, ["1 234.50", "1'234"], "separators of thousands", "Remove the separators"),
        (REAL, ["1.5"], "decimal point", "--decimal ."),
        (REAL, ["5 %", "7,5%"], "percent sign", "Remove the sign"),
        (REAL, ["$ 5", "7.50 EUR", "€1,000"], "currency sign", "Remove the sign"),
        (REAL, ["12 kg", "3 kg"], "a unit or a text", "Remove it"),
        (WHOLE, ["forty", "old"], "text, but the column is declared as a number", "Declare the column as text"),
        (WHOLE, ["true", "false"], "truth values", "boolean"),
        (WHOLE, ["31/12/2024"], "dates", "date"),
        (WHOLE, ["n/a", "#N/A", "None"], "missing value", "empty"),
        (sf.Boolean(), ["ja", "nein"], "other words", "true and false"),
        (CITY, ["rome", " Oslo ", "OSLO"], "another case, or with spaces", "as they are declared"),
        (CITY, ["Lima", "Bonn"], "not among the declared values", "if they are public"),
        (CITY, ["M\ufffdnchen"], "not encoded", "--encoding latin-1"),
        (CITY, ["MÃ¼nchen"], "UTF-8, but was read in another encoding", "--encoding utf-8"),
        (sf.Category([1, 2]), ["1.5"], "fraction", "real"),
        (sf.Category(["1", "2"]), ["3.0"], "not among the declared values", "if they are public"),
    ],
)
def test_the_likely_cause_is_named_with_what_fixes_it(declared, lost, cause, fix):
    found = explain_lost(declared, lost)
    assert cause in found.cause
    assert fix in found.fix
    for value in lost:
        assert value not in found.cause + found.fix


def test_a_code_for_missing_is_told_from_narrow_bounds():
    assert "a code for missing" in explain_clamped(WHOLE, ["999"] * 9 + ["101"]).cause
    narrow = explain_clamped(WHOLE, ["101", "102", "103"])
    assert "0 to 100" in narrow.cause
    assert "Widen the bounds" in narrow.fix


def warned(frame, columns, unit=sf.ROW, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sf.protect(frame, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=1), **options).close()
    assert all(warning.category is sf.errors.LoadWarning for warning in told)
    assert all(warning.filename == __file__ for warning in told)  # the warning names the caller's line
    return [str(warning.message) for warning in told]


@pytest.mark.parametrize(
    ("declared", "good", "bad", "said"),
    [
        (WHOLE, "5", "five", "t.x: 1.5 % of the values could not be read"),
        (CITY, "Rome", "rome", "t.x: 1.5 % of the values are not among the declared values"),
        (WHOLE, "5", "101", "t.x: 1.5 % of the values were clamped"),
        (WHOLE, "5", "5.5", "t.x: 1.5 % of the values were rounded"),
        (DAYS, "2024-01-01", "31/12/2024", "--date-format %d/%m/%Y"),
    ],
)
def test_over_one_percent_warns_and_one_percent_does_not(declared, good, bad, said):
    assert MOST_LOST == 0.01
    over = pd.DataFrame({"x": [good] * 197 + [bad] * 3})
    assert said in warned(over, {"x": declared})[0]
    assert len(warned(over, {"x": declared})) == 1
    assert not warned(pd.DataFrame({"x": [good] * 198 + [bad] * 2}), {"x": declared})


def test_nulls_are_no_loss_and_do_not_hide_one():
    assert not warned(pd.DataFrame({"x": [None] * 100}), {"x": WHOLE})
    assert warned(pd.DataFrame({"x": [None] * 10_000 + ["1", "one"]}), {"x": WHOLE})


def test_losses_of_two_kinds_count_together():
    frame = pd.DataFrame({"x": ["5"] * 197 + ["five"] * 2 + ["101"]})
    assert "could not be read" in warned(frame, {"x": WHOLE})[0]


def test_a_column_without_nulls_says_what_its_values_became():
    frame = pd.DataFrame({"x": ["5", "five"]})
    assert "became the public value" in warned(frame, {"x": sf.Integer(0, 100, nullable=False)})[0]


def test_people_over_the_contribution_bound_are_told():
    columns = {"id": sf.Id(), "x": WHOLE}
    frame = pd.DataFrame({"id": [*range(100), *range(30)], "x": 1})
    (said,) = warned(frame, columns, unit="id")
    assert "30 % of people have more than 1 row" in said
    assert "--max-rows" in said
    assert not warned(frame, columns, unit="id", max_rows_per_unit=2)
    assert not warned(pd.DataFrame({"id": [*range(100), *range(5)], "x": 1}), columns, unit="id")


def test_rows_without_an_id_are_told():
    frame = pd.DataFrame({"id": ["a", "b", None], "x": 1})
    (said,) = warned(frame, {"id": sf.Id(), "x": WHOLE}, unit="id")
    assert "33.3 % of the records have no id, and were dropped." in said


def test_a_warning_can_be_an_error_and_nothing_is_left_open():
    with warnings.catch_warnings():
        warnings.simplefilter("error", sf.errors.LoadWarning)
        with pytest.raises(sf.errors.LoadWarning, match="could not be read"):
            sf.protect(
                pd.DataFrame({"x": ["one"]}), name="t", unit=sf.ROW, columns={"x": WHOLE}, budget=sf.Budget(epsilon=1)
            )
