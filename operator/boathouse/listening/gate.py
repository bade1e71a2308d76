"""Pass one request of a connection to an HTTP server, within limits of its head.

aiohttp reads up to 128 headers of 8 KiB, and up to 32 further requests while it handles one. Here it gets a request
only when its head is complete and within the limits, then its body, and never what follows it. A connection that is
closed before the client has sent all lingers (`transports`), because the client would lose the answer.
"""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from typing_extensions import override

from boathouse.listening.connections import Refusal
from boathouse.listening.transports import Tls, close_lingering

MAX_BYTES: Final = 16 * 1024
"""Maximum size of a request line and headers. A pod's token has 1 to 2 KiB."""
MAX_HEADERS: Final = 32
END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")


def body_bytes(head: bytes) -> int | HTTPStatus:
    """Return the size of the body of a request with this head, or the status with which to refuse the request.

    Bodies have a length: no client of the operator sends chunks, and with them the end of a request would be known only
    after parsing its body. An HTTP parser may reject more than this function.
    """
    request_line, *headers = head.split(b"\r\n")
    if not request_line:
        return HTTPStatus.BAD_REQUEST
    if len(headers) > MAX_HEADERS:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    lengths = []
    for header in headers:
        name, _, value = header.partition(b":")
        name = name.strip().lower()
        if name == b"transfer-encoding":
            return HTTPStatus.LENGTH_REQUIRED
        if name == b"content-length":
            lengths.append(value.strip())
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        return HTTPStatus.BAD_REQUEST
    return int(lengths[0])


_OVERLAP: Final = len(END) - 1
Call = Callable[[], None]


class Gate(asyncio.Protocol):
    """A connection that waits for the head of its request, and then connects the HTTP server's protocol to it."""

    def __init__(
        self, server: asyncio.Protocol, *, began: Call, refused: Callable[[Refusal], None], ended: Call
    ) -> None:
        self._server, self._began, self._refused, self._ended = server, began, refused, ended
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._body_bytes: int | None = None
        self._is_surplus, self.is_closed = False, False

    @property
    def begun(self) -> bool:
        """Whether the HTTP server has the request."""
        return self._body_bytes is not None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        if self._body_bytes is not None:
            self._pass_on(data)
        elif not self.is_closed:
            self._read_head(data)

    def close(self) -> None:
        """Close the connection after what was written, so that it arrives."""
        if self.is_closed or self._transport is None:
            return
        self.is_closed = True
        if not (self._body_bytes is None or self._body_bytes or self._is_surplus):
            self._transport.close()
        elif isinstance(self._transport, Tls):
            self._transport.linger()
        else:
            close_lingering(self._transport)

    @override
    def eof_received(self) -> bool | None:
        return self._server.eof_received() if self.begun else None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._head.clear()
        if self.begun:
            self._server.connection_lost(exc)
        self._ended()

    @override
    def pause_writing(self) -> None:
        if self.begun:
            self._server.pause_writing()

    @override
    def resume_writing(self) -> None:
        if self.begun:
            self._server.resume_writing()

    def _read_head(self, data: bytes) -> None:
        assert self._transport is not None
        held = len(self._head)
        self._head += data[: MAX_BYTES - held]
        end = self._head.find(END, max(0, held - _OVERLAP))
        if end < 0:
            if len(self._head) == MAX_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        size = end + len(END)
        head, rest = bytes(self._head[:size]), data[size - held :]
        self._head = bytearray()
        length = body_bytes(head[:end])
        if isinstance(length, HTTPStatus):
            self._refuse(length)
            return
        self._body_bytes = length
        self._began()
        self._server.connection_made(cast("asyncio.Transport", _ServersTransport(self._transport, self)))
        self._server.data_received(head)
        if rest:
            self._pass_on(rest)

    def _pass_on(self, data: bytes) -> None:
        assert self._body_bytes is not None
        body = data[: self._body_bytes]
        self._body_bytes -= len(body)
        if body:
            self._server.data_received(body)
        if len(body) < len(data) and not self.is_closed and self._transport is not None:
            self._is_surplus = True
            self._transport.pause_reading()  # what follows a request is never answered

    def _refuse(self, status: HTTPStatus) -> None:
        assert self._transport is not None
        self._head.clear()
        too_large = status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self._refused(Refusal.TOO_LARGE_HEAD if too_large else Refusal.MALFORMED)
        answer = f"HTTP/1.1 {status} {status.phrase}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self._transport.write(answer.encode())
        self.close()


class _ServersTransport:
    """The transport for the HTTP server, which closes the connection as the gate does."""

    def __init__(self, transport: asyncio.Transport, gate: Gate) -> None:
        self._transport, self._gate = transport, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        self._gate.close()

    def is_closing(self) -> bool:
        return self._gate.is_closed or self._transport.is_closing()
