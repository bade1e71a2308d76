"""Serves an aiohttp application to whoever connects: few connections at a time, and one request on each.

So the limits of connections are limits of requests too, and no connection outlives its purpose.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from aiohttp import web

from boathouse.listening.connections import Refusal
from boathouse.listening.listener import Listener

REQUEST_S: Final = 10.0
"""How long a connection may take from its handshake to the end of its request's headers."""
READ_BUFFER_BYTES: Final = 16 * 1024


@contextlib.asynccontextmanager
async def serve(
    application: web.Application,
    *,
    port: int,
    most: int,
    host: str = "",
    context: ssl.SSLContext | None = None,
    rejected: Callable[[Refusal], None] = lambda _: None,
) -> AsyncIterator[Listener]:
    """Serve an application for the time of the block. Bodies are not decompressed.

    Args:
        application: What to serve; it is not used elsewhere.
        port: Where; 0 for one that the system chooses.
        most: Connections at a time.
        host: An address; empty for all of both families.
        context: The certificate, for TLS.
        rejected: Called with why a connection was refused or ended.

    Raises:
        OSError: The port is taken.
    """
    application.middlewares.insert(0, _close_afterwards)
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=1.0,
        keepalive_timeout=REQUEST_S,  # aiohttp gives a connection which has sent no request as long, too
        lingering_time=0.0,
        auto_decompress=False,
        read_bufsize=READ_BUFFER_BYTES,
    )
    await runner.setup()
    assert runner.server is not None
    listener = Listener(runner.server, most=most, context=context, rejected=rejected)
    try:
        listener.start(port, host)
        yield listener
    finally:
        listener.close()
        await runner.cleanup()


@web.middleware
async def _close_afterwards(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as refusal:
        refusal.force_close()
        raise
    response.force_close()
    return response
