"""The privacy lab: attacks, audits and visual explanations, on generated data.

The lab is for learning and for checking. Nothing outside it and the command line imports it.
To add a public name, add one line to `_LOADED_ON_USE` and one import for type checkers. A module of this package must
not have the name of a public function: Python would replace the function by the module.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sfumato.lab.attack_names import ATTACKS

if TYPE_CHECKING:
    from sfumato.drawing.figure import Figure as Figure
    from sfumato.lab.attack_names import list_attacks as list_attacks
    from sfumato.lab.attack_result import AttackResult as AttackResult
    from sfumato.lab.attacks.averaging import averaging as averaging
    from sfumato.lab.attacks.collusion import collusion as collusion
    from sfumato.lab.attacks.differencing import differencing as differencing
    from sfumato.lab.attacks.homogeneity import homogeneity as homogeneity
    from sfumato.lab.attacks.ingestion import ingestion as ingestion
    from sfumato.lab.attacks.least_significant_bits import least_significant_bits as least_significant_bits
    from sfumato.lab.attacks.linkage import linkage as linkage
    from sfumato.lab.attacks.membership import membership as membership
    from sfumato.lab.attacks.precision import precision as precision
    from sfumato.lab.attacks.reconstruction import reconstruction as reconstruction
    from sfumato.lab.attacks.timing import timing as timing
    from sfumato.lab.attacks.understated_sensitivity import sensitivity as sensitivity
    from sfumato.lab.auditing.audit_result import AuditResult as AuditResult
    from sfumato.lab.auditing.mechanism_audit import audit as audit
    from sfumato.lab.auditing.query_audit import audit_query as audit_query
    from sfumato.lab.auditing.query_audit_result import QueryAuditResult as QueryAuditResult
    from sfumato.lab.auditing.query_replay import ReplayResult as ReplayResult
    from sfumato.lab.auditing.query_replay import replay as replay
    from sfumato.lab.broken_mechanisms import BROKEN_MECHANISMS as BROKEN_MECHANISMS
    from sfumato.lab.distributions.mechanism_distributions import probabilities as probabilities
    from sfumato.lab.distributions.mechanism_distributions import report_probability as report_probability
    from sfumato.lab.explanations.class_poll import PollView as PollView
    from sfumato.lab.explanations.class_poll import randomized_response as randomized_response
    from sfumato.lab.explanations.epsilon_meaning import EpsilonMeaning as EpsilonMeaning
    from sfumato.lab.explanations.epsilon_meaning import epsilon as epsilon
    from sfumato.lab.explanations.neighbour_view import NeighbourView as NeighbourView
    from sfumato.lab.explanations.neighbour_view import neighbours as neighbours
    from sfumato.lab.explanations.repeated_errors import ErrorView as ErrorView
    from sfumato.lab.explanations.repeated_errors import error as error
    from sfumato.lab.explanations.sliding_property import MechanismView as MechanismView
    from sfumato.lab.explanations.sliding_property import mechanism as mechanism
    from sfumato.lab.seeded_noise import SeededNoise as SeededNoise
    from sfumato.lab.seeded_noise import seeded as seeded

# public name -> module; loaded on first use, so that listing the names imports neither numpy nor an engine
_LOADED_ON_USE = {
    "AttackResult": "sfumato.lab.attack_result",
    "BROKEN_MECHANISMS": "sfumato.lab.broken_mechanisms",
    "AuditResult": "sfumato.lab.auditing.audit_result",
    "Figure": "sfumato.drawing.figure",
    "mechanism": "sfumato.lab.explanations.sliding_property",
    "MechanismView": "sfumato.lab.explanations.sliding_property",
    "epsilon": "sfumato.lab.explanations.epsilon_meaning",
    "EpsilonMeaning": "sfumato.lab.explanations.epsilon_meaning",
    "neighbours": "sfumato.lab.explanations.neighbour_view",
    "NeighbourView": "sfumato.lab.explanations.neighbour_view",
    "error": "sfumato.lab.explanations.repeated_errors",
    "ErrorView": "sfumato.lab.explanations.repeated_errors",
    "randomized_response": "sfumato.lab.explanations.class_poll",
    "PollView": "sfumato.lab.explanations.class_poll",
    "ReplayResult": "sfumato.lab.auditing.query_replay",
    "QueryAuditResult": "sfumato.lab.auditing.query_audit_result",
    "audit": "sfumato.lab.auditing.mechanism_audit",
    "audit_query": "sfumato.lab.auditing.query_audit",
    "SeededNoise": "sfumato.lab.seeded_noise",
    "list_attacks": "sfumato.lab.attack_names",
    "replay": "sfumato.lab.auditing.query_replay",
    "probabilities": "sfumato.lab.distributions.mechanism_distributions",
    "report_probability": "sfumato.lab.distributions.mechanism_distributions",
    "seeded": "sfumato.lab.seeded_noise",
    **{attack.function_name: attack.module for attack in ATTACKS},
}


def __getattr__(name: str) -> object:
    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module 'sfumato.lab' has no attribute {name!r}")
    found: object = getattr(import_module(_LOADED_ON_USE[name]), name)
    globals()[name] = found  # from now on it is an ordinary attribute
    return found


def __dir__() -> list[str]:
    """The public names, for completion. None of them is loaded by this."""
    return sorted(_LOADED_ON_USE)
