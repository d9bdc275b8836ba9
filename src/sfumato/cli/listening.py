"""Where a command listens for connections."""

import socket

from sfumato.cli.refusals import Usage

LOCAL = ("127.0.0.1", "localhost", "::1")


def refuse_used_port(host: str, port: int) -> None:
    """Refuse before any address is printed, and before workers start."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError:  # also of a name that stands for no address of this machine
            raise Usage(
                f"The address {host}, port {port} cannot be used: another program may listen there.",
                "Choose another port with --port, or another address with --host.",
            ) from None
