"""Linkage: join de-identified hospital rows with a public voter list (Sweeney's attack)."""

import datetime

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Category, ColumnDeclaration, Date
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Label, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import (
    PERCENTS,
    Setup,
    compare_rates,
    conclude,
    count_successes,
    limit_of,
    protect_rows,
    read_setup,
)
from sfumato.number_arguments import Number

PEOPLE = 1_000
DIAGNOSES = ("asthma", "cancer", "diabetes", "flu")
POSTCODES = tuple(f"021{place:02}" for place in range(38, 48))
SEXES = ("F", "M")
FIRST_DAY, LAST_DAY = datetime.date(1930, 1, 1), datetime.date(2009, 12, 31)
SETS = (
    ("sex", "sex"),
    ("+ postcode", "sex, postcode"),
    ("+ birth year", "sex, postcode, year(born)"),
    ("+ birth date", "sex, postcode, born"),
)


def linkage(*, epsilon: Number = 1, seed: int | None = None, trials: int = 200) -> AttackResult:
    """Join de-identified hospital rows with a public voter list, and read the diagnoses."""
    setup = read_setup(epsilon, seed, trials, most=PEOPLE)
    voters, hospital = generate_people(setup.generator)
    targets = setup.generator.choice(PEOPLE, setup.trials, replace=False)
    secrets = np.array(hospital["diagnosis"].to_pylist())[targets]
    naive = count_successes(_join(voters, hospital, targets), secrets)
    protected = count_successes(_ask(voters, hospital, targets, setup), secrets)
    limit = limit_of(setup, values=len(DIAGNOSES))
    figure = Figure(
        "Linkage",
        (_show_uniqueness(voters), compare_rates(naive, protected, limit, 1 / len(DIAGNOSES))),
        "Left: how many of the voters are the only one with their attributes. Right: naming a voter's diagnosis.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="linkage",
        title="Linkage: join de-identified rows with a public list",
        story=Story(
            "A voter list has each person's name, sex, postcode and birth date.",
            "A hospital removes the names from its rows and publishes the rest. The attacker joins them with the list "
            "on sex, postcode and birth date. Sfumato publishes no rows: the attacker asks for the noisy number of "
            "patients of each diagnosis with the target's attributes.",
            "From the rows, almost everybody's diagnosis. From Sfumato, little: one row changes the counts less than "
            "the noise does.",
        ),
        success=f"The attacker names the right diagnosis of a voter, one of {len(DIAGNOSES)} equally likely ones.",
        figure=figure,
        notes=(
            "Each question costs ε of a throwaway budget that is large enough for all targets. One person's row is "
            "read by one question only: two targets with the same attributes get the same stored answer.",
        ),
    )


def generate_people(generator: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """The voter list with names, and the hospital's rows without, in another order."""
    days = generator.integers(0, (LAST_DAY - FIRST_DAY).days + 1, PEOPLE)
    attributes = {
        "sex": generator.choice(SEXES, PEOPLE),
        "postcode": generator.choice(POSTCODES, PEOPLE),
        "born": pa.array([FIRST_DAY + datetime.timedelta(int(day)) for day in days]),
    }
    voters = pa.table({"name": [f"voter {number}" for number in range(PEOPLE)], **attributes})
    hospital = pa.table({**attributes, "diagnosis": generator.choice(DIAGNOSES, PEOPLE)})
    return voters, hospital


def _join(voters: pa.Table, hospital: pa.Table, targets: np.ndarray) -> list[str]:
    """The naive attack. If several rows match, the first is named."""
    database = duckdb.connect()
    database.register("voters", voters)
    database.register("hospital", hospital)
    found = database.execute(
        "SELECT name, any_value(diagnosis) FROM voters JOIN hospital USING (sex, postcode, born) GROUP BY name"
    ).fetchall()
    database.close()
    diagnosis_of = dict(found)
    return [diagnosis_of[f"voter {target}"] for target in targets]


def _ask(voters: pa.Table, hospital: pa.Table, targets: np.ndarray, setup: Setup) -> list[str]:
    """The same attack through Sfumato: the diagnosis with the largest noisy count is named."""
    columns: dict[str, ColumnDeclaration] = {
        "sex": Category(SEXES),
        "postcode": Category(POSTCODES),
        "born": Date(FIRST_DAY.isoformat(), LAST_DAY.isoformat()),
        "diagnosis": Category(DIAGNOSES),
    }
    curator = protect_rows(hospital, columns, setup, questions=len(targets), rows=PEOPLE)
    guesses = []
    for target in targets:
        voter = voters.slice(int(target), 1).to_pylist()[0]
        answer = curator.ask(
            "SELECT diagnosis, COUNT(*) AS n FROM people "
            f"WHERE sex = '{voter['sex']}' AND postcode = '{voter['postcode']}' AND born = DATE '{voter['born']}' "
            "GROUP BY diagnosis",
            epsilon=setup.epsilon,
        )
        guesses.append(max(answer.rows, key=lambda row: row["n"])["diagnosis"])
    curator.close()
    return guesses


def _show_uniqueness(voters: pa.Table) -> Panel:
    database = duckdb.connect()
    database.register("voters", voters)
    shares = []
    for _, columns in SETS:
        alone = f"SELECT count(*) FROM (SELECT 1 FROM voters GROUP BY {columns} HAVING count(*) = 1)"
        shares.append(100 * database.execute(alone).fetchall()[0][0] / PEOPLE)
    database.close()
    bars = Bars(tuple((place + 0.15, place + 0.85, share) for place, share in enumerate(shares)), "naive")
    labels = tuple(Label(place + 0.5, share + 2, f"{share:.0f} %") for place, share in enumerate(shares))
    ticks = tuple((place + 0.5, name) for place, (name, _) in enumerate(SETS))
    words = ", ".join(f"{name} {share:.0f} %" for (name, _), share in zip(SETS, shares, strict=True))
    return Panel(
        "Voters who are alone with their attributes",
        f"Unique voters given their attributes: {words}.",
        Axis("attributes in the published rows", 0, len(SETS), ticks),
        Axis("unique voters in %", 0, 112, PERCENTS),
        (bars, *labels),
    )
