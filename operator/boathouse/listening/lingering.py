"""Close a connection whose client may still send, so that the client gets the last answer.

If a socket is closed before everything it received is read, the kernel resets the connection, and the client's kernel
then drops the answer that it has not read. Therefore the server ends its own side, drops what arrives without keeping
it, and closes when the client does, after `LINGER_S`, or after `LINGER_BYTES`. Until then the connection counts in all
limits, as before.
"""

import asyncio
from typing import Final

from typing_extensions import override

LINGER_S: Final = 1.0
LINGER_BYTES: Final = 256 * 1024
_dropped: Final = bytearray(16 * 1024)
"""Receives what is dropped, of all connections."""


def close(transport: asyncio.Transport) -> None:
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
    """Drops what a client sends, up to a number of bytes and for a time."""

    def __init__(self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
        self._transport, self._protocol = transport, protocol
        self._left_bytes = LINGER_BYTES
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
