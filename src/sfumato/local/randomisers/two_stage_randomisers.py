"""Randomisers in two stages: the permanent report limits the loss over time, the second stage that of one report."""

from decimal import Decimal

from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.category_tables import make_category_table
from sfumato.local.randomisers.coin_search import find_greatest_coin

STAGED = ("rr", "krr", "oue", "sue")


def memoise(name: str, *, k: int, longitudinal_epsilon: Decimal, epsilon: Decimal) -> Randomiser:
    """Two stages: a permanent report costs at most `longitudinal_epsilon`, a single report at most `epsilon`."""
    if name not in STAGED:
        raise InvalidParameter("name", f"must be one of {', '.join(STAGED)} for two stages", "another name")
    if epsilon >= longitudinal_epsilon:
        raise InvalidParameter(
            "epsilon",
            "must be below the longitudinal epsilon",
            "as much, or more",
            "With one stage, the permanent report itself is sent each time.",
        )
    permanent = make_category_table(name, k, longitudinal_epsilon)
    if not isinstance(permanent, Kary | Unary):
        raise AssertionError("the names in STAGED make these two kinds of table")

    def stage(keep: int) -> TwoStage:
        second = Kary(k, keep, name) if isinstance(permanent, Kary) else Unary(k, keep, UNITS - keep, "sue")
        return TwoStage(permanent, second)

    return Randomiser(stage(find_greatest_coin(lambda keep: stage(keep).ratio, epsilon)))
