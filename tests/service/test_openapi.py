"""Requests that schemathesis makes from the OpenAPI document: none ends in a failure of the service."""

from contextlib import suppress
from functools import partial

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from served_clinic import COUNT, make_clinic

from sfumato.service.api import make_app
from sfumato.service.service_settings import ServiceSettings

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "phases": [Phase.generate]}
OWN_PARAMETERS = {"name": "clinic", "analyst": "ann"}


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic", "2")


@pytest.fixture
def app(clinic):
    app = make_app([clinic.folder], clinic.accounts, ServiceSettings((), "", requests_per_second=0))
    with TestClient(app):
        yield app


def send_one(strategy, examples, check):
    @settings(max_examples=examples, derandomize=True, **QUIET)
    @given(case=strategy)
    def run(case):
        check(case)

    with suppress(Unsatisfiable):  # nothing of this operation can be wrong
        run()


def check_all(app, clinic, examples):
    """Send requests to every operation, as an owner and as an analyst; return how often each status was seen."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen = {}

    def check(operation, case):
        if case.path_parameters and len(seen) % 3:  # two of three requests are about things that exist
            case.path_parameters.update(
                {name: OWN_PARAMETERS[name] for name in case.path_parameters if name in OWN_PARAMETERS}
            )
        if isinstance(case.body, dict) and "sql" in case.body and sum(seen.values()) % 2:
            case.body["sql"] = COUNT  # so that the other parts of a request are read too
        who = ("olga", "ann")[sum(seen.values()) % 2]
        found = case.call(headers={"Authorization": f"Bearer {clinic.tokens[who]}"})
        key = (operation.label, found.status_code)
        seen[key] = seen.get(key, 0) + 1
        assert found.status_code < 500, (operation.label, found.status_code, found.text, case.body, case.query)
        if found.status_code >= 400:
            assert found.headers["content-type"][0] == "application/problem+json", operation.label

    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            send_one(operation.as_strategy(generation_mode=mode), examples, partial(check, operation))
    return seen


def test_no_request_of_the_document_makes_the_service_fail(app, clinic):
    seen = check_all(app, clinic, 6)
    assert len({label for label, _ in seen}) >= 20
    assert {200, 400, 404, 422} <= {status for _, status in seen}


@pytest.mark.slow
def test_many_requests_of_the_document_do_not_make_the_service_fail(app, clinic):
    check_all(app, clinic, 200)


def test_the_check_notices_a_failure(app, clinic, monkeypatch):
    """The negative control."""
    monkeypatch.setattr("sfumato.service.accounts.Accounts.list_grants", lambda *_: 1 / 0)
    with pytest.raises((AssertionError, ZeroDivisionError, ExceptionGroup)):
        check_all(app, clinic, 2)
