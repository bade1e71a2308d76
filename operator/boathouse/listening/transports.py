"""Transports of a connection: TLS with little memory, and closing while the client may still send.

asyncio's own TLS allocates 256 KiB for each connection, accepts a ClientHello of 128 KiB, and reads on while its peer
does not read. This class uses `ssl.MemoryBIO`, which the standard library documents for other implementations.

If a socket is closed before everything it received is read, the kernel resets the connection, and the client's kernel
then drops the answer that it has not read. Therefore the server ends its own side, drops what arrives without keeping
it, and closes when the client does, after `LINGER_S`, or after `LINGER_BYTES`. Until then the connection counts in all
limits, as before.
"""

import asyncio
import contextlib
import ssl
from typing import Any, Final

from typing_extensions import Buffer, override

LINGER_S, LINGER_BYTES = 1.0, 256 * 1024
_dropped: Final = bytearray(16 * 1024)
"""Receives what is dropped, of all connections."""


def close_lingering(transport: asyncio.Transport) -> None:
    """Close the transport of a socket. Its protocol gets no more data, and is told when the connection is closed."""
    if transport.is_closing():
        return
    transport.set_protocol(_Dropping(transport, transport.get_protocol()))
    try:
        transport.write_eof()
        transport.resume_reading()
    except OSError:  # the client has reset the connection
        transport.abort()


class _Dropping(asyncio.BufferedProtocol):
    def __init__(self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
        self._transport, self._protocol, self._left_bytes = transport, protocol, LINGER_BYTES
        self._timeout = asyncio.get_running_loop().call_later(LINGER_S, transport.abort)

    @override
    def get_buffer(self, sizehint: int) -> bytearray:
        return _dropped

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._left_bytes -= nbytes
        if self._left_bytes <= 0:
            self._transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._timeout.cancel()
        self._protocol.connection_lost(exc)


BUFFER_BYTES: Final = 4 * 1024
PLAIN_BYTES: Final = 16 * 1024
HANDSHAKE_BYTES: Final = 16 * 1024
"""Maximum size of what a client sends in its handshake; usual ones send 0.5 to 3 KiB."""


class Tls(asyncio.BufferedProtocol, asyncio.Transport):
    """The server's side of TLS: the protocol of a socket, and the transport of another, after the handshake."""

    def __init__(self, protocol: asyncio.Protocol, context: ssl.SSLContext) -> None:
        super().__init__()
        self._protocol, self._context = protocol, context
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = context.wrap_bio(self._received, self._to_send, server_side=True)
        self._buffer = bytearray(BUFFER_BYTES)
        self._socket: asyncio.Transport | None = None
        self._handshake_bytes = 0
        self._connected = self._closing = False
        self._paused = self._peer_is_slow = False

    # The socket's protocol

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport

    @override
    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    @override
    def buffer_updated(self, nbytes: int) -> None:
        if self._closing:
            return
        self._received.write(memoryview(self._buffer)[:nbytes])
        if not self._connected:
            self._handshake_bytes += nbytes
            self._shake_hands()
        if self._connected:
            self._read()

    @override
    def eof_received(self) -> bool | None:
        if self._connected:
            self._protocol.eof_received()
        return None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Release the memory of the session at once, also if requests still refer to the connection."""
        self._closing = True
        self._socket = self._tls = None
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._buffer = bytearray()
        self._protocol.connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        """Stop reading too: each answer to a message of TLS would otherwise be stored."""
        self._peer_is_slow = True
        self._read_or_pause()
        if self._connected:
            self._protocol.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._peer_is_slow = False
        if self._connected:
            self._protocol.resume_writing()
        self._read_or_pause()

    # The protocol's transport

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sslcontext":
            return self._context
        if name == "ssl_object":
            return self._tls
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    @override
    def write(self, data: Buffer) -> None:
        if self._closing or self._tls is None:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        self._send()

    @override
    def get_write_buffer_size(self) -> int:
        return 0 if self._socket is None else self._socket.get_write_buffer_size()

    @override
    def is_reading(self) -> bool:
        return not (self._paused or self._closing)

    @override
    def pause_reading(self) -> None:
        self._paused = True
        self._read_or_pause()

    @override
    def resume_reading(self) -> None:
        self._paused = False
        self._read_or_pause()

    @override
    def is_closing(self) -> bool:
        return self._closing

    @override
    def close(self) -> None:
        """Send what was written and a close_notify, without waiting for the client's."""
        if (finished := self._finish()) is not None:
            finished.close()

    def linger(self) -> None:
        """Close as `close` does, but after the client, within the limits of lingering."""
        if (finished := self._finish()) is not None:
            close_lingering(finished)

    @override
    def abort(self) -> None:
        self._closing = True
        if self._socket is not None:
            self._socket.abort()

    # Data

    def _finish(self) -> asyncio.Transport | None:
        """End the session. Returns the socket to close; None if the session had ended before."""
        if self._closing or self._socket is None or self._tls is None:
            return None
        self._closing = True
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()
        return self._socket

    def _shake_hands(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            if self._handshake_bytes >= HANDSHAKE_BYTES:
                self.abort()
        except ssl.SSLError:
            self.linger()  # with the alert
        else:
            self._send()
            self._connected = True
            self._protocol.connection_made(self)

    def _read(self) -> None:
        """Pass on what was received, unless the protocol or the client is slow."""
        while self._tls is not None and self.is_reading() and not self._peer_is_slow:
            try:
                data = self._tls.read(PLAIN_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError:
                self.abort()
                return
            if not data:  # close_notify
                self.close()
                return
            self._protocol.data_received(data)
        self._send()

    def _read_or_pause(self) -> None:
        if self._socket is None or self._closing:
            return
        if self._paused or self._peer_is_slow:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()
            asyncio.get_running_loop().call_soon(self._read)  # what was received before the pause

    def _send(self) -> None:
        if self._socket is not None and self._to_send.pending:
            self._socket.write(self._to_send.read())
