"""The tables for one of k categories: how each is named, described, chosen for an epsilon, and what a report supports.

A report *supports* some categories: the true one with probability p, and any other given one with probability q. To add
a mechanism: write its table in `local/mechanisms/`, add it to `CategoryTable`, and follow mypy to every `match`.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.exact import enclose_exp_neg
from sfumato.local.mechanisms.binary_fields import find_field_polynomial
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.hadamard import Hadamard
from sfumato.local.mechanisms.hashing import MOST_HASH_BITS, Hashing
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.subset import Subset
from sfumato.local.mechanisms.table_limits import check_categories
from sfumato.local.mechanisms.two_stage import TwoStage, pass_two_responses, pass_two_rows
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.coin_search import find_greatest_coin
from sfumato.local.randomisers.report_forms import BitRows, Codes, Form

NAMES = ("rr", "krr", "subset", "oue", "sue", "olh", "hadamard")
HALF = UNITS // 2

CategoryTable = Kary | Unary | Subset | Hashing | Hadamard | TwoStage
Support = tuple[Fraction, Fraction]


def make_category_table(name: str, k: int, epsilon: Decimal) -> CategoryTable:
    """The most informative table of this name that costs at most epsilon."""
    check_categories(k)
    match name:
        case "rr" | "krr":
            return Kary(k, find_greatest_coin(lambda keep: Kary(k, keep).ratio, epsilon), name)
        case "oue":  # a fair coin for the true bit; the other bits are set as rarely as epsilon allows
            unset = find_greatest_coin(lambda unset: Unary(k, HALF, UNITS - unset, name).ratio, epsilon)
            return Unary(k, HALF, UNITS - unset, name)
        case "sue":  # every bit is kept with the same probability
            keep = find_greatest_coin(lambda keep: Unary(k, keep, UNITS - keep, name).ratio, epsilon)
            return Unary(k, keep, UNITS - keep, name)
        case "subset":
            size = find_best_subset_size(k, epsilon)
            return Subset(k, size, find_greatest_coin(lambda include: Subset(k, size, include).ratio, epsilon))
        case "olh":
            bits = find_best_hash_bits(epsilon)
            polynomial = find_field_polynomial(max((k - 1).bit_length(), bits))
            return Hashing(k, bits, polynomial, find_greatest_coin(lambda keep: Kary(1 << bits, keep).ratio, epsilon))
        case "hadamard":
            return Hadamard(k, find_greatest_coin(lambda keep: Hadamard(k, keep).ratio, epsilon))
        case _:
            raise InvalidParameter("name", f"must be one of {', '.join(NAMES)}", "another name")


def find_best_subset_size(k: int, epsilon: Decimal) -> int:
    """The size w of least mean squared error: one of the two whole numbers around k / (e**epsilon + 1), at least 1."""
    low, high = enclose_exp_neg(Fraction(epsilon), 64)
    shrunk = Fraction(low + high, 2 << 64)  # e**-epsilon; the choice of w affects accuracy only, never privacy
    near = int(k * shrunk / (1 + shrunk))
    around = [size for size in (near, near + 1) if 1 <= size < k] or [1]

    def compute_squared_error(size: int) -> Fraction:
        include = size / (size + (k - size) * shrunk)
        other = (size - include) / (k - 1)
        return (other * (1 - other) * (k - 1) + include * (1 - include)) / (include - other) ** 2

    return min(around, key=compute_squared_error)


def find_best_hash_bits(epsilon: Decimal) -> int:
    """The t for which g = 2**t has the least variance, (e**eps - 1 + g)**2 / (g - 1): g is near e**eps + 1."""
    low, high = enclose_exp_neg(Fraction(epsilon), 64)
    growth = Fraction(2 << 64, max(low + high, 1))  # e**epsilon; the choice of g affects accuracy only, never privacy
    return min(range(1, MOST_HASH_BITS + 1), key=lambda bits: (growth - 1 + (1 << bits)) ** 2 / ((1 << bits) - 1))


def support_of(table: CategoryTable) -> Support:  # noqa: PLR0911 - one return for each kind
    """p and q: the probability that a report supports its own category, and that it supports another given one."""
    match table:
        case Kary(k, keep):
            return Fraction(keep, UNITS), Fraction(UNITS - keep, UNITS * (k - 1))
        case Unary(one=one, zero=zero):
            return Fraction(one, UNITS), Fraction(zero, UNITS)
        case Subset(k, size, units):
            include = Fraction(units, UNITS)
            return include, (include * (size - 1) + (1 - include) * size) / (k - 1)
        case Hashing(keep=keep):
            return Fraction(keep, UNITS), Fraction(1, table.buckets)
        case Hadamard(keep=keep):
            return Fraction(keep, UNITS), Fraction(1, 2)
        case TwoStage(Kary() as first, Kary() as second):
            return pass_two_responses(first, second)
        case TwoStage(Unary() as first, Unary() as second):
            return pass_two_rows(first, second)
        case TwoStage():
            raise AssertionError("both stages are of one kind: checked when the table is built")
        case _:
            assert_never(table)


def blanket_support_of(table: CategoryTable) -> Support:
    """For a report that is drawn without regard to the answer: the probability of supporting one category, and two."""
    match table:
        case Kary(k) | TwoStage(permanent=Kary(k)):
            return Fraction(1, k), Fraction(0)
        case Unary() | TwoStage():
            _, other = support_of(table)
            return other, other**2
        case Subset(k, size):
            return Fraction(size, k), Fraction(size * (size - 1), k * (k - 1))
        case Hashing():
            return Fraction(1, table.buckets), Fraction(1, table.buckets**2)
        case Hadamard():
            return Fraction(1, 2), Fraction(1, 4)
        case _:
            assert_never(table)


def form_of(table: CategoryTable) -> Form:
    """The form of the table's reports."""
    match table:
        case Kary(k):
            return Codes(k)
        case Unary(k):
            return BitRows(k)
        case Subset(k, size):
            return BitRows(k, size)
        case Hashing():
            return Codes(table.buckets << table.seed_bits)
        case Hadamard():
            return Codes(table.columns)
        case TwoStage(permanent):
            return form_of(permanent)
        case _:
            assert_never(table)


def describe_category_table(table: CategoryTable) -> dict[str, object]:
    """The published table: plain numbers and text, from which `rebuild_category_table` makes the same table."""
    about = {"mechanism": table.name, "k": table.k}
    match table:
        case Kary(keep=keep) | Hadamard(keep=keep):
            return {**about, "coins": {"keep": keep}}
        case Unary(one=one, zero=zero):
            return {**about, "coins": {"one": one, "zero": zero}}
        case Subset(size=size, include=include):
            return {**about, "size": size, "coins": {"include": include}}
        case Hashing(hash_bits=bits, polynomial=polynomial, keep=keep):
            return {**about, "hash_bits": bits, "polynomial": polynomial, "coins": {"keep": keep}}
        case TwoStage(first, second):
            stages = {"permanent": first, "instantaneous": second}
            return {"mechanism": "memoised"} | {name: describe_category_table(stage) for name, stage in stages.items()}
        case _:
            assert_never(table)


def rebuild_category_table(description: object) -> CategoryTable:
    """The table of a published description. A document that is not exactly such a description is refused."""
    match description:
        case {"mechanism": "rr" | "krr" as name, "k": k, "coins": {"keep": keep, **rest}, **more} if (
            not rest and not more
        ):
            return Kary(k, keep, name)
        case {"mechanism": "subset", "k": k, "size": size, "coins": {"include": include, **rest}, **more} if (
            not rest and not more
        ):
            return Subset(k, size, include)
        case {"mechanism": "oue" | "sue" as name, "k": k, "coins": {"one": one, "zero": zero, **rest}, **more} if (
            not rest and not more
        ):
            return Unary(k, one, zero, name)
        case {
            "mechanism": "olh",
            "k": k,
            "hash_bits": bits,
            "polynomial": polynomial,
            "coins": {"keep": keep, **rest},
            **more,
        } if not rest and not more:
            return Hashing(k, bits, polynomial, keep)
        case {"mechanism": "hadamard", "k": k, "coins": {"keep": keep, **rest}, **more} if not rest and not more:
            return Hadamard(k, keep)
    kind = "another document" if isinstance(description, Mapping) else describe_kind(description)
    raise InvalidParameter("description", "must be the published table of a randomiser", kind)
