"""Serve an aiohttp application within limits of connections, with one request of limited size per connection.

Limits of connections therefore also limit requests and memory, and no connection stays open after its request.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from aiohttp import web

from boathouse.listening.connections import Limits, Refusal
from boathouse.listening.listener import Listener

READ_BUFFER_BYTES: Final = 16 * 1024


@contextlib.asynccontextmanager
async def serve(
    application: web.Application,
    *,
    port: int,
    limits: Limits,
    host: str = "",
    context: ssl.SSLContext | None = None,
    rejected: Callable[[Refusal], None] = lambda _: None,
) -> AsyncIterator[Listener]:
    """Serve an application during the block. Bodies are not decompressed.

    Args:
        application: The application, used only here.
        port: The port; 0 for a free one.
        limits: Limits of connections.
        host: An address; empty for all addresses of both families.
        context: TLS context with the certificate; None for plain HTTP.
        rejected: Called with the reason why a connection or its request was refused.

    Raises:
        OSError: The port is in use.
    """
    application.middlewares.insert(0, _close_afterwards)
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=1.0,
        keepalive_timeout=limits.head_s,  # also of a connection whose head aiohttp takes for none
        lingering_time=0.0,
        auto_decompress=False,
        read_bufsize=READ_BUFFER_BYTES,
    )
    await runner.setup()
    assert runner.server is not None
    listener = Listener(runner.server, limits=limits, context=context, rejected=rejected)
    try:
        listener.start(port, host)
        yield listener
    finally:
        listener.close()
        await runner.cleanup()
        listener.abort()


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
