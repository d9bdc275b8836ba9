"""Each rule of the catalog refuses declarations that violate it, and accepts the others."""

import copy
import pickle
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import MOST_BOUND, MOST_VALUES, Boolean, Category, Date, Id, Integer, Real, Text
from sfumato.catalog.dataset import ContributionBound, Dataset, Table
from sfumato.errors import CatalogError, UnknownName
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit

AGE = {"age": Integer(0, 120)}
PERSON = {"person": Id(), **AGE}


def refused(build, *words):
    with pytest.raises(CatalogError) as caught:
        build()
    assert caught.value.code == "catalog"
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def rows(name="people", **given):
    return Table(name, None, ROW, AGE, **given)


def people(name="people", **given):
    return Table(name, None, "person", PERSON, **given)


class TestColumns:
    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            (Integer(0, 120), (0, 120)),
            (Integer(5, 5), (5, 5)),
            (Integer(-MOST_BOUND, MOST_BOUND), (-MOST_BOUND, MOST_BOUND)),
            (Integer(np.int8(1), np.int64(2)), (1, 2)),
            (Real(0, 200_000), (0.0, 200_000.0)),
            (Real(-0.0, Decimal("0.1")), (0.0, 0.1)),
            (Real(Fraction(1, 4), np.float32(0.5)), (0.25, 0.5)),
            (Date("1900-01-01", date(2025, 12, 31)), (date(1900, 1, 1), date(2025, 12, 31))),
        ],
    )
    def test_bounds_are_kept_exactly(self, given, meant):
        assert (given.lower, given.upper) == meant
        assert {type(given.lower), type(given.upper)} == {type(meant[0])}
        assert given.nullable
        assert str(given.lower) == str(meant[0])  # there is one zero

    @pytest.mark.parametrize("kind", [Integer, Real])
    @pytest.mark.parametrize(
        "bound", ["1", True, np.True_, MOST_BOUND + 2, -MOST_BOUND - 2, 10**400, float("nan"), float("inf"), 1j]
    )
    def test_other_bounds_are_refused(self, kind, bound):
        refused(lambda: kind(bound, 1), "lower must be a")
        refused(lambda: kind(0, bound), "upper must be a")

    @pytest.mark.parametrize("kind", [Integer, Real, Date])
    @pytest.mark.parametrize("given", [(), (None, None), (0,), (None, 1), (0, None)])
    def test_a_bound_that_is_not_given_is_explained(self, kind, given):
        refused(lambda: kind(*given), f"{kind.__name__} needs a lower and an upper bound", f"sf.{kind.__name__}(")

    def test_integers_have_whole_bounds(self):
        refused(lambda: Integer(0.0, 1), "lower must be a whole number", "real column")
        refused(lambda: Integer(0, Decimal(1)), "upper must be a whole number")
        refused(lambda: Real(Decimal("sNaN"), 1), "lower must be a number")

    @pytest.mark.parametrize(
        "day", ["", "1900", "19000101", "1900-02-30", "1900-1-1", "1900-W01-1", 1900, datetime(1900, 1, 1)]
    )
    def test_other_days_are_refused(self, day):
        refused(lambda: Date(day, "2000-01-01"), "lower must be a date", "year-month-day")

    def test_lower_must_not_exceed_upper(self):
        error = refused(lambda: Integer(120, 0))
        assert error.message == "lower (120) must not exceed upper (0)."
        assert error.hint == "Swap them: lower = 0, upper = 120."
        refused(lambda: Real(0.5, 0.25), "lower (0.5)")
        refused(lambda: Date("2000-01-02", "2000-01-01"), "lower (2000-01-02)")

    @pytest.mark.parametrize("values", [["a"], ("a", "A", "b"), [1, -5, 2**53], [True, False], [""], ["\n", '"', "\\"]])
    def test_categories(self, values):
        assert Category(values).values == tuple(values)

    @pytest.mark.parametrize(
        ("values", "rule"),
        [
            ([], "1 to 100,000"),
            (range(MOST_VALUES + 1), "1 to 100,000"),
            (["a", "b", "a"], "'a' 2 times"),
            ([1, True], "all texts"),
            (["a", 1], "all texts"),
            ([None], "all texts"),
            ([1.5], "all texts"),
            ([["a"]], "all texts"),
            ([np.int64(1)], ".tolist()"),
            ("abc", "must be a list"),
            (b"abc", "must be a list"),
            ({"a"}, "must be a list"),
            (None, "must be a list"),
            ([2**53 + 1], "beyond 2"),
            (["\ud800"], "surrogate"),
        ],
    )
    def test_other_categories_are_refused(self, values, rule):
        refused(lambda: Category(values), rule)

    def test_the_most_values_are_accepted(self):
        assert len(Category(range(MOST_VALUES)).values) == MOST_VALUES

    def test_nullable_is_a_truth_value_by_name(self):
        makers = [
            lambda **given: Integer(0, 1, **given),
            lambda **given: Real(0, 1, **given),
            lambda **given: Category(["a"], **given),
            lambda **given: Date("1900-01-01", "1900-01-02", **given),
            Boolean,
            Text,
        ]
        for make in makers:
            assert make(nullable=False).nullable is False
            assert make().nullable is True
            refused(lambda make=make: make(nullable="no"), "nullable must be true or false; got text.")
        with pytest.raises(TypeError):
            Boolean(False)

    def test_declarations_are_frozen_and_hashable(self):
        assert (
            len({Integer(0, 1), Integer(0, 1), Category(["a"]), Category(("a",)), Id(), Id(), Text(), Boolean()}) == 5
        )
        with pytest.raises(AttributeError):
            Integer(0, 1).lower = 5


class TestBudget:
    @pytest.mark.parametrize(
        ("budget", "loss"),
        [
            (Budget(3), PureDP(3)),
            (Budget(0.1), PureDP("0.1")),
            (Budget("3", "1e-6"), ApproxDP(3, "1e-6")),
            (Budget(epsilon=3, delta=1e-6), ApproxDP(3, "1e-6")),
            (Budget(rho="0.1", accounting="zcdp"), ZCDP("0.1")),
            (Budget(rho=0.1, delta="1e-9", accounting="zcdp"), ZCDP("0.1", "1e-9")),
        ],
    )
    def test_losses_are_exact(self, budget, loss):
        assert budget.loss == loss
        assert type(budget.loss) is type(loss)
        assert hash(budget) == hash(pickle.loads(pickle.dumps(budget)))

    @pytest.mark.parametrize(
        ("build", "rule"),
        [
            (lambda: Budget(), "basic accounting takes epsilon"),
            (lambda: Budget(rho=1), "basic accounting takes epsilon"),
            (lambda: Budget(1, rho=1), "basic accounting takes epsilon"),
            (lambda: Budget(accounting="zcdp"), "either rho, or epsilon"),
            (lambda: Budget(1, 1e-6, "zcdp", 1), "either rho, or epsilon"),
            (lambda: Budget(1, 0, "zcdp"), "needs a delta above zero"),
            (lambda: Budget(1, accounting="renyi"), "'basic', 'zcdp' or 'gdp'"),
            (lambda: Budget(1, accounting=None), "'basic', 'zcdp' or 'gdp'"),
            (lambda: Budget(0), "epsilon must be a number above zero; got zero."),
            (lambda: Budget(-1), "epsilon must be a number above zero"),
            (lambda: Budget(float("nan")), "epsilon must be"),
            (lambda: Budget("inf"), "epsilon must be"),
            (lambda: Budget(True), "epsilon must be"),
            (lambda: Budget(1, 1), "delta must lie in [0, 1)"),
            (lambda: Budget(1, -0.1), "delta must be"),
            (lambda: Budget(accounting="zcdp", rho=0), "rho must be a number above zero"),
        ],
    )
    def test_other_budgets_are_refused(self, build, rule):
        refused(build, rule)

    @settings(deadline=None, max_examples=60)
    @given(
        st.decimals("0.0001", "1000", places=4),
        st.sampled_from(["1e-30", "1e-12", "1e-6", "0.01", "0.5", "0.999"]),
    )
    def test_the_exchange_is_the_largest_of_six_digits(self, epsilon, delta):
        loss = Budget(epsilon, delta, "zcdp").loss
        assert loss.delta == 0
        assert len(loss.rho.normalize().as_tuple().digits) <= 6
        next_up = loss.rho + Decimal(f"1e{loss.rho.adjusted() - 5}")
        assert loss.to_approx(delta).epsilon <= epsilon < ZCDP(next_up).to_approx(delta).epsilon

    def test_the_exchange_of_a_common_budget(self):
        """Against the conversion written out anew: least over a of a rho + ln(1/(a delta))/(a - 1) + ln(1 - 1/a)."""
        orders = np.linspace(1.01, 40, 1_000_000)
        beyond = np.log(1e6 / orders) / (orders - 1) + np.log1p(-1 / orders)
        assert Budget(3, "1e-6", "zcdp").loss == ZCDP("0.185069")
        assert min(0.185069 * orders + beyond) <= 3 < min(0.185070 * orders + beyond)

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [("1e-9", "1e-9"), ("1e30", "1e-30"), ("1e30", "0.9"), ("1e-30", "0.9")]
    )
    def test_extreme_exchanges_end(self, epsilon, delta):
        assert Budget(epsilon, delta, "zcdp").loss.to_approx(delta).epsilon <= Decimal(epsilon)

    @pytest.mark.parametrize(
        "build",
        [
            lambda: Budget("0." + "1" * 61),
            lambda: Budget("1e-31"),
            lambda: Budget("1e31"),
            lambda: Budget(1, "1e-31"),
            lambda: Budget(accounting="zcdp", rho="0." + "3" * 3990),
        ],
    )
    def test_long_amounts_are_refused(self, build):
        refused(build, "must have at most 60 digits and lie between 1e-30 and 1e30", "Round it")


class TestNames:
    NAMES = (
        "a",
        "x" * 100,
        "Größe",
        "名前",
        'say "hi"',
        "a.b",
        "a b",
        " a",
        "sfumato",
        "_",
        "👩‍⚕️",
        "select",
        "a'b",
        "é",
    )
    OTHERS = (
        "",
        "  ",
        "x" * 101,
        "a\nb",
        "a\tb",
        "\x00",
        "\x7f",
        "a\u0085",
        "a\u2028b",
        "\ud800",
        "__sfumato",
        "__SFUMATO_n",
        3,
        None,
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_names_are_any_text(self, name):
        table = Table(name, None, ROW, {name: Text()})
        data = Dataset(name, [table], Budget(1), name, ledger_id=name, analysts={name: Budget(1)})
        assert data.table(name).column(name).name == name
        assert data.population == data.ledger_id == name

    @pytest.mark.parametrize("name", OTHERS)
    def test_other_names_are_refused(self, name):
        refused(lambda: Table(name, None, ROW, {}), "table's name must")
        refused(lambda: Table("t", None, ROW, {name: Text()}), "tables.t: a column's name must")
        refused(lambda: Dataset(name, [], Budget(1)), "dataset: name must")
        longer = 2 * name if isinstance(name, str) else name  # an analyst's name may have 200 characters
        refused(lambda: Dataset("d", [], Budget(1), analysts={longer: Budget(1)}), "analyst must")
        if name is not None:
            refused(lambda: Dataset("d", [], Budget(1), population=name), "dataset: population must")

    @pytest.mark.parametrize("source", ["", 3, "a\nb"])
    def test_other_sources_are_refused(self, source):
        refused(lambda: Table("t", source, ROW, {}), "tables.t: source must")

    @pytest.mark.parametrize("ledger_id", ["", 3, "a\nb"])
    def test_other_ledger_ids_are_refused(self, ledger_id):
        refused(lambda: Dataset("d", [], Budget(1), ledger_id=ledger_id), "dataset: ledger_id must")

    @pytest.mark.parametrize(("one", "two"), [("age", "AGE"), ("é", "e\u0301"), ("ß", "SS"), ("É", "é")])
    def test_names_that_differ_only_in_case_are_refused(self, one, two):
        refused(lambda: Table("t", None, ROW, {one: Text(), two: Text()}), "tables.t: columns:", "same name")
        refused(lambda: Dataset("d", [rows(one), rows(two)], Budget(1)), "tables:", "same name")
        refused(
            lambda: Dataset("d", [], Budget(1), analysts={one: Budget(1), two: Budget(1)}), "analysts:", "same name"
        )

    def test_one_name_twice_is_refused(self):
        refused(lambda: Dataset("d", [rows(), rows()], Budget(1)), "same name")


class TestTable:
    TYPES = (
        (Integer(0, 1), ColumnType.INTEGER),
        (Real(0, 1, nullable=False), ColumnType.REAL),
        (Category(["a"]), ColumnType.TEXT),
        (Category([1]), ColumnType.INTEGER),
        (Category([True]), ColumnType.BOOLEAN),
        (Boolean(nullable=False), ColumnType.BOOLEAN),
        (Text(), ColumnType.TEXT),
        (Date("1900-01-01", "1900-01-01"), ColumnType.DATE),
        (Id(), ColumnType.ID),
    )

    @pytest.mark.parametrize(("declaration", "type"), TYPES)
    def test_columns_have_the_kernels_types(self, declaration, type):
        table = Table("t", None, ROW, {"Größe": declaration})
        assert table.column("GRÖSSE") == Column("Größe", type, getattr(declaration, "nullable", True))

    def test_unknown_columns_name_the_declared_ones(self):
        with pytest.raises(UnknownName, match=r"There is no column 'agee' in table people\.") as caught:
            people().column("agee")
        assert caught.value.hint == "Did you mean age? Declared: person, age."
        with pytest.raises(UnknownName, match="Declared: none"):
            Table("t", None, ROW, {}).column("x")
        with pytest.raises(UnknownName):
            people().column(None)

    def test_the_unit_is_a_declared_id_in_its_declared_spelling(self):
        assert Table("t", None, "PERSON", PERSON).unit == "person"
        refused(
            lambda: Table("t", None, "who", PERSON), "tables.t: the unit's column 'who' is not declared.", "Declare it"
        )
        refused(lambda: Table("t", None, "age", PERSON), "tables.t: the unit's column 'age' must be declared as an id.")
        refused(lambda: Table("t", None, None, PERSON), "tables.t: the unit must be a column's name, ROW or COUNTS")

    def test_a_row_unit_contributes_one_row(self):
        assert rows(max_rows_per_unit=1, max_groups_per_unit=1) == rows()
        assert people(max_rows_per_unit=10, max_groups_per_unit=3).max_rows_per_unit == 10
        refused(lambda: rows(max_rows_per_unit=2), "tables.people: max_rows_per_unit and max_groups_per_unit must be 1")
        refused(lambda: rows(max_groups_per_unit=2), "must be 1")

    @pytest.mark.parametrize("key", ["max_rows_per_unit", "max_groups_per_unit", "rows", "people"])
    @pytest.mark.parametrize("value", [0, -1, 1.0, "1", True])
    def test_limits_are_whole_and_positive(self, key, value):
        refused(lambda: people(**{key: value}), f"tables.people: {key} must be a whole number")

    def test_rows_are_of_row_units(self):
        assert rows(rows=7).rows == 7
        refused(lambda: people(rows=7), "rows is only for tables whose unit is the row", "people = n")

    def test_people_are_of_tables_whose_people_have_an_id(self):
        assert people(people=7).people == 7
        refused(lambda: rows(people=7), "people is only for tables whose unit is an id", "rows = n")
        refused(lambda: Table("t", None, ROW, {}, public=True, people=2), "people is only")

    def test_public_tables_have_no_unit(self):
        for unit in (None, ROW):
            assert Table("t", None, unit, {}, public=True).unit is ROW
        refused(lambda: people(public=True), "has no privacy unit")
        refused(
            lambda: Table("t", None, None, PERSON, public=True, unit_through=("person", "x")), "has no privacy unit"
        )
        refused(lambda: Table("t", None, ROW, {}, public=True, max_rows_per_unit=2), "must be 1")
        refused(lambda: Table("t", None, ROW, {}, public=True, rows=2), "rows is only")
        refused(lambda: rows(public="yes"), "public must be true or false")

    def test_columns_are_declared_types(self):
        refused(lambda: Table("t", None, ROW, {"a": Boolean}), "tables.t: columns.a is not", "Boolean()")
        refused(lambda: Table("t", None, ROW, [("a", Text())]), "tables.t: columns must map")

    def test_tables_are_frozen_hashable_and_travel(self):
        given = dict(PERSON)
        table = Table("t", "t.csv", "person", given)
        given["more"] = Text()
        assert list(table.columns) == ["person", "age"]
        with pytest.raises(TypeError):
            table.columns["more"] = Text()
        assert hash(table) == hash(copy.deepcopy(table))
        assert pickle.loads(pickle.dumps(table)) == table != people()


class TestDataset:
    def test_what_a_dataset_says(self):
        data = Dataset("d", [people("Visits", max_rows_per_unit=10, max_groups_per_unit=4), rows("r")], Budget(1))
        assert data.population == "d"
        assert data.table("visits").name == "Visits"
        assert data.unit("VISITS") == PrivacyUnit("Visits", "person", Neighbours.ADD_REMOVE)
        assert data.table("visits")._bound == ContributionBound(10, 4)
        assert data.unit("r") == PrivacyUnit("r", ROW, Neighbours.ADD_REMOVE)
        assert data.table("r")._bound == ContributionBound()
        assert data == Dataset("d", {"Visits": data.table("Visits"), "r": rows("r")}, Budget(1), "d", "add-remove")
        assert pickle.loads(pickle.dumps(data)) == data == copy.deepcopy(data)
        assert hash(data) == hash(copy.deepcopy(data))

    def test_unknown_tables_name_the_declared_ones(self):
        with pytest.raises(UnknownName, match="There is no table 'poeple' in dataset d") as caught:
            Dataset("d", [people(), rows("r")], Budget(1)).unit("poeple")
        assert caught.value.hint == "Did you mean people? Declared: people, r."

    def test_long_lists_are_cut(self):
        with pytest.raises(UnknownName, match=r"t29, \.\.\.\."):
            Dataset("d", [rows(f"t{number}") for number in range(40)], Budget(1)).table("?")

    def test_public_tables_have_no_unit(self):
        data = Dataset("d", [Table("sites", None, ROW, {}, public=True)], Budget(1))
        refused(lambda: data.unit("sites"), "tables.sites: a public table has no privacy unit")

    def test_public_rows_need_replace_one(self):
        assert (
            Dataset("d", [rows(rows=5)], Budget(1), neighbours="replace-one").unit("people").neighbours.people_moved
            == 2
        )
        refused(lambda: Dataset("d", [rows(rows=5)], Budget(1)), "tables.people: rows makes", "replace-one")

    def test_a_public_number_of_people_needs_replace_one(self):
        assert Dataset("d", [people(people=5)], Budget(1), neighbours="replace-one").table("people").people == 5
        refused(lambda: Dataset("d", [people(people=5)], Budget(1)), "tables.people: people makes", "replace-one")

    def test_other_relations_are_refused(self):
        refused(lambda: Dataset("d", [], Budget(1), neighbours="zero-out"), "dataset: neighbours must be 'add-remove'")

    def test_wrong_types_are_refused(self):
        refused(lambda: Dataset("d", [], 3), "budget must be a Budget")
        refused(lambda: Dataset("d", people(), Budget(1)), "tables must be a list of Table")
        refused(lambda: Dataset("d", ["people"], Budget(1)), "tables must be a list of Table")
        refused(lambda: Dataset("d", {"x": people()}, Budget(1)), "every table's own name")
        refused(lambda: Dataset("d", [], Budget(1), analysts=["ana"]), "analysts must map names to budgets")

    def test_analysts_are_counted_in_the_datasets_currency(self):
        assert Dataset("d", [], Budget(1), analysts={"ana": Budget(2, 1e-6)}).analysts["ana"].loss == ApproxDP(2, 1e-6)
        refused(lambda: Dataset("d", [], Budget(1), analysts={"ana": 1}), "analysts.ana: must be a Budget")
        other = Budget(rho=1, accounting="zcdp")
        refused(lambda: Dataset("d", [], Budget(1), analysts={"ana": other}), "analysts.ana:", "basic accounting")


class TestUnitThrough:
    VISITS = Table("visits", None, "person", {"person": Id(), "visit": Id()}, max_rows_per_unit=9)

    def drugs(self, column="visit", table="visits", unit=None, **columns):
        return Table("drugs", None, unit, {"visit": Id(), "age": Text(), **columns}, 5, 2, unit_through=(column, table))

    def test_the_owner_is_at_the_end_of_the_way(self):
        doses = Table("doses", None, None, {"drug": Id()}, unit_through=("drug", "drugs"))
        data = Dataset("d", [doses, self.drugs("VISIT", "VISITS", "visit", drug=Id()), self.VISITS], Budget(1))
        assert data.unit("drugs") == PrivacyUnit("drugs", "person")
        assert data.unit("doses") == PrivacyUnit("doses", "person")
        assert data.table("drugs")._bound == ContributionBound(5, 2)
        assert data.table("drugs").unit is None

    def test_the_link_is_an_id_on_both_sides(self):
        refused(lambda: self.drugs("age"), "tables.drugs: the unit's column 'age' must be declared as an id")
        refused(lambda: self.drugs("nothing"), "tables.drugs: the unit's column 'nothing' is not declared")
        drugs = self.drugs("other", other=Id())
        refused(
            lambda: Dataset("d", [drugs, self.VISITS], Budget(1)), "tables.drugs: through tables.visits:", "'other'"
        )

    def test_the_way_must_lead_to_people(self):
        refused(lambda: Dataset("d", [self.drugs()], Budget(1)), "tables.drugs: unit_through names no table: 'visits'")
        for visits in (
            Table("visits", None, ROW, {"visit": Id()}),
            Table("visits", None, ROW, {"visit": Id()}, public=True),
        ):
            refused(lambda visits=visits: Dataset("d", [self.drugs(), visits], Budget(1)), "with a unit column")

    def test_circles_are_refused(self):
        refused(lambda: Dataset("d", [self.drugs(table="drugs")], Budget(1)), "circle")
        back = Table("visits", None, None, {"visit": Id()}, unit_through=("visit", "drugs"))
        refused(lambda: Dataset("d", [self.drugs(), back], Budget(1)), "circle")

    @pytest.mark.parametrize("link", ["visit", ("visit",), ("visit", 3), 3, {"column": "visit"}])
    def test_other_links_are_refused(self, link):
        refused(lambda: Table("t", None, None, {"visit": Id()}, unit_through=link), "must name a column and a table")

    def test_a_unit_beside_the_link_is_refused(self):
        for unit in (ROW, "drug"):
            refused(lambda unit=unit: self.drugs(unit=unit, drug=Id()), "tables.drugs:")
