"""`sfumato serve` refuses what it cannot serve, before it prints an address or a link."""

import socket

import pytest
from clinic import run


@pytest.fixture
def taken_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


@pytest.mark.parametrize("demo", [True, False])
def test_a_used_port_is_refused_before_a_link_is_printed(tmp_path, taken_port, demo):
    found = run("-C", tmp_path, "serve", "--port", taken_port, *(["--demo"] if demo else []))
    assert found.exit_code == 2
    assert "--port" in found.stderr
    assert "http" not in found.stdout


def test_a_folder_without_a_catalog_is_refused_before_an_address_is_printed(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = run("-C", tmp_path, "serve", "--port", port)
    assert found.exit_code == 4
    assert "catalog.toml" in found.stderr
    assert "Serving" not in found.stdout
