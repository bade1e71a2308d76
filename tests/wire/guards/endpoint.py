"""Guards of the progress endpoint: what somebody sends to it costs the leader a bounded amount."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import ssl
import threading

import msgspec
import pytest
from aiohttp import web

from boathouse import fair
from boathouse.listening import connections, gate
from boathouse.resources import names
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import results, routes, split_plans, splits
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.progress import auth, server
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders import manifests
from tests.builders.operators.endpoints import JOB, serving_endpoint
from tests.builders.operators.mrjobs import split_plan
from tests.wire import fake_api
from tests.wire.guards import Guard

ORDERS = f"demo/{JOB}/tasks/p/orders"
PLAN = f"demo/{JOB}/plan"


@contextlib.asynccontextmanager
async def running_endpoint(api, folder):
    async with api.client() as client, serving_endpoint(api, client, folder) as endpoint:
        yield endpoint


def reviews(api):
    return api.called("create tokenreviews")


def forged(pod, number=0):
    return fake_api.token(pod, names.TOKEN_AUDIENCE, signature=f"forged-{number}")


async def post(endpoint, body, **headers):
    return (await endpoint.ask("POST", PLAN, endpoint.add("s", TaskType.SETUP), data=body, headers=headers))[0]


# Scenarios: each returns what broke


async def tokens_of_pods_that_are_not_there(api, tmp):
    async with running_endpoint(api, tmp) as endpoint:
        endpoint.add("p")
        pod = api.add(manifests.pod("p", namespace="elsewhere"))
        pod["metadata"]["namespace"] = "demo"
        await endpoint.ask("GET", ORDERS, forged(pod))
        return reviews(api)


async def forged_tokens_without_end(api, _tmp):
    caller = auth.Caller(namespace="demo", pod_name="p", pod_uid="u")
    async with api.client() as client:
        subject = auth.Authenticator(client, names.TOKEN_AUDIENCE, clock=lambda: 0.0)
        for number in range(int(auth.NAMESPACE_BURST) + 50):
            await subject.caller(f"forged-{number}", caller)
    return reviews(api)[int(auth.NAMESPACE_BURST) :]


async def two_posts_at_once(api, tmp):
    plan, begun, go_on = msgspec.json.encode(split_plan(1)), asyncio.Event(), asyncio.Event()
    whole = split_plans.receive

    async def receive(stream, **limits):
        begun.set()
        return await whole(stream, **limits)

    async def slowly():
        yield plan[:5]
        await go_on.wait()
        yield plan[5:]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_plans, "receive", receive)
        async with running_endpoint(api, tmp) as endpoint:
            token, second = (endpoint.add(name, TaskType.SETUP) for name in "st")
            length = {"Content-Length": str(len(plan))}
            first = asyncio.create_task(endpoint.ask("POST", PLAN, token, data=slowly(), headers=length))
            await begun.wait()
            status, _ = await endpoint.ask("POST", PLAN, second, data=plan)
            go_on.set()
            await first
    return [] if status == 503 else [status]


async def a_small_body_that_becomes_large(api, tmp):
    bomb = gzip.compress(b" " * (32 << 20) + msgspec.json.encode(split_plan(1)), 1)
    async with running_endpoint(api, tmp) as endpoint:
        status = await post(endpoint, bomb, **{"Content-Encoding": "gzip"})
        return [] if status == 413 else [status]


async def a_body_of_very_many_values(api, tmp):
    body = b'{"splits":[],"location_sets":[' + b"[]," * splits.MAX_CONTAINERS + b"[]]}"
    async with running_endpoint(api, tmp) as endpoint:
        status = await post(endpoint, body)
        return [] if status == 413 else [status]


async def a_plan_to_decode(api, tmp):
    threads = []
    whole = splits.read_posted

    def read(body, *, gzipped):
        threads.append(threading.current_thread())
        return whole(body, gzipped=gzipped)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "read_posted", read)
        async with running_endpoint(api, tmp) as endpoint:
            assert await post(endpoint, msgspec.json.encode(split_plan(3))) == 200
    return [thread for thread in threads if thread is threading.main_thread()]


async def many_requests_on_one_connection(api, tmp):
    async with running_endpoint(api, tmp) as endpoint:
        request = f"GET /v1/jobs/{ORDERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {endpoint.add('p')}\r\n\r\n"
        async with connected(endpoint) as (reader, writer):
            writer.write(request.encode() * 2 + request.replace("1.1\r\n", "1.1\r\nConnection: close\r\n").encode())
            answers = (await reader.read()).count(b"HTTP/1.1")
            return list(range(1, answers))


async def a_head_of_128_kib(api, tmp):
    async with running_endpoint(api, tmp) as endpoint, connected(endpoint) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %04000d\r\n" % (number, 0) for number in range(32)))
        writer.write(b"\r\n")
        try:
            status = await reader.readline()
        except ConnectionError:  # closed before all was read
            return []
        return [] if b" 431 " in status else [status]


async def idle_connections(api, tmp):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "LIMITS", dataclasses.replace(server.LIMITS, most=3))
        async with running_endpoint(api, tmp) as endpoint, contextlib.AsyncExitStack() as stack:
            for _ in range(5):
                await stack.enter_async_context(connected(endpoint))
            return list(range(3, endpoint.server.listener.open))


async def handshakes_without_end(api, tmp):
    with pytest.MonkeyPatch.context() as patch:
        rate = connections.Rate(per_s=0, burst=3)
        patch.setattr(server, "LIMITS", dataclasses.replace(server.LIMITS, address_rate=rate))
        async with running_endpoint(api, tmp) as endpoint:
            for _ in range(8):
                with contextlib.suppress(ConnectionError):
                    async with connected(endpoint):
                        pass
            refused = endpoint.count("progress_rejections_total", reason="TooManyHandshakes")
            return [] if refused == 5 else [refused]


async def a_report_of_impossible_numbers(api, tmp):
    body = b'{"phase":"read","progress":-7,"records_in":99999999999999999999}'
    async with running_endpoint(api, tmp) as endpoint:
        await endpoint.ask("POST", f"demo/{JOB}/tasks/p/report", endpoint.add("p"), data=body)
        report = endpoint.orders.reports(JOB)["p"]
        return [number for number in (report.progress, report.records_in) if not 0 <= number < 2**63]


@contextlib.asynccontextmanager
async def connected(endpoint):
    context = ssl.create_default_context(cadata=endpoint.authority.pem)
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port, ssl=context, server_hostname="localhost")
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


# How each guard is broken


def without_the_claims(patch):
    def find(_self, _object_uid, caller):
        return AttemptPod(
            name=caller.pod_name,
            uid=caller.pod_uid,
            task_type=TaskType.MAP,
            index=0,
            attempt=1,
            state=PodLife.RUNNING,
            placed_s=0.0,
        )

    patch.setattr(routes.TaskRoutes, "find", find)


def without_budgets(patch):
    patch.setattr(fair.Buckets, "take", lambda _, _key: True)


def without_places(patch):
    @contextlib.contextmanager
    def place(_self, _key):
        yield True

    patch.setattr(connections.Places, "place", place)


def without_the_bound_of_bytes(patch):
    patch.setattr(contract, "PLAN_MAX_BYTES", 2**40)


def without_the_bound_of_values(patch):
    patch.setattr(splits, "_BOUNDS", ())


def on_the_loop(patch):
    async def decode(_self, _namespace, content, *, gzipped):
        return splits.read_posted(content, gzipped=gzipped)[0]

    patch.setattr(split_plans.PlanIntake, "_decode", decode)


def with_lasting_connections(patch):
    patch.setattr(web.Response, "force_close", lambda _: None)
    patch.setattr(gate.Gate, "_pass_on", lambda self, data: self._server.data_received(data))


def without_the_bound_of_heads(patch):
    patch.setattr(gate, "MAX_BYTES", 2**20)


def without_surplus(patch):
    patch.setattr(connections.Connections, "surplus", lambda _, _address: None)


def without_bounds_of_numbers(patch):
    patch.setattr(results, "report", lambda said: said)


GUARDS = {
    "claims-before-review": Guard(tokens_of_pods_that_are_not_there, without_the_claims),
    "review-budget": Guard(forged_tokens_without_end, without_budgets),
    "posts-at-a-time": Guard(two_posts_at_once, without_places),
    "plan-bytes": Guard(a_small_body_that_becomes_large, without_the_bound_of_bytes),
    "plan-values": Guard(a_body_of_very_many_values, without_the_bound_of_values),
    "plan-beside-the-loop": Guard(a_plan_to_decode, on_the_loop),
    "one-request-a-connection": Guard(many_requests_on_one_connection, with_lasting_connections),
    "bytes-of-a-head": Guard(a_head_of_128_kib, without_the_bound_of_heads),
    "idle-connections": Guard(idle_connections, without_surplus),
    "handshakes-of-an-address": Guard(handshakes_without_end, without_budgets),
    "report-numbers": Guard(a_report_of_impossible_numbers, without_bounds_of_numbers),
}
