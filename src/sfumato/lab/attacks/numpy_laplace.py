"""Which doubles numpy's Laplace generator can produce, exactly.

numpy draws U = k / 2^53 and returns loc + scale * log(U + U) if U < 1/2, else loc - scale * log(2 - U - U). In units of
2^-53, the argument of the logarithm is an even number on the lower side. On the upper side, 2 - U is rounded to a
multiple of 2^-52 (half to even) before U is subtracted: the argument is 0 mod 4, 1 mod 8 or 7 mod 8.
"""

import math

UNIT = 2.0**-53
SLACK = 8  # candidates on each side, for the rounding of exp, log, the product and the sum


def is_reachable(output: float, value: float, scale: float) -> bool:
    """Can `value + generator.laplace(0, scale)` be exactly this double?"""
    distance = abs(output - value)
    rounding = max(math.ulp(output), math.ulp(distance), math.ulp(value))
    least = math.floor(math.exp(-(distance + rounding) / scale) / UNIT) - SLACK
    most = math.ceil(math.exp(-(distance - rounding) / scale) / UNIT) + SLACK
    upper = output >= value
    for units in range(max(1, least), min(1 << 53, most) + 1):
        if not (units % 4 == 0 or units % 8 in (1, 7) if upper else units % 2 == 0):
            continue
        noise = scale * math.log(units * UNIT)
        if output == (value - noise if upper else value + noise):
            return True
    return False
