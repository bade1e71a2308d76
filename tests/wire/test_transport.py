"""The transport over TLS, against a server that answers byte by byte, breaks off, or never ends."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import email.utils
from contextlib import aclosing, asynccontextmanager

import pytest

from boathouse.cluster import config, errors, server_time, transport
from boathouse.services.progress import certificates

NOW = dt.datetime.now(dt.UTC)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclasses.dataclass
class ScriptedServer:
    """An API server that answers each request of a connection with the next of its answers, and then breaks off.

    An answer that is None breaks off at once; an event among the parts of an answer is waited for. After the last
    answer the server stays silent, if it is `endless`.
    """

    answers: list[list[bytes | asyncio.Event] | None]
    endless: bool = False
    asked: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    left: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    requests: list[bytes] = dataclasses.field(default_factory=list)

    async def connected(self, reader, writer):
        try:
            for answer in self.answers:
                self.requests.append(await request_of(reader))
                self.asked.set()
                for part in answer or ():
                    if isinstance(part, asyncio.Event):
                        await part.wait()
                        continue
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
                if answer is None:
                    break
            if self.endless:
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.left.set()
        writer.transport.abort()


async def request_of(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b"0")
    return head + await reader.readexactly(int(length))


@asynccontextmanager
async def served(*answers, endless=False, **options):
    authority, server = certificates.authority(None, "api", NOW), ScriptedServer(list(answers), endless)
    context = certificates.server_context(authority, ["localhost"], NOW)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    settings = config.ClusterConfig(server=url, tls_server_name="localhost", ca_pem=authority.pem, **options)
    async with listening, transport.Transport(settings, request_timeout_s=5) as connected:
        yield server, connected


async def lines_of(connected):
    async with aclosing(connected.stream("/watch", query={}, idle_s=5)) as batches:
        return [line async for lines in batches for line in lines]


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
async def test_lines_come_out_whole_however_the_stream_is_cut(size):
    lines = [b"one", b"", b"three", b"x" * 20]
    text = b"".join(line + b"\n" for line in lines)
    cut = [chunk(text[begin : begin + size]) for begin in range(0, len(text), size)]
    async with served([CHUNKED, *cut, chunk(b"")]) as (_, connected):
        assert await lines_of(connected) == lines


async def test_a_line_of_megabytes_is_read():
    async with served([CHUNKED, *[chunk(b"x" * 65536)] * 64, chunk(b"\n"), chunk(b"")]) as (_, connected):
        assert await lines_of(connected) == [b"x" * 4194304]


async def test_lines_that_come_with_the_end_while_others_are_used_are_not_lost(eventually):
    proceed = asyncio.Event()
    async with (
        served([CHUNKED, chunk(b"one\n"), proceed, chunk(b"two\n"), chunk(b"")]) as (_, connected),
        aclosing(connected.stream("/watch", query={}, idle_s=5)) as batches,
    ):
        assert await anext(batches) == [b"one"]
        proceed.set()
        await eventually(lambda: not connected._transfers._ends)
        assert [line async for lines in batches for line in lines] == [b"two"]


@pytest.mark.parametrize("end", [pytest.param([chunk(b"")], id="in good order"), pytest.param([], id="broken off")])
async def test_a_stream_that_ends_in_the_middle_of_a_line_is_lost(end):
    async with served([CHUNKED, chunk(b"one\ntw"), *end], None) as (_, connected):
        with pytest.raises(errors.ConnectionLost):
            await lines_of(connected)


async def test_a_stream_left_in_its_midst_ends_its_connection():
    async with served([CHUNKED, chunk(b"x\n")], endless=True) as (server, connected):
        async with aclosing(connected.stream("/watch", query={}, idle_s=30)) as watch:
            assert await anext(watch) == [b"x"]
        await server.left.wait()


async def test_a_cancelled_request_ends_its_connection():
    async with served([], endless=True) as (server, connected):
        request = asyncio.create_task(connected.request("GET", "/pods"))
        await server.asked.wait()
        request.cancel()
        await asyncio.wait([request])
        await server.left.wait()


async def test_a_request_may_be_cancelled_at_the_moment_its_answer_arrives():
    proceed = asyncio.Event()
    async with served([proceed, OK]) as (server, connected):
        request = asyncio.create_task(connected.request("GET", "/pods"))
        await server.asked.wait()
        (end,), running = connected._transfers._ends.values(), connected._transfers
        asyncio.get_running_loop().remove_reader(running._epoll)
        proceed.set()
        await server.left.wait()
        end.cancel()
        running._on_ready()
        assert not running._ends
        await asyncio.wait([request])
        assert request.cancelled()


async def test_closing_ends_what_is_in_progress():
    async with served([], endless=True) as (server, connected):
        request = asyncio.create_task(connected.request("GET", "/pods"))
        await server.asked.wait()
        await connected.close()
        await asyncio.wait([request])
        assert request.cancelled()


async def test_a_write_that_a_reused_connection_loses_is_not_sent_again():
    async with served([OK], None) as (server, connected):
        await connected.request("GET", "/pods")
        with pytest.raises(errors.ConnectionLost) as lost:
            await connected.request("POST", "/pods", body=b"{}")
        assert lost.value.maybe_done
        assert [request.split()[0] for request in server.requests] == [b"GET", b"POST"]


@pytest.mark.parametrize("answer", [None, [OK[:-1]], [b"nonsense\r\n\r\n"]], ids=["none", "half", "no HTTP"])
async def test_a_write_without_a_whole_answer_may_have_been_done(answer):
    async with served(answer) as (_, connected):
        with pytest.raises(errors.ConnectionLost) as lost:
            await connected.request("POST", "/pods", body=b"{}")
    assert lost.value.maybe_done


async def test_a_server_that_another_authority_signed_is_never_sent_anything():
    other = certificates.authority(None, "other", NOW)
    async with served([OK]) as (server, connected):
        settings = dataclasses.replace(connected._config, ca_pem=other.pem)
        async with transport.Transport(settings) as distrustful:
            with pytest.raises(errors.ConnectionLost, match="certificate") as lost:
                await distrustful.request("POST", "/pods", body=b"{}")
    assert not lost.value.maybe_done
    assert server.requests == []


async def test_a_redirect_is_an_error_and_hands_no_token_on():
    redirect = [b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n"]
    async with served(redirect, token="secret") as (server, connected):
        with pytest.raises(errors.ApiError) as refused:
            await connected.request("GET", "/pods")
    assert refused.value.status == 302
    assert len(server.requests) == 1


async def test_the_proxy_of_the_environment_is_not_used(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    async with served([OK]) as (_, connected):
        assert await connected.request("GET", "/pods") == b"{}"


async def test_a_name_that_no_path_can_hold_is_sent_encoded():
    async with served([OK]) as (server, connected):
        await connected.request("GET", "/pods/ä b?c")
    assert server.requests[0].startswith(b"GET /pods/%C3%A4%20b%3Fc? HTTP/1.1")


async def test_requests_share_a_connection_and_a_write_says_what_it_is():
    async with served([OK], [OK], [OK]) as (server, connected):
        for method, body in (("POST", b"[1]"), ("GET", None), ("PATCH", b"[2]")):
            await connected.request(method, "/pods", query={"a": "b c"}, body=body)
        assert [request.partition(b"\r\n")[0] for request in server.requests] == [
            b"POST /pods?a=b+c HTTP/1.1",
            b"GET /pods?a=b+c HTTP/1.1",
            b"PATCH /pods?a=b+c HTTP/1.1",
        ]
        assert server.requests[0].endswith(b"[1]")
        assert server.requests[2].endswith(b"[2]")
        assert b"Content-Type: application/json" in server.requests[0]
        assert b"Content-Type" not in server.requests[1]


@pytest.mark.parametrize("step_s", [-86400, -3600, 3600, 86400])
async def test_a_response_tells_the_time_of_the_server(step_s):
    then = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    dated = OK.replace(b"\r\n", f"\r\ndate: {email.utils.format_datetime(then, usegmt=True)}\r\n".encode(), 1)
    clock = server_time.ServerTime(lambda: 0.0, lambda: then.timestamp() + step_s)
    async with served([dated]) as (_, connected):
        connected._clock = clock
        await connected.request("GET", "/")
    assert clock.now_s() == pytest.approx(then.timestamp(), abs=1.0)
