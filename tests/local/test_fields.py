import numpy as np
import pytest
from scripted import Scripted

import sfumato as sf
from sfumato.local.mechanisms.binary_fields import find_field_polynomial, is_irreducible, multiply, multiply_by_powers
from sfumato.local.mechanisms.hadamard import Hadamard
from sfumato.local.mechanisms.hashing import Hashing
from sfumato.local.randomisers.support_counts import count_supports, transform


def times(left, right, polynomial):
    """Multiplication as at school, one value at a time: the oracle."""
    total = 0
    for place in range(right.bit_length()):
        if right >> place & 1:
            total ^= left << place
    while total.bit_length() >= polynomial.bit_length():
        total ^= polynomial << total.bit_length() - polynomial.bit_length()
    return total


@pytest.mark.parametrize("degree", range(1, 9))
def test_least_irreducible_polynomials_by_trial_division(degree):
    def divides(divisor, value):
        while value.bit_length() >= divisor.bit_length():
            value ^= divisor << value.bit_length() - divisor.bit_length()
        return value == 0

    def prime(value):
        return not any(divides(divisor, value) for divisor in range(2, 1 << value.bit_length() - 1))

    candidates = range(1 << degree, 2 << degree)
    assert [polynomial for polynomial in candidates if is_irreducible(polynomial)] == [
        polynomial for polynomial in candidates if prime(polynomial)
    ]
    assert find_field_polynomial(degree) == next(polynomial for polynomial in candidates if prime(polynomial))


@pytest.mark.parametrize("degree", [1, 2, 3, 7, 20, 48, 63])
def test_products_are_those_of_a_field(degree):
    polynomial = find_field_polynomial(degree)
    few = [value % (1 << degree) for value in (0, 1, 2, 3, 5, 0x9E3779B97F4A7C15, 0x2545F4914F6CDD1D)]
    left, right = np.meshgrid(np.array(few, np.uint64), np.array(few, np.uint64))
    expected = [[times(int(a), int(b), polynomial) for a in few] for b in few]
    assert multiply(left, right, polynomial).tolist() == expected
    powers = multiply_by_powers(few[-1], 5, polynomial)
    assert powers == [times(few[-1], 1 << i, polynomial) if degree > 4 else power for i, power in enumerate(powers)]


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_every_element_but_zero_has_an_inverse(degree):
    everyone = np.arange(1 << degree, dtype=np.uint64)
    table = multiply(everyone[:, None], everyone[None, :], find_field_polynomial(degree))
    assert all(sorted(row) == everyone.tolist() for row in table[1:].tolist())
    assert not table[0].any()


@pytest.mark.parametrize(("k", "hash_bits"), [(5, 1), (9, 2), (8, 3), (3, 4), (16, 4)])
def test_collisions_are_exactly_one_in_g(k, hash_bits):
    """Over all seeds: every pair of categories has the same hash for 1/g of the seeds. This is why q = 1/g."""
    bits = max((k - 1).bit_length(), hash_bits)
    seeds, values = np.arange(1 << bits, dtype=np.uint64), np.arange(k, dtype=np.uint64)
    hashes = multiply(seeds[:, None], values[None, :], find_field_polynomial(bits)) & np.uint64((1 << hash_bits) - 1)
    for first in range(k):
        for second in range(first):
            assert (hashes[:, first] == hashes[:, second]).sum() << hash_bits == 1 << bits


@pytest.mark.parametrize(("k", "hash_bits"), [(2, 1), (5, 1), (100, 2), (60, 5), (3000, 7), (300, 12)])
def test_supports_equal_hashing_every_category(k, hash_bits):
    """The transform against the plain count; the last cases work in blocks of seeds."""
    mechanism = Hashing(k, hash_bits, find_field_polynomial(max((k - 1).bit_length(), hash_bits)), 3 << 30)
    reports = np.random.default_rng(5).integers(0, mechanism.buckets << mechanism.seed_bits, 2000)
    seeds, hashes = (reports >> hash_bits).astype(np.uint64), reports & (mechanism.buckets - 1)
    plain = np.zeros(k, np.int64)
    for value in range(k):
        product = multiply(seeds, np.full(seeds.shape, value, np.uint64), mechanism.polynomial)
        plain[value] = ((product & np.uint64(mechanism.buckets - 1)).astype(np.int64) == hashes).sum()
    assert count_supports(mechanism, reports).tolist() == plain.tolist()
    assert count_supports(mechanism, reports[:1]).max() <= 1


@pytest.mark.parametrize("k", [2, 7, 8, 100])
def test_hadamard_supports_equal_counting_signs(k):
    mechanism = Hadamard(k, 3 << 30)
    reports = np.random.default_rng(6).integers(0, mechanism.columns, 500)
    plain = [sum((int(report) & value + 1).bit_count() % 2 == 0 for report in reports) for value in range(k)]
    assert count_supports(mechanism, reports).tolist() == plain


def test_the_transform_is_its_own_inverse_along_the_last_axis():
    values = np.random.default_rng(7).integers(-9, 9, (3, 16))
    assert (transform(transform(values)) == 16 * values).all()
    signs = [[(-1) ** (x & y).bit_count() for y in range(16)] for x in range(16)]
    assert (transform(values) == values @ np.array(signs)).all()


def test_what_is_no_field_is_refused():
    for polynomial in (0b111_0000, 128, 7, "131", True, None, 0, -131, -find_field_polynomial(7), -(2**53)):
        with pytest.raises(sf.errors.InvalidParameter, match="polynomial"):
            Hashing(100, 2, polynomial, 3 << 30)
    for bits in (0, 21, "2"):
        with pytest.raises(sf.errors.InvalidParameter, match="hash_bits"):
            Hashing(100, bits, 131, 3 << 30)


def test_a_seed_of_zero_is_as_good_as_any():
    mechanism = Hashing(5, 1, find_field_polynomial(3), 3 << 30)
    assert mechanism.draw(np.array([3]), Scripted(bytes(8)))[0] == 0
