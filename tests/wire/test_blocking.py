"""The session of commands: credentials, TLS, retries and streams, against servers that answer as scripted."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import json
import ssl

import pytest

from boathouse.cluster import blocking, config, errors, kubeconfig
from boathouse.services.progress import certificates
from tests.wire.test_transport import CHUNKED, NOW, OK, ScriptedServer, chunk

REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n"


@contextlib.asynccontextmanager
async def served(*answers, endless=False, context=None, **options):
    """A server, and a session of it whose sleeps are recorded."""
    server = ScriptedServer(list(answers), endless)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    host = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    settings = config.ClusterConfig(server=f"http{'s' if context else ''}://{host}", **options)
    server.slept, server.host = [], host
    async with listening:
        session = blocking.Session(settings, sleep=server.slept.append)
        yield server, session
        session._idle.clear()  # closes its connections
        if server.requests:
            await server.left.wait()


def ask(session, method="GET", path="/pods", **options):
    return asyncio.to_thread(session.request, method, path, **options)


def header(request, name):
    found = [line for line in request.decode().split("\r\n") if line.lower().startswith(f"{name.lower()}:")]
    return [line.partition(": ")[2] for line in found]


async def test_a_write_has_its_body_and_type_and_the_connection_is_used_again():
    async with served([OK], [OK]) as (server, session):
        patch = {"body": b'{"a":1}', "content_type": "application/merge-patch+json", "query": {"dryRun": "All"}}
        assert await ask(session, "PATCH", "/pods/p", **patch) == b"{}"
        assert await ask(session) == b"{}"
    first, second = server.requests
    assert first.startswith(b"PATCH /pods/p?dryRun=All HTTP/1.1\r\n")
    assert first.endswith(b'\r\n\r\n{"a":1}')
    assert header(first, "Content-Type") == ["application/merge-patch+json"]
    assert second.startswith(b"GET /pods HTTP/1.1\r\n")


async def test_a_compressed_answer_is_read():
    body = gzip.compress(b"x" * 1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with served([head + body]) as (server, session):
        assert await ask(session) == b"x" * 1000
    assert header(server.requests[0], "Accept-Encoding") == ["gzip"]


async def test_each_request_says_as_whom_it_acts():
    headers = ("Impersonate-User: jane", "Impersonate-Group: a")
    async with served([OK], token="t", headers=headers) as (server, session):
        await ask(session)
    assert header(server.requests[0], "Impersonate-User") == ["jane"]
    assert header(server.requests[0], "Authorization") == ["Bearer t"]


async def test_a_token_file_is_read_for_each_request(tmp_path):
    file = tmp_path / "token"
    async with served([OK], [OK], token_file=file) as (server, session):
        for token in ("old\n", "new\n"):
            file.write_text(token)
            await ask(session)
    assert [header(request, "Authorization") for request in server.requests] == [["Bearer old"], ["Bearer new"]]


def plugin(folder, answer):
    """A plugin that counts its runs in a file, and prints an answer with the count for #."""
    script = folder / "plugin"
    script.write_text(
        f"#!/bin/sh\necho run >> {folder}/runs\nsed s/#/$(wc -l < {folder}/runs)/ <<'END'\n{json.dumps(answer)}\nEND\n"
    )
    script.chmod(0o700)
    return kubeconfig.ExecPlugin(command=str(script))


def credential(**status):
    return {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}


async def test_a_plugin_runs_once_and_again_only_after_a_401(tmp_path):
    made = plugin(tmp_path, credential(token="t#", expirationTimestamp="2999-01-01T00:00:00Z"))
    async with served([OK], [REFUSED], [OK], [REFUSED], [REFUSED], plugin=made) as (server, session):
        await ask(session)
        await ask(session)
        with pytest.raises(errors.Unauthorized):
            await ask(session)
    tokens = [header(request, "Authorization")[0] for request in server.requests]
    assert tokens == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3"]


async def test_a_plugin_runs_again_when_its_credential_has_expired(tmp_path):
    made = plugin(tmp_path, credential(token="t#", expirationTimestamp="2001-01-01T00:00:00Z"))
    async with served([OK], [OK], plugin=made) as (server, session):
        await ask(session)
        await ask(session)
    assert [header(request, "Authorization")[0] for request in server.requests] == ["Bearer t1", "Bearer t2"]


async def test_a_busy_server_is_asked_again_after_the_time_that_it_says():
    async with served([BUSY], [BUSY], [OK]) as (server, session):
        assert await ask(session, "POST", body=b"{}") == b"{}"
    assert server.slept == [3, 3]


async def test_a_server_that_stays_busy_or_wants_a_long_wait_is_given_up():
    async with served(*[[BUSY]] * 9) as (server, session):
        with pytest.raises(errors.TooManyRequests):
            await ask(session)
        assert len(server.requests) == blocking.ATTEMPTS
    async with served([BUSY.replace(b"3", b"3600")]) as (server, session):
        with pytest.raises(errors.TooManyRequests):
            await ask(session)
    assert server.slept == []


async def test_a_failed_write_is_not_repeated():
    failed = BUSY.replace(b"429 Too Many Requests", b"503 Service Unavailable")
    async with served([failed], [OK]) as (server, session):
        with pytest.raises(errors.ServerError):
            await ask(session, "POST", body=b"{}")
        assert len(server.requests) == 1


async def test_an_answer_that_breaks_off_is_lost():
    async with served([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"]) as (_, session):
        with pytest.raises(errors.ConnectionLost):
            await ask(session)


async def test_parts_of_a_stream_come_as_they_arrive_and_leaving_it_ends_its_connection():
    async with served([CHUNKED, chunk(b"one\n")], endless=True) as (server, session):
        stream = session.stream("/watch", query={"watch": "true"})
        assert await asyncio.to_thread(next, stream) == b"one\n"
        await asyncio.to_thread(stream.close)
        await server.left.wait()


async def test_the_certificate_is_verified_for_the_name_of_the_kubeconfig():
    authority = certificates.authority(None, "api", NOW)
    context = certificates.server_context(authority, ["api.example"], NOW)
    async with served([OK], context=context, ca_pem=authority.pem, tls_server_name="api.example") as (server, session):
        assert await ask(session) == b"{}"
        assert header(server.requests[0], "Host") == [server.host]
        with pytest.raises(errors.ConnectionLost, match="certificate"):
            await ask(blocking.Session(dataclasses.replace(session._config, tls_server_name="other.example")))
        with pytest.raises(errors.ConnectionLost, match="certificate"):
            await ask(blocking.Session(dataclasses.replace(session._config, ca_pem=None)))


async def test_an_unverified_certificate_is_taken_only_on_request():
    context = certificates.server_context(certificates.authority(None, "api", NOW), ["api.example"], NOW)
    async with served([OK], context=context, is_verified=False) as (_, session):
        assert await ask(session) == b"{}"


async def test_a_certificate_of_a_plugin_reaches_the_server(tmp_path):
    authority = certificates.authority(None, "api", NOW)
    context = certificates.server_context(authority, ["localhost"], NOW)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem)
    key = certificates._pem(authority.key).decode()
    made = plugin(tmp_path, credential(clientCertificateData=authority.pem, clientKeyData=key))
    options = {"ca_pem": authority.pem, "tls_server_name": "localhost"}
    async with served([OK], context=context, plugin=made, **options) as (_, session):
        assert await ask(session) == b"{}"
    async with served([OK], context=context, **options) as (_, session):
        with pytest.raises(errors.ConnectionLost):
            await ask(session)


async def test_requests_go_through_the_proxy_of_the_kubeconfig_and_loopback_past_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with served([OK]) as (proxy, session):
        assert await ask(session) == b"{}"
    async with served([OK]) as (proxy, _):
        settings = config.ClusterConfig(server="http://cluster.invalid", proxy_url=f"http://{proxy.host}")
        assert await ask(blocking.Session(settings)) == b"{}"
    assert proxy.requests[0].startswith(b"GET http://cluster.invalid/pods HTTP/1.1\r\n")
