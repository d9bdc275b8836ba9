"""What a notebook shows of an estimator: its declarations, and once it is fitted, its cost and its coefficients.

Everything is declared, or computed from noisy statistics.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from sfumato.answers.answer import Cost
from sfumato.drawing.cards import make_card, make_details, make_note
from sfumato.drawing.pages import make_table
from sfumato.drawing.text_tables import write_text_table

MOST_NAMES, MOST_COEFFICIENTS, MOST_LETTERS = 8, 20, 80
DECLARED = ("argument", "value")


def bundle_estimator(estimator: Any, **_: object) -> dict[str, str]:  # noqa: ANN401 - any estimator
    """An estimator's `_repr_mimebundle_`: its text and its HTML."""
    return {"text/plain": write_estimator(estimator), "text/html": write_estimator_html(estimator)}


def write_estimator(estimator: Any) -> str:  # noqa: ANN401 - any estimator
    """An estimator as text."""
    table = _find_coefficients(estimator)
    parts = [repr(estimator), *_describe(estimator)]
    return "\n".join(parts if table is None else [*parts, write_text_table(*table, right=range(1, len(table[0])))])


def write_estimator_html(estimator: Any) -> str:  # noqa: ANN401 - any estimator
    """An estimator's `_repr_html_`. It needs no script and no network."""
    declared, table = make_table(DECLARED, _list_declared(estimator)), _find_coefficients(estimator)
    return make_card(
        type(estimator).__name__,
        *(make_note(sentence, "plain") for sentence in _describe(estimator)),
        "" if table is None else make_table(*table, range(1, len(table[0]))),
        make_details("Declared", declared),
    )


def _describe(estimator: Any) -> list[str]:  # noqa: ANN401 - any estimator
    """What fitting costs or did cost, and what is known of the features."""
    loss = getattr(estimator, "loss_", None)
    if loss is None:
        delta = f" and δ = {estimator.delta}" if getattr(estimator, "delta", 0) else ""
        return [f"Not fitted yet: fit spends ε = {estimator.epsilon}{delta}."]
    count = estimator.n_features_in_
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    listed = f": {_list_some(names)}" if names else ""
    sentences = [f"Fitted on {count:,} feature{'' if count == 1 else 's'}{listed}. It spent {Cost.from_loss(loss)}."]
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        sentences.append(f"Classes: {_list_some([str(label) for label in classes])}.")
    return sentences


def _list_some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _list_declared(estimator: Any) -> list[list[str]]:  # noqa: ANN401 - any estimator
    """Each argument of the constructor, with its value in one line."""
    names = list(inspect.signature(type(estimator).__init__).parameters)[1:]
    return [[name, _shorten(repr(getattr(estimator, name)))] for name in names]


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def _find_coefficients(estimator: Any) -> tuple[list[str], list[list[str]]] | None:  # noqa: ANN401 - any estimator
    """The coefficients of a linear model, with their intervals where it has some; None for other models."""
    if not hasattr(estimator, "coef_"):
        return None
    if hasattr(estimator, "coefficient_intervals"):
        low, high = estimator.coefficient_intervals()
        rows = [
            [str(name), f"{value:,.4g}", f"[{least:,.4g}, {most:,.4g}]".replace("inf", "∞")]
            for name, value, least, most in zip(estimator.design_names_, estimator.coef_, low, high, strict=True)
        ]
        return ["column", "coefficient", "interval (95 %, noise only)"], _cut(rows)
    scores = ["weight"] if len(estimator.coef_) == 1 else [f"weight for {label}" for label in estimator.classes_]
    rows = [
        [str(name), *(f"{value:,.4g}" for value in column)]
        for name, column in zip(estimator.coef_names_, estimator.coef_.T, strict=True)
    ]
    return ["column", *scores], _cut(rows)


def _cut(rows: list[list[str]]) -> list[list[str]]:
    """The first rows, and a row that counts the rest."""
    more = len(rows) - MOST_COEFFICIENTS
    rest = [f"… and {more:,} more: see coef_", *[""] * (len(rows[0]) - 1)] if more > 0 else []
    return [*rows[:MOST_COEFFICIENTS], *([rest] if rest else [])]
