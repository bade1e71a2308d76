"""Send HTTP requests to the API server: libcurl on the event loop, the bearer token, conversion of errors.

All connections are in one epoll set, which the loop watches. `pycurl.AsyncCurlMulti` registers a connection with the
loop for each request, and uses more loop callbacks. Both together use a tenth of the operator's CPU time.
"""

import asyncio
import contextlib
import functools
import io
import math
import select
import urllib.parse
from collections.abc import AsyncGenerator, Callable
from typing import Self

import pycurl

from boathouse.cluster import curl_options, errors, server_time
from boathouse.cluster.config import ClusterConfig

_EVENTS = {pycurl.POLL_IN: select.EPOLLIN, pycurl.POLL_OUT: select.EPOLLOUT}
_EVENTS[pycurl.POLL_INOUT] = select.EPOLLIN | select.EPOLLOUT
_AT_ONCE = 256
_IDLE_CONNECTIONS = 64


class Transfers:
    """Runs transfers on the running event loop, and keeps a number of idle connections for later ones."""

    def __init__(self, idle_connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends: dict[pycurl.Curl, asyncio.Future[None]] = {}
        self._due_s = self._timer_s = math.inf
        self._timer = self._loop.call_soon(self._on_due)
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll, self._on_ready)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle_connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    def start(self, curl: pycurl.Curl) -> asyncio.Future[None]:
        """Start a transfer and return its future, which raises `pycurl.error` on failure. Always call `stop`."""
        end = self._ends[curl] = self._loop.create_future()
        self._multi.add_handle(curl)
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()
        return end

    def stop(self, curl: pycurl.Curl) -> None:
        """Cancel a transfer and close its connection, unless the transfer has ended."""
        if (end := self._ends.pop(curl, None)) is not None:
            self._multi.remove_handle(curl)
            end.cancel()

    def close(self) -> None:
        """Cancel all transfers and close all connections."""
        for curl in list(self._ends):
            self.stop(curl)
        self._multi.close()
        self._timer.cancel()
        self._loop.remove_reader(self._epoll)
        self._epoll.close()

    def _on_socket(self, what: int, fd: int, *_: object) -> None:
        if what not in _EVENTS:
            with contextlib.suppress(OSError):  # it is closed already
                self._epoll.unregister(fd)
            return
        try:
            self._epoll.modify(fd, _EVENTS[what])
        except FileNotFoundError:
            self._epoll.register(fd, _EVENTS[what])

    def _on_timer(self, timeout_ms: int) -> None:
        """Store when libcurl must be called. libcurl must not be called from this callback."""
        self._due_s = math.inf if timeout_ms < 0 else self._loop.time() + timeout_ms / 1000

    def _on_due(self) -> None:
        self._timer_s = math.inf
        if self._loop.time() >= self._due_s:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()

    def _on_ready(self) -> None:
        for fd, events in self._epoll.poll(0, _AT_ONCE):
            reads = pycurl.CSELECT_IN if events & ~select.EPOLLOUT else 0
            self._multi.socket_action(fd, reads | (pycurl.CSELECT_OUT if events & ~select.EPOLLIN else 0))
        self._settle()

    def _settle(self) -> None:
        """Resolve the transfers that ended, and set the timer. A timer that is due earlier stays: it is harmless."""
        _, done, failed = self._multi.info_read()
        for curl in done:
            if not (end := self._end(curl)).done():  # it is cancelled before `stop` is called
                end.set_result(None)
        for curl, code, message in failed:
            if not (end := self._end(curl)).done():
                end.set_exception(pycurl.error(code, message))
        if self._due_s < self._timer_s:
            self._timer.cancel()
            self._timer_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._on_due)

    def _end(self, curl: pycurl.Curl) -> asyncio.Future[None]:
        self._multi.remove_handle(curl)
        return self._ends.pop(curl)


TOKEN_REREAD_S = 60.0
"""Age of a token after which its file is read again; projected tokens are rotated at 80 % of an hour."""
Query = dict[str, str]
Lines = list[bytes]


class Transport:
    """Sends requests and streams responses, as paths and bytes, independent of kinds."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        request_timeout_s: float = 30.0,
        user_agent: str = "boathouse",
        clock: server_time.ServerTime = server_time.SERVER_TIME,
    ) -> None:
        self._config = config
        self._url, self._options = curl_options.server(config)
        self._options.setdefault(pycurl.PROXY, "")  # no proxy, also if the environment sets one
        self._options[pycurl.TIMEOUT_MS] = round(request_timeout_s * 1000)
        # No encoding: within a cluster, gzip costs the server more CPU time than the saved bytes are worth.
        own = f"User-Agent: {user_agent}"
        self._headers = ["Accept: application/json", "Accept-Encoding: identity", own, "Expect:"]
        self._clock, self._token = clock, config.token
        self._token_read_at = -TOKEN_REREAD_S
        self._transfers: Transfers | None = None
        self._idle: list[pycurl.Curl] = []

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; cancel the requests and streams that still use them."""
        if self._transfers is not None:
            self._transfers.close()
            self._transfers = None
            self._idle.clear()

    async def request(
        self, method: str, path: str, *, query: Query | None = None, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """Send one request and return the body of its response; raises `errors.ApiError` or `errors.ConnectionLost`."""
        running, received = self._open(), io.BytesIO()
        curl = self._idle.pop() if self._idle else curl_options.handle(self._options.items())
        self._address(curl, path, query, content_type or ("application/json" if body is not None else ""))
        curl_options.set_body(curl, method, body)
        curl.setopt(pycurl.WRITEFUNCTION, received.write)
        curl.setopt(pycurl.HEADERFUNCTION, self._date_reader())
        try:
            await _finished(running.start(curl), curl, f"{method} {path}")
        finally:
            running.stop(curl)
        answer = received.getvalue()
        received.truncate(0)  # the handle references the buffer
        self._idle.append(curl)  # a handle whose request failed or was cancelled is not reused
        self._raise_for_status(curl, answer)
        return answer

    async def stream(self, path: str, *, query: Query, idle_s: float) -> AsyncGenerator[Lines, None]:
        """Yield the lines of a GET's response as they arrive; after `idle_s` without data the connection is lost."""
        running, received = self._open(), _Received(idle_s)
        curl = curl_options.handle((*self._options.items(), (pycurl.TIMEOUT_MS, 0)))
        self._address(curl, path, query)
        curl.setopt(pycurl.WRITEFUNCTION, received.add)
        end, ended = running.start(curl), False
        end.add_done_callback(received.wake)
        try:
            while not ended:
                await received.wait()
                ended = end.done()  # read before the lines are yielded, because more may arrive meanwhile
                if not curl_options.is_error(curl) and (lines := received.take_lines()):
                    yield lines
            await _finished(end, curl, f"GET {path}")
            rest = b"".join(received.data)
            self._raise_for_status(curl, rest)
            if rest:
                raise errors.ConnectionLost(f"GET {path}: the response ended within a line")
        except TimeoutError as error:
            raise errors.ConnectionLost(f"GET {path}: no data for {idle_s} s") from error
        finally:
            received.timer.cancel()
            running.stop(curl)

    def _open(self) -> Transfers:
        if self._transfers is None:
            self._config.ssl_context()  # raises an error that names an unusable file
            self._transfers = Transfers(_IDLE_CONNECTIONS)
        return self._transfers

    def _address(self, curl: pycurl.Curl, path: str, query: Query | None, content_type: str = "") -> None:
        curl.setopt(pycurl.URL, f"{self._url}{urllib.parse.quote(path)}?{_encoded(tuple((query or {}).items()))}")
        own = [f"Content-Type: {content_type}"] if content_type else []
        if token := self._current_token():
            own.append(f"Authorization: Bearer {token}")
        curl.setopt(pycurl.HTTPHEADER, self._headers + own)

    def _current_token(self) -> str | None:
        file = self._config.token_file
        if file is not None and self._clock.monotonic() - self._token_read_at >= TOKEN_REREAD_S:
            try:
                self._token = file.read_text().strip()
            except OSError as error:
                raise errors.ConfigError(f"the service account token {file} cannot be read: {error}") from error
            self._token_read_at = self._clock.monotonic()
        return self._token

    def _date_reader(self) -> Callable[[bytes], None]:
        """Return a reader of header lines that passes the response's `Date` on; call it before the request."""
        clock = self._clock
        sent_s = clock.monotonic()

        def read(line: bytes) -> None:
            if line[:5].lower() == b"date:":
                clock.observe(line[5:].decode("latin-1").strip(), sent_s=sent_s, received_s=clock.monotonic())

        return read

    def _raise_for_status(self, curl: pycurl.Curl, body: bytes) -> None:
        if not curl_options.is_error(curl):
            return
        error = curl_options.to_error(curl, body)
        if isinstance(error, errors.Unauthorized):
            self._token_read_at = -TOKEN_REREAD_S  # the token may have been rotated: the next request reads it again
        raise error


class _Received:
    """The data of a stream that the reader has not taken. After `idle_s` without data, `wait` raises."""

    def __init__(self, idle_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_s
        self.data: list[bytes] = []
        self._received_s = self._loop.time()
        self._more: asyncio.Future[None] = self._loop.create_future()
        self.timer = self._loop.call_later(idle_s, self._check)

    def add(self, data: bytes) -> None:
        self.data.append(data)
        self._received_s = self._loop.time()
        self.wake()

    def wake(self, _: object = None) -> None:
        if not self._more.done():
            self._more.set_result(None)

    async def wait(self) -> None:
        """Wait for data, or for the end of the stream; raises `TimeoutError` if there was no data in time."""
        await self._more
        self._more = self._loop.create_future()

    def take_lines(self) -> Lines:
        *lines, rest = b"".join(self.data).split(b"\n")
        self.data[:] = [rest] if rest else []
        return lines

    def _check(self) -> None:
        """Let `wait` raise if the stream is idle. There is one timer, because one for each wait takes more CPU time."""
        left_s = self._received_s + self._idle_s - self._loop.time()
        if left_s <= 0 and not self._more.done():
            self._more.set_exception(TimeoutError())
        else:
            self.timer = self._loop.call_later(left_s if left_s > 0 else self._idle_s, self._check)


_encoded = functools.lru_cache(maxsize=256)(urllib.parse.urlencode)


async def _finished(end: asyncio.Future[None], curl: pycurl.Curl, what: str) -> None:
    try:
        await end
    except pycurl.error as error:
        raise curl_options.to_connection_lost(curl, f"{what}: {error.args[-1]}") from error
