"""The table of attacks: name, module and one line. It imports no attack."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.lab.attack_result import AttackResult


@dataclass(frozen=True, slots=True)
class AttackName:
    """One attack: its name on the command line, the module of its function, and what it does."""

    name: str  # with hyphens; the function has underscores
    module: str
    summary: str

    @property
    def function_name(self) -> str:
        """The name in Python."""
        return self.name.replace("-", "_")

    def load(self) -> "Callable[..., AttackResult]":
        """Import the attack."""
        return cast("Callable[..., AttackResult]", getattr(import_module(self.module), self.function_name))


ATTACKS = tuple(
    AttackName(name, f"sfumato.lab.attacks.{module}", summary)
    for name, module, summary in (
        ("linkage", "linkage", "Join de-identified rows with a public voter list."),
        ("homogeneity", "homogeneity", "Read the diagnosis from a class of a 4-anonymous table."),
        ("collusion", "collusion", "Combine the grades of n - 1 students with the average."),
        ("differencing", "differencing", "Compare the average before and after one person leaves."),
        ("averaging", "averaging", "Repeat one question until the average is the truth."),
        ("least-significant-bits", "least_significant_bits", "Read the value from the last bits of numpy's noise."),
        ("precision", "precision", "Recognise a large value by the spacing of outputs."),
        ("sensitivity", "understated_sensitivity", "Break a bounded sum by rounding, overflow and NaN."),
        ("ingestion", "ingestion", "Change how other records are read with one record."),
        ("reconstruction", "reconstruction", "Recover every bit from many noisy subset sums."),
        ("timing", "timing", "Compute the noise from the time that its draw took."),
        ("membership", "membership", "Tell from a model who was in its training data."),
    )
)


def list_attacks() -> tuple[str, ...]:
    """The names of all attacks, as the command line takes them."""
    return tuple(attack.name for attack in ATTACKS)


def find_attack(name: str) -> AttackName:
    """The attack with this name, with hyphens or underscores."""
    for attack in ATTACKS:
        if name in (attack.name, attack.function_name):
            return attack
    raise InvalidParameter("attack", f"must be one of {', '.join(list_attacks())}", "another name")
