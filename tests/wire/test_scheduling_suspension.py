"""The scheduler suspends and resumes running tasks, on the fake API server: each step, and what may go wrong there."""

import asyncio

import pytest

from boathouse import failpoints
from boathouse.suspension import stages
from boathouse_policies import framework, model, profiles
from tests.builders.operators.running_tasks import CONTINUED, FIRST, MAP, SECOND, SHRUNK, WHOLE, kubelet, scene
from tests.builders.operators.schedulers import LEASE, Leader


async def test_a_suspended_task_lends_its_cpu_and_gets_it_back_when_there_is_room(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        record = stages.parse(s.record())
        assert (record.cpu_request_milli, record.cpu_limit_milli) == (1000, 2000)
        assert (record.order, record.by, record.reason) == ("1-1", "fair", "WaitingForMaps")
        await eventually(s.world.at_rest)
        assert MAP not in s.world.placed()  # the node has not shrunk it
        api.actuate_resize(FIRST)
        await eventually(lambda: MAP in s.world.placed())
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.size() == CONTINUED)
        await eventually(lambda: s.charged() == 1000)
        api.remove("pods", SECOND)
        await eventually(lambda: s.size() == WHOLE)
        api.actuate_resize(FIRST)
        await eventually(lambda: not s.world.scheduler.state.pods.suspensions())
        assert s.charged() == 1000
        assert not s.refused


@pytest.mark.parametrize("fault", [{"reset": True}, {"status": 503}])
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("write", ["patch pods/status", "patch pods/resize"])
async def test_a_write_without_a_clear_answer_is_repeated(api, eventually, write, fault, is_done):
    async with scene(api, eventually) as s:
        api.fail_next(write, after_commit=is_done, **fault)
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        assert s.record()
        assert not s.refused


async def test_a_suspension_ends_if_the_pod_does_not_shrink_in_time(api, eventually, monkeypatch):
    monkeypatch.setattr(stages, "LAPSES_S", -1.0)
    async with scene(api, eventually) as s:
        s.suspend()
        await s.counts("boathouse_suspensions_total", 1, result="resumed", reason="Lapsed")
        assert s.size() in {CONTINUED, WHOLE}


async def test_a_successor_keeps_the_deadline(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend(for_s=2.0)
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    async with scene(api, eventually, running=3, leader=Leader(2)) as s:
        until_s = stages.parse(s.record()).until_s
        await eventually(lambda: s.size() == CONTINUED)
        assert s.now_s >= until_s
        await eventually(lambda: s.charged() == 1000)
        assert s.world.over_committed() == []


async def test_a_successor_keeps_a_suspension_of_any_age(api, eventually, monkeypatch):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    monkeypatch.setattr(stages, "LAPSES_S", 0.0)
    async with scene(api, eventually, running=3, leader=Leader(2)) as s:
        await eventually(s.world.at_rest)
        assert s.size() == SHRUNK
        s.decide(model.Resume, cpu_milli=1000)
        await s.counts("boathouse_suspensions_total", 1, result="resumed", reason="Advised")


async def test_a_leader_with_another_profile_resumes_what_the_former_profile_suspended(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    async with scene(api, eventually, running=3, leader=Leader(2), policies={"name": "another"}) as s:
        await eventually(lambda: s.size() == CONTINUED)
        await s.counts("boathouse_suspensions_total", 1, result="resumed", reason="ProfileChanged")
        assert s.world.over_committed() == []


async def test_a_former_leader_cannot_resize(api, eventually):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    api.add(
        lease | {"metadata": {"namespace": "boathouse-system", "name": "boathouse"}, "spec": {"leaseTransitions": 1}}
    )
    api.fence_by(LEASE)
    async with scene(api, eventually) as s:
        api.change("leases", LEASE, {"spec": {"leaseTransitions": 2}})
        s.suspend()
        await eventually(lambda: s.world.fatal)
        assert s.size() == WHOLE


async def test_what_is_switched_off_is_refused_and_ended(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    off = profiles.Switches(suspend=False, resize=False, scale=False)
    async with scene(api, eventually, switches=off) as s:
        await eventually(lambda: s.size() in {CONTINUED, WHOLE})
        s.suspend(SECOND)
        s.decide(model.Resize, SECOND, cpu_milli=500)
        s.decide(model.Speculate, SECOND, attempt=model.TaskId("demo/x"))
        assert s.refused == ["SwitchedOff"] * 3


class Advice(framework.Controller):
    """Advises to suspend a task as long as it has the CPU."""

    def __init__(self) -> None:
        self.asked = 0

    def advise(self, _queue, view):
        self.asked += 1
        task = model.Task(id=model.TaskId(FIRST), task_class=model.ClassId("wc/map"))
        size = model.Resources(cpu_milli=1, memory_bytes=1 << 30)
        until_s = view.now_s + 60
        return [model.Suspend(task=task, node="n1", resources=size, reason="a test", until_s=until_s)]

    def is_idle(self) -> bool:
        return False


async def test_the_advice_of_a_controller_is_carried_out_and_asked_for_every_second(api, eventually):
    controller = Advice()
    async with scene(api, eventually, policies={"controllers": (controller,)}) as s:
        await eventually(lambda: s.size() == SHRUNK)
        asked = controller.asked
        await eventually(lambda: controller.asked > asked + 1)
        assert len(s.tasks.orders) == 1


# By hand


async def test_the_author_of_a_job_suspends_its_reducers_and_resumes_them(api, eventually):
    async with scene(api, eventually) as s:
        s.submit(until_s=s.now_s + 600)
        await eventually(lambda: s.size(FIRST) == SHRUNK and s.size(SECOND) == SHRUNK)
        record = stages.parse(s.record())
        assert (record.by, record.reason) == ("user", "ByHand")
        s.submit()
        await eventually(lambda: s.size(FIRST) != SHRUNK and s.size(SECOND) != SHRUNK)
        for result, reason in (("resumed", "Withdrawn"), ("suspended", "ByHand")):
            await s.counts("boathouse_suspensions_total", 2, result=result, reason=reason)


# What other writers and crashes leave


DEATHS = [
    f"{moment}-scheduler.{write}"
    for write in ("order", "record", "shrink", "continue", "grow")
    for moment in ("before", "after")
]


@pytest.mark.parametrize("death", DEATHS)
async def test_a_successor_ends_what_an_operator_left_that_died_beside_any_write(api, eventually, monkeypatch, death):
    dead = []

    def hit(name):
        if name == death or dead:
            dead.append(name)
            raise asyncio.CancelledError

    monkeypatch.setattr(failpoints, "hit", hit)
    node = asyncio.create_task(kubelet(api))
    async with scene(api, eventually, running=3, cpu="3") as s:
        s.suspend(for_s=0.5)
        await eventually(lambda: dead)
    monkeypatch.setattr(failpoints, "hit", lambda _: None)
    async with scene(api, eventually, running=3, leader=Leader(2)) as s:
        await eventually(lambda: s.size() == WHOLE and not s.world.scheduler.state.pods.suspensions())
        assert s.charged() == 1000
        assert s.world.over_committed() == []
    node.cancel()


async def test_figures_say_what_is_lent_and_owed(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
        await eventually(lambda: s.world.metric("boathouse_lent_cpu_cores") == 0.999)
        assert s.world.metric("boathouse_suspended_tasks") == 1
        await eventually(lambda: MAP in s.world.placed())  # else the request grows again at once
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.world.metric("boathouse_owed_cpu_cores") == 0.999)
        await eventually(lambda: s.world.metric("boathouse_suspended_tasks") == 0)
        for step in ("order", "record", "shrink", "actuated", "continue"):
            await s.counts("boathouse_suspension_step_duration_seconds_count", 1, step=step)
        await s.counts("boathouse_resizes_total", 1, direction="down", result="success")
