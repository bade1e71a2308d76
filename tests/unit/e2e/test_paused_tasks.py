"""The model of tasks that pause by order."""

import asyncio

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse_e2e.paused_tasks import PausedTasks
from boathouse_task.contract import Acknowledgement, Orders, SuspendOrder
from boathouse_task.pausing import Ended
from tests.builders.clocks import Clock

ORDER = SuspendOrder(id="7-1", for_s=60.0)


def limited_pod(limit="2"):
    status = {"name": "task", "resources": {"limits": {"cpu": limit}}}
    return msgspec.convert({"metadata": {"uid": "u"}, "status": {"containerStatuses": [status]}}, wire.PodView)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tasks(clock):
    return PausedTasks(clock)


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ([(1, "10m"), (30, "2")], Ended.LIMIT_RAISED),
        ([(1, "2"), (11, "2")], Ended.NOT_SHRUNK),
        ([(1, "10m"), (61, "10m")], Ended.DEADLINE),
    ],
)
def test_a_paused_task_continues_as_the_runtime_does(tasks, clock, limits, end):
    tasks.begin("u", ORDER)
    paused = []
    for clock.now_s, limit in limits:
        paused.append(tasks.is_paused(limited_pod(limit)))
    assert paused == [True, False]
    assert tasks.ended == {end: 1}


def test_a_pod_that_is_gone_is_forgotten(tasks):
    tasks.begin("u", ORDER)
    tasks.forget("u")
    assert not tasks.is_paused(limited_pod())
    assert not tasks.ended


class Endpoint:
    """Answers each poll with the same order, as a leader that was not told, and answers no third."""

    def __init__(self):
        self.polls, self.sent = [], []
        self.acknowledged, self.done = asyncio.Event(), asyncio.Event()

    async def ask(self, method, path, body=None, /):
        if method == "POST":
            self.sent.append(msgspec.json.decode(body, type=Acknowledgement))
            self.acknowledged.set()
        else:
            self.polls.append(path.partition("?")[2])
        if len(self.polls) == 2:
            self.done.set()
            await asyncio.Event().wait()
        return msgspec.to_builtins(Orders(version=3, maps_total=2, suspend=ORDER)) if method == "GET" else {}


@pytest.mark.parametrize(("lacks_maps", "refused"), [(True, ""), (False, "PhasePassed")])
async def test_an_order_is_acknowledged_once_and_the_task_polls_again_when_it_continues(
    tasks, clock, lacks_maps, refused
):
    endpoint = Endpoint()
    work = asyncio.create_task(tasks.poll("t", endpoint.ask, pod=limited_pod, lacks_maps=lambda: lacks_maps))
    await endpoint.acknowledged.wait()
    assert tasks.is_paused(limited_pod()) is lacks_maps
    clock.now_s = 10.0
    await endpoint.done.wait()
    work.cancel()
    assert endpoint.sent == [Acknowledgement(id=ORDER.id, refused=refused)]
    assert endpoint.polls == ["since=0&order=&wait_s=5", "since=3&order=7-1&wait_s=5"]
