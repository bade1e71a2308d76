"""A reduce of a real MRJob is suspended by its author: from the annotation over the order to the pod, and back."""

import asyncio
import contextlib
import time

import pytest

from boathouse.resources import names, statuses
from boathouse.services.mrjob import routes
from boathouse.services.mrjob.kind import MRJobKind
from boathouse.services.mrjob.task_orders import Poll
from boathouse_task import contract
from tests.builders.operators.leaders import leading
from tests.builders.operators.mrjobs import KEY, Kubelet, mrjob
from tests.builders.operators.schedulers import stop

WAITING_MAP = ("m-00001", 1)
PAUSED = ("1m", "10m")
POLL_S, MOST_POLLS = 0.05, 1200


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
    """A job whose one reduce runs and lacks the output of a map."""

    def __init__(self, api, kind) -> None:
        self.api, self.kind = api, kind
        self.uid = api.get("mrjobs", KEY)["metadata"]["uid"]

    def pod(self, task="r-00000-a1"):
        return next((key for key in self.api.objects("pods") if key.endswith(task)), None)

    def size(self):
        resources = self.api.get("pods", self.pod())["spec"]["containers"][0]["resources"]
        return resources["requests"]["cpu"], resources["limits"]["cpu"]

    def annotate(self, until_s):
        text = None if until_s is None else statuses.rfc3339(until_s)
        self.api.change("mrjobs", KEY, {"metadata": {"annotations": {names.ANNOTATION_SUSPEND_UNTIL: text}}})

    async def pause(self):
        """Act as the reduce until its pod has shrunk: poll, and acknowledge orders to pause.

        An order that is acknowledged late, as on a busy machine, is given up and given again.
        """
        poll = Poll(uid=self.uid, pod=self.pod().partition("/")[2], carried_out="")
        for _ in range(MOST_POLLS):
            orders = await self.kind.orders.orders(poll, 0.0)
            if orders.suspend is not None:
                self.kind.orders.acknowledge(self.uid, poll.pod, contract.Acknowledgement(id=orders.suspend.id))
            if self.size() == PAUSED:
                return
            await asyncio.sleep(POLL_S)
        raise AssertionError(f"the pod has not shrunk: {orders}, {self.status}")

    @property
    def status(self):
        return self.api.get("mrjobs", KEY).get("status") or {}

    def condition(self, kind):
        found = [one for one in self.status.get("conditions") or () if one["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")


@contextlib.asynccontextmanager
async def running_job(api, kinds, eventually, *, is_new=True):
    """Run a leader, and a kubelet; the job's reduce runs."""
    api.world.date = statuses.rfc3339(time.time())  # by the leader's clock a pod that has just been created is not late
    if is_new:
        api.add(mrjob(numReduceTasks=1, slowStartCompletedMapsPercent=0))
    async with leading(api, (routes.ENTRY,), now=time.time):
        nodes = Kubelet(api, 2)
        nodes.operator, nodes.overlap, nodes.script = kinds[-1], True, {WAITING_MAP: None}
        running = asyncio.create_task(nodes.run())
        job = Job(api, kinds[-1])
        await eventually(lambda: job.pod() and job.kind.orders.knows(job.uid, "demo"))
        if is_new:
            api.set_phase(job.pod(), "Running")
            api.actuate_resize(job.pod())
        yield job
        await stop(running)


async def test_the_author_of_a_job_suspends_its_reduce_and_resumes_it(api, eventually, kinds):
    async with running_job(api, kinds, eventually) as job:
        whole = job.size()
        job.annotate(time.time() + 600)
        await job.pause()
        api.actuate_resize(job.pod())
        await eventually(lambda: job.condition("ReducersSuspended") == ("True", "ByHand"))
        assert job.status["reduces"]["suspended"] == 1
        job.annotate(None)
        await eventually(lambda: job.size() == whole)
        api.actuate_resize(job.pod())
        await eventually(lambda: job.condition("ReducersSuspended")[0] == "False")


async def test_a_successor_suspends_a_reduce_that_its_owner_submits_no_more(api, eventually, kinds):
    async with running_job(api, kinds, eventually):
        pass
    async with running_job(api, kinds, eventually, is_new=False) as job:
        job.annotate(time.time() + 600)
        await job.pause()
