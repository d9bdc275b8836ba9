"""The record of a question that the ledger keeps with its charge, so that the owner can see what was asked."""

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction

from sqlglot import exp

from sfumato.canonical_text import write_canonical
from sfumato.kernel.exact import write_plain
from sfumato.query.query import Query
from sfumato.query.sql_text import normalise_sql


def record_question(tree: exp.Query, query: Query, margin: Mapping[str, float] | None = None) -> dict[str, object]:
    """One question: its SQL in normal form, the columns of its answer, and the margins that the analyst wants."""
    made: dict[str, object] = {"sql": normalise_sql(tree), "columns": list(query.shown_names)}
    if margin is not None:
        made["margin"] = dict(margin)
    if query.dp_options is not None:
        made["options"] = {
            name: str(value) for name, value in asdict(query.dp_options).items() if value not in (None, False)
        }
    return made


def write_record(how: str, *questions: Mapping[str, object], confidence: Fraction | None = None, **more: object) -> str:
    """The text that the ledger stores: the call (ask, upgrade, ...) and the questions that one charge pays for."""
    made: dict[str, object] = {"how": how, "questions": list(questions), **more}
    if confidence is not None:
        made["confidence"] = write_plain(confidence)
    return write_canonical(made)


def write_prepaid_record(purpose: str, **details: str) -> str:
    """The text that the ledger stores with a prepaid charge: what it is for, for example `10 statistical queries`."""
    return write_canonical({"how": "prepaid", "questions": [], "purpose": purpose, **details})
