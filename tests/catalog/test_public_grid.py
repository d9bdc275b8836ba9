from sfumato.catalog.public_grid import choose_exponent


def test_grids_come_from_bounds():
    assert choose_exponent(0, 120, whole=True, per_row=True) == 0
    assert choose_exponent(0, 0, whole=False, per_row=False) == 0
    for lower, upper in ((0, 1), (-3, 2), (0, 200_000), (1e-9, 2e-9), (0, 2**53)):
        for whole in (True, False):
            exponent = choose_exponent(lower, upper, whole=whole, per_row=False)
            assert max(abs(lower), abs(upper)) / 2.0**exponent <= 2**25 or exponent == 0
            assert max(abs(lower), abs(upper)) / 2.0**exponent >= 2**24
            assert not whole or exponent <= 0
    assert choose_exponent(0, 2**53, whole=True, per_row=True) == 0
