"""HTTP to the API server: one aiohttp session, the bearer token, and the one place where errors are converted."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import time
import weakref
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import msgspec

from boathouse.cluster import envelope, errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from boathouse.cluster.config import ClusterConfig

TOKEN_REREAD_S = 60.0
"""How old a token may be before its file is read again; projected tokens are rotated at 80 % of an hour."""

READ_BUFFER_BYTES = 256 * 1024
_ERROR_STATUS = 400
_MESSAGE_CHARS = 500
_CLOSING_TURNS = 100
"""Turns of the event loop within which broken connections are gone; two or three in practice."""

Query = dict[str, str]


class Transport:
    """Sends requests and streams answers; knows paths and bytes, nothing of kinds."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        request_timeout_s: float = 30.0,
        user_agent: str = "boathouse",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._request_timeout = aiohttp.ClientTimeout(total=request_timeout_s, sock_connect=10)
        self._user_agent = user_agent
        self._monotonic = monotonic
        self._token = config.token
        self._token_read_at = -TOKEN_REREAD_S
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; end what still uses them before."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._break_off()

    async def _break_off(self) -> None:
        """End the connections that were left in the midst of an answer.

        aiohttp forgets them at once, but each waits up to half a minute for the server's TLS goodbye.
        """
        for _ in range(_CLOSING_TURNS):
            still_open = [one for one in self._sockets if one.fileno() != -1]
            if not still_open:
                return
            for one in still_open:
                with contextlib.suppress(OSError):  # the server was quicker
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    async def request(
        self, method: str, path: str, *, query: Query | None = None, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """Send one request and return the body of its answer.

        Raises:
            errors.ApiError: The server answered with an error status.
            errors.ConnectionLost: No whole answer came in time.
        """
        headers = self._headers(content_type or ("application/json" if body is not None else ""))
        with _converted(f"{method} {path}"):
            async with self._open().request(
                method,
                self._config.server + path,
                params=query,
                data=body,
                headers=headers,
                timeout=self._request_timeout,
                server_hostname=self._config.tls_server_name,
            ) as response:
                answer = await response.read()
                self._raise_for_status(response, answer)
                return answer

    async def stream(self, path: str, *, query: Query, idle_s: float) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it comes, until the server ends it.

        Args:
            path: The URL path.
            query: The URL's query.
            idle_s: After so many seconds without a byte the connection counts as lost.

        Raises:
            errors.ApiError: The server answered with an error status.
            errors.ConnectionLost: The stream broke, or stood still for ``idle_s``.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=idle_s)
        with _converted(f"GET {path}"):
            async with self._open().get(
                self._config.server + path,
                params=query,
                headers=self._headers(),
                timeout=timeout,
                server_hostname=self._config.tls_server_name,
            ) as response:
                if response.status >= _ERROR_STATUS:
                    self._raise_for_status(response, await response.read())
                async for chunk in response.content.iter_any():
                    yield chunk

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            ssl_context = self._config.ssl_context()
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    ssl=ssl_context if ssl_context is not None else True,
                    socket_factory=self._socket,
                ),
                read_bufsize=READ_BUFFER_BYTES,
                auto_decompress=True,
                # Within a cluster the server's CPU for gzip costs more than the bytes it saves.
                headers={"User-Agent": self._user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            )
        return self._session

    def _headers(self, content_type: str = "") -> dict[str, str]:
        headers = {"Content-Type": content_type} if content_type else {}
        if token := self._current_token():
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _current_token(self) -> str | None:
        file = self._config.token_file
        if file is not None and self._monotonic() - self._token_read_at >= TOKEN_REREAD_S:
            try:
                self._token = file.read_text().strip()
            except OSError as error:
                raise errors.ConfigError(f"the service account token {file} cannot be read: {error}") from error
            self._token_read_at = self._monotonic()
        return self._token

    def _raise_for_status(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        if response.status < _ERROR_STATUS:
            return
        error = _to_error(response.status, response.headers, body)
        if isinstance(error, errors.Unauthorized):
            self._token_read_at = -TOKEN_REREAD_S  # the token may just have been rotated: read it again next time
        raise error


@contextlib.contextmanager
def _converted(what: str) -> Any:
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise errors.ConnectionLost(f"{what}: {error}", maybe_done=False) from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError, RuntimeError) as error:
        # aiohttp raises RuntimeError for a connection that is closed under a reader
        detail = str(error) or type(error).__name__
        raise errors.ConnectionLost(f"{what}: {detail}") from error


def _to_error(status: int, headers: Mapping[str, str], body: bytes) -> errors.ApiError:
    try:
        answer = _status_decoder().decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):  # a proxy's page, or text as "404 page not found"
        answer = envelope.Status(message=body[:_MESSAGE_CHARS].decode(errors="replace").strip())
    retry_after_s = _retry_after_s(headers.get("Retry-After"))
    if retry_after_s is None and answer.details and answer.details.retry_after_seconds:
        retry_after_s = float(answer.details.retry_after_seconds)
    return errors.from_status(status, answer.reason, answer.message, retry_after_s)


@functools.cache
def _status_decoder() -> msgspec.json.Decoder[envelope.Status]:
    return msgspec.json.Decoder(envelope.Status)


def _retry_after_s(header: str | None) -> float | None:
    if not header:
        return None
    if header.isdigit():
        return float(header)
    try:  # the other form that HTTP allows; only proxies send it
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
