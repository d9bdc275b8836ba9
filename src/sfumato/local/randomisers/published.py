"""Rebuild a randomiser from its published description."""

from collections.abc import Mapping

from sfumato.local.randomisers.category_randomisers import Randomiser, rebuild_categories
from sfumato.local.randomisers.heavy_hitters import HeavyHitters, rebuild_heavy_hitters
from sfumato.local.randomisers.mean_randomisers import DELTA_NAMES, MEAN_NAMES, MeanRandomiser, rebuild_mean
from sfumato.local.randomisers.questions import Questions, rebuild_questions

AnyRandomiser = Randomiser | MeanRandomiser | Questions | HeavyHitters


def rebuild(description: object) -> AnyRandomiser:
    """The randomiser whose `describe()` gave this document. Any other document is refused.

    No loss is read from the document: `epsilon` of the result is computed from its integers. For "gaussian", the
    document names the epsilon at which delta is computed.
    """
    match description.get("mechanism") if isinstance(description, Mapping) else None:
        case "pem":
            return rebuild_heavy_hitters(description)
        case "questions":
            return rebuild_questions(description)
        case str(name) if name in (*MEAN_NAMES, *DELTA_NAMES):
            return rebuild_mean(description)
        case _:
            return rebuild_categories(description)
