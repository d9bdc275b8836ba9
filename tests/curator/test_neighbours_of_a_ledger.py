"""A ledger has one neighbouring relation, however the owner opens it."""

import pytest
from protected import protect
from test_first_open import COUNT, folder_at

import sfumato as sf


def refuses(call):
    with pytest.raises(sf.errors.LedgerError) as refused:
        call()
    return refused.value.code == "ledger-neighbours"


def test_neighbours_edited_in_the_catalog_are_refused(tmp_path):
    folder = folder_at(tmp_path / "one", 'neighbours = "add-remove"')
    with sf.open(folder) as clinic:
        clinic.ask(COUNT, epsilon=1)
    catalog = folder / "catalog.toml"
    catalog.write_text(catalog.read_text().replace("add-remove", "replace-one"))
    assert refuses(lambda: sf.open(folder))
    catalog.write_text(catalog.read_text().replace("replace-one", "add-remove"))
    with sf.open(folder) as clinic:
        clinic.ask(COUNT, epsilon=1)
        assert float(clinic.budget.spent.epsilon) == 1


def test_two_folders_with_one_ledger_have_the_same_neighbours(tmp_path):
    shared = 'ledger = "../shared.db"\nneighbours = "{}"'
    with sf.open(folder_at(tmp_path / "one", shared.format("add-remove"))) as clinic:
        clinic.ask(COUNT, epsilon=1)
    assert refuses(lambda: sf.open(folder_at(tmp_path / "two", shared.format("replace-one"))))


@pytest.mark.parametrize("how", ["memory", "file"])
def test_protected_data_of_one_ledger_has_the_same_neighbours(tmp_path, how):
    where = {"population": "one relation"} if how == "memory" else {"ledger": tmp_path / "ledger.db"}
    protect(**where).close()
    assert refuses(lambda: protect(**where, neighbours="replace-one"))
    protect(**where).close()
