"""The transport over TLS: what is left in its midst leaves no socket behind."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import gc
import socket
from contextlib import aclosing, asynccontextmanager, suppress

from boathouse.cluster import config, transport
from boathouse.services.progress import tls

NOW = dt.datetime.now(dt.UTC)
HEADERS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclasses.dataclass
class Endless:
    """An API server whose answer never ends, and that ignores a client's goodbye."""

    config: config.ClusterConfig
    asked: asyncio.Event

    def client_sockets(self):
        port = int(self.config.server.rpartition(":")[2])
        sockets = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() != -1]
        return [one for one in sockets if one.family == socket.AF_INET and peer_port(one) == port]


def peer_port(one):
    with suppress(OSError):  # other tests' sockets are here too, and some of them listen
        return one.getpeername()[1]


@asynccontextmanager
async def endless():
    authority = tls.authority(None, "api", NOW)
    asked, ended = asyncio.Event(), asyncio.Event()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEADERS + b"1\r\nx\r\n")
        asked.set()
        await ended.wait()
        writer.transport.abort()

    context = tls.server_context(authority, ["localhost"], NOW)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield Endless(config.ClusterConfig(server=url, tls_server_name="localhost", ca_pem=authority.pem), asked)
    ended.set()
    server.close()
    await server.wait_closed()


async def test_a_stream_left_in_its_midst_leaves_no_socket_once_closed():
    async with endless() as server, transport.Transport(server.config) as connected:
        async with aclosing(connected.stream("/watch", query={}, idle_s=30)) as watch:
            assert await anext(watch) == b"x"
        assert server.client_sockets()
        await connected.close()
        assert server.client_sockets() == []


async def test_a_cancelled_request_leaves_no_socket_once_closed():
    async with endless() as server, transport.Transport(server.config) as connected:
        request = asyncio.create_task(connected.request("GET", "/pods"))
        await server.asked.wait()
        request.cancel()
        await asyncio.wait([request])
        await connected.close()
        assert server.client_sockets() == []
