"""Settings of all tests: noise that can be repeated, keys of ledgers in a folder of their own, no limit on time.

Each test draws its own noise, always the same (see repeatable_noise.py), and Hypothesis its own examples. `make
test-slow` takes a new seed each time, and prints it.

How long an example takes depends on what else the machine does. A limit would make tests fail at random.
"""

import gc
import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import run_server
from repeatable_noise import DEFAULT, SEED, repeat_noise

os.environ["SFUMATO_HOME"] = tempfile.mkdtemp(prefix="sfumato-tests-")
settings.register_profile(
    "sfumato", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=SEED == DEFAULT
)
settings.load_profile("sfumato")


def pytest_collection_finish(session):
    """Garbage is not searched for among the thousands of collected tests: each search took a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """A fixture that several tests share must not depend on which of them runs first."""
    if fixturedef.scope != "function":
        repeat_noise(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')!r}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    repeat_noise(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    repeat_noise(f"{item.nodeid} call")


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server that the tests of one process share. Each takes a schema of its own."""
    with run_server() as server:
        yield server
