"""Membership: was this person in the training data of a model?"""

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Panel, Role
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of, protect_rows, read_setup
from sfumato.number_arguments import Number

OTHERS_SHARE = 0.1  # other people for each target: most profiles belong to one person, so the model overfits
SMOOTHING = 0.5
STEPS = 10  # bars in the figure


def membership(*, epsilon: Number = 1, seed: int | None = None, trials: int = 400) -> AttackResult:
    """Tell from a trained model whether a person was in its training data."""
    setup = read_setup(epsilon, seed, trials)
    targets = setup.trials
    labels = setup.generator.integers(0, 2, targets)  # of the target with each profile
    members = setup.generator.integers(0, 2, targets)  # the secret: was the target in the training data?
    others = round(OTHERS_SHARE * targets)
    profiles = np.concatenate([np.flatnonzero(members), setup.generator.integers(0, targets, others)])
    known = np.concatenate([labels[members == 1], setup.generator.integers(0, 2, others)])
    counts = np.zeros((targets, 2))
    np.add.at(counts, (profiles, known), 1)
    naive_confidence = _train(counts)[np.arange(targets), labels]
    confidence = _train(_ask_counts(profiles, known, targets, setup))[np.arange(targets), labels]
    naive = count_successes(naive_confidence > 0.6, members)
    protected = count_successes(confidence > 0.6, members)
    limit = limit_of(setup)
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="membership",
        title="Membership: was this person in the training data?",
        story=Story(
            "A model that predicts a diagnosis from a profile, and the target's profile and diagnosis.",
            "The attacker asks the model for its confidence in the target's diagnosis, and says 'member' if it is "
            "above 60 %. The model counts diagnoses for each profile. Most profiles belong to one person: it overfits.",
            "From exact counts, whether the target was in the training data. The same model from Sfumato's counts is "
            "confident by noise as well.",
        ),
        success="The attacker says correctly whether the target was in the training data.",
        figure=Figure(
            "Membership",
            (
                _show_confidence("Trained on exact counts", naive_confidence, members),
                _show_confidence("Trained on Sfumato's counts", confidence, members),
                compare_rates(naive, protected, limit, 0.5),
            ),
            "The first two panels: the model's confidence in the true diagnosis of targets.",
        ),
        notes=(
            "A model with one person for each profile cannot be both private and useful. Coarser profiles, with many "
            "people each, make a useful private model.",
        ),
    )


def _train(counts: np.ndarray) -> np.ndarray:
    """The model: the share of each diagnosis among the people with a profile, smoothed."""
    positive = np.maximum(counts, 0) + SMOOTHING
    shares: np.ndarray = positive / positive.sum(axis=1, keepdims=True)
    return shares


def _ask_counts(profiles: np.ndarray, labels: np.ndarray, targets: int, setup: Setup) -> np.ndarray:
    """Sfumato's noisy number of people with each profile and diagnosis."""
    table = pa.table({"profile": profiles, "ill": labels})
    columns = {"profile": Integer(0, targets - 1), "ill": Integer(0, 1)}
    curator = protect_rows(table, columns, setup)
    answer = curator.ask("SELECT profile, ill, COUNT(*) AS n FROM people GROUP BY profile, ill", epsilon=setup.epsilon)
    curator.close()
    counts = np.zeros((targets, 2))
    for row in answer.rows:
        counts[row["profile"], row["ill"]] = row["n"]
    return counts


def _show_confidence(title: str, confidence: np.ndarray, members: np.ndarray) -> Panel:
    bars = []
    for member, left in ((1, 0.05), (0, 0.5)):
        chosen = confidence[members == member]
        shares = np.histogram(chosen, STEPS, (0, 1))[0] * 100 / max(len(chosen), 1)
        bars.append(
            tuple(
                ((place + left) / STEPS, (place + left + 0.45) / STEPS, float(share))
                for place, share in enumerate(shares)
            )
        )
    roles: tuple[Role, Role] = ("first", "second")
    return Panel(
        title,
        "Confidence of the model for people in the training data and for others.",
        Axis("confidence in the true diagnosis", 0, 1),
        Axis("targets in %", 0, 104),
        (Bars(bars[0], roles[0], "in the training data"), Bars(bars[1], roles[1], "not in it")),
    )
