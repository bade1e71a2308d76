"""Accepts connections within the limits of `connections`.

asyncio's own server accepts whatever comes: each TLS connection then holds a buffer of 256 KiB, and a flood of
handshakes takes the event loop that renews the Lease. This one accepts a few at a time, and counts a connection until
its socket is closed, however that comes about.
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
"""After so many accepted connections, good and bad, the loop gets back to its other work for so long."""
STARVED_S: Final = 1.0
"""How long to wait when the process has no descriptor left."""
HANDSHAKE_S: Final = 5
SHUTDOWN_S: Final = 1.0
LIFE_S: Final = 120.0
"""No connection is older: the longest poll and the slowest plan take a minute."""
RESERVED_DESCRIPTORS: Final = 512
"""Left to the connections to the API server, and to other ports."""
BUFFER_BYTES: Final = 16 * 1024
"""As large as a TLS record."""


class Listener:
    """A listening socket and the connections that came of it.

    Args:
        protocol: Makes a connection's protocol.
        most: Connections at a time, if there are descriptors for so many.
        context: The server's certificate; None for plain connections.
        rejected: Called with why a connection was refused or ended.
        clock: Seconds that only grow.
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
        """How many connections are open."""
        return self._connections.open

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def start(self, port: int, host: str = "") -> None:
        """Listen, on all addresses of both families where `host` is empty.

        Raises:
            OSError: The port is taken.
        """
        self._socket = _listen(host, port)
        self._loop.add_reader(self._socket, self._accept)

    def verified(self, protocol: asyncio.BaseProtocol) -> None:
        """Keep a connection that has shown a good token, when others have to go."""
        self._connections.verified(protocol)

    def close(self) -> None:
        """Listen no more. Open connections are their protocols' to close."""
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
            except OSError as error:  # no descriptor or memory left
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
        with contextlib.suppress(OSError):  # it is no TLS, or took too long: asyncio has ended it
            self.transport, _ = await loop.connect_accepted_socket(lambda: outermost, self._socket)
            if context is not None:
                await opened

    def abort(self) -> None:
        """End it now, whatever it is at. Once asyncio has the socket, only asyncio may close it."""
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

    asyncio gives each connection a buffer of 256 KiB, filled with zeros: 2,000 idle connections would take 500 MiB.
    Kopf's connections keep theirs, because it is also how much is read at a time of long lists.
    """

    max_size = BUFFER_BYTES

    @classmethod
    def around(
        cls, protocol: asyncio.BaseProtocol, context: ssl.SSLContext, opened: asyncio.Future[None]
    ) -> sslproto.SSLProtocol:
        """TLS of a server's side around a protocol; `opened` ends with the handshake."""
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
        """Let go of the memory at once: asyncio's timer of the handshake and its exceptions would keep it for long."""
        super().connection_lost(exc)
        if self._handshake_timeout_handle is not None:  # type: ignore[attr-defined]
            self._handshake_timeout_handle.cancel()  # type: ignore[attr-defined]
        self._extra.pop("ssl_object", None)
        self._sslobj = None
        self._ssl_buffer = bytearray()
        self._ssl_buffer_view = memoryview(self._ssl_buffer)


class _Socket(socket.socket):
    """Tells when it is closed."""

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
    """As many connections as there are descriptors for, after the limit was raised where it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    if soft < needed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, soft - RESERVED_DESCRIPTORS))
