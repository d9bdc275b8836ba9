"""From a published description back to what it describes."""

from collections.abc import Mapping

from sfumato.local.heavy_hitters import HeavyHitters, rebuild_heavy_hitters
from sfumato.local.means import MEAN_NAMES, MeanRandomiser, rebuild_mean
from sfumato.local.questions import Questions, rebuild_questions
from sfumato.local.randomisers import Randomiser, rebuild_categories

Described = Randomiser | MeanRandomiser | Questions | HeavyHitters


def rebuild(description: object) -> Described:
    """What `describe()` described; whatever is not exactly such a document is refused.

    Nothing that a document says about epsilon is read: `epsilon` of the result is worked out from its integers.
    """
    match description.get("mechanism") if isinstance(description, Mapping) else None:
        case "pem":
            return rebuild_heavy_hitters(description)
        case "questions":
            return rebuild_questions(description)
        case str(name) if name in MEAN_NAMES:
            return rebuild_mean(description)
        case _:
            return rebuild_categories(description)
