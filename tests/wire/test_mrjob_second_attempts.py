"""Second attempts of a real MRJob's slow maps get nodes that the policy would choose."""

import asyncio
import contextlib

import pytest

from boathouse.services.mrjob import routes
from boathouse.services.mrjob.kind import MRJobKind
from tests.builders import manifests
from tests.builders.operators.leaders import leading
from tests.builders.operators.mrjobs import KEY, Kubelet, mrjob
from tests.builders.operators.schedulers import stop

RUNNING = {"name": "task", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
FIRST, SECOND = "m-00000-a1", "m-00000-a2"


@pytest.fixture
def kinds(monkeypatch):
    """The kinds of the leaders that a test runs."""
    found = []

    def build(*arguments):
        found.append(MRJobKind(*arguments))
        return found[-1]

    monkeypatch.setattr(routes, "MRJobKind", build)
    return found


class Job:
    """A job whose only map is slow."""

    def __init__(self, api, kind) -> None:
        self.api, self.kind = api, kind
        self.uid = api.get("mrjobs", KEY)["metadata"]["uid"]

    def pod(self, task):
        return next((key for key in self.api.objects("pods") if key.endswith(task)), None)

    def node(self, task=FIRST):
        key = self.pod(task)
        return None if key is None else self.api.get("pods", key)["spec"].get("nodeName")

    def may_repeat(self, *avoids):
        return self.kind.seconds.request(self.uid, self.pod(FIRST), avoids) is not None


@contextlib.asynccontextmanager
async def slow_map(api, kinds, eventually, *nodes, profile="fair"):
    """Run a leader, a kubelet and the map on one of the nodes."""
    for name in nodes:
        api.add(manifests.node(name, cpu="4", memory="8Gi"))
    stage = {"command": ["cat"], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    api.add(mrjob(mapper=stage, reducer=None))
    async with leading(api, (routes.ENTRY,), profile=profile):
        kubelet = Kubelet(api, 1)
        kubelet.operator, kubelet.script = kinds[-1], {("m-00000", 1): None, ("m-00000", 2): None}
        running = asyncio.create_task(kubelet.run())
        job = Job(api, kinds[-1])
        await eventually(job.node)
        api.set_phase(job.pod(FIRST), "Running", containerStatuses=[RUNNING])
        yield job
        await stop(running)


@pytest.mark.parametrize("profile", ["fair", "boathouse"])
async def test_a_second_attempt_runs_neither_beside_the_first_nor_on_a_slow_node(api, eventually, kinds, profile):
    nodes = ["n1", "n2", "n3", "n4"]
    async with slow_map(api, kinds, eventually, *nodes, profile=profile) as job:
        *slow, fast = (name for name in nodes if name != job.node())
        await eventually(lambda: job.may_repeat(*slow))
        await eventually(lambda: job.node(SECOND) == fast)


async def test_a_second_attempt_is_pending_while_only_the_node_of_the_first_has_room(api, eventually, kinds):
    async with slow_map(api, kinds, eventually, "n1") as job:
        await eventually(job.may_repeat)
        await eventually(lambda: job.pod(SECOND))  # made ahead
        assert job.node(SECOND) is None
        api.add(manifests.node("n2", cpu="4", memory="8Gi"))
        await eventually(lambda: job.node(SECOND) == "n2")
