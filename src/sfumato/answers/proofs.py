"""The claims that prove what an explanation says, and links to their proofs in docs/claims.

A line of an explanation ends with the numbers of its claims in brackets, such as [K-25, K-18].
"""

import re
from html import escape
from typing import assert_never

from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.certify import Certified
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.plan import Different, Keys, Pivot, Quantity, Split, Strategy, WeightedKeys, take_part

PROOFS = "docs/claims"  # one file for each claim, such as docs/claims/K-25.md
TITLES = {  # the heading of each file; a test compares them
    "K-09": "discrete Laplace noise",
    "K-10": "discrete Gaussian noise",
    "K-15": "group privacy",
    "K-17": "composition",
    "K-18": "the Laplace mechanism",
    "K-19": "the Gaussian mechanism",
    "K-21": "keys released by threshold",
    "K-25": "sensitivity of a measurement",
    "K-27": "certificates",
    "K-31": "quantiles",
    "K-32": "minimum and maximum",
    "K-33": "the fullest bins",
    "K-35": "how far one unit reaches through a source",
    "K-37": "parts that share one noise",
    "K-56": "box noise",
    "K-57": "several sums with one noise",
    "K-71": "rounded Gaussian noise",
    "K-64": "different values",
    "K-74": "undeclared keys by weight",
    "K-77": "pivots",
    "K-80": "strategies",
    "K-83": "intervals of quantiles",
    "K-87": "undeclared keys in two rounds",
}
LOSS_CLAIMS = ("K-27", "K-17", "K-15")
SHARE_CLAIMS = ("K-17",)
GROUP_CLAIMS = ("K-25",)
PART_CLAIMS = ("K-37",)
BOUND_CLAIMS = ("K-35",)
KEY_CLAIMS = ("K-21",)
WEIGHT_CLAIMS = ("K-74",)
ROUND_CLAIMS = ("K-74", "K-87")
PIVOT_CLAIMS = ("K-77",)
VALUE_CLAIMS = ("K-64",)
STRATEGY_CLAIMS = ("K-80",)
_CITED = re.compile(r"\[(K-\d\d(?:, K-\d\d)*)\]$", re.MULTILINE)
_CLAIM = re.compile(r"K-\d\d")


def find_claims(quantity: Quantity, certified: Certified) -> tuple[str, ...]:
    """The claims about a measurement: its sensitivity, then its mechanism, then its noise."""
    match certified.noise:
        case QuantileChoice(miss=miss):
            return ("K-25", "K-31") if miss is None else ("K-25", "K-31", "K-83")
        case ExtremeChoice():
            return ("K-25", "K-32")
        case ModeChoice():
            return ("K-25", "K-33")
        case _:
            mechanism = _cite_noise(certified.noise)
            parts = PART_CLAIMS if isinstance(take_part(quantity), Split) else ()
            pivots = PIVOT_CLAIMS if isinstance(quantity, Pivot) else ()
            mixed = STRATEGY_CLAIMS if isinstance(quantity, Strategy) else ()
            keys: tuple[str, ...] = KEY_CLAIMS if isinstance(quantity, Keys) else ()
            if isinstance(quantity, WeightedKeys):
                keys = WEIGHT_CLAIMS if certified.key_rounds is None else ROUND_CLAIMS
            values = VALUE_CLAIMS if isinstance(quantity, Different) else ()
            return ("K-25", *parts, *pivots, *mixed, *keys, *values, *mechanism)


def _cite_noise(noise: Noise | BoxNoise) -> tuple[str, ...]:
    match noise:
        case LaplaceNoise():
            return ("K-18", "K-09")
        case GaussianNoise(rounded=rounded):
            return ("K-19", "K-71") if rounded else ("K-19", "K-10")
        case BoxNoise():
            return ("K-57", "K-56")
        case _:
            assert_never(noise)


def cite(text: str, claims: tuple[str, ...]) -> str:
    """A line, followed by its claims."""
    return f"{text} [{', '.join(claims)}]" if claims else text


def list_proofs(text: str) -> str:
    """One line with the claims that a text cites, by number and title."""
    cited = {claim for claims in _CITED.findall(text) for claim in _CLAIM.findall(claims)}
    named = ", ".join(f"{claim} ({TITLES[claim]})" for claim in TITLES if claim in cited)
    return f"Proofs in {PROOFS}: {named}."


def link_proofs(text: str, folder: str = PROOFS) -> str:
    """A text as a piece of HTML: one paragraph for each line, and a link for each claim."""
    return "".join(f"<p>{_link_line(line, folder)}</p>" for line in text.splitlines())


def _link_line(line: str, folder: str) -> str:
    def link(found: re.Match[str]) -> str:
        claim = found[0]
        if claim not in TITLES:
            return claim
        return f'<a href="{escape(folder)}/{claim}.md" title="{escape(TITLES[claim])}">{claim}</a>'

    return _CLAIM.sub(link, escape(line))
