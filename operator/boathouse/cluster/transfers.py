"""Transfers of libcurl on the event loop.

All connections are in one epoll set, which the loop watches. `pycurl.AsyncCurlMulti` registers a connection with the
loop for each request, and uses more loop callbacks. Both together use a tenth of the operator's CPU time.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import select

import pycurl

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_AT_ONCE = 256


class Transfers:
    """Runs transfers on the running event loop.

    Args:
        idle_connections: How many connections are kept for later transfers.
    """

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
        """Register, change or remove a connection."""
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
