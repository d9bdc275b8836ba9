"""An event loop for workers that serve one port: the system spreads the connections over them.

Workers that wait at one socket take connections from the same queue, and each takes all that wait. If many clients
connect at the same moment, the worker that wakes up first gets most of them, and may serve all of them for as long as
they stay connected, while the other workers do nothing. With a socket for each worker, Linux chooses one at random.
"""

import asyncio
import socket
import sys
from typing import Any

LOOP = f"{__name__}:make_loop"  # for uvicorn
INTERNET = (socket.AF_INET, socket.AF_INET6)


class FairLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop, with a socket of its own where workers would share one."""

    async def create_server(self, *places: Any, sock: socket.socket | None = None, **options: Any) -> asyncio.Server:  # noqa: ANN401 - as asyncio takes them
        """Serve. `sock` is shared with other workers, and bound to the address."""
        own = bind_beside(sock) if sock is not None and is_only_bound(sock) else sock
        return await super().create_server(*places, sock=own, **options)


def is_only_bound(shared: socket.socket) -> bool:
    """Whether nobody listens at this socket. If somebody did, connections would wait there for ever."""
    if sys.platform != "linux" or shared.family not in INTERNET:  # elsewhere, one of the sockets gets all connections
        return False
    return not shared.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def bind_beside(shared: socket.socket) -> socket.socket:
    """Another socket at the same address. Only processes of the same user may add one."""
    own = socket.socket(shared.family, shared.type)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for listener in (shared, own):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own.bind(shared.getsockname())
    except BaseException:
        own.close()
        raise
    return own


def make_loop() -> asyncio.AbstractEventLoop:
    """The loop of a worker."""
    return FairLoop()
