"""Row sources: which are private, how many rows one unit can have, and which cannot be built."""

import pytest

from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal, collect_columns
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Key, Keys, Measurement, People
from sfumato.kernel.row_sources import (
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Union,
    UnitColumn,
    derive_extent,
    list_unique,
)
from sfumato.kernel.sensitivity import derive_sensitivity
from sfumato.query.capped_scans import cap_scans
from sfumato.query.source_outline import MOST_HELD, MOST_MET, MOST_REPEATED, check_work, outline_source

PATIENTS, VISITS = Scan("patients", "1", 2, "p.", 16), Scan("visits", "1", 3, "v.", 24)
ALONE, SITES = Scan("visits", "1", 3, "v."), PublicScan("sites", "1", "s.")
SITE = (Column("v.site", ColumnType.INTEGER), Column("s.site", ColumnType.INTEGER))
BOTH = Join(PATIENTS, VISITS, False, ())
PUBLIC = Join(VISITS, SITES, False, (SITE,), 4)
EACH = PerUnit(ALONE, (), ())


@pytest.mark.parametrize(
    ("source", "wanted", "over"),
    [
        (PATIENTS, 2, 2),
        (Derived(VISITS, (), ()), 3, 3),
        (BOTH, 6, 6),
        (Join(PATIENTS, VISITS, True, ()), 6, 6),
        (PUBLIC, 12, 3),
        (Join(PUBLIC, PATIENTS, False, ()), 24, 6),
        (Union((PATIENTS, VISITS)), 5, 6),
        (Union((BOTH, PATIENTS)), 8, 6),
        (EACH, 1, 1),
        (Join(PATIENTS, EACH, True, ()), 2, 2),
    ],
)  # fmt: skip
def test_reach_by_hand(source, wanted, over):
    assert derive_extent(source).reach == wanted
    assert derive_extent(source).numerator == over


def test_what_is_private():
    assert derive_extent(BOTH).private
    assert derive_extent(PUBLIC).private
    assert derive_extent(EACH).private
    assert derive_extent(Derived(VISITS, (), ())).private
    assert not derive_extent(SITES).private
    assert not derive_extent(Derived(SITES, (), ())).private
    assert outline_source(Join(PUBLIC, PATIENTS, False, ())).tables == ("visits", "sites", "patients")
    assert derive_extent(SITES).reach == 0
    with pytest.raises(KernelFault, match="private source"):
        plan(SITES, "id")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Join(SITES, VISITS, False, ()),
        lambda: Join(VISITS, SITES, False, ()),  # its multiplicity is not known
        lambda: Join(VISITS, SITES, False, (), 0),
        lambda: Join(VISITS, PATIENTS, False, (), 3),  # a private side is joined on the unit, not counted
        lambda: Union((VISITS,)),
        lambda: Union((VISITS, SITES)),
        lambda: PerUnit(SITES, (), ()),
        lambda: Scan("t", "1", 0),
        lambda: Scan("t", "1", 3, "t.", 2),  # fewer than it counts
        lambda: Derived(VISITS, (), (("__sfumato_held", Literal(1)),)),
        lambda: Derived(VISITS, (), (("x", Literal(1)), ("x", Literal(2)))),
        lambda: PerUnit(VISITS, (), (UnitColumn("__SFUMATO_unit", "count", None, 0, 3, 0),)),
        lambda: Scan("t", "1", 1 << 41),
        lambda: Union((Scan("t", "1", 1 << 39), Scan("u", "1", (1 << 39) + 1))),
    ],
)  # fmt: skip
def test_what_has_no_proof_is_refused(make):
    with pytest.raises(KernelFault):
        derive_extent(make())
    with pytest.raises(KernelFault):
        plan(make(), "id")


@pytest.mark.parametrize(
    "join",
    [
        Join(PATIENTS, ALONE, False, ()),
        Join(Derived(ALONE, (), ()), PATIENTS, False, ()),
        Join(Join(ALONE, SITES, False, (SITE,), 4), PATIENTS, False, ()),
        Join(Union((VISITS, ALONE)), PATIENTS, True, ()),
    ],
)
def test_a_join_in_which_a_unit_may_have_any_number_of_rows_is_refused(join):
    with pytest.raises(KernelFault, match="too many rows in a join"):
        check_work(join, groups_undeclared_keys=False)


INTEGER, REAL, TEXT, LINK = (
    Column(f"v.{kind.value}", kind) for kind in (ColumnType.INTEGER, ColumnType.REAL, ColumnType.TEXT, ColumnType.ID)
)
DAY, MOMENT = Column("v.d", ColumnType.DATE), Column("v.m", ColumnType.DATETIME)
YES = Call(">", (REAL, Literal(2)))


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        (INTEGER, REAL, True), (INTEGER, TEXT, False), (TEXT, LINK, True), (LINK, INTEGER, False),
        (YES, INTEGER, False), (YES, Literal(True), True), (DAY, MOMENT, False),
        (Call("midnight", (DAY,)), MOMENT, True),
        (Call("date_trunc", (DAY,), "month"), DAY, True), (Call("datetime_trunc", (MOMENT,), "day"), DAY, False),
        (Call("extract", (DAY,), "year"), INTEGER, True), (Call("date_diff", (DAY, DAY), "day"), TEXT, False),
        (Call("case", (YES, TEXT, Literal(None))), LINK, True), (Call("case", (YES, TEXT, INTEGER)), TEXT, False),
        (Call("coalesce", (INTEGER, TEXT)), TEXT, False), (Call("coalesce", (REAL, Literal(0))), INTEGER, True),
        (Call("is null", (TEXT,)), YES, True), (Call("no such", (TEXT,)), TEXT, False),
        (Literal(None), Literal(None), False), (DAY, Literal("2024-01-01"), False),
    ],
)  # fmt: skip
def test_a_join_compares_like_with_like(one, two, alike):
    for pair in ((one, two), (two, one)):
        if alike:
            assert derive_extent(Join(PATIENTS, VISITS, False, (pair,))).reach == 6
            continue
        with pytest.raises(KernelFault, match="one kind"):
            derive_extent(Join(VISITS, SITES, False, (pair,), 1))


def test_too_many_tables_are_refused():
    four = Join(Join(BOTH, VISITS, False, ()), VISITS, False, ())
    assert outline_source(four).scans == 4
    assert outline_source(Join(four, SITES, False, (SITE,), 1)).scans == 4
    with pytest.raises(KernelFault):
        outline_source(Join(four, VISITS, False, ()))
    assert outline_source(PerUnit(four, (), ())).scans == 0


def test_a_join_is_of_so_many_rows_of_one_unit():
    public = Join(VISITS, SITES, False, (SITE,), 4)
    assert [outline_source(source).rows_met for source in (PATIENTS, BOTH, public, EACH)] == [16, 16 * 24, 24 * 4, 1]
    assert outline_source(Union((BOTH, Derived(VISITS, (), ())))).rows_met == 16 * 24 + 24
    assert cap_scans(Derived(ALONE, (), ())) == Derived(VISITS, (), ())
    assert cap_scans(Join(ALONE, SITES, False, (SITE,), 4)) == public
    assert cap_scans(Union((ALONE, EACH))) == Union((VISITS, EACH)), "rows per unit read all that a unit has"
    most = Scan("t", "1", 1 << 12, "t.", 1 << 12)
    assert outline_source(Join(most, most, False, ())).rows_met == MOST_MET
    with pytest.raises(KernelFault):
        outline_source(Join(most, Scan("t", "1", 1 << 12, "u.", (1 << 12) + 1), False, ()))


def test_few_rows_of_a_join_are_held_in_memory():
    """Rows that are grouped by values without a list are held. Those of one table are no more than the unit has."""
    fits, one_more = (Scan("t", "1", 1 << 10, "t.", (1 << 10) + more) for more in (0, 1))
    large = Scan("t", "1", MOST_HELD, "t.", MOST_HELD + 1)
    public = Join(large, SITES, False, (SITE,), 2)
    check_work(Join(fits, fits, False, ()), groups_undeclared_keys=True)
    check_work(large, groups_undeclared_keys=True)
    for source in (Join(fits, one_more, False, ()), Capped(Join(fits, one_more, False, ()), 1), public):
        check_work(source, groups_undeclared_keys=False)
        with pytest.raises(InvalidParameter, match="at most 1,048,576 rows of one person in memory"):
            check_work(source, groups_undeclared_keys=True)


def test_public_tables_make_a_bounded_number_of_rows_of_one():
    join = VISITS
    for _ in range(4):
        join = Join(join, SITES, False, (SITE,), 16)
    assert outline_source(join).repeated == MOST_REPEATED == 1 << 16
    assert outline_source(Derived(Union((join, VISITS)), (), ())).repeated == 1 << 16
    assert outline_source(PerUnit(join, (), ())).repeated == 1
    with pytest.raises(KernelFault, match="too many rows of one"):
        outline_source(Join(join, SITES, False, (SITE,), 2))


def plan(source, unit):
    count = Measurement("n", Count(None), PureDP(1))
    return BoundedPlan("people", source, PrivacyUnit("t", unit), 1, (), (), (count,))


def test_row_units_meet_nobody():
    one, met = Scan("t", "1", 1, "t."), Scan("t", "1", 1, "t.", 8)
    for source in (one, Derived(one, (), ()), Join(one, SITES, True, (SITE,), 3), Union((one, one))):
        assert derive_extent(source).single_rows
        plan(source, ROW)
    for source in (
        Scan("t", "1", 2),
        Join(met, met, False, ()),
        PerUnit(one, (), ()),
        Union((one, Join(met, met, True, ()))),
    ):
        assert not derive_extent(source).single_rows
        plan(source, "id")
        with pytest.raises(KernelFault):
            plan(source, ROW)


@pytest.mark.parametrize("quantity", [People(), Keys()])
def test_multiplied_rows_are_not_counted_as_people(quantity):
    """A public table may turn one row into three. Counted as people, they would exceed the certified change of 1."""
    one = Scan("t", "1", 1, "t.")
    alike = (Column("t.site", ColumnType.INTEGER), SITE[1])
    loss = PureDP(1) if quantity == People() else ApproxDP(1, "1e-6")
    keys = () if quantity == People() else (Key(alike[0], None),)
    people = Measurement("p", quantity, loss)

    def counted(source):
        return BoundedPlan("people", source, PrivacyUnit("t", ROW), 1, (), keys, (people,))

    rows = {"t": [{"site": 1}], "sites": [{"site": 1}] * 3}
    for multiplicity in (3, 2):
        with pytest.raises(KernelFault, match="counted as one person"):
            counted(Join(one, SITES, False, (alike,), multiplicity))
    single = counted(Join(one, SITES, False, (alike,), 1))
    assert derive_sensitivity(single, quantity).l1 == 1
    with pytest.MonkeyPatch.context() as patch:  # what would be counted: more than one, for one row
        patch.setattr(BoundedPlan, "__post_init__", lambda _: None)
        exact = ReferenceEngine(rows).aggregate(counted(Join(one, SITES, False, (alike,), 3)))
    assert exact._integers["p"].tolist() == [3] > [1]


def test_columns_that_an_expression_reads():
    age = Column("age", ColumnType.INTEGER)
    assert collect_columns(Call("and", (Call(">", (age, Literal(3))), SITE[0]))) == {"age", "v.site"}


ORDERS = Scan("orders", "1", 40, "o.", unique=(("id",), ("day", "place")))
LINES = Scan("lines", "1", 160, "l.")
IDS = (Column("l.id", ColumnType.ID), Column("o.id", ColumnType.ID))
DAYS = (Column("l.day", ColumnType.DATE), Column("o.day", ColumnType.DATE))
PLACES = (Column("l.place", ColumnType.TEXT), Column("o.place", ColumnType.TEXT))


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("on", [(IDS,), (DAYS, PLACES), (IDS, DAYS)])
def test_a_join_that_meets_one_row_reaches_as_far_as_its_left_side(outer, on):
    found = derive_extent(Join(LINES, ORDERS, outer, on, meets_one=True))
    assert (found.reach, found.numerator, found.held_bits, found.single_rows) == (160, 160, 31, False)
    assert derive_extent(Join(LINES, ORDERS, outer, on)).reach == 160 * 40
    assert not derive_extent(Join(Scan("lines", "1", 1, "l."), ORDERS, outer, on, meets_one=True)).single_rows


def test_unique_keys_through_a_source():
    ids, pairs = frozenset(["o.id"]), frozenset(["o.day", "o.place"])
    assert list_unique(ORDERS) == (ids, pairs)
    renamed = Derived(ORDERS, (), (("d", DAYS[1]), ("p", PLACES[1]), ("i", Call("neg", (IDS[1],)))))
    assert list_unique(renamed) == (frozenset(["d", "p"]),)
    assert list_unique(Join(ORDERS, SITES, False, (), 1)) == (ids, pairs)
    assert list_unique(Join(ORDERS, SITES, False, (), 2)) == ()
    assert list_unique(Join(ORDERS, LINES, False, ())) == ()
    assert list_unique(Join(ORDERS, ORDERS, False, ((IDS[1], IDS[1]),), meets_one=True)) == (ids, pairs)
    assert list_unique(Union((ORDERS, ORDERS))) == ()


@pytest.mark.parametrize("kind", ColumnType)
def test_one_row_for_each_key_is_unique_unless_equality_is_not_identity(kind):
    """0.0 and -0.0 are equal, and may be two groups; a computed key may be such a number too."""
    held = Column("l.x", kind)
    grouped = PerKey(LINES, (), (), (("k", held), ("d", DAYS[0])), 3)
    assert list_unique(grouped) == (() if kind is ColumnType.REAL else (frozenset(["k", "d"]),))
    assert list_unique(PerKey(LINES, (), (), (("k", Call("neg", (held,))),), 3)) == ()


def test_a_join_with_one_row_for_each_key_reaches_as_far_as_its_left_side():
    ids = Column("l.id", ColumnType.ID)
    grouped = PerKey(LINES, (), (), (("k", ids),), 3)
    on = ((IDS[1], Column("k", ColumnType.ID)),)
    assert derive_extent(Join(ORDERS, grouped, True, on, meets_one=True)).reach == 40
    assert derive_extent(Join(ORDERS, grouped, True, on)).reach == 120
    with pytest.raises(KernelFault, match="meets one row"):  # one of two keys is compared
        derive_extent(Join(ORDERS, PerKey(LINES, (), (), (("k", ids), ("d", DAYS[0])), 3), True, on, meets_one=True))


@pytest.mark.parametrize(
    "join",
    [
        Join(LINES, ORDERS, False, (DAYS,), meets_one=True),  # part of a key
        Join(LINES, ORDERS, False, ((IDS[0], Call("coalesce", (IDS[1],))),), meets_one=True),  # not the column itself
        Join(ORDERS, LINES, False, ((IDS[1], IDS[0]),), meets_one=True),  # the key of the left side
        Join(LINES, Union((ORDERS, ORDERS)), False, (IDS,), meets_one=True),
        Join(LINES, SITES, False, ((DAYS[0], DAYS[0]),), 1, meets_one=True),
    ],
)
def test_a_join_that_may_meet_several_rows_is_refused(join):
    with pytest.raises(KernelFault, match="meets one row"):
        derive_extent(join)
