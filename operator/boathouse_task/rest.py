"""Client of the REST interfaces of Hadoop's daemons, and what of their values fits the wire.

The daemons come from a user's image, so nothing that they send may harm its reader: a response has a limit of bytes and
of time from the first byte to the last, and redirects are not followed. An agent connects to 127.0.0.1 only.
"""

import contextlib
import http.client
import io
import re
import socket
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

MOST = 2**62
_HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_NAME = re.compile(r"[a-z0-9.-]{1,253}")


def figure(value: float) -> int:
    """Return a number as an integer from 0 to 2^62."""
    return int(max(0, min(MOST, value)))


def clip(text: str, most_chars: int) -> str:
    """Return a text as one line of printable characters, shortened to the limit."""
    return "".join(char if char.isprintable() else " " for char in text[:most_chars])


def host_of(name: str, domain: str) -> str | None:
    """Return the short name of a cluster's node from the name that it registered, or None if it is not of the domain.

    The name may have the domain of the Kubernetes cluster behind it, as in `c0.SERVICE.NAMESPACE.svc.cluster.local`.
    """
    host, _, rest = name.partition(".")
    is_ours = f"{rest}.".startswith(f"{domain}.") and _NAME.fullmatch(name)
    return host if is_ours and _HOST_NAME.fullmatch(host) else None


MOST_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 3.0
_PIECE_BYTES = 65_536
_OK = (http.HTTPStatus.OK, http.HTTPStatus.ACCEPTED)
T = TypeVar("T")


class RestError(Exception):
    """A daemon did not respond (`status` 0), or not as expected; `is_timeout`: it took too long."""

    def __init__(self, reason: str, status: int = 0, *, is_timeout: bool = False) -> None:
        super().__init__(reason)
        self.status, self.is_timeout = status, is_timeout


class Rest:
    """Sends requests to one daemon; without a port, `host` is HOST:PORT.

    `timeout_s` limits the time of a request with its response, `most_bytes` a response with its headers.
    """

    def __init__(
        self,
        name: str,
        port: int | None,
        *,
        host: str = "127.0.0.1",
        timeout_s: float = TIMEOUT_S,
        most_bytes: int = MOST_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._host, self._port = name, host, port
        self._timeout_s, self._most_bytes, self._monotonic = timeout_s, most_bytes, monotonic

    def get(self, path: str, expected: type[T], *keys: str) -> T:
        """Return what is below the keys in the JSON response; [] for nothing or null. Raises RestError."""
        content = self._request("GET", path, None)
        try:
            for key in keys:
                members = msgspec.json.decode(content, type=dict[str, msgspec.Raw] | None) or {}
                content = bytes(members.get(key, b"null"))
            return msgspec.json.decode(content if content != b"null" else b"[]", type=expected)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RestError(f"{self._name}: unexpected response to {path}: {error}") from None

    def put(self, path: str, body: bytes = b"") -> None:
        """Send JSON. Raises RestError if the daemon did not accept it."""
        self._request("PUT", path, body)

    def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        ends_s = self._monotonic() + self._timeout_s
        try:
            with contextlib.closing(connection):
                connection.request(method, path, body, headers)
                source = _Source(connection.sock, ends_s, self._most_bytes, self._monotonic)
                with http.client.HTTPResponse(source, method=method) as response:  # type: ignore[arg-type] # makefile
                    response.begin()
                    content = _read(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"{self._name}: {method} {path}: {type(error).__name__}: {error}"
            raise RestError(reason, is_timeout=isinstance(error, TimeoutError)) from None
        if response.status not in _OK:
            raise RestError(f"{self._name}: {method} {path}: status {response.status}", response.status)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RestError(f"{self._name}: {method} {path}: compressed response")
        return content


def _read(response: http.client.HTTPResponse) -> bytes:
    """Return the body, read in pieces: a declared length is no reason to allocate memory."""
    content = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        content += piece
    if response.length:
        raise OSError(f"the response ends {response.length} bytes early")
    return bytes(content)


class _Source(io.RawIOBase):
    """A socket to read from until a time and a number of bytes, in the place of the socket of an HTTPResponse."""

    def __init__(self, sock: socket.socket, ends_s: float, most_bytes: int, monotonic: Callable[[], float]) -> None:
        self._sock, self._ends_s, self._left_bytes, self._monotonic = sock, ends_s, most_bytes, monotonic

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:  # type: ignore[explicit-override]
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override, explicit-override]
        left_s = self._ends_s - self._monotonic()
        if left_s <= 0:
            raise TimeoutError("the response is too slow")
        self._sock.settimeout(left_s)
        count = self._sock.recv_into(buffer)
        self._left_bytes -= count
        if self._left_bytes < 0:
            raise OSError("the response is too large")
        return count
