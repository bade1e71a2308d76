"""The progress endpoint under attack by those who can reach it: each attack costs the operator a bounded amount."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl

import msgspec
import pytest

from boathouse.listening import listener, transports
from boathouse.listening.connections import Rate
from boathouse.resources import names
from boathouse.services.mrjob import split_plans
from boathouse.services.progress import auth, limits, server
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders import manifests
from tests.builders.operators.endpoints import JOB, serving_endpoint
from tests.builders.operators.mrjobs import split_plan
from tests.wire import fake_api

REPORT = msgspec.json.encode(contract.TaskReport(phase="read"))
ORDERS = "demo/job-1/tasks/p/orders?since=0"


@pytest.fixture
async def endpoint(api, client, tmp_path):
    async with serving_endpoint(api, client, tmp_path) as running:
        yield running


def reviews(api):
    return len(api.called("create tokenreviews"))


def limit(monkeypatch, **changed):
    """Change limits of the endpoints that are served afterwards."""
    monkeypatch.setattr(server, "LIMITS", dataclasses.replace(server.LIMITS, **changed))


def length(body):
    """The header of a body that is sent in pieces."""
    return {"Content-Length": str(len(body))}


def forged(api, key, number=0, **claims):
    """A token that says of itself what it should, with a signature that nobody made."""
    pod = api.world.find("pods", key)
    return fake_api.token(pod, names.TOKEN_AUDIENCE, signature=f"forged-{number}", **claims)


@contextlib.asynccontextmanager
async def connected(endpoint, *, tls=True):
    """A raw connection to the endpoint."""
    context = ssl.create_default_context(cadata=endpoint.authority.pem) if tls else None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", endpoint.port, ssl=context, server_hostname="localhost" if tls else None
    )
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


# Tokens


@pytest.mark.parametrize("path", ["demo/job-1/tasks/gone/orders", "demo/job-9/tasks/p/orders", "other/job-1/plan"])
async def test_a_token_that_names_no_live_pod_of_the_job_costs_no_review(endpoint, api, path):
    endpoint.add("p")
    endpoint.add("gone")
    tokens = [forged(api, "demo/p"), forged(api, "demo/gone")]
    del endpoint.pods.known["gone"]
    for token in tokens:
        assert (await endpoint.ask("GET", path, token))[0] in {403, 404, 405}
    assert reviews(api) == 0


async def test_an_expired_token_costs_no_review(endpoint, api):
    endpoint.add("p")
    assert (await endpoint.ask("GET", ORDERS, forged(api, "demo/p", exp=1)))[0] == 401
    assert reviews(api) == 0


async def test_a_forged_token_is_reviewed_once(endpoint, api):
    endpoint.add("p")
    answers = [(await endpoint.ask("GET", ORDERS, forged(api, "demo/p")))[0] for _ in range(3)]
    assert (answers, reviews(api)) == ([401] * 3, 1)
    assert endpoint.count("token_reviews_total", result="denied") == 1
    assert endpoint.count("progress_rejections_total", reason="InvalidToken") == 3


async def test_many_forged_tokens_cost_a_bounded_number_of_reviews(api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(auth, "NAMESPACE_BURST", 3.0)
    monkeypatch.setattr(auth, "NAMESPACE_RATE", 0.0)
    async with serving_endpoint(api, client, tmp_path) as endpoint:
        endpoint.add("p")
        answers = [(await endpoint.ask("GET", ORDERS, forged(api, "demo/p", n)))[0] for n in range(6)]
    assert (answers, reviews(api)) == ([401] * 3 + [503] * 3, 3)


async def test_one_token_at_many_requests_at_once_is_reviewed_once(endpoint, api, eventually):
    token = endpoint.add("p")
    released = api.hold_next("create tokenreviews")
    asking = [asyncio.create_task(endpoint.ask("GET", ORDERS, token)) for _ in range(5)]
    await eventually(lambda: len(endpoint.server._authenticator._pending) == 1 and reviews(api) == 1)
    released.set()
    assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 5
    assert reviews(api) == 1


async def test_a_verified_token_of_another_pod_than_it_claims_is_refused(endpoint, api):
    endpoint.add("p")
    token = forged(api, "demo/p")
    api.tokens[token] = (fake_api.token_user(api.add(manifests.pod("q"))), ["boathouse.dev"])
    assert (await endpoint.ask("GET", ORDERS, token))[0] == 401


# Plans


async def test_a_post_of_64_mib_is_refused_before_it_is_read(endpoint, api):
    token = endpoint.add("s", TaskType.SETUP)
    async with connected(endpoint) as (reader, writer):
        head = f"POST /v1/jobs/demo/{JOB}/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        writer.write(f"{head}Content-Length: {64 << 20}\r\n\r\n".encode())
        assert b"413" in await reader.readline()
    assert reviews(api) == 0


async def test_a_body_of_unknown_length_is_refused_before_it_is_read(endpoint):
    token = endpoint.add("s", TaskType.SETUP)
    async with connected(endpoint) as (reader, writer):
        head = f"POST /v1/jobs/demo/{JOB}/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert b"411" in await reader.readline()
    assert endpoint.count("progress_rejections_total", reason="Malformed") == 1


async def test_a_body_that_trickles_is_cut(endpoint, monkeypatch):
    monkeypatch.setattr(split_plans, "READ_S", 0.05)
    token = endpoint.add("s", TaskType.SETUP)
    async with connected(endpoint) as (reader, writer):
        head = f"POST /v1/jobs/demo/{JOB}/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        writer.write(f"{head}Content-Length: 10\r\n\r\n[".encode())
        assert b"408" in await reader.readline()
    assert endpoint.routes._intake._places.held == 0


async def test_a_namespace_posts_one_plan_at_a_time(endpoint, eventually):
    plan = msgspec.json.encode(split_plan(1))
    go_on = asyncio.Event()

    async def slowly():
        yield plan[:5]
        await go_on.wait()
        yield plan[5:]

    first, second = (endpoint.add(name, TaskType.SETUP) for name in ("s", "t"))
    posting = asyncio.create_task(endpoint.ask("POST", "demo/job-1/plan", first, data=slowly(), headers=length(plan)))
    await eventually(lambda: endpoint.routes._intake._places.held == 1)
    assert (await endpoint.ask("POST", "demo/job-1/plan", second, data=plan))[0] == 503
    go_on.set()
    assert (await posting)[0] == 200


async def test_what_is_no_plan_uses_up_its_namespaces_budget(api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(split_plans, "NAMESPACE_RATE_BYTES", 0)
    async with serving_endpoint(api, client, tmp_path) as endpoint:
        token = endpoint.add("s", TaskType.SETUP)
        tries = 1 + split_plans.NAMESPACE_BURST_BYTES // contract.PLAN_MAX_BYTES
        answers = [(await endpoint.ask("POST", "demo/job-1/plan", token, data=b"{"))[0] for _ in range(tries)]
    assert answers == [400] * (tries - 1) + [503]


async def test_a_plan_of_many_levels_is_refused(endpoint):
    token = endpoint.add("s", TaskType.SETUP)
    body = b'{"splits":[],"x":' + b"[" * 50_000
    assert (await endpoint.ask("POST", "demo/job-1/plan", token, data=body))[0] == 400


# Polls and reports


async def test_a_pod_holds_few_polls(endpoint, eventually):
    token = endpoint.add("p")
    since = msgspec.json.decode((await endpoint.ask("GET", ORDERS, token))[1])["version"]
    path = f"demo/job-1/tasks/p/orders?since={since}&wait_s=30"
    polls = [asyncio.create_task(endpoint.ask("GET", path, token)) for _ in range(limits.POLLS_OF_POD)]
    await eventually(lambda: endpoint.routes._limits._polls.held == limits.POLLS_OF_POD)
    assert (await endpoint.ask("GET", path, token))[0] == 503
    assert (await endpoint.ask("GET", ORDERS, token))[0] == 200  # news needs no place
    endpoint.orders.forget(JOB)
    assert [status for status, _ in await asyncio.gather(*polls)] == [200] * limits.POLLS_OF_POD


async def test_of_reports_that_a_pod_sends_while_its_token_is_reviewed_one_is_taken(endpoint):
    token = endpoint.add("p")
    reports = [endpoint.ask("POST", "demo/job-1/tasks/p/report", token, data=REPORT) for _ in range(10)]
    answers = [status for status, _ in await asyncio.gather(*reports)]
    assert sorted(answers) == [200] + [429] * 9


async def test_a_namespace_holds_few_connections_by_slow_reports(endpoint, eventually, monkeypatch):
    monkeypatch.setattr(endpoint.routes._limits._bodies, "_per_key", 1)
    go_on = asyncio.Event()

    async def slowly():
        yield REPORT[:1]
        await go_on.wait()
        yield REPORT[1:]

    slow, other = endpoint.add("slow"), endpoint.add("other")
    report = endpoint.ask("POST", "demo/job-1/tasks/slow/report", slow, data=slowly(), headers=length(REPORT))
    first = asyncio.create_task(report)
    await eventually(lambda: endpoint.routes._limits._bodies.held == 1)
    assert (await endpoint.ask("POST", "demo/job-1/tasks/other/report", other, data=REPORT))[0] == 429
    go_on.set()
    assert (await first)[0] == 200


async def test_a_poll_with_a_body_is_refused(endpoint):
    assert (await endpoint.ask("GET", ORDERS, endpoint.add("p"), data=b"x"))[0] == 413


async def test_the_more_tasks_report_the_less_often_each_is_wanted(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "REPORTS_A_S", 0.1)
    wanted = []
    for name in ("p", "q"):
        runtime = endpoint.runtime(name, endpoint.add(name))
        wanted.append(await asyncio.to_thread(runtime.report, contract.TaskReport(phase="read")))
    assert wanted == [10.0, 20.0]


async def test_the_endpoint_remembers_only_who_has_just_reported(endpoint):
    async def report(name):
        path = f"demo/job-1/tasks/{name}/report"
        return (await endpoint.ask("POST", path, endpoint.add(name), data=REPORT))[0]

    assert [await report(f"p{number}") for number in range(3)] == [200] * 3
    senders = endpoint.routes._limits._reported
    senders._clock = lambda: 1e12
    assert await report("q") == 200
    assert len(senders) == 1


# Connections


async def test_a_connection_serves_one_request(endpoint):
    token = endpoint.add("p")
    request = f"GET /v1/jobs/{ORDERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    async with connected(endpoint) as (reader, writer):
        writer.write(request * 3)
        assert (await reader.read()).count(b"HTTP/1.1") == 1


async def test_a_connection_that_sends_no_request_is_closed(api, client, tmp_path, monkeypatch):
    limit(monkeypatch, head_s=0.1)
    async with serving_endpoint(api, client, tmp_path) as endpoint:
        for tls in (True, False):
            async with connected(endpoint, tls=tls) as (reader, _):
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""


async def test_headers_that_trickle_are_cut(api, client, tmp_path, monkeypatch):
    limit(monkeypatch, head_s=0.1)
    async with serving_endpoint(api, client, tmp_path) as endpoint, connected(endpoint) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""


async def test_idle_connections_give_way_to_those_who_have_something_to_say(api, client, tmp_path, monkeypatch):
    limit(monkeypatch, most=3)
    async with contextlib.AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(serving_endpoint(api, client, tmp_path))
        for _ in range(6):
            await stack.enter_async_context(connected(endpoint))
        assert endpoint.server.listener.open <= 3
        assert (await endpoint.ask("GET", ORDERS, endpoint.add("p")))[0] == 200
        assert endpoint.count("progress_rejections_total", reason="TooManyConnections") == 4


async def test_closed_connections_are_no_longer_counted(endpoint, eventually):
    await endpoint.ask("GET", ORDERS, endpoint.add("p"))
    for tls in (True, False):
        async with connected(endpoint, tls=tls):
            pass
    with socket.create_connection(("127.0.0.1", endpoint.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)  # it is no TLS
    await eventually(lambda: endpoint.server.listener.open == 0)
    assert endpoint.count("progress_connections") == 0


async def test_an_address_that_begins_too_many_handshakes_is_cut_off(api, client, tmp_path, monkeypatch):
    limit(monkeypatch, address_rate=Rate(per_s=0, burst=3))
    async with serving_endpoint(api, client, tmp_path) as endpoint:
        for _ in range(3):
            async with connected(endpoint):
                pass
        with pytest.raises(ConnectionError):
            async with connected(endpoint):
                pass
        assert endpoint.count("progress_rejections_total", reason="TooManyHandshakes") == 1


async def test_without_descriptors_the_endpoint_waits_and_serves_again(endpoint, monkeypatch):
    monkeypatch.setattr(listener, "STARVED_S", 0.01)
    broken = _Starved(endpoint.server.listener._socket, times=3)
    endpoint.server.listener._socket = broken
    assert (await endpoint.ask("GET", ORDERS, endpoint.add("p")))[0] == 200
    assert broken.times == 0


class _Starved:
    """A listening socket whose process has no descriptor left for some time."""

    def __init__(self, whole, times):
        self._whole, self.times = whole, times

    def __getattr__(self, name):
        return getattr(self._whole, name)

    def accept(self):
        if self.times:
            self.times -= 1
            raise OSError(24, "Too many open files")
        return self._whole.accept()


async def test_a_connection_that_ended_holds_no_memory_until_it_is_collected(endpoint, eventually):
    async with connected(endpoint):
        (connection,) = endpoint.server.listener._open.values()
        await eventually(lambda: connection._transport is not None)
        tls = connection._transport.get_protocol()
        assert isinstance(tls, transports.Tls)
    await eventually(lambda: endpoint.server.listener.open == 0)
    assert (tls._tls, len(tls._buffer), connection._transport) == (None, 0, None)


def test_the_limit_of_connections_leaves_descriptors_for_the_api_server(monkeypatch):
    monkeypatch.setattr(listener.resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(listener.resource, "setrlimit", lambda *_: None)
    assert listener._affordable(2048) == 1024 - listener.RESERVED_DESCRIPTORS
