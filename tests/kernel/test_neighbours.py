import pytest

from sfumato.answers.disclosure import describe_unit
from sfumato.errors import InvalidParameter
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit


def test_unknown_relations_are_refused():
    assert Neighbours.read("add-remove") is Neighbours.ADD_REMOVE
    assert Neighbours.read(Neighbours.REPLACE_ONE) is Neighbours.REPLACE_ONE
    for unknown in ("swap", "ADD_REMOVE", None, 1, ROW):
        with pytest.raises(InvalidParameter, match="add-remove"):
            Neighbours.read(unknown)


def test_how_many_people_move():
    assert Neighbours.ADD_REMOVE.people_moved == 1
    assert Neighbours.REPLACE_ONE.people_moved == 2


def test_units_say_who_is_protected():
    row = PrivacyUnit("visits", ROW)
    person = PrivacyUnit("visits", "patient_id", "replace-one")
    assert row.per_row
    assert not person.per_row
    assert describe_unit(row) == "one row of visits, added or removed"
    assert describe_unit(person) == "all rows of one patient_id in visits, replaced by another's"


@pytest.mark.parametrize(
    "arguments", [("", ROW), ("visits", ""), ("visits", None), (None, ROW), (ROW, ROW), ("v", "p", "x")]
)
def test_units_that_cannot_be(arguments):
    with pytest.raises(InvalidParameter):
        PrivacyUnit(*arguments)
