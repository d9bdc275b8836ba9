"""`sf.connect`: a dataset behind a service, with the interface of a Curator."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sfumato.answering.budget_view import Spending
from sfumato.answering.declared_view import DeclaredColumns, DeclaredTables
from sfumato.answering.selection import Question, Selection, begin_selection
from sfumato.answers.answer import Answer
from sfumato.catalog.catalog_file import read_dataset
from sfumato.catalog.dataset import Dataset
from sfumato.drawing.cards import make_card
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import write_plain
from sfumato.number_arguments import Number, read_nonnegative_decimal
from sfumato.query.frame import Aggregation, FrameQuery
from sfumato.remote.answer_wire import read_answer_wire, read_cost
from sfumato.remote.connection import Connection
from sfumato.remote.preview_wire import RemotePreview, read_preview_wire


class RemoteCurator:
    """Asks a dataset behind a service. The data, the ledger and its key stay there."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name
        self.dataset: Dataset = read_dataset(connection.get("datasets", name)["catalog"].encode())

    def __repr__(self) -> str:
        return f"<{self.name} at {self._connection.url}: {', '.join(self.dataset.tables)}>"

    @property
    def tables(self) -> DeclaredTables:
        """The tables that questions can name, with their privacy units."""
        return DeclaredTables(self.dataset)

    @property
    def columns(self) -> DeclaredColumns:
        """The columns that questions can name, with their types and bounds."""
        return self.tables.columns

    def _repr_html_(self) -> str:
        return make_card(f"{self.name} at {self._connection.url}", self.tables.make_html())

    def ask(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        delta: Number | None = None,
        margin: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
    ) -> Answer:
        """Answer a question for its price. A request that is sent again after a failure is not paid for twice."""
        body = _write_prices(sql, epsilon, rho, delta, confidence) | (
            {} if margin is None else {"margin": dict(margin)}
        )
        return read_answer_wire(self._connection.ask("datasets", self.name, "queries", body=body))

    def preview(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        delta: Number | None = None,
        assume: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
    ) -> RemotePreview:
        """Cost and margins, before spending. It reads no data and costs nothing."""
        body = _write_prices(sql, epsilon, rho, delta, confidence) | (
            {} if assume is None else {"assume": dict(assume)}
        )
        return read_preview_wire(self._connection.post("datasets", self.name, "queries:preview", body=body))

    def select(self, table: str | None = None) -> Selection[RemotePreview]:
        """A table to ask about in Python. Without a name: the only table."""
        return begin_selection(_RemoteAsker(self), self.dataset, table)

    def where(self, condition: str) -> Selection[RemotePreview]:
        """The rows of the only table for which this SQL condition is true."""
        return self.select().where(condition)

    def group_by(self, *keys: str) -> Selection[RemotePreview]:
        """The only table, in groups."""
        return self.select().group_by(*keys)

    def agg(self, **aggregates: Aggregation) -> Question[RemotePreview]:
        """Aggregates of the only table."""
        return self.select().agg(**aggregates)

    @property
    def budget(self) -> Spending:
        """The population's budget, as it is now."""
        found = self._connection.get("datasets", self.name)["budget"]
        return Spending(*(read_cost(found[part]) for part in ("limit", "spent", "remaining")))

    def close(self) -> None:
        """Nothing to close: each request is a connection of its own."""

    def __enter__(self) -> "RemoteCurator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _RemoteAsker:
    """Asks through a service: what is sent is the question's SQL."""

    curator: RemoteCurator

    def ask(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> Answer:  # noqa: ANN401 - of RemoteCurator
        return self.curator.ask(asked.sql(), epsilon, **options)

    def preview(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> RemotePreview:  # noqa: ANN401 - as above
        return self.curator.preview(asked.sql(), epsilon, **options)


def connect(url: str, token: str, dataset: str | None = None, *, timeout: float = 60.0) -> RemoteCurator:
    """Connect to a service. Without a name: the only dataset that the token may ask."""
    connection = Connection(url, token, timeout)
    names = connection.get("me")["datasets"]
    if dataset is None and len(names) != 1:
        listed = ", ".join(names) or "none: ask the owner for a grant"
        raise InvalidParameter("dataset", "must be named", "nothing", f"You may ask: {listed}.")
    return RemoteCurator(connection, names[0] if dataset is None else dataset)


def _write_prices(
    sql: str, epsilon: Number | None, rho: Number | None, delta: Number | None, confidence: Number
) -> dict[str, Any]:
    amounts = {"epsilon": epsilon, "rho": rho, "delta": delta, "confidence": confidence}
    return {"sql": sql, **{name: _write_amount(value, name) for name, value in amounts.items() if value is not None}}


def _write_amount(value: Number, name: str) -> str:
    """The exact decimal: a float means its shortest decimal, also over HTTP."""
    amount: Decimal = read_nonnegative_decimal(value, name)
    return write_plain(amount)
