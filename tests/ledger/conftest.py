"""Where the ledgers of these tests are: in a file, and on a PostgreSQL server. A test of `place` runs on both."""

import pytest


@pytest.fixture(params=["in memory", "postgresql"])
def new_place(request):
    """A function that makes places: None for a ledger in memory, or addresses on a server. A file is slower."""
    if request.param == "in memory":
        return lambda: None
    return request.getfixturevalue("postgres_server").make_address


@pytest.fixture
def memory_or_server(new_place):
    """None for a ledger in memory, and the address of one on a server."""
    return new_place()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The address of a ledger that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres_server").make_address()
