from fractions import Fraction

import mpmath
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernel.tails import find_least_tail

scales = st.fractions(min_value=Fraction(1, 50), max_value=10**9).filter(bool)
chances = st.fractions(min_value=Fraction(1, 10**15), max_value=1 - Fraction(1, 10**9)).filter(lambda c: 0 < c < 1)


def upper_tail(scale, k):
    """P(Z >= k) for k >= 1."""
    x = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return x**k / (1 + x)


@given(scales, chances)
def test_least_tail_is_the_least(scale, chance):
    k = find_least_tail(scale, chance)
    with mpmath.workprec(300):
        wanted = mpmath.mpf(chance.numerator) / chance.denominator
        assert upper_tail(scale, k) <= wanted
        assert k == 1 or upper_tail(scale, k - 1) > wanted
