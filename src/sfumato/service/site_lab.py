"""The lab: a mechanism with a slider, and attacks on made-up data. It never touches a dataset of the service."""

from base64 import b64encode
from decimal import Decimal
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from sfumato.errors import InvalidParameter
from sfumato.lab.attack_names import ATTACKS, find_attack
from sfumato.lab.attack_result import AttackResult
from sfumato.lab.explanations.sliding_property import mechanism
from sfumato.lab.success_rate import SuccessRate, show_share
from sfumato.number_arguments import read_positive_decimal
from sfumato.service.page_requests import read_own_form, require_session, show_page
from sfumato.service.service_shell import POLICY
from sfumato.service.shared_threads import SharedThreads

SVG = "image/svg+xml"
IMAGE_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}  # an image runs no script
LEAST, MOST = Decimal("0.05"), Decimal(5)
SLOW = ("reconstruction", "membership", "timing")  # they take minutes, or measure this machine


def add_lab(app: FastAPI, threads: SharedThreads) -> None:
    """Add the pages."""

    @app.get("/lab", include_in_schema=False)
    def show_lab(request: Request, epsilon: str = "1") -> Response:
        session = require_session(request)
        chosen = _read_epsilon(epsilon)
        view = mechanism(chosen)
        attacks = [{"name": attack.name, "summary": attack.summary} for attack in ATTACKS if attack.name not in SLOW]
        slow = [{"name": attack.name, "summary": attack.summary} for attack in ATTACKS if attack.name in SLOW]
        return show_page("lab", session, epsilon=chosen, attacks=attacks, slow=slow, **_describe(view))

    @app.get("/lab/mechanism.svg", include_in_schema=False)
    def draw(request: Request, epsilon: str = "1") -> Response:
        require_session(request)
        return Response(mechanism(_read_epsilon(epsilon)).figure.svg(), media_type=SVG, headers=IMAGE_POLICY)

    @app.get("/lab/mechanism.json", include_in_schema=False)
    def measure(request: Request, epsilon: str = "1") -> dict[str, Any]:
        require_session(request)
        return _describe(mechanism(_read_epsilon(epsilon)))

    @app.post("/lab/attacks/{name}", include_in_schema=False)
    async def attack(request: Request, name: str) -> Response:
        session, form = await read_own_form(request)
        if name not in {attack.name for attack in ATTACKS} or name in SLOW:
            raise InvalidParameter("attack", "must be one of the listed ones", "another")
        epsilon = _read_epsilon(form.get("epsilon", "1"))
        found = await threads.run(session.user.name, lambda: _run(name, epsilon))  # it computes for seconds
        figure = f"data:{SVG};base64,{b64encode(found.figure.svg().encode()).decode()}"
        page = show_page("attack", session, result=found, naive=_show_rate(found.naive), limit=show_share(found.limit),
                         ours=_show_rate(found.protected), figure=figure)  # fmt: skip
        page.headers["Content-Security-Policy"] = POLICY.replace("img-src 'self'", "img-src 'self' data:")
        return page


def _run(name: str, epsilon: Decimal) -> AttackResult:
    return find_attack(name).load()(epsilon=epsilon, seed=1)


def _show_rate(rate: SuccessRate) -> str:
    low, high = rate.interval()
    return f"{show_share(rate.share)} (95 % interval {show_share(low)} to {show_share(high)}, {rate.trials:,} trials)"


def _describe(view: Any) -> dict[str, Any]:  # noqa: ANN401 - a view of the lab
    ratio = view.greatest_ratio
    return {
        "deviation": f"{view.deviation:.3g}",
        "ratio": f"{ratio:.3g}",
        "belief": f"{100 * ratio / (1 + ratio):.0f} %",
        "margin": f"{float(view.mechanism.margin(0.95)):.3g}",
    }


def _read_epsilon(text: str) -> Decimal:
    amount = read_positive_decimal(text, "epsilon")
    if not LEAST <= amount <= MOST:
        raise InvalidParameter("epsilon", f"must lie between {LEAST} and {MOST}", "another number")
    return amount
