"""A ledger's tables as somebody with the file, or with the rights of its owner on the server, can change them."""

from contextlib import contextmanager

import sqlalchemy as sa

from sfumato.ledger.server_address import is_server, read_server_address


@contextmanager
def open_raw(place):
    """One transaction on the ledger's tables, past all of its checks."""
    engine = read_server_address(place).make_engine() if is_server(place) else sa.create_engine(f"sqlite:///{place}")
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def tamper(place, *statements):
    with open_raw(place) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
