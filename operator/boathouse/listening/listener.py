"""Accept connections within the limits of `connections`, and serve an aiohttp application on them.

asyncio's server accepts all connections, and a flood of them blocks the event loop that renews the Lease. This listener
accepts a few at a time, and counts a connection until it is closed. An HTTP server gets one request of limited size per
connection: limits of connections therefore also limit requests and memory.
"""

import asyncio
import contextlib
import dataclasses
import logging
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Final

from aiohttp import web

from boathouse.listening.connections import Connections, Limits, Refusal
from boathouse.listening.gate import Gate
from boathouse.listening.transports import Tls

_log = logging.getLogger(__name__)
BACKLOG: Final = 1024
BATCH, PAUSE_S = 20, 0.01
"""After this number of accepted connections, the listener pauses for this time, so that the loop does other work."""
STARVED_S: Final = 1.0
"""Pause when the process has no file descriptor left."""
RESERVED_DESCRIPTORS: Final = 512
"""File descriptors reserved for connections to the API server and for other ports."""
RECEIVE_BYTES: Final = 32 * 1024
"""Size of the kernel's buffer for what a connection receives. Otherwise the kernel lets it grow to several MiB, of the
container's memory, while a connection is not read."""
REFUSALS: Final = 100
"""After this number of refused connections, which cost a tenth of others, the listener pauses too."""


class Listener:
    """A listening socket and its connections, each with a protocol of the HTTP server, which gets one request."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        listening: socket.socket,
        *,
        limits: Limits,
        context: ssl.SSLContext | None,
        rejected: Callable[[Refusal], None],
    ) -> None:
        self._protocol, self._context, self._rejected = protocol, context, rejected
        self._limits = dataclasses.replace(limits, most=_affordable(limits.most))
        self._connections = Connections(self._limits, time.monotonic)
        self._open: dict[Hashable, _Connection] = {}
        self._loop = asyncio.get_running_loop()
        self._resume: asyncio.TimerHandle | None = None
        self._socket = listening
        self._loop.add_reader(self._socket, self._accept)

    @property
    def open(self) -> int:
        """Number of open connections."""
        return self._connections.open

    @property
    def port(self) -> int:
        """Port of the socket."""
        return int(self._socket.getsockname()[1])

    def verified(self, protocol: Hashable) -> None:
        """Mark a connection with a valid token, which is then not closed when there are too many."""
        self._connections.verified(protocol)

    def close(self) -> None:
        """Stop listening, and close the connections without a request. The HTTP server closes the others."""
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for connection in list(self._open.values()):
            if not connection.gate.begun:
                connection.abort()

    def abort(self) -> None:
        """Close what is still open, after the HTTP server has ended."""
        for connection in list(self._open.values()):
            connection.abort()

    def _accept(self) -> None:
        taken = refused = 0
        while taken < BATCH and refused < REFUSALS and self._connections.may_accept:
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptor or memory left
                _log.warning("a connection could not be accepted: %s", error)
                self._pause(STARVED_S)
                return
            if self._take(accepted, address[0]):
                taken += 1
            else:
                refused += 1
        self._pause(PAUSE_S)

    def _pause(self, delay_s: float) -> None:
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(delay_s, self._loop.add_reader, self._socket, self._accept)

    def _take(self, accepted: socket.socket, address: str) -> bool:
        protocol = self._protocol()
        refusal = self._connections.add(protocol, address)
        if refusal is not None:
            self._rejected(refusal)
            accepted.close()
            return False
        gate = Gate(
            protocol,
            began=lambda: connection.lives(self._limits.life_s),
            refused=self._rejected,
            ended=lambda: self._ended(protocol),
        )
        connection = self._open[protocol] = _Connection(gate, self._context, accepted, self._limits.head_s)
        if (surplus := self._open.get(self._connections.surplus(address))) is not None:
            self._rejected(Refusal.TOO_MANY_CONNECTIONS)
            surplus.abort()
        return True

    def _ended(self, protocol: asyncio.Protocol) -> None:
        if (connection := self._open.pop(protocol, None)) is not None:
            connection.end()
        self._connections.remove(protocol)


class _Connection:
    """One accepted connection: its start, and its end. The head of the request has to arrive within `head_s`."""

    def __init__(self, gate: Gate, context: ssl.SSLContext | None, accepted: socket.socket, head_s: float) -> None:
        self.gate = gate
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._aborted = False
        self._life = self._loop.call_later(head_s, self.abort)
        self._starting: asyncio.Task[None] | None = self._loop.create_task(self._start(accepted, context))

    async def _start(self, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        accepted.setblocking(False)
        outermost = self.gate if context is None else Tls(self.gate, context)
        try:
            self._transport, _ = await self._loop.connect_accepted_socket(lambda: outermost, accepted)
        except OSError as error:
            accepted.close()
            self.gate.connection_lost(error)
            return
        if self._aborted:
            self._transport.abort()

    def lives(self, for_s: float) -> None:
        """Close the connection after this time, instead of after that of an earlier call."""
        self._life.cancel()
        self._life = self._loop.call_later(for_s, self.abort)

    def abort(self) -> None:
        """Close the connection in any state."""
        self._aborted = True
        if self._transport is not None:
            self._transport.abort()

    def end(self) -> None:
        """Release what a closed connection holds."""
        self._transport = self._starting = None
        self._life.cancel()


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        made = socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    else:
        made = socket.create_server((host, port), backlog=BACKLOG)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)  # accepted sockets inherit it
    made.setblocking(False)
    return made


def _affordable(wanted: int) -> int:
    """Return the connections for which file descriptors suffice, after raising the process's limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    if soft < needed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, soft - RESERVED_DESCRIPTORS))


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
    """Serve an application during the block, on all addresses or one; raises `OSError` if the port is in use.

    Bodies are not decompressed. The limit of open connections is lowered to the available file descriptors. `rejected`
    is called with the reason why a connection or its request was refused.
    """
    application.middlewares.insert(0, _close_afterwards)
    with _listen(host, port) as listening:
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
        listener = Listener(runner.server, listening, limits=limits, context=context, rejected=rejected)
        try:
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
