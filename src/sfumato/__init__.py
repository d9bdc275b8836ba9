"""Sfumato: answers that are clear about the crowd and say provably little about any one person."""

from sfumato import errors
from sfumato.kernel.choice import PrivateChoice, choose
from sfumato.kernel.keys import ThresholdedKeys
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.mechanisms import Gaussian, Laplace
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.randomized_response import KaryResponse, RandomizedResponse

__version__ = "0.1.0.dev0"

__all__ = [
    "ROW",
    "ZCDP",
    "ApproxDP",
    "Gaussian",
    "KaryResponse",
    "Laplace",
    "PrivateChoice",
    "PureDP",
    "RandomizedResponse",
    "ThresholdedKeys",
    "choose",
    "errors",
]
