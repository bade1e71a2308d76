"""Spark's REST interface: responses as the operator decodes them, and drivers that are read in turns."""

import asyncio
import json

import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from boathouse.services.sparkapp import rest, sizing
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
        return self.get

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
    app.add_routes([web.get(f"/{handler.__name__}", handler) for handler in (endless, slow, elsewhere, fine)])
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
    async with rest.reader() as get:
        assert await get("10.0.0.1", server, path) == body


async def test_a_port_that_nobody_listens_on_is_no_response():
    async with rest.reader() as get:
        assert await get("127.0.0.1", 1, "x") is None


EXPECTED = {"spark.master": "k8s://https://kubernetes.default.svc", "spark.executor.memory": "1g"}


def environment_response(**changed):
    properties = {key: value for key, value in (EXPECTED | changed).items() if value is not None}
    return json.dumps({"sparkProperties": [list(pair) for pair in properties.items()]}).encode()


def test_the_running_jobs_are_summed_up():
    job = {"jobId": 1, "numTasks": 10, "numCompletedTasks": 4, "numActiveTasks": 2, "numActiveStages": 1, "x": []}
    found = rest.progress(json.dumps([job, job]).encode())
    assert (found.tasks.total, found.tasks.completed, found.stages.active, found.percent) == (20, 8, 2, 40)


def test_without_running_jobs_there_is_no_percentage():
    assert rest.progress(b"[]").percent is None


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'[{"numTasks": "many"}]', b"[" * 100_000, b'[{"numTasks": 1e99}]', b"\xff"]
)
def test_a_response_that_cannot_be_decoded_is_no_report(body):
    assert rest.progress(body) is None
    assert rest.overridden(body, EXPECTED) is None or body == b"{}"


@given(st.lists(st.dictionaries(st.sampled_from(["numTasks", "numCompletedTasks"]), st.integers(-(2**63), 2**63 - 1))))
def test_whatever_numbers_a_driver_sends_the_status_takes_them(jobs):
    found = rest.progress(json.dumps(jobs).encode())
    assert 0 <= found.tasks.total < 2**31
    assert found.percent is None or 0 <= found.percent <= 100


def test_the_spills_of_the_completed_stages_are_summed_up():
    stage = {"stageId": 1, "diskBytesSpilled": 100, "memoryBytesSpilled": 400}
    assert rest.spilled_bytes(json.dumps([stage, stage, {"diskBytesSpilled": -5}, {}]).encode()) == 200
    assert rest.spilled_bytes(json.dumps([{"diskBytesSpilled": 2**62}] * 4).encode()) == 2**60


@pytest.mark.parametrize("body", [b"", b"{}", b'[{"diskBytesSpilled": "many"}]', b"[" * 100_000])
def test_spills_that_cannot_be_decoded_are_no_report(body):
    assert rest.spilled_bytes(body) is None


class KeysRead(dict[str, str]):
    """Properties that note which of them are read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.keys_read = set()

    def get(self, key, default=None):
        self.keys_read.add(key)
        return super().get(key, default)


def test_every_property_that_gives_a_pod_its_size_is_relied_on():
    found = KeysRead(
        {
            "spark.memory.offHeap.enabled": "true",
            "spark.dynamicAllocation.enabled": "true",
            "spark.executor.resource.gpu.amount": "1",
            "spark.executor.resource.gpu.vendor": "nvidia.com",
        }
    )
    for role in (sizing.driver, sizing.executor):
        role(found, is_python=True)
    sizing.minimum_executors(found)
    sizing.maximum_executors(found)
    assert found.keys_read > set(found)
    assert set(rest.relied_on(dict.fromkeys(found.keys_read, "1"))) == found.keys_read


def test_a_program_that_keeps_its_properties_overrides_nothing():
    assert rest.overridden(environment_response(**{"spark.sql.shuffle.partitions": "7"}), EXPECTED) == []


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({"spark.executor.memory": "8g"}, ["spark.executor.memory"]),
        ({"spark.executor.memory": None}, ["spark.executor.memory"]),
        ({"spark.master": "local[4]"}, ["spark.master"]),
        ({"spark.master": "k8s://https://kubernetes.default.svc:443"}, []),
        ({"spark.executor.memory": "*********(redacted)"}, []),
    ],
)
def test_properties_that_a_program_sets_itself_are_named(changed, keys):
    assert rest.overridden(environment_response(**changed), EXPECTED) == keys


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("10.1.2.3", "http://10.1.2.3:4040/x"),
        ("fd00::7", "http://[fd00::7]:4040/x"),
        *(
            (wrong, None)
            for wrong in ("127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "a.b", "", "1.2.3.4@x")
        ),
    ],
)
def test_only_addresses_of_pods_are_read(address, url):
    assert rest.url_of(address, 4040, "x") == url
