"""The field of 2**m elements: whole numbers below 2**m, added by exclusive or, multiplied modulo a polynomial.

No privacy proof rests on this file: local hashing is private with any hash function (K-45).
"""

from functools import lru_cache, reduce
from operator import xor

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind

MOST_DEGREE = 63
Elements = npt.NDArray[np.uint64]


@lru_cache(maxsize=MOST_DEGREE)
def find_field_polynomial(degree: int) -> int:
    """The numerically least irreducible polynomial of a degree, its coefficients as bits: x**3 + x + 1 is 11."""
    return next(value for value in range(1 << degree, 2 << degree) if is_irreducible(value))


@lru_cache(maxsize=256)
def is_irreducible(polynomial: int) -> bool:
    """Ben-Or's test: no common factor with x**(2**i) - x for any i up to half the degree."""
    if polynomial <= 1:
        return False
    power = 2
    for _ in range((polynomial.bit_length() - 1) // 2):
        power = _reduce(_square(power), polynomial)
        if _find_common_divisor(polynomial, power ^ 2) != 1:
            return False
    return True


def check_polynomial(polynomial: object, degree: int) -> int:
    """Check a polynomial from a document: it must be irreducible, and of this degree."""
    # the sign is checked first: division by a negative number would never end
    if type(polynomial) is not int or not 1 << degree <= polynomial < 2 << degree or not is_irreducible(polynomial):
        kind = "another" if type(polynomial) is int else describe_kind(polynomial)
        raise InvalidParameter("polynomial", f"must be an irreducible polynomial of degree {degree}", kind)
    return polynomial


def multiply(left: Elements, right: Elements, polynomial: int) -> Elements:
    """Multiply two arrays of elements, entry by entry."""
    degree = polynomial.bit_length() - 1
    total = np.zeros(np.broadcast(left, right).shape, np.uint64)
    shifted = left
    for place in range(degree):
        total ^= shifted * (right >> np.uint64(place) & np.uint64(1))
        shifted = multiply_by_x(shifted, polynomial)
    return total


def multiply_by_x(elements: Elements, polynomial: int) -> Elements:
    """Multiply elements by x: shift by one place, and reduce."""
    degree = polynomial.bit_length() - 1
    return elements << np.uint64(1) ^ (elements >> np.uint64(degree - 1)) * np.uint64(polynomial)


def combine_basis(basis: list[int]) -> Elements:
    """For each whole number below 2**len(basis), the sum of the basis elements that its bits select."""
    total = np.zeros(1, np.uint64)
    for element in basis:
        total = np.concatenate((total, total ^ np.uint64(element)))
    return total


def sum_basis(basis: list[int], selected: int) -> int:
    """One entry of `combine_basis`."""
    return reduce(xor, (element for place, element in enumerate(basis) if selected >> place & 1), 0)


def multiply_by_powers(element: int, count: int, polynomial: int) -> list[int]:
    """element, element * x, element * x**2 ... as whole numbers."""
    row = [element]
    while len(row) < count:
        row.append(_reduce(row[-1] << 1, polynomial))
    return row


def compute_low_bit_form(polynomial: int) -> list[int]:
    """The symmetric matrix B over two elements, as rows of bits, of: the lowest bit of a * v is a . (B v)."""
    degree = polynomial.bit_length() - 1
    lowest = [element & 1 for element in multiply_by_powers(1, 2 * degree, polynomial)]
    return [sum(lowest[row + column] << column for column in range(degree)) for row in range(degree)]


def invert_matrix(matrix: list[int]) -> list[int]:
    """The inverse of a square matrix over two elements whose rows are given as bits."""
    size = len(matrix)
    rows = [row | 1 << size + index for index, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(index for index in range(column, size) if rows[index] >> column & 1)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows = [row ^ rows[column] if index != column and row >> column & 1 else row for index, row in enumerate(rows)]
    return [row >> size for row in rows]


def _square(value: int) -> int:
    return int(f"{value:b}", 4)  # squaring inserts a zero between neighbouring bits


def _reduce(value: int, polynomial: int) -> int:
    while value.bit_length() >= polynomial.bit_length():
        value ^= polynomial << value.bit_length() - polynomial.bit_length()
    return value


def _find_common_divisor(left: int, right: int) -> int:
    while right:
        left, right = right, _reduce(left, right)
    return left
