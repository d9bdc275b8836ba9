import pytest
from protected import protect


@pytest.fixture
def people():
    with protect() as curator:
        yield curator
