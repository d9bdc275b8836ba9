"""Ingestion: one record changes how the other records are read."""

import tempfile
from pathlib import Path

import duckdb

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import Date, Id, Integer
from sfumato.drawing.marks import Axis, Bars, Label, Panel, Strokes
from sfumato.kernel.neighbours import ROW
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, read_setup
from sfumato.lab.attacks.two_worlds import Case, World, attack_cases
from sfumato.number_arguments import Number
from sfumato.opening import protect

PEOPLE = 300
DISTINCT = "SELECT COUNT(DISTINCT person) AS value FROM {table}"
IN_APRIL = "SELECT COUNT(*) AS value FROM {table} WHERE day >= DATE '2024-04-01' AND day < DATE '2024-05-01'"


def ingestion(*, epsilon: Number = 1, seed: int | None = None, trials: int = 300) -> AttackResult:
    """Add one record that changes how the other records of a file are read."""
    setup = read_setup(epsilon, seed, trials)
    part = read_setup(epsilon, seed, -(-setup.trials // 2))
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        cases = (_make_ids(part, Path(folder)), _make_dates(part, Path(folder)))
    return attack_cases(
        setup,
        part,
        cases,
        name="ingestion",
        title="Ingestion: one record changes how others are read",
        story=Story(
            "All records of a CSV file but the target's. The file is read with automatic detection of types.",
            "In one file, ids are written both as 7 and as 7.0. One record with the id A12 makes the column a text, "
            "and everybody else counts twice. In another file, 08/04/2024 is taken for the 8th of April. One record of "
            "04/25/2024 makes it the 4th of August, and all other days change with it.",
            f"One record changes the number of people by {cases[0].naive_change:.0f}, or the number of visits in April "
            f"by {cases[1].naive_change:.0f}. Noise for one record hides neither. Sfumato reads each value by its "
            "declared type alone. It refuses a file with a record that it cannot separate from its neighbours.",
        ),
        success="The attacker says correctly whether the target's record is in the file.",
        panel=_show_counts(cases),
        caption=(
            "Left: exact counts without noise, as DuckDB's automatic detection reads the file. Sfumato's count changes "
            "by one."
        ),
    )


def _make_ids(setup: Setup, folder: Path) -> Case:
    """Everybody has two records, with the id written in two ways. The target's id has a letter."""
    records = [record for number in range(PEOPLE) for record in (f"{number},1", f"{number}.0,2")]
    worlds = []
    for name, lines in (("ids_absent", records), ("ids_present", [*records, "A12,1"])):
        path = _write(folder / f"{name}.csv", "person,visit", lines)
        curator = protect(
            path,
            name="people",
            unit="person",
            columns={"person": Id(), "visit": Integer(1, 2)},
            budget=Budget(epsilon=setup.epsilon * setup.trials),
            max_rows_per_unit=2,
        )
        worlds.append(World(_count(DISTINCT, path), float(PEOPLE + (name == "ids_present")), curator))
    return Case("people", 1.0, DISTINCT.format(table="people") + " WHERE visit < 3 + {}", *worlds)


def _make_dates(setup: Setup, folder: Path) -> Case:
    """Visits on the 4th of a month, written month/day. The target's visit is on the 25th."""
    months = setup.generator.integers(1, 13, PEOPLE).tolist()
    records = [f"{month:02}/04/2024,1" for month in months]
    truth = months.count(4)
    worlds = []
    for name, lines in (("days_absent", records), ("days_present", [*records, "04/25/2024,1"])):
        path = _write(folder / f"{name}.csv", "day,visit", lines)
        curator = protect(
            path,
            name="people",
            unit=ROW,
            columns={"day": Date("2024-01-01", "2024-12-31"), "visit": Integer(1, 2)},
            budget=Budget(epsilon=setup.epsilon * setup.trials),
            date_format="%m/%d/%Y",
        )
        worlds.append(World(_count(IN_APRIL, path), float(truth + (name == "days_present")), curator))
    return Case("visits in April", 1.0, IN_APRIL.format(table="people") + " AND visit < 3 + {}", *worlds)


def _write(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return path


def _count(sql: str, path: Path) -> float:
    """What DuckDB counts when it detects the types itself."""
    return float(duckdb.execute(sql.format(table=f"read_csv('{path}')")).fetchall()[0][0])


def _show_counts(cases: tuple[Case, ...]) -> Panel:
    bars: dict[str, list[tuple[float, float, float]]] = {"first": [], "second": []}
    labels = []
    groups = [(case, how) for case in cases for how in ("naive", "Sfumato")]
    for place, (case, how) in enumerate(groups):
        for role, world, left in (("first", case.absent, 0.1), ("second", case.present, 0.5)):
            value = world.naive_value if how == "naive" else world.true_value
            bars[role].append((place + left, place + left + 0.4, value))
            labels.append(Label(place + left + 0.2, value + 12, f"{value:.0f}"))
    ticks = tuple((place + 0.5, how) for place, (_, how) in enumerate(groups))
    return Panel(
        "Exact counts, without noise",
        "; ".join(
            f"{case.name}: naive {case.absent.naive_value:.0f} without and {case.present.naive_value:.0f} with the "
            f"record, Sfumato {case.absent.true_value:.0f} and {case.present.true_value:.0f}"
            for case in cases
        ),
        Axis("", 0, 4, ticks),
        Axis("count", 0, 2 * PEOPLE + 120),
        (
            Bars(tuple(bars["first"]), "first", "without the record"),
            Bars(tuple(bars["second"]), "second", "with the record"),
            *labels,
            *(Label(2 * place + 1, 2 * PEOPLE + 80, case.name) for place, case in enumerate(cases)),
            Strokes((2.0,), 0, 2 * PEOPLE + 120, "limit"),
        ),
    )
