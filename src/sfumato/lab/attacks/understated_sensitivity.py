"""Sensitivity: data on which a naive bounded sum changes by far more than it claims (Casacuberta et al., 2022)."""

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import ColumnDeclaration, Integer, Real
from sfumato.curator import Curator
from sfumato.drawing.marks import Axis, Bars, Label, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, protect_rows, read_setup
from sfumato.lab.attacks.two_worlds import Case, World, attack_cases
from sfumato.number_arguments import Number

SQL = "SELECT SUM(v) AS value FROM people WHERE v < {}"
BINADE = 14  # the running total crosses 2^14, where the spacing of 32-bit floats doubles
SMALL_ROWS = 1 << 15
LARGE = 1 << 53
LARGE_ROWS = 1 << 10  # as many as fit in a 64-bit sum, and one more
HIGHEST = 100_000.0  # where the figure draws NaN


def sensitivity(*, epsilon: Number = 1, seed: int | None = None, trials: int = 240) -> AttackResult:
    """Add one record that changes a naive bounded sum by far more than its claimed sensitivity."""
    setup = read_setup(epsilon, seed, trials)
    part = read_setup(epsilon, seed, -(-setup.trials // 3))
    cases = (_make_rounding(part), _make_overflow(part), _make_nan(part))
    return attack_cases(
        setup,
        part,
        cases,
        name="sensitivity",
        title="Sensitivity: sums in floats and machine integers",
        story=Story(
            "All rows but the target's, and that the sum clamps each value to declared bounds.",
            "The attacker chooses data on which arithmetic goes wrong. A running total in 32-bit floats: the target "
            "lifts it over 2^14, where small numbers are rounded away. A 64-bit sum: the target makes it overflow. A "
            "NaN: clamping lets it pass.",
            f"One row moves the float total by {cases[0].naive_change:.0f} times its claimed sensitivity, and the "
            f"64-bit sum by {cases[1].naive_change:,.0f} times. Noise for the claim hides neither, and a NaN is seen. "
            "Sfumato adds integers on a fixed grid, exactly and in any order.",
        ),
        success="The attacker says correctly whether the target's row is in the data.",
        panel=_show_changes(cases),
        caption=(
            "Left: the change that one row causes, in multiples of the claimed sensitivity. Sfumato's bars are "
            "what its kernel certifies."
        ),
    )


def _make_rounding(setup: Setup) -> Case:
    """Values in [-1, 1]. With the target, the total lies above 2^14 and ignores the many small negative values."""
    small = -0.75 * 2.0 ** (BINADE - 24)  # 0.75 of the spacing below 2^14, 0.375 of the spacing above
    rows = np.concatenate([np.ones((1 << BINADE) - 1), [0.5], np.full(SMALL_ROWS, small)])
    columns: dict[str, ColumnDeclaration] = {"v": Real(-1, 1)}
    worlds = [
        World(_add_in_floats(values), float(values.sum()), _protect(values, columns, setup))
        for values in (rows, np.concatenate([[1.0], rows]))
    ]
    return Case("32-bit float", 1.0, SQL.replace("{}", "2 + {}"), *worlds)


def _add_in_floats(values: np.ndarray) -> float:
    """The sum of a column of a table of 32-bit floats. numpy adds the rows of a table one after another."""
    table = np.column_stack([values, values]).astype(np.float32)
    return float(np.clip(table, -1, 1).sum(axis=0)[0])


def _make_overflow(setup: Setup) -> Case:
    """Integers in [0, 2^53]. The sum of 1,023 of them fits in 64 bits; the sum of 1,024 does not."""
    rows = np.full(LARGE_ROWS, LARGE)
    columns: dict[str, ColumnDeclaration] = {"v": Integer(0, LARGE)}
    worlds = [
        World(float(values.sum()), float(len(values)) * LARGE, _protect(values, columns, setup))
        for values in (rows[1:], rows)
    ]
    return Case("64-bit integer", float(LARGE), SQL.replace("{}", f"{LARGE + 1} + {{}}"), *worlds)


def _make_nan(setup: Setup) -> Case:
    """Values in [0, 100], and a NaN."""
    rows = setup.generator.integers(0, 100, 50).astype(float)
    columns: dict[str, ColumnDeclaration] = {"v": Real(0, 100)}
    worlds = [
        World(float(np.clip(values, 0, 100).sum()), float(np.nansum(values)), _protect(values, columns, setup))
        for values in (rows, np.concatenate([rows, [np.nan]]))
    ]
    return Case("NaN", 100.0, SQL.replace("{}", "200 + {}"), *worlds)


def _protect(values: np.ndarray, columns: dict[str, ColumnDeclaration], setup: Setup) -> Curator:
    return protect_rows(pa.table({"v": values}), columns, setup, questions=setup.trials)


def _show_changes(cases: tuple[Case, ...]) -> Panel:
    changes = [HIGHEST if np.isnan(case.naive_change) else case.naive_change for case in cases]
    texts = ["NaN" if np.isnan(case.naive_change) else f"{case.naive_change:,.0f}" for case in cases]
    naive = tuple((place + 0.1, place + 0.5, change) for place, change in enumerate(changes))
    protected = tuple((place + 0.5, place + 0.9, 1.0) for place in range(len(cases)))
    labels = [
        Label(place + 0.3, change * 1.2, text) for place, (change, text) in enumerate(zip(changes, texts, strict=True))
    ]
    ones = [Label(place + 0.7, 1.2, "1") for place in range(len(cases))]
    return Panel(
        "What one row changes, per claimed sensitivity",
        "Naive: " + ", ".join(f"{case.name} {text}" for case, text in zip(cases, texts, strict=True)) + ". Sfumato: 1.",
        Axis("arithmetic of the sum", 0, 3, tuple((place + 0.5, case.name) for place, case in enumerate(cases))),
        Axis("change / claimed sensitivity", 0.1, 4 * HIGHEST, log=True),
        (Bars(naive, "naive", "naive"), Bars(protected, "protected", "Sfumato"), *labels, *ones),
    )
