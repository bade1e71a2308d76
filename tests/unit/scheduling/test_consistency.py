"""The cache is compared with the API server: only what differs twice is drift, and ends the process."""

import asyncio

from boathouse.cluster import errors
from boathouse.scheduling import consistency
from boathouse_policies import model
from tests.builders.operators import desks
from tests.builders.operators.desks import Desk, settle, task_pod


class Watch:
    """A watch whose comparisons with a LIST the test determines.

    Attributes:
        drifts: What the next comparisons find; nothing after the last.
        is_fresh: Whether it has a message between two comparisons.
    """

    def __init__(self) -> None:
        self.objects: dict[str, object] = {}
        self.drifts: list[set[str] | Exception] = []
        self.is_fresh = True

    async def compare(self) -> set[str]:
        found = self.drifts.pop(0) if self.drifts else set()
        if isinstance(found, Exception):
            raise found
        return found

    def freshness_s(self) -> float:
        return -1.0 if self.is_fresh else 1e9


class Checked:
    """A desk with a placed pod, and the checker of its cache."""

    def __init__(self) -> None:
        self.desk, self.pods, self.nodes = Desk(), Watch(), Watch()
        self.fatal: list[str] = []
        self.slept: list[float] = []
        self.while_sleeping = lambda: None
        self.checker = consistency.ConsistencyChecker(
            self.desk.scheduler, self.pods, self.nodes, on_fatal=self.fatal.append, sleep=self._sleep
        )
        self.desk.node("n1")
        pod = task_pod("demo/t", node="n1")
        self.desk.show(pod)
        self.pods.objects["demo/t"] = self.desk.row("demo/t").facts

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.while_sleeping()

    def comparisons(self, result: str) -> float:
        return self.desk.metric("boathouse_cache_comparisons_total", result=result)


async def test_an_equal_cache_is_found_equal_at_once():
    checked = Checked()
    assert await checked.checker.compare()
    assert (checked.fatal, checked.slept, checked.comparisons("equal")) == ([], [], 1)


async def test_a_pod_that_the_ledger_lacks_is_drift():
    checked = Checked()
    checked.desk.scheduler.state.ledger.gone("demo/t")
    assert not await checked.checker.compare()
    assert checked.fatal == ["the cache differs from the API server in 1 objects: ledger demo/t"]
    assert (checked.comparisons("drift"), checked.desk.metric("boathouse_cache_drift_total")) == (1, 1)
    assert checked.slept == [consistency.SETTLE_S]


async def test_a_difference_of_the_ledger_that_is_over_soon_is_no_drift():
    checked = Checked()
    state = checked.desk.scheduler.state
    account = state.ledger.account(model.TaskId("demo/t"))
    state.ledger.gone("demo/t")
    checked.while_sleeping = lambda: state.ledger.observe(account)
    assert await checked.checker.compare()
    assert (checked.fatal, checked.comparisons("equal")) == ([], 1)


async def test_a_node_that_the_ledger_has_and_no_watch_is_drift():
    checked = Checked()
    checked.desk.scheduler.state.pods.nodes.pop("n1")
    assert not await checked.checker.compare()
    assert "ledger n1" in checked.fatal[0]


async def test_what_a_watch_lacks_twice_is_drift():
    checked = Checked()
    checked.pods.drifts = [{"demo/a", "demo/b"}, {"demo/b", "demo/c"}]
    assert not await checked.checker.compare()
    assert checked.fatal == ["the cache differs from the API server in 1 objects: pods demo/b"]


async def test_what_a_watch_lacks_once_is_no_drift():
    checked = Checked()
    checked.nodes.drifts = [{"n2"}]
    assert await checked.checker.compare()
    assert (checked.fatal, checked.comparisons("equal")) == ([], 1)


async def test_a_watch_without_a_message_is_not_compared():
    checked = Checked()
    checked.pods.drifts, checked.pods.is_fresh = [{"demo/a"}] * 2, False
    assert await checked.checker.compare()
    assert (checked.fatal, checked.comparisons("skipped")) == ([], 1)
    assert consistency.HEARD_WITHIN_S < sum(checked.slept) <= consistency.HEARD_WITHIN_S + 2 * consistency.SETTLE_S


async def test_a_list_that_fails_is_not_compared():
    checked = Checked()
    checked.nodes.drifts = [errors.ConnectionLost("away")]
    assert await checked.checker.compare()
    assert (checked.fatal, checked.comparisons("skipped")) == ([], 1)


async def test_a_placement_that_no_watch_confirms_is_read():
    async with Desk().writing() as desk:
        desk.node("n1")
        task = desk.submit()
        await desk.decide()
        await desk.answer("create", "t n1", task_pod(task, node="n1", revision=3))
        checker = consistency.ConsistencyChecker(desk.scheduler, Watch(), Watch(), on_fatal=lambda _: None)
        await checker.confirm()
        assert dict(desk.requests) == {}
        desk.now_s += consistency.CONFIRM_AFTER_S
        reading = asyncio.create_task(checker.confirm())
        await settle()
        await desk.answer("get", "t", desks.NOT_FOUND)
        await reading
        assert desk.scheduler.state.ledger.account(task) is None
