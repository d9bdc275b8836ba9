"""Sfumato: answers that are clear about the crowd and say provably little about any one person."""

from importlib import import_module
from typing import TYPE_CHECKING

from sfumato import errors

if TYPE_CHECKING:
    from sfumato import engines, lab, learning, local
    from sfumato.answering.preview import Preview
    from sfumato.answers.answer import Answer
    from sfumato.catalog.budget import Budget
    from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Id, Integer, Real, Text
    from sfumato.catalog.counts_unit import COUNTS
    from sfumato.curator import Curator
    from sfumato.folder_ledger import set_budget
    from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
    from sfumato.kernel.neighbours import ROW
    from sfumato.local.randomisers.randomized_response import KaryResponse, RandomizedResponse
    from sfumato.local.survey.signed_survey import Survey
    from sfumato.opening import open_folder as open
    from sfumato.opening import protect
    from sfumato.query.frame import count, count_distinct, mean, people, stddev, total, variance
    from sfumato.remote.remote_curator import connect
    from sfumato.standalone.additive import Gaussian, Laplace
    from sfumato.standalone.private_choice import PrivateChoice, choose
    from sfumato.standalone.thresholded_keys import ThresholdedKeys

__version__ = "0.1.0.dev0"

# loaded on first use, so that a command imports only what it needs: numpy and the engine take half a second
_LOADED_ON_USE = {
    "Answer": ("sfumato.answers.answer", "Answer"),
    "ApproxDP": ("sfumato.kernel.losses", "ApproxDP"),
    "Boolean": ("sfumato.catalog.columns", "Boolean"),
    "Budget": ("sfumato.catalog.budget", "Budget"),
    "COUNTS": ("sfumato.catalog.counts_unit", "COUNTS"),
    "Category": ("sfumato.catalog.columns", "Category"),
    "Curator": ("sfumato.curator", "Curator"),
    "Date": ("sfumato.catalog.columns", "Date"),
    "DateTime": ("sfumato.catalog.columns", "DateTime"),
    "Gaussian": ("sfumato.standalone.additive", "Gaussian"),
    "Id": ("sfumato.catalog.columns", "Id"),
    "Integer": ("sfumato.catalog.columns", "Integer"),
    "KaryResponse": ("sfumato.local.randomisers.randomized_response", "KaryResponse"),
    "Laplace": ("sfumato.standalone.additive", "Laplace"),
    "Preview": ("sfumato.answering.preview", "Preview"),
    "PrivateChoice": ("sfumato.standalone.private_choice", "PrivateChoice"),
    "PureDP": ("sfumato.kernel.losses", "PureDP"),
    "ROW": ("sfumato.kernel.neighbours", "ROW"),
    "RandomizedResponse": ("sfumato.local.randomisers.randomized_response", "RandomizedResponse"),
    "Real": ("sfumato.catalog.columns", "Real"),
    "Survey": ("sfumato.local.survey.signed_survey", "Survey"),
    "Text": ("sfumato.catalog.columns", "Text"),
    "ThresholdedKeys": ("sfumato.standalone.thresholded_keys", "ThresholdedKeys"),
    "GDP": ("sfumato.kernel.losses", "GDP"),
    "ZCDP": ("sfumato.kernel.losses", "ZCDP"),
    "connect": ("sfumato.remote.remote_curator", "connect"),
    "choose": ("sfumato.standalone.private_choice", "choose"),
    "count": ("sfumato.query.frame", "count"),
    "count_distinct": ("sfumato.query.frame", "count_distinct"),
    "engines": ("sfumato.engines", ""),  # the package itself
    "lab": ("sfumato.lab", ""),  # the package itself
    "learning": ("sfumato.learning", ""),  # the package itself
    "local": ("sfumato.local", ""),  # the package itself
    "mean": ("sfumato.query.frame", "mean"),
    "open": ("sfumato.opening", "open_folder"),
    "people": ("sfumato.query.frame", "people"),
    "protect": ("sfumato.opening", "protect"),
    "set_budget": ("sfumato.folder_ledger", "set_budget"),
    "stddev": ("sfumato.query.frame", "stddev"),
    "total": ("sfumato.query.frame", "total"),
    "variance": ("sfumato.query.frame", "variance"),
}

__all__ = [
    "COUNTS",
    "GDP",
    "ROW",
    "ZCDP",
    "Answer",
    "ApproxDP",
    "Boolean",
    "Budget",
    "Category",
    "Curator",
    "Date",
    "DateTime",
    "Gaussian",
    "Id",
    "Integer",
    "KaryResponse",
    "Laplace",
    "Preview",
    "PrivateChoice",
    "PureDP",
    "RandomizedResponse",
    "Real",
    "Survey",
    "Text",
    "ThresholdedKeys",
    "choose",
    "connect",
    "count",
    "count_distinct",
    "engines",
    "errors",
    "lab",
    "learning",
    "local",
    "mean",
    "open",
    "people",
    "protect",
    "set_budget",
    "stddev",
    "total",
    "variance",
]


def __getattr__(name: str) -> object:
    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    module, attribute = _LOADED_ON_USE[name]
    loaded = import_module(module)
    found: object = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = found  # from now on it is an ordinary attribute
    return found


def __dir__() -> list[str]:
    """The public names, for completion; none of them is loaded by this."""
    return sorted({*globals(), *__all__})
