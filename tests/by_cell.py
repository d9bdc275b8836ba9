"""The integers that an engine measured, by cell, so that tests can compare two engines."""

from sfumato.kernel.plan import Keys, WeightedKeys


def list_by_cell(exact, plan):
    """Every nonzero integer, under (measurement, cell, bin or part), without keys in which no unit is counted."""
    found = (one.name for one in plan.measurements if isinstance(one.quantity, Keys | WeightedKeys))
    people = next(found, None)
    shown = {}
    for number, cell in enumerate(exact._keys if exact._keys is not None else range(plan.cells)):
        if people is None or exact._integers[people][number]:
            for measurement in plan.measurements:
                width = measurement.quantity.width
                of_cell = exact._integers.get(measurement.name, ())[number * width : (number + 1) * width]
                shown |= {(measurement.name, cell, place): int(integer) for place, integer in enumerate(of_cell)}
            for name, bins in exact._bins.items():
                shown |= {(name, cell, place): weight for place, weight in bins[number].items()}
    return {where: value for where, value in shown.items() if value}
