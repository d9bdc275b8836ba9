"""An error names the missing package if an optional one is not installed."""

import sys

import pytest

import sfumato as sf
from sfumato.errors import MissingExtra


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_what_installs_it(package, monkeypatch, tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    columns = {"age": sf.Integer(0, 99)}
    path, budget = tmp_path / "people.csv", sf.Budget(epsilon=1)
    with sf.protect(path, name="people", unit=sf.ROW, columns=columns, budget=budget) as people:
        answer = people.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
    assert len(getattr(answer, f"to_{package}")()) == 1
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'sfumato\[{package}\]'"):
        getattr(answer, f"to_{package}")()
    assert answer.to_arrow().num_rows == 1


@pytest.mark.parametrize("address", ["sqlite:///books.db", "mysql://host/books", "https://host/books"])
def test_a_ledger_is_a_path_or_on_a_postgresql_server(tmp_path, address):
    (tmp_path / "people.csv").write_text("age\n30\n")
    columns, budget = {"age": sf.Integer(0, 99)}, sf.Budget(epsilon=1)
    with pytest.raises(sf.errors.InvalidParameter, match="postgresql://"):
        sf.protect(tmp_path / "people.csv", name="p", unit=sf.ROW, columns=columns, budget=budget, ledger=address)
