"""Servers in the place of Spark's REST interface: a driver may answer the operator with anything, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_BLOCK = b"9" * 65_536
_NUMBERS = b"numTasks numCompletedTasks numActiveStages".split()


@dataclasses.dataclass(slots=True)
class Server:
    """A server on an address of this machine that is not loopback.

    Attributes:
        requests: How many requests came.
        sent_bytes: What was written before the operator hung up.
    """

    port: int = 0
    requests: int = 0
    sent_bytes: int = 0

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Send some bytes; an operator that has hung up raises ConnectionError."""
        writer.write(data)
        await writer.drain()
        self.sent_bytes += len(data)


if TYPE_CHECKING:
    Answer = Callable[[Server, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def endless(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a body that never ends."""
    await server.send(writer, _OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        await server.send(writer, b"10000\r\n" + _BLOCK + b"\r\n")


async def huge(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Announce a terabyte, and send it."""
    await server.send(writer, _OK + b"Content-Length: 1099511627776\r\n\r\n[")
    while True:
        await server.send(writer, _BLOCK)


async def headers(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send headers that never end."""
    await server.send(writer, _OK)
    while True:
        await server.send(writer, b"X: " + _BLOCK[:1000] + b"\r\n")


async def silent(_server: Server, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accept the request and send nothing until the operator hangs up."""
    await reader.read()


async def nested(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send JSON that is nested a hundred thousand times."""
    await server.send(writer, _OK + b"Connection: close\r\n\r\n" + b"[" * 100_000)


async def wrong(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send numbers that are negative, and beyond 64 bits when they are added up."""
    low, high = (b",".join(b'"%b": %b' % (name, value) for name in _NUMBERS) for value in (b"-1", b"9" * 18))
    await server.send(writer, _OK + b"Connection: close\r\n\r\n[" + b",".join([b"{%b},{%b}" % (low, high)] * 20) + b"]")


def elsewhere(target: Server) -> Answer:
    """Redirect to another server."""

    async def answer(server: Server, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        location = f"http://{address()}:{target.port}/"
        await server.send(writer, f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())

    return answer


def address() -> str:
    """Return an address of this machine that others could reach; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])


@contextlib.asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[Server]:
    """Serve until the block ends."""
    one = Server()
    connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            one.requests += 1
            await answer(one, reader, writer)
        connections.discard(task)
        writer.close()

    server = await asyncio.start_server(handle, host=address())
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
