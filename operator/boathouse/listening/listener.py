"""Accept connections within the limits of `connections`.

asyncio's server accepts all connections: each TLS connection then has a buffer of 256 KiB, and a flood of handshakes
blocks the event loop that renews the Lease. This listener accepts a few at a time, and counts a connection until its
socket is closed.
"""

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
import time
from asyncio import sslproto
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from boathouse.listening.connections import Connections, Refusal

_log = logging.getLogger(__name__)

BACKLOG: Final = 1024
BATCH: Final = 20
PAUSE_S: Final = 0.01
"""After this number of accepted connections, the listener pauses for this time, so that the loop does other work."""
STARVED_S: Final = 1.0
"""Pause when the process has no file descriptor left."""
HANDSHAKE_S: Final = 5
SHUTDOWN_S: Final = 1.0
LIFE_S: Final = 120.0
"""Maximum age of a connection: the longest poll and the slowest plan take a minute."""
RESERVED_DESCRIPTORS: Final = 512
"""File descriptors reserved for connections to the API server and for other ports."""
BUFFER_BYTES: Final = 16 * 1024
"""Buffer size: a TLS record."""


class Listener:
    """A listening socket and its connections.

    Args:
        protocol: Creates a connection's protocol.
        most: Maximum of open connections, lowered to the available file descriptors.
        context: TLS context with the certificate; None for plain connections.
        rejected: Called with the reason why a connection was refused or closed.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        protocol: Callable[[], asyncio.BaseProtocol],
        *,
        most: int,
        context: ssl.SSLContext | None = None,
        rejected: Callable[[Refusal], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._protocol = protocol
        self._context = context
        self._rejected = rejected
        self._connections = Connections(_affordable(most), clock)
        self._open: dict[asyncio.BaseProtocol, _Connection] = {}
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._resume: asyncio.TimerHandle | None = None

    @property
    def open(self) -> int:
        """Number of open connections."""
        return self._connections.open

    @property
    def port(self) -> int:
        """Port of the socket."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def start(self, port: int, host: str = "") -> None:
        """Listen, on all addresses of both families if `host` is empty.

        Raises:
            OSError: The port is in use.
        """
        self._socket = _listen(host, port)
        self._loop.add_reader(self._socket, self._accept)

    def verified(self, protocol: asyncio.BaseProtocol) -> None:
        """Mark a connection with a valid token, which is then not closed when there are too many."""
        self._connections.verified(protocol)

    def close(self) -> None:
        """Stop listening. Protocols close the open connections."""
        if self._resume is not None:
            self._resume.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _accept(self) -> None:
        assert self._socket is not None
        for _ in range(BATCH):
            if not self._connections.may_accept:
                break
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptor or memory left
                _log.warning("a connection could not be accepted: %s", error)
                self._pause(STARVED_S)
                return
            self._take(accepted, address[0])
        self._pause(PAUSE_S)

    def _pause(self, delay_s: float) -> None:
        assert self._socket is not None
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(delay_s, self._go_on)

    def _go_on(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def _take(self, accepted: socket.socket, address: str) -> None:
        protocol = self._protocol()
        refusal = self._connections.add(protocol, address)
        if refusal is not None:
            self._rejected(refusal)
            accepted.close()
            return
        connection = _Connection(accepted, lambda: self._closed(protocol))
        self._open[protocol] = connection
        connection.start(self._loop, protocol, self._context)
        surplus = self._connections.surplus()
        if isinstance(surplus, asyncio.BaseProtocol):
            self._rejected(Refusal.TOO_MANY_CONNECTIONS)
            self._open[surplus].abort()

    def _closed(self, protocol: asyncio.BaseProtocol) -> None:
        self._open.pop(protocol, None)
        self._connections.remove(protocol)


class _Connection:
    """One accepted connection: its handshake, and its end."""

    def __init__(self, accepted: socket.socket, closed: Callable[[], None]) -> None:
        accepted.setblocking(False)
        self._socket = _Socket(accepted, self._ended)
        self._closed = closed
        self._opening: asyncio.Task[None] | None = None
        self._begun = False
        self.transport: asyncio.Transport | None = None
        self._life: asyncio.TimerHandle | None = None

    def start(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol, context: ssl.SSLContext | None
    ) -> None:
        """Begin the handshake."""
        self._life = loop.call_later(LIFE_S, self.abort)
        self._opening = loop.create_task(self._open(loop, protocol, context))

    async def _open(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol, context: ssl.SSLContext | None
    ) -> None:
        self._begun = True
        opened = loop.create_future()
        outermost = protocol if context is None else _Tls.around(protocol, context, opened)
        with contextlib.suppress(OSError):  # not TLS, or a timeout: asyncio has closed the connection
            self.transport, _ = await loop.connect_accepted_socket(lambda: outermost, self._socket)
            if context is not None:
                await opened

    def abort(self) -> None:
        """Close the connection in any state. After asyncio has taken the socket, only asyncio may close it."""
        if self.transport is not None:
            self.transport.abort()
            return
        if self._opening is not None:
            self._opening.cancel()
        if not self._begun:
            self._socket.close()

    def _ended(self) -> None:
        self.transport = self._opening = None
        if self._life is not None:
            self._life.cancel()
        self._closed()


class _Tls(sslproto.SSLProtocol):
    """asyncio's TLS with a small buffer.

    asyncio allocates a buffer of 256 KiB for each connection: 2,000 idle connections would use 500 MiB. Kopf's
    connections keep the large buffer, which speeds up reading long lists.
    """

    max_size = BUFFER_BYTES

    @classmethod
    def around(
        cls, protocol: asyncio.BaseProtocol, context: ssl.SSLContext, opened: asyncio.Future[None]
    ) -> sslproto.SSLProtocol:
        """Return server-side TLS around a protocol; `opened` completes with the handshake."""
        loop = asyncio.get_running_loop()
        return cls(
            loop,
            protocol,
            context,
            opened,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=SHUTDOWN_S,
        )

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the memory at once, which asyncio's handshake timer and exceptions would otherwise keep."""
        super().connection_lost(exc)
        if self._handshake_timeout_handle is not None:  # type: ignore[attr-defined]
            self._handshake_timeout_handle.cancel()  # type: ignore[attr-defined]
        self._extra.pop("ssl_object", None)
        self._sslobj = None
        self._ssl_buffer = bytearray()
        self._ssl_buffer_view = memoryview(self._ssl_buffer)


class _Socket(socket.socket):
    """A socket that calls back when it is closed."""

    def __init__(self, accepted: socket.socket, closed: Callable[[], None]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._on_close: Callable[[], None] | None = closed

    @override
    def close(self) -> None:
        super().close()
        closed, self._on_close = self._on_close, None
        if closed is not None:
            closed()


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        made = socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    else:
        made = socket.create_server((host, port), backlog=BACKLOG)
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
