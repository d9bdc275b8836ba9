"""A statement that SQLAlchemy compiles once for each kind of database. To run it again, only the driver is called."""

from typing import Any

import sqlalchemy as sa

from sfumato.ledger.entries import Row


class PreparedStatement:
    """One SELECT, INSERT or UPDATE. SQLAlchemy's own way to run it takes five times as long as SQLite does."""

    def __init__(self, statement: sa.Select[Any] | sa.Insert | sa.Update) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, str], tuple[str, list[str] | None, dict[str, Any]]] = {}

    def run(self, connection: sa.Connection, **values: object) -> list[Row]:
        """The rows that it finds, in the connection's transaction; none for a statement that writes."""
        text, order, constants = self._compile(connection.dialect)
        bound = {**constants, **values}
        driver: Any = connection.connection.dbapi_connection  # the pool's own cursor() only adds a call
        cursor = driver.cursor()
        try:
            cursor.execute(text, bound if order is None else [bound[name] for name in order])
            if cursor.description is None:
                return []
            found = cursor.fetchall()
            if not found:
                return []
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in found]
        finally:
            cursor.close()

    def _compile(self, dialect: sa.Dialect) -> tuple[str, list[str] | None, dict[str, Any]]:
        """The text, the order of its values (None: they are passed by name), and the values that never change."""
        kind = (dialect.name, dialect.driver)
        if kind not in self._compiled:
            compiled = self._statement.compile(dialect=dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            order = list(compiled.positiontup or ()) if dialect.positional else None
            self._compiled[kind] = (str(compiled), order, constants)
        return self._compiled[kind]
