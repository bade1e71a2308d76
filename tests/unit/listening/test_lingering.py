"""Answers to clients that still send, on sockets of the loopback interface: they arrive, and cost a bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl

import pytest
from aiohttp import web

from boathouse.listening import listener as listening, transports
from boathouse.listening.connections import Refusal
from boathouse.services.progress import server as progress_server
from tests.unit.listening.test_floods import tls_contexts
from tests.wire.waiting import eventually

CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_LARGE = b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 20_000 + b"\r\n\r\n"
UNREAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"
PIECE = b"x" * 50_000
TLS = tls_contexts()


@dataclasses.dataclass
class Served:
    """A server that answers 401 before it reads a body, and its clients."""

    listener: object
    refusals: list[Refusal]
    client: dict[str, object]
    connections: list[socket.socket] = dataclasses.field(default_factory=list)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.listener.port), timeout=20)
        if self.client:
            connection = self.client["ssl"].wrap_socket(connection, server_hostname=self.client["server_hostname"])
        self.connections.append(connection)
        return connection

    def send(self, connection, head, pieces):
        """Send a head, more once the answer begins, and return the answer."""
        connection.sendall(head)
        answer = connection.recv(1)
        for _ in range(pieces):
            connection.sendall(PIECE)
        while data := connection.recv(1 << 16):
            answer += data
        return answer

    async def answer(self, head, pieces=0):
        """Return a connection that the client does not close, and its answer."""
        connection = await asyncio.to_thread(self.connect)
        return connection, await asyncio.to_thread(self.send, connection, head, pieces)


@contextlib.asynccontextmanager
async def serving(context=None, client=None, **limits):
    async def refuse(_request):
        raise web.HTTPUnauthorized

    application, refusals = web.Application(), []
    application.router.add_post("/", refuse)
    options = {"limits": dataclasses.replace(progress_server.LIMITS, **limits), "host": "127.0.0.1", "port": 0}
    async with listening.serve(application, context=context, rejected=refusals.append, **options) as listener:
        served = Served(listener, refusals, client or {})
        yield served
    await eventually(lambda: listener.open == 0)
    for connection in served.connections:
        connection.close()


@pytest.fixture
def patient(monkeypatch):
    """Let connections linger until their clients close them."""
    monkeypatch.setattr(transports, "LINGER_S", 1e6)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("contexts", [(None, None), TLS], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(CHUNKED, b"411", id="411"),
        pytest.param(TOO_LARGE, b"431", id="431"),
        pytest.param(UNREAD, b"401", id="401"),
    ],
)
async def test_a_client_that_still_sends_gets_its_answer(contexts, head, status):
    async with serving(*contexts) as served:
        connection, answer = await served.answer(head, pieces=3)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert served.listener.open == 1
        connection.close()
        await eventually(lambda: served.listener.open == 0)


@pytest.mark.usefixtures("patient")
async def test_a_client_whose_handshake_is_malformed_gets_the_alert():
    async with serving(*TLS) as served:
        served.client = {}
        _, answer = await served.answer(b"\x16\x03\x01\x00\x05hello", pieces=3)
    assert answer.startswith(b"\x15\x03")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("contexts", [(None, None), TLS], ids=["plain", "tls"])
async def test_a_client_that_sends_without_end_is_reset(contexts):
    async with serving(*contexts) as served:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await served.answer(CHUNKED, pieces=1000)
        await eventually(lambda: served.listener.open == 0)


@pytest.mark.parametrize("contexts", [(None, None), TLS], ids=["plain", "tls"])
async def test_a_client_that_does_not_close_is_closed_in_time(contexts, monkeypatch):
    monkeypatch.setattr(transports, "LINGER_S", 0.05)
    async with serving(*contexts) as served:
        await served.answer(CHUNKED)
        await eventually(lambda: served.listener.open == 0)


@pytest.mark.usefixtures("patient")
async def test_a_connection_that_lingers_counts_and_gives_way_as_any_other():
    async with serving(unverified_of_address=1) as served:
        await served.answer(CHUNKED)
        await asyncio.to_thread(served.connect)
        await eventually(lambda: Refusal.TOO_MANY_CONNECTIONS in served.refusals and served.listener.open == 1)


async def test_an_answer_to_a_request_that_was_read_closes_its_connection_at_once():
    async with serving() as served:
        _, answer = await served.answer(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405")
        await eventually(lambda: served.listener.open == 0)


@pytest.mark.usefixtures("patient")
async def test_a_server_that_ends_closes_connections_that_linger():
    async with serving() as served:
        await served.answer(UNREAD)
        assert served.listener.open == 1
