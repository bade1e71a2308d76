"""Drivers are read in turns; one that does not respond delays no other for long."""

import asyncio
import json

import pytest
from aiohttp import web

from boathouse.services.sparkapp import rest
from tests.wire import waiting

JOBS = json.dumps([{"numTasks": 4, "numCompletedTasks": 1}]).encode()
ENVIRONMENT = json.dumps({"sparkProperties": [["spark.executor.memory", "9g"]]}).encode()
STAGES = json.dumps([{"diskBytesSpilled": 70}, {"diskBytesSpilled": 30}]).encode()
RESPONSES = {"jobs": JOBS, "environment": ENVIRONMENT, "stages": STAGES}


class Drivers:
    """Drivers by address; silent ones respond when the test releases them."""

    def __init__(self):
        self.requests, self.silent, self.released = [], set(), asyncio.Event()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def get(self, address, _port, path):
        self.requests.append((address, path))
        if address in self.silent:
            await self.released.wait()
            return None
        return next(body for part, body in RESPONSES.items() if part in path)


class DriverReports:
    """Reports of drivers, with a clock that the test turns."""

    def __init__(self):
        self.drivers, self.changed, self.now_s = Drivers(), [], 0.0
        self.reports = rest.Reports(self.changed.append, lambda: self.now_s, self.drivers)

    def follow(self, uid, namespace="demo", pod="p1", *, reads_spills=False):
        self.reports.follow(
            rest.Target(
                uid=uid,
                namespace=namespace,
                pod_uid=pod,
                address=uid,
                port=4040,
                application_id="spark-1",
                expected={"spark.executor.memory": "1g"},
                reads_spills=reads_spills,
            )
        )


@pytest.fixture
async def drivers():
    found = DriverReports()
    task = asyncio.create_task(found.reports.run())
    yield found
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_driver_is_read_every_ten_seconds_and_its_environment_once(drivers):
    drivers.follow("a")
    await waiting.eventually(lambda: drivers.changed == ["a"])
    found = drivers.reports.of("a", "p1")
    assert (found.progress.percent, found.overridden) == (25, ("spark.executor.memory",))
    drivers.now_s = 11.0
    await waiting.eventually(lambda: len(drivers.drivers.requests) == 3)
    assert [path.split("/")[-1] for _, path in drivers.drivers.requests] == [
        "jobs?status=running",
        "environment",
        "jobs?status=running",
    ]


async def test_spills_are_read_of_drivers_whose_executors_have_less_memory(drivers):
    drivers.follow("a", reads_spills=True)
    await waiting.eventually(lambda: drivers.changed == ["a"])
    assert drivers.reports.of("a", "p1").spilled_bytes == 100


async def test_a_report_of_an_earlier_driver_does_not_count(drivers):
    drivers.follow("a")
    await waiting.eventually(lambda: drivers.changed)
    drivers.follow("a", pod="p2")
    assert drivers.reports.of("a", "p2").progress is None
    assert drivers.reports.of("a", "p1").progress is None


async def test_a_namespace_of_silent_drivers_leaves_workers_to_others(drivers):
    drivers.drivers.silent = {f"silent-{number}" for number in range(50)}
    for uid in sorted(drivers.drivers.silent):
        drivers.follow(uid, namespace="hostile")
    drivers.follow("a")
    await waiting.eventually(lambda: drivers.changed == ["a"])
    drivers.drivers.released.set()


@pytest.fixture
async def server():
    """Serve hostile responses on the loopback address."""

    async def endless(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"[" * 10_000)
        return response

    async def slow(_request):
        await asyncio.sleep(30)

    async def elsewhere(_request):
        raise web.HTTPFound("/fine")

    async def fine(_request):
        return web.Response(body=JOBS)

    app = web.Application()
    app.add_routes([web.get(f"/{each.__name__}", each) for each in (endless, slow, elsewhere, fine)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "body"), [("fine", JOBS), ("endless", None), ("slow", None), ("elsewhere", None), ("no", None)]
)
async def test_only_a_short_direct_response_is_read(server, monkeypatch, path, body):
    monkeypatch.setattr(rest, "url_of", lambda _, port, path: f"http://127.0.0.1:{port}/{path}")
    monkeypatch.setattr(rest, "TIMEOUT_S", 0.1 if path == "slow" else 60)
    async with rest.DriverClient() as client:
        assert await client.get("10.0.0.1", server, path) == body


async def test_a_port_that_nobody_listens_on_is_no_response():
    async with rest.DriverClient() as client:
        assert await client.get("127.0.0.1", 1, "x") is None
