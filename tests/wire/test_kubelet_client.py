"""Reads of kubelets over TLS, from servers that lie, hang, and send without end."""

import asyncio
import contextlib
import datetime as dt

import pytest

from boathouse.services.instruments import kubelet_client
from boathouse.services.instruments.kubelet_client import ReadError, Result
from boathouse.services.progress import certificates

NOW = dt.datetime.now(dt.UTC)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = b"100000\r\n" + bytes(2**20) + b"\r\n"


class Kubelet:
    """Answers each request with the next of its answers; None hangs, and `more` is sent without end."""

    def __init__(self, *answers, more=b""):
        self.answers, self.more, self.requests, self.connections = list(answers), more, [], 0
        self.port, self.asked = 0, asyncio.Event()

    async def connected(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                self.asked.set()
                answer = self.answers.pop(0)
                if answer is None:
                    await reader.read()
                writer.write(answer)
                while self.more:
                    writer.write(self.more)
                    await writer.drain()
                await writer.drain()
        writer.transport.abort()


@contextlib.asynccontextmanager
async def serving(kubelet, tmp_path, hosts=("127.0.0.1",), authority=None):
    """Serve a kubelet; yields a client that trusts its authority."""
    own = certificates.authority(None, "kubelet", NOW)
    context = certificates.server_context(authority or own, list(hosts), NOW)
    listening = await asyncio.start_server(kubelet.connected, "127.0.0.1", 0, ssl=context)
    kubelet.port = listening.sockets[0].getsockname()[1]
    ca_file = tmp_path / "ca.crt"
    ca_file.write_text(own.pem)
    client = kubelet_client.KubeletClient(ca_file)
    client.refresh(1)
    async with listening:
        yield client
        client.close()


def read(client, kubelet, limit_bytes=2**22):
    return client.get("127.0.0.1", kubelet.port, "/metrics/resource", token="secret", limit_bytes=limit_bytes)


async def failed(client, kubelet):
    with pytest.raises(ReadError) as error:
        await read(client, kubelet)
    return error.value.result


async def test_a_kubelet_gets_the_token_and_its_answer_is_returned(tmp_path):
    kubelet = Kubelet(OK)
    async with serving(kubelet, tmp_path) as client:
        assert await read(client, kubelet) == b"body"
    assert kubelet.requests[0].startswith(b"GET /metrics/resource HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in kubelet.requests[0]


async def test_the_next_read_needs_no_connection(tmp_path):
    kubelet = Kubelet(*[OK] * 5)
    async with serving(kubelet, tmp_path) as client:
        for _ in range(5):
            await read(client, kubelet)
    assert kubelet.connections == 1


async def test_a_connection_beyond_those_that_are_kept_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(kubelet_client, "IDLE_CONNECTIONS", 0)
    kubelet = Kubelet(OK, OK)
    async with serving(kubelet, tmp_path) as client:
        client.refresh(1)
        for _ in range(2):
            await read(client, kubelet)
    assert kubelet.connections == 2


@pytest.mark.parametrize("nodes", [1000, 5000])
def test_in_a_large_cluster_the_connections_of_some_nodes_are_kept(nodes):
    client = kubelet_client.KubeletClient(None)
    client.refresh(nodes)
    kept = sum(client._keeps(f"10.0.{i // 250}.{i % 250}:10250") for i in range(nodes))
    assert kept == pytest.approx(kubelet_client.IDLE_CONNECTIONS, abs=kubelet_client._SPARE_CONNECTIONS)


async def test_an_answer_without_end_is_abandoned(tmp_path):
    kubelet = Kubelet(ENDLESS, more=MIB)
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.TOO_LARGE


async def test_an_answer_that_states_too_large_a_size_is_abandoned(tmp_path):
    kubelet = Kubelet(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", more=bytes(2**16))
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.TOO_LARGE


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nb"], ids=["never", "in part"])
async def test_an_answer_that_does_not_come_is_abandoned(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(kubelet_client, "TIMEOUT_MS", 200)
    kubelet = Kubelet(answer, None)
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.TIMEOUT


@pytest.mark.parametrize(
    ("status", "result"), [("401", Result.UNAUTHORIZED), ("403", Result.UNAUTHORIZED), ("500", Result.STATUS)]
)
async def test_an_answer_with_another_status_is_no_measurement(tmp_path, status, result):
    kubelet = Kubelet(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is result


async def test_a_redirect_hands_no_token_on(tmp_path):
    kubelet = Kubelet(b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n")
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.STATUS
    assert len(kubelet.requests) == 1


async def test_what_is_no_http_is_a_failure(tmp_path):
    kubelet = Kubelet(b"\x00\x01\x02" * 1000)
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.CONNECTION


async def test_a_kubelet_of_another_authority_never_gets_the_token(tmp_path):
    kubelet = Kubelet(OK)
    async with serving(kubelet, tmp_path, authority=certificates.authority(None, "other", NOW)) as client:
        assert await failed(client, kubelet) is Result.CERTIFICATE
    assert kubelet.requests == []


async def test_a_certificate_of_another_address_is_refused(tmp_path):
    kubelet = Kubelet(OK)
    async with serving(kubelet, tmp_path, hosts=("10.9.9.9", "localhost")) as client:
        assert await failed(client, kubelet) is Result.CERTIFICATE
    assert kubelet.requests == []


async def test_any_certificate_is_accepted_only_if_the_settings_say_so(tmp_path):
    kubelet = Kubelet(OK)
    async with serving(kubelet, tmp_path, hosts=("10.9.9.9",), authority=certificates.authority(None, "other", NOW)):
        client = kubelet_client.KubeletClient(None)
        assert await read(client, kubelet) == b"body"
        client.close()


async def test_new_authorities_are_used_from_the_next_round_on(tmp_path):
    kubelet, other = Kubelet(OK), certificates.authority(None, "other", NOW)
    async with serving(kubelet, tmp_path, authority=other) as client:
        assert await failed(client, kubelet) is Result.CERTIFICATE
        (tmp_path / "ca.crt").write_text(other.pem)
        client.refresh(1)
        assert await read(client, kubelet) == b"body"


async def test_a_file_of_authorities_that_is_missing_is_a_failure_with_its_name(tmp_path):
    kubelet = Kubelet(OK)
    async with serving(kubelet, tmp_path) as client:
        (tmp_path / "ca.crt").unlink()
        client.refresh(1)
        with pytest.raises(ReadError, match=r"ca\.crt") as error:
            await read(client, kubelet)
    assert error.value.result is Result.CERTIFICATE


async def test_a_cancelled_read_ends_its_connection(tmp_path):
    kubelet = Kubelet(None)
    async with serving(kubelet, tmp_path) as client:
        reading = asyncio.create_task(read(client, kubelet))
        await kubelet.asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_failed_read_costs_no_other(tmp_path):
    kubelet = Kubelet(b"\x00", OK)
    async with serving(kubelet, tmp_path) as client:
        assert await failed(client, kubelet) is Result.CONNECTION
        assert await read(client, kubelet) == b"body"
