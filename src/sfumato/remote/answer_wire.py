"""An answer as JSON for another process, and back. Everything in it has been released already."""

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sfumato.answers.answer import Answer, Cost, KnownDetails
from sfumato.answers.measurement_summary import MeasurementSummary
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.loss_sums import read_loss, write_loss

Wire = dict[str, Any]
SUMMARY, SENSITIVITY = (tuple(part.name for part in fields(kind)) for kind in (MeasurementSummary, ColumnSensitivity))
_DATES = {"date": date.fromisoformat, "datetime": datetime.fromisoformat}


def write_answer_wire(answer: Answer) -> Wire:
    """The JSON of `Answer.to_dict`, and what is needed to make the same Answer of it elsewhere: for `write_json`."""
    return {
        **answer.to_dict(),
        "rows": [{name: _write_value(value) for name, value in row.items()} for row in answer.rows],
        "types": {name: _name_type(name, answer) for name in answer.columns},
        "keys": list(answer.keys),
        "neighbours": answer.neighbours.value,
        "certified_loss": write_loss(answer.loss),
        "head": answer.head,
        "population_cost": answer.population_cost.as_text(),
        "own_remaining": None if answer.own_remaining is None else answer.own_remaining.as_text(),
        "measurements": [list_fields(measurement, SUMMARY) for measurement in answer.measurements],
        "sentences": list(answer.sentences),
        "sensitivities": [list_fields(sensitivity, SENSITIVITY) for sensitivity in answer.sensitivities],
        "disclosure": answer.disclosure,
    }


def list_fields(thing: object, names: tuple[str, ...]) -> Wire:
    """The fields of a dataclass. `asdict` would copy every value too, which takes far longer."""
    return {name: getattr(thing, name) for name in names}


def read_answer_wire(wire: Mapping[str, Any]) -> Answer:
    """The answer that `write_answer_wire` wrote."""
    types = wire["types"]
    details = {
        "intervals": [{name: _read_ends(ends) for name, ends in row.items()} for row in wire["intervals"]],
        "measurements": tuple(
            MeasurementSummary(
                **{**measurement, "margin": _read_number(measurement["margin"]), "claims": tuple(measurement["claims"])}
            )
            for measurement in wire["measurements"]
        ),
        "sentences": tuple(wire["sentences"]),
        "sensitivities": tuple(ColumnSensitivity(**sensitivity) for sensitivity in wire["sensitivities"]),
        "warnings": tuple(wire["warnings"]),
        "interval_note": wire["interval_note"],
        "disclosure": wire["disclosure"],
    }
    own = wire["own_remaining"]
    return Answer(
        columns=tuple(wire["columns"]),
        rows=[{name: _read_value(value, types[name]) for name, value in row.items()} for row in wire["rows"]],
        confidence=wire["confidence"],
        cost=read_cost(wire["cost"]),
        remaining=read_cost(wire["remaining"]),
        entry=wire["entry"],
        cached=wire["cached"],
        head=wire["head"],
        population_cost=read_cost(wire["population_cost"]),
        own_remaining=None if own is None else read_cost(own),
        keys=tuple(wire["keys"]),
        neighbours=Neighbours(wire["neighbours"]),
        loss=_read_loss(wire["certified_loss"]),
        _details=KnownDetails(details),
    )


def read_cost(texts: Mapping[str, str]) -> Cost:
    """The cost that `Cost.as_text` wrote."""
    return Cost(**{"epsilon": None, **{name: Decimal(text) for name, text in texts.items()}})  # type: ignore[arg-type]


def _read_loss(text: str) -> PrivacyLoss:
    loss = read_loss(text)
    if loss is None:
        raise ValueError("an answer has a loss")
    return loss


def _name_type(name: str, answer: Answer) -> str:
    """The type of a column, from its first value that is not NULL."""
    found = next((row[name] for row in answer.rows if row[name] is not None), None)
    return {datetime: "datetime", date: "date", bool: "boolean", int: "integer", float: "real"}.get(type(found), "text")


def _write_value(value: object) -> object:
    if isinstance(value, Decimal):
        return write_plain(value)
    return value.isoformat() if isinstance(value, date) else value


def _read_value(value: Any, kind: str) -> Any:  # noqa: ANN401 - a value of any type
    if value is None:
        return None
    return _DATES[kind](value) if kind in _DATES else value


def _read_number(value: float | None) -> float:
    return math.inf if value is None else value


def _read_ends(ends: list[float | None]) -> tuple[float, float]:
    low, high = ends
    return -math.inf if low is None else low, math.inf if high is None else high
