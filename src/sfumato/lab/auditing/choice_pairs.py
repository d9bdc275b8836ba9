"""Hard pairs for private choices (MIN, MAX, MODE, quantiles): crowds whose choice one person changes most."""

from collections.abc import Iterator, Mapping
from itertools import product

from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.certify import Certificate
from sfumato.lab.auditing.pair_maker import HIGH, LOW, TYPICAL, DatasetPair, Held, PairMaker

MOST_IN_CROWD = 400  # people; a crowd of more is not made
AROUND_FULL = 8  # people in a crowd whose number the choice does not depend on
HALVES = "lowest and highest"


def list_choice_pairs(
    maker: PairMaker, certificate: Certificate, values: Mapping[str, object]
) -> Iterator[DatasetPair]:
    """A crowd at the highest, at the lowest or at both values, and a person at either end or in between.

    A crowd at one end has as much weight as the target of MIN and MAX: there, one person decides. `values` are those
    of a row that the question counts.
    """
    choices = [certified.noise for certified in certificate.measurements]
    sizes = {
        _count_crowd(choice) for choice in choices if isinstance(choice, QuantileChoice | ExtremeChoice | ModeChoice)
    }
    for size, ends in product(sorted(sizes), ((HIGH,), (LOW,), (LOW, HIGH))):
        if size > MOST_IN_CROWD:
            continue
        crowd: Held = {}
        for place in range(size):
            maker.add(crowd, _make_person(maker, f"c{place}", ends[place % len(ends)], values))
        text = HALVES if len(ends) > 1 else ends[0]
        for before in (HIGH, LOW) if maker.replaces else (None,):
            replaced = {} if before is None else _make_person(maker, "somebody else", before, values)
            first = maker.as_tables(maker.add(maker.add({}, crowd), replaced))
            for after in (HIGH, LOW, TYPICAL):
                if after != before and (crowd or replaced):
                    person = _make_person(maker, "somebody", after, values)
                    second = maker.as_tables(maker.add(maker.add({}, crowd), person))
                    yield DatasetPair(
                        f"{size} people with {text} values, and a person with {after} ones", first, second
                    )


def _make_person(maker: PairMaker, name: str, kind: str, values: Mapping[str, object]) -> Held:
    """A person with as many rows as count."""
    return maker.make_person(name, kind, values, lambda table: table.max_rows_per_unit)


def _count_crowd(choice: QuantileChoice | ExtremeChoice | ModeChoice) -> int:
    """How many people have the weight of the target."""
    return -(-choice.target // choice.reach) if isinstance(choice, ExtremeChoice) else AROUND_FULL
