"""The reconcile queue, on a loop whose time is faked."""

import asyncio
import contextlib

import pytest
from prometheus_client import registry

from boathouse.cluster import errors
from boathouse.services.frame.work_queue import WorkQueue

pytestmark = pytest.mark.looptime


class Looks:
    """Records when each key is looked at; `answers` says how a look ends."""

    def __init__(self):
        self.at, self.answers, self.busy, self.most = [], {}, set(), 0
        self.cost_s = self.busy_each_s = self.now_s = 0.0
        self.metrics = registry.CollectorRegistry()
        self.queue = WorkQueue(self.look, workers=2, metrics=self.metrics, clock=lambda: self.now_s)

    async def look(self, key):
        assert key not in self.busy
        self.busy.add(key)
        self.most = max(self.most, len(self.busy))
        self.at.append((key, asyncio.get_running_loop().time()))
        await asyncio.sleep(self.cost_s)
        self.now_s += self.busy_each_s
        self.busy.discard(key)
        answer = self.answers.get(key, [None]).pop(0) if self.answers.get(key) else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def times(self, key):
        return [at for name, at in self.at if name == key]

    @contextlib.asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.queue.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def looks():
    return Looks()


async def test_a_marked_key_is_looked_at_at_once_and_once(looks):
    async with looks.running():
        looks.queue.add("a")
        looks.queue.add("a")
        await asyncio.sleep(10)
    assert looks.times("a") == [0]


async def test_looks_at_one_key_keep_their_distance(looks):
    looks.busy_each_s = 0.1
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(0.15)
        looks.queue.add("a")
        await asyncio.sleep(10)
    assert looks.times("a") == pytest.approx([0, 1.0])
    assert looks.metrics.get_sample_value("boathouse_reconcile_busy_seconds_total") == pytest.approx(0.2)


async def test_a_look_that_only_waits_for_a_slow_server_does_not_delay_the_next(looks):
    looks.cost_s = 0.5
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(0.2)
        looks.queue.add("a")
        await asyncio.sleep(10)
    assert looks.times("a") == pytest.approx([0, 0.55])


async def test_a_mark_during_a_look_means_another_look(looks):
    looks.cost_s = 0.1
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(0.05)
        looks.queue.add("a")
        await asyncio.sleep(10)
    assert len(looks.times("a")) == 2


async def test_no_key_is_looked_at_twice_at_a_time_and_others_do_not_wait_for_it(looks):
    looks.cost_s = 1.0
    async with looks.running():
        looks.queue.add("a")
        looks.queue.add("b")
        await asyncio.sleep(5)
    assert (looks.times("a"), looks.times("b"), looks.most) == ([0], [0], 2)


async def test_a_look_may_ask_for_another_one_later(looks):
    looks.answers["a"] = [7.0]
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(20)
    assert looks.times("a") == pytest.approx([0, 7])


async def test_a_mark_comes_before_a_later_look(looks):
    looks.answers["a"] = [100.0]
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(3)
        looks.queue.add("a")
        await asyncio.sleep(1)
    assert looks.times("a") == pytest.approx([0, 3])


async def test_a_failed_look_is_tried_again_later_and_later(looks):
    looks.answers["a"] = [errors.ServerError(500, "", "no"), RuntimeError("a bug"), None]
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(60)
    first, second, third = looks.times("a")
    assert 0.5 <= second - first <= 1
    assert 1 <= third - second <= 2
    assert looks.metrics.get_sample_value("boathouse_reconcile_total", {"result": "error"}) == 2


async def test_retry_after_of_the_server_is_respected(looks):
    looks.answers["a"] = [errors.TooManyRequests(429, "", "slow down", retry_after_s=30)]
    async with looks.running():
        looks.queue.add("a")
        await asyncio.sleep(60)
    assert looks.times("a")[1] >= 30


@pytest.mark.parametrize(
    ("error", "most"),
    [(errors.Conflict(409, "Conflict", ""), 6), (ValueError("a fault of the resource"), 6)],
    ids=["conflict", "exception"],
)
async def test_marks_do_not_shorten_the_backoff_of_a_resource_that_fails(looks, error, most):
    looks.answers["a"] = [error] * 1000
    async with looks.running():
        for _ in range(300):
            looks.queue.add("a")
            await asyncio.sleep(0.1)
    assert 3 <= len(looks.times("a")) <= most


async def test_news_end_the_wait_for_a_server_that_was_away(looks):
    looks.answers["a"] = [errors.ServerError(503, "", "")] * 5
    async with looks.running():
        for _ in range(10):
            looks.queue.add("a")
            await asyncio.sleep(0.1)
    assert len(looks.times("a")) >= 5


async def test_keys_that_nothing_waits_for_are_forgotten(looks):
    async with looks.running():
        for number in range(5000):
            looks.queue.add(f"{number}")
            await asyncio.sleep(0.1)
    assert len(looks.queue._rest_until) < 2000


async def test_namespaces_take_turns(looks):
    looks.cost_s = 1.0
    async with looks.running():
        for number in range(20):
            looks.queue.add(f"busy/{number}")
        looks.queue.add("quiet/a")
        await asyncio.sleep(5)
    assert looks.times("quiet/a") == [0]


async def test_keys_of_one_namespace_do_not_occupy_all_workers(looks):
    looks.cost_s = 100.0
    async with looks.running():
        for number in range(20):
            looks.queue.add(f"busy/{number}")
        await asyncio.sleep(1)
        looks.queue.add("quiet/a")
        await asyncio.sleep(1)
    assert looks.times("quiet/a") == [1]
