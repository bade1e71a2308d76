"""What a served port holds in memory while clients flood it: by what Python has allocated in its code."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import gc
import socket
import ssl
import tracemalloc

import pytest
from aiohttp import web

from boathouse.listening import listener
from boathouse.listening.connections import Refusal
from boathouse.services.progress import certificates, server as progress_server
from boathouse.telemetry import health, server as telemetry_server
from tests.wire.waiting import eventually

KIB = 1024
CODE = [tracemalloc.Filter(True, f"*/{folder}/*") for folder in ("boathouse/listening", "aiohttp")]
HEADERS = b"".join(b"X-%d: " % number + b"x" * 8000 + b"\r\n" for number in range(100))
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


def held_bytes():
    """Bytes that the server's code has allocated and not freed."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces(CODE)
    return sum(statistic.size for statistic in snapshot.statistics("filename"))


@pytest.fixture
def measured():
    tracemalloc.start()
    yield held_bytes()
    tracemalloc.stop()


class Served:
    """A server whose only page comes when the server ends.

    Attributes:
        handled: The requests that the page has begun to handle.
        refusals: Why connections and requests were refused.
    """

    def __init__(self) -> None:
        self.handled, self.refusals = [], []
        self.listener = None
        self._clients = []
        self._ends = asyncio.Event()

    async def _page(self, request):
        self.handled.append(request)
        await self._ends.wait()
        return web.Response()

    @contextlib.asynccontextmanager
    async def serve(self, limits, context=None):
        application = web.Application()
        application.router.add_get("/", self._page)
        options = {"context": context, "rejected": self.refusals.append, "host": "127.0.0.1", "port": 0}
        async with listener.serve(application, limits=limits, **options) as self.listener:
            yield self
            self._ends.set()
            for writer in self._clients:
                writer.transport.abort()

    async def send(self, data, **options):
        """Connect from an address that few connections share, and send data as far as the server reads it."""
        source = f"127.0.1.{1 + len(self._clients) // 4}"
        _, writer = await asyncio.open_connection("127.0.0.1", self.listener.port, local_addr=(source, 0), **options)
        self._clients.append(writer)
        writer.write(data)
        return writer

    def head_bytes(self):
        """Bytes of all incomplete heads."""
        return sum(len(connection.gate._head) for connection in self.listener._open.values())


def tls_contexts():
    """The server's context, and the client's options."""
    now = dt.datetime.now(dt.UTC)
    authority = certificates.authority(None, "replica", now)
    client = {"ssl": ssl.create_default_context(cadata=authority.pem), "server_hostname": "localhost"}
    return certificates.server_context(authority, ["localhost"], now), client


PORTS = [
    pytest.param(telemetry_server.LIMITS, (None, {}), id="plain"),
    pytest.param(dataclasses.replace(progress_server.LIMITS, unverified=32), tls_contexts(), id="tls"),
]


@pytest.mark.parametrize(("limits", "contexts"), PORTS)
async def test_a_flood_of_headers_is_refused_and_held_by_nobody(measured, limits, contexts):
    server, client = contexts
    async with Served().serve(limits, server) as served:
        for _ in range(limits.unverified):
            await served.send(GET + HEADERS, **client)
        await eventually(lambda: len(served.refusals) == limits.unverified)
        await eventually(lambda: served.listener.open == 0)
        assert set(served.refusals) == {Refusal.TOO_LARGE_HEAD}
        assert held_bytes() - measured < limits.unverified * KIB


@pytest.mark.parametrize(("limits", "contexts"), PORTS)
async def test_heads_that_never_end_hold_their_maximum_on_as_many_connections_as_there_are(measured, limits, contexts):
    server, client = contexts
    unfinished = (GET + HEADERS)[: 16 * KIB - 1]
    async with Served().serve(limits, server) as served:
        for _ in range(2 * limits.unverified):
            await served.send(unfinished, **client)
        await eventually(lambda: served.head_bytes() == limits.unverified * len(unfinished))
        assert served.refusals == [Refusal.TOO_MANY_CONNECTIONS] * limits.unverified
        assert held_bytes() - measured < limits.unverified * 32 * KIB


@pytest.mark.parametrize(("limits", "contexts"), PORTS)
async def test_requests_behind_one_that_is_handled_are_not_read(measured, limits, contexts):
    server, client = contexts
    async with Served().serve(limits, server) as served:
        for _ in range(8):
            await served.send(GET + b"\r\n" + (GET + HEADERS + b"\r\n") * 8, **client)
        await eventually(lambda: len(served.handled) == 8)
        await eventually(lambda: not any(request.transport.is_reading() for request in served.handled))
        assert held_bytes() - measured < 8 * 48 * KIB


async def test_a_flood_of_idle_connections_does_not_keep_a_probe_from_its_answer():
    application = telemetry_server.health_application(health.Health())
    limits = telemetry_server.PROBE_LIMITS
    async with listener.serve(application, port=0, host="127.0.0.1", limits=limits) as served:
        idle, port = [], served.port
        for number in range(3 * limits.most):
            source = (f"127.0.1.{1 + number // 4}", 0)
            idle.append((await asyncio.open_connection("127.0.0.1", port, local_addr=source))[1])
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET.replace(b"/", b"/healthz", 1) + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.transport.abort()
        for writer in idle:
            writer.transport.abort()


async def test_the_kernel_stores_little_of_what_is_not_read():
    async with Served().serve(telemetry_server.LIMITS) as served:
        await served.send(GET + b"\r\n")
        await eventually(lambda: served.handled)
        accepted = served.handled[0].transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 64 * KIB
