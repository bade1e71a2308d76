"""The reconcile queue, on a loop whose time is faked."""

import asyncio
import contextlib

import pytest
from prometheus_client import registry

from boathouse.cluster import errors
from boathouse.services.frame import work_queue

pytestmark = pytest.mark.looptime


class Reconciles:
    """Records when each key is reconciled; `results` says how reconciles end."""

    def __init__(self):
        self.at, self.results, self.busy, self.most = [], {}, set(), 0
        self.cost_s = self.busy_each_s = self.now_s = 0.0
        self.metrics = registry.CollectorRegistry()
        self.queue = work_queue.WorkQueue(self.reconcile, workers=2, metrics=self.metrics, clock=lambda: self.now_s)

    async def reconcile(self, key):
        assert key not in self.busy
        self.busy.add(key)
        self.most = max(self.most, len(self.busy))
        self.at.append((key, asyncio.get_running_loop().time()))
        await asyncio.sleep(self.cost_s)
        self.now_s += self.busy_each_s
        self.busy.discard(key)
        result = self.results[key].pop(0) if self.results.get(key) else None
        if isinstance(result, Exception):
            raise result
        return result

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
def reconciles():
    return Reconciles()


async def test_a_marked_key_is_reconciled_at_once_and_once(reconciles):
    async with reconciles.running():
        reconciles.queue.add("a")
        reconciles.queue.add("a")
        await asyncio.sleep(10)
    assert reconciles.times("a") == [0]


async def test_reconciles_of_one_key_keep_their_distance(reconciles):
    reconciles.busy_each_s = 0.1
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(0.15)
        reconciles.queue.add("a")
        await asyncio.sleep(10)
    assert reconciles.times("a") == pytest.approx([0, 1.0])
    assert reconciles.metrics.get_sample_value("boathouse_reconcile_busy_seconds_total") == pytest.approx(0.2)


async def test_a_reconcile_that_only_waits_for_a_slow_server_does_not_delay_the_next(reconciles):
    reconciles.cost_s = 0.5
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(0.2)
        reconciles.queue.add("a")
        await asyncio.sleep(10)
    assert reconciles.times("a") == pytest.approx([0, 0.55])


async def test_a_mark_during_a_reconcile_requeues_the_key(reconciles):
    reconciles.cost_s = 0.1
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(0.05)
        reconciles.queue.add("a")
        await asyncio.sleep(10)
    assert len(reconciles.times("a")) == 2


async def test_no_key_is_reconciled_twice_at_a_time_and_others_do_not_wait_for_it(reconciles):
    reconciles.cost_s = 1.0
    async with reconciles.running():
        reconciles.queue.add("a")
        reconciles.queue.add("b")
        await asyncio.sleep(5)
    assert (reconciles.times("a"), reconciles.times("b"), reconciles.most) == ([0], [0], 2)


async def test_a_reconcile_may_request_another_one_later(reconciles):
    reconciles.results["a"] = [7.0]
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(20)
    assert reconciles.times("a") == pytest.approx([0, 7])


async def test_a_mark_brings_a_later_reconcile_forward(reconciles):
    reconciles.results["a"] = [100.0]
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(3)
        reconciles.queue.add("a")
        await asyncio.sleep(1)
    assert reconciles.times("a") == pytest.approx([0, 3])


async def test_a_failed_reconcile_is_retried_with_a_growing_backoff(reconciles):
    reconciles.results["a"] = [errors.ServerError(500, "", "no"), RuntimeError("a bug"), None]
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(60)
    first, second, third = reconciles.times("a")
    assert 0.5 <= second - first <= 1
    assert 1 <= third - second <= 2
    assert reconciles.metrics.get_sample_value("boathouse_reconcile_total", {"result": "error"}) == 2


async def test_retry_after_of_the_server_is_respected(reconciles):
    reconciles.results["a"] = [errors.TooManyRequests(429, "", "slow down", retry_after_s=30)]
    async with reconciles.running():
        reconciles.queue.add("a")
        await asyncio.sleep(60)
    assert reconciles.times("a")[1] >= 30


@pytest.mark.parametrize(
    ("error", "most"),
    [(errors.Conflict(409, "Conflict", ""), 6), (ValueError("a fault of the resource"), 6)],
    ids=["conflict", "exception"],
)
async def test_marks_do_not_shorten_the_backoff_of_a_resource_that_fails(reconciles, error, most):
    reconciles.results["a"] = [error] * 1000
    async with reconciles.running():
        for _ in range(100):
            reconciles.queue.add("a")
            await asyncio.sleep(0.3)
    assert 3 <= len(reconciles.times("a")) <= most


async def test_events_end_the_backoff_after_a_server_error(reconciles):
    reconciles.results["a"] = [errors.ServerError(503, "", "")] * 5
    async with reconciles.running():
        for _ in range(10):
            reconciles.queue.add("a")
            await asyncio.sleep(0.1)
    assert len(reconciles.times("a")) >= 5


async def test_keys_without_pending_reconciles_are_forgotten(reconciles, monkeypatch):
    monkeypatch.setattr(work_queue, "_DELAYS_KEPT", 100)
    async with reconciles.running():
        for number in range(500):
            reconciles.queue.add(f"{number}")
            await asyncio.sleep(0.1)
    assert len(reconciles.queue._not_before) < 200


async def test_namespaces_take_turns(reconciles):
    reconciles.cost_s = 1.0
    async with reconciles.running():
        for number in range(20):
            reconciles.queue.add(f"busy/{number}")
        reconciles.queue.add("quiet/a")
        await asyncio.sleep(5)
    assert reconciles.times("quiet/a") == [0]


async def test_keys_of_one_namespace_do_not_occupy_all_workers(reconciles):
    reconciles.cost_s = 100.0
    async with reconciles.running():
        for number in range(20):
            reconciles.queue.add(f"busy/{number}")
        await asyncio.sleep(1)
        reconciles.queue.add("quiet/a")
        await asyncio.sleep(1)
    assert reconciles.times("quiet/a") == [1]
