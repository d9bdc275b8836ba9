"""Homogeneity: read the diagnosis from a class of a 4-anonymous table whose members all have the same one."""

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Category, ColumnDeclaration, Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Panel, Strokes
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import (
    Setup,
    compare_rates,
    conclude,
    count_successes,
    limit_of,
    protect_rows,
    read_setup,
)
from sfumato.lab.success_rate import SuccessRate
from sfumato.number_arguments import Number

DIAGNOSES = ("cancer", "heart disease", "viral infection")
ANONYMITY = 4  # members of a class
# the lecture's twelve patients: generalised postcode and age, and the diagnoses of the four patients of the class
TWELVE_PATIENTS = (
    ("130**, <30", (1, 1, 2, 2)),
    ("1485*, ≥40", (0, 1, 2, 2)),
    ("130**, 3*", (0, 0, 0, 0)),
)


def homogeneity(*, epsilon: Number = 1, seed: int | None = None, trials: int = 150) -> AttackResult:
    """Read the diagnosis from a 4-anonymous table, in a class whose members all have the same one."""
    setup = read_setup(epsilon, seed, trials, most=400)
    wanted = setup.trials
    # a class is homogeneous by chance with probability 1/27; a quarter more classes, so that there are enough
    classes = wanted * len(DIAGNOSES) ** (ANONYMITY - 1) * 5 // 4
    diagnoses = setup.generator.integers(0, len(DIAGNOSES), (classes, ANONYMITY))
    secrets = diagnoses[:, 0]  # of the target, one member of each class
    counts = np.stack([(diagnoses == kind).sum(axis=1) for kind in range(len(DIAGNOSES))], axis=1)
    naive = _attack(counts, secrets, wanted)
    protected = _attack(_ask_counts(diagnoses, setup), secrets, wanted)
    limit = limit_of(setup, values=len(DIAGNOSES))
    figure = Figure(
        "Homogeneity",
        (_show_lecture(), compare_rates(naive, protected, limit, 1 / len(DIAGNOSES))),
        "Left: the lecture's 4-anonymous table of twelve patients; one dot for each patient. The third class is "
        "homogeneous: whoever is known to be in it has cancer. Right: the attack on a larger generated table.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="homogeneity",
        title="Homogeneity: a k-anonymous class with one diagnosis",
        story=Story(
            "The target's postcode and age, and so the class of the 4-anonymous table that the target is in.",
            "The attacker looks for classes whose four patients all have the same diagnosis. Sfumato publishes noisy "
            "counts instead of the table; the attacker takes the classes that look most homogeneous.",
            "From the table, the diagnosis of everybody in a homogeneous class, with certainty. From the noisy counts, "
            "little, because classes look homogeneous by noise.",
        ),
        success="The attacker names the diagnosis of one member of a class that looks homogeneous. Patients have one "
        f"of {len(DIAGNOSES)} equally likely diagnoses, independently of each other.",
        figure=figure,
    )


def _attack(counts: np.ndarray, secrets: np.ndarray, wanted: int) -> SuccessRate:
    """Take the `wanted` classes that look most homogeneous, and name the diagnosis with the largest count."""
    ordered = np.sort(counts, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    homogeneous = np.argsort(-lead, kind="stable")[:wanted]
    return count_successes(counts.argmax(axis=1)[homogeneous], secrets[homogeneous])


def _ask_counts(diagnoses: np.ndarray, setup: Setup) -> np.ndarray:
    """Sfumato's noisy number of patients of each class and diagnosis."""
    classes = len(diagnoses)
    table = pa.table(
        {
            "class": np.repeat(np.arange(classes), ANONYMITY),
            "diagnosis": np.array(DIAGNOSES)[diagnoses.ravel()],
        }
    )
    columns: dict[str, ColumnDeclaration] = {"class": Integer(0, classes - 1), "diagnosis": Category(DIAGNOSES)}
    curator = protect_rows(table, columns, setup, rows=diagnoses.size)
    answer = curator.ask(
        "SELECT class, diagnosis, COUNT(*) AS n FROM people GROUP BY class, diagnosis", epsilon=setup.epsilon
    )
    curator.close()
    counts = np.zeros((classes, len(DIAGNOSES)))
    for row in answer.rows:
        counts[row["class"], DIAGNOSES.index(row["diagnosis"])] = row["n"]
    return counts


def _show_lecture() -> Panel:
    points: list[tuple[float, float]] = []
    marked: list[tuple[float, float]] = []
    for place, (_, members) in enumerate(TWELVE_PATIENTS):
        for kind in set(members):
            number = members.count(kind)
            dots = [(place + 0.5 + 0.15 * (index - (number - 1) / 2), kind + 0.5) for index in range(number)]
            (marked if number == ANONYMITY else points).extend(dots)
    ticks = tuple((place + 0.5, name) for place, (name, _) in enumerate(TWELVE_PATIENTS))
    kinds = tuple((kind + 0.5, name.split()[0]) for kind, name in enumerate(DIAGNOSES))
    return Panel(
        "Twelve patients, 4-anonymous",
        "Three classes of four patients. The first has two heart diseases and two viral infections, the second one "
        "cancer, one heart disease and two viral infections. All four of the third have cancer.",
        Axis("class: postcode and age, generalised", 0, 3, ticks),
        Axis("diagnosis", 0, 3, kinds),
        (
            Strokes((1.0, 2.0), 0, 3, "limit"),
            Dots(tuple(points), "plain", "mixed class", size=5),
            Dots(tuple(marked), "naive", "homogeneous class", "square", size=5),
        ),
    )
