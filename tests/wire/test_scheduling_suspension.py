"""The scheduler suspends and resumes running tasks, on the fake API server: each step, and what may go wrong there."""

import asyncio
import copy

import pytest

from boathouse import failpoints
from boathouse.resources import names
from boathouse.scheduling.adjusting import adjuster, by_hand, keeper, suspending
from boathouse.scheduling.pods import suspension
from boathouse.scheduling.pods.stages import Stage
from boathouse_policies import framework, model, profiles
from tests.wire.scheduling_world import LEASE, Leader
from tests.wire.suspension_world import CONTINUED, FIRST, MAP, SECOND, SHRUNK, WHOLE, Tasks, kubelet, scene

SHRUNK_RESOURCES = {"requests": {"cpu": SHRUNK[0]}, "limits": {"cpu": SHRUNK[1]}}


async def test_a_suspended_task_lends_its_cpu_and_gets_it_back_when_there_is_room(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        record = suspension.parse(s.record())
        assert (record.cpu_request_milli, record.cpu_limit_milli) == (1000, 2000)
        assert (record.order, record.by, record.reason) == ("1-1", "fair", "WaitingForMaps")
        assert MAP not in s.world.placed()  # the node has not shrunk it
        api.actuate_resize(FIRST)
        await eventually(lambda: MAP in s.world.placed())
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.size() == CONTINUED)
        await eventually(lambda: s.charged() == 1000)
        api.remove("pods", SECOND)
        await eventually(lambda: s.size() == WHOLE)
        api.actuate_resize(FIRST)
        await eventually(lambda: not s.world.scheduler.state.pods.adjusted())
        assert s.charged() == 1000
        assert not s.refused


async def test_the_record_is_written_once_the_task_has_paused_and_before_its_pod_shrinks(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend(for_s=30.0)
        await eventually(lambda: s.size() == SHRUNK)
        task, order = s.tasks.orders[0]
        assert (task, order.id) == (FIRST, "1-1")
        assert 29.0 < order.for_s <= 30.0
        writes = [call for call in api.calls if call.subresource in {"resize", "status"} and call.key == FIRST]
        assert [call.subresource for call in writes if "spec" in call.body or "metadata" in call.body] == [
            "status",
            "resize",
        ]
        assert writes[-1].query["fieldManager"] == "boathouse-1"


@pytest.mark.parametrize("answer", ["PhasePassed", "NotAcknowledged"])
async def test_a_task_that_does_not_pause_is_left_alone(api, eventually, answer):
    async with scene(api, eventually) as s:
        s.tasks.answer = answer
        s.suspend()
        await eventually(lambda: s.refused == [answer])
        assert not s.record()
        assert not s.resizes()


async def test_tasks_that_never_acknowledge_take_a_bounded_part_of_the_suspensions_in_flight(
    api, eventually, monkeypatch
):
    monkeypatch.setattr(adjuster, "MOST_OF_NAMESPACE", 1)
    async with scene(api, eventually) as s:
        s.tasks.silent = True
        s.suspend(FIRST)
        s.suspend(SECOND)
        assert s.refused == ["TooMany"]
        await eventually(lambda: [task for task, _ in s.tasks.orders] == [FIRST])


async def test_a_decision_that_is_repeated_is_carried_out_once(api, eventually):
    async with scene(api, eventually) as s:
        for _ in range(3):
            s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        s.suspend()
        api.actuate_resize(FIRST)
        await eventually(lambda: MAP in s.world.placed())
        s.suspend()
        assert len(s.tasks.orders) == 1
        assert not s.refused


async def test_the_record_is_written_into_the_version_that_still_has_the_size(api, eventually):
    async with scene(api, eventually) as s:
        released = api.hold_next("patch pods/status")
        s.suspend()
        await eventually(lambda: s.tasks.orders)
        api.set_phase(FIRST, "Running", podIP="10.0.0.1")
        released.set()
        await eventually(lambda: s.size() == SHRUNK)
        assert s.record()


async def test_a_pod_that_others_resized_meanwhile_is_left_alone(api, eventually):
    async with scene(api, eventually) as s:
        released = api.hold_next("patch pods/status")
        s.suspend()
        await eventually(lambda: s.tasks.orders)
        other = [{"name": "task", "resources": {"requests": {"cpu": "500m"}}}]
        api.change("pods", FIRST, {"spec": {"containers": other}})
        released.set()
        await eventually(lambda: s.refused == ["Outdated"])
        assert s.size() == ("500m", "2")


class Slow(Tasks):
    """Acknowledges when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledges = asyncio.Event()

    async def suspend(self, task, order) -> str:
        await self.acknowledges.wait()
        return await super().suspend(task, order)


async def test_the_cpu_of_a_pod_that_shrank_before_the_task_acknowledged_is_not_its_original_cpu(api, eventually):
    tasks = Slow()
    async with scene(api, eventually, tasks=tasks) as s:
        s.suspend()
        api.change("pods", FIRST, {"spec": {"containers": [{"name": "task", "resources": SHRUNK_RESOURCES}]}})
        await eventually(lambda: s.world.scheduler.state.pods.get(FIRST).facts.stage is Stage.ORPHAN)
        tasks.acknowledges.set()
        await eventually(lambda: s.refused == ["NotRunning"])
        await eventually(lambda: s.size() == WHOLE)


@pytest.mark.parametrize("fault", [{"reset": True}, {"status": 503}, {"status": 500, "reason": "InternalError"}])
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("write", ["patch pods/status", "patch pods/resize"])
async def test_a_write_without_a_clear_answer_is_repeated(api, eventually, write, fault, is_done):
    async with scene(api, eventually) as s:
        api.fail_next(write, after_commit=is_done, **fault)
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        assert s.record()
        assert not s.refused


async def test_a_namespace_that_refuses_to_shrink_a_task_is_not_asked_again(api, eventually):
    async with scene(api, eventually) as s:
        api.fail_next("patch pods/resize", status=403, reason="Forbidden")
        s.suspend()
        await eventually(lambda: s.refused == ["LimitRange"])
        s.suspend(SECOND)
        assert s.refused == ["LimitRange", "LimitRange"]
        assert len(s.tasks.orders) == 1


async def test_nobody_is_suspended_where_a_quota_counts_limits(api, eventually):
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "demo"}}
    api.add(quota | {"spec": {"hard": {"limits.cpu": "9"}}, "status": {"hard": {"limits.cpu": "9"}}})
    async with scene(api, eventually) as s:
        s.suspend()
        assert s.refused == ["Quota"]


async def test_a_pod_without_a_status_of_its_resources_is_not_suspended_yet(api, eventually):
    async with scene(api, eventually) as s:
        api.set_phase(FIRST, "Running", containerStatuses=[{"name": "task", "resources": None}])
        await eventually(lambda: not s.world.scheduler.state.pods.get(FIRST).facts.can_resize)
        s.suspend()
        assert s.refused == ["NotYet"]


async def test_a_node_that_cannot_resize_is_left_alone_until_it_changes(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        s.defer(reason="Infeasible")
        await eventually(lambda: s.size() == WHOLE)
        assert s.charged() == 1000
        assert MAP not in s.world.placed()
        s.suspend(SECOND)
        assert s.refused == ["Infeasible"]
        api.change("nodes", "n1", {"metadata": {"labels": {"kubelet": "newer"}}})
        await eventually(lambda: "kubelet" in dict(s.world.scheduler.state.pods.nodes["n1"].labels))
        s.suspend(SECOND)
        await eventually(lambda: s.size(SECOND) == SHRUNK)


async def test_a_suspension_that_was_cancelled_before_its_pod_shrank_does_not_shrink_it(api, eventually):
    async with scene(api, eventually) as s:
        released = api.hold_next("patch pods/status")
        s.suspend()
        await eventually(lambda: s.tasks.orders)
        s.decide(model.Resume, cpu_milli=1000)
        released.set()
        await eventually(lambda: s.refused == ["Outdated"])
        assert s.size() == WHOLE


async def test_a_task_is_resumed_before_its_time(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: len(s.resizes()) > 1)
        assert s.resizes()[1] == {"requests": {"cpu": "1m"}, "limits": {"cpu": "2"}}


async def test_a_resume_that_is_refused_is_repeated_and_then_with_the_request(api, eventually, monkeypatch):
    monkeypatch.setattr(keeper, "_BACKOFF_S", (0.01,))
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.fail_next("patch pods/resize", status=403, reason="Forbidden")
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.size() == WHOLE)
        assert len(s.resizes()) == 3


async def test_a_growth_that_the_node_defers_is_taken_back_and_repeated(api, eventually, monkeypatch):
    monkeypatch.setattr(keeper, "DEFERRED_S", 0.05)
    monkeypatch.setattr(keeper, "DEFERRED_RETRY_S", 0.2)
    async with scene(api, eventually) as s:
        s.suspend(for_s=0.5)
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
        await eventually(lambda: s.size() in {CONTINUED, WHOLE})
        await eventually(lambda: MAP in s.world.placed() or s.size() == WHOLE)
        api.remove("pods", SECOND)
        await eventually(lambda: s.size() == WHOLE)
        s.defer()
        await eventually(lambda: s.size() == CONTINUED)
        await eventually(lambda: s.size() == WHOLE)


async def test_of_two_tasks_that_are_owed_their_request_one_gets_it_where_the_room_is_enough(api, eventually):
    async with scene(api, eventually) as s:
        for task in (FIRST, SECOND):
            s.suspend(task)
        await eventually(lambda: s.size(FIRST) == SHRUNK and s.size(SECOND) == SHRUNK)
        for task in (FIRST, SECOND):
            api.actuate_resize(task)
        await eventually(lambda: MAP in s.world.placed())
        for task in (FIRST, SECOND):
            s.decide(model.Resume, task, cpu_milli=1000)
        await eventually(lambda: sorted([s.size(FIRST), s.size(SECOND)]) == [WHOLE, CONTINUED])
        await asyncio.sleep(0.05)
        assert sorted([s.size(FIRST), s.size(SECOND)]) == [WHOLE, CONTINUED]
        assert s.world.over_committed() == []


async def test_a_suspension_ends_if_the_pod_does_not_shrink_in_time(api, eventually, monkeypatch):
    monkeypatch.setattr(keeper, "LAPSES_S", -1.0)
    async with scene(api, eventually) as s:
        s.suspend()
        await s.counts("boathouse_suspensions_total", 1, result="resumed", reason="Lapsed")
        assert s.size() in {CONTINUED, WHOLE}


async def test_a_shrink_that_takes_too_long_is_not_sent(api, eventually, monkeypatch):
    monkeypatch.setattr(suspending, "SHRUNK_WITHIN_S", 0.05)
    async with scene(api, eventually) as s:
        released = api.hold_next("patch pods/status")
        s.suspend()
        await eventually(lambda: s.refused == ["TooSlow"])
        released.set()
        assert s.size() == WHOLE


async def test_a_successor_keeps_the_deadline(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend(for_s=2.0)
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    async with scene(api, eventually, running=3, leader=Leader(2)) as s:
        until_s = suspension.parse(s.record()).until_s
        await eventually(lambda: s.size() == CONTINUED)
        assert s.now_s >= until_s
        await eventually(lambda: s.charged() == 1000)
        assert s.world.over_committed() == []


async def test_a_successor_keeps_a_suspension_of_any_age(api, eventually, monkeypatch):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
    monkeypatch.setattr(keeper, "LAPSES_S", 0.0)
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
        record = suspension.parse(s.record())
        assert (record.by, record.reason) == ("user", "ByHand")
        s.submit()
        await eventually(lambda: s.size(FIRST) != SHRUNK and s.size(SECOND) != SHRUNK)
        for result, reason in (("resumed", "Withdrawn"), ("suspended", "ByHand")):
            await s.counts("boathouse_suspensions_total", 2, result=result, reason=reason)


async def test_no_policy_resumes_what_the_author_of_a_job_suspended(api, eventually):
    async with scene(api, eventually) as s:
        s.submit(until_s=s.now_s + 600)
        await eventually(lambda: s.tasks.orders)
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.size() == SHRUNK)
        api.actuate_resize(FIRST)
        s.decide(model.Resume, cpu_milli=1000)
        await asyncio.sleep(0.05)
        assert s.size() == SHRUNK
        assert s.world.metric("boathouse_suspensions_total", result="resumed", reason="Advised") == 0


async def test_a_reducer_that_has_all_map_output_is_asked_once(api, eventually, monkeypatch):
    monkeypatch.setattr(by_hand, "ASKED_EVERY_S", 0.01)
    async with scene(api, eventually) as s:
        s.tasks.answer = "PhasePassed"
        s.submit(until_s=s.now_s + 600)
        refused = {"result": "refused", "reason": "PhasePassed"}
        await eventually(lambda: s.world.metric("boathouse_suspensions_total", **refused) == 2)
        await asyncio.sleep(0.1)
        assert len(s.tasks.orders) == 2


# What other writers and crashes leave


def remove_record(api):
    pod = copy.deepcopy(api.get("pods", FIRST))
    del pod["metadata"]["annotations"][names.ANNOTATION_SUSPENSION]
    api.world.update("pods", FIRST, pod)


@pytest.mark.parametrize("is_submitted", [True, False])
async def test_a_task_whose_record_was_removed_is_resumed_with_the_cpu_that_it_had(api, eventually, is_submitted):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        await eventually(lambda: any(row.facts.suspension for row in s.world.scheduler.state.pods.adjusted()))
        s.world.scheduler.adjuster.keep()
        if not is_submitted:
            s.submit()
        remove_record(api)
        await eventually(lambda: s.size() == WHOLE)
        assert suspension.parse(s.record()).reason == "RecordLost"


async def test_a_successor_resumes_a_task_without_a_record_with_the_request_of_its_class(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
    remove_record(api)
    async with scene(api, eventually, leader=Leader(2)) as s:
        await eventually(lambda: s.size() == ("1", "1001m"))


async def test_a_successor_resumes_a_task_of_an_unknown_class_once_its_job_had_time_to_be_submitted(
    api, eventually, monkeypatch
):
    monkeypatch.setattr(keeper, "SUBMITTED_S", 0.1)
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
    remove_record(api)
    api.change("pods", FIRST, {"metadata": {"labels": {names.LABEL_TASK_TYPE: "other"}}})
    async with scene(api, eventually, leader=Leader(2)) as s:
        await eventually(lambda: s.size() == ("100m", "1"))


async def test_a_task_that_another_writer_resized_is_left_alone(api, eventually):
    async with scene(api, eventually) as s:
        s.suspend()
        await s.counts("boathouse_suspensions_total", 1, result="suspended", reason="WaitingForMaps")
        await eventually(s.world.scheduler.state.pods.adjusted)
        other = [{"name": "task", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "700m"}}}]
        api.change("pods", FIRST, {"spec": {"containers": other}})
        await eventually(lambda: not s.world.scheduler.state.pods.adjusted())
        s.decide(model.Resume, cpu_milli=1000)
        await asyncio.sleep(0.05)
        assert s.size() == ("500m", "700m")


async def test_a_refused_resume_is_reported_once(api, eventually, monkeypatch):
    monkeypatch.setattr(keeper, "_BACKOFF_S", (0.01,))
    async with scene(api, eventually) as s:
        s.suspend()
        await eventually(lambda: s.size() == SHRUNK)
        api.fail_next("patch pods/resize", status=403, reason="Forbidden", times=3)
        s.decide(model.Resume, cpu_milli=1000)
        await eventually(lambda: s.size() != SHRUNK)
        await eventually(lambda: len(s.world.events("ResumeRefused")) == 1)


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
        await eventually(lambda: s.size() == WHOLE and not s.world.scheduler.state.pods.adjusted())
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


# Other decisions


async def test_a_running_task_is_resized_where_there_is_room(api, eventually):
    async with scene(api, eventually) as s:
        s.decide(model.Resize, cpu_milli=1500)
        s.decide(model.Resize, cpu_milli=1000, memory=1 << 29)
        assert s.refused == ["NoRoom", "MemoryOfRunningTask"]
        s.decide(model.Resize, cpu_milli=400)
        s.decide(model.Resize, cpu_milli=400)
        await eventually(lambda: s.size()[0] == "400m")
        api.actuate_resize(FIRST)
        await eventually(lambda: s.charged() == 400)
        s.decide(model.Resize, cpu_milli=400)
        s.decide(model.Resize, SECOND, cpu_milli=1600)
        assert s.charged(SECOND) in {1000, 1600}
        await eventually(lambda: s.size(SECOND)[0] == "1600m")
        assert s.charged(SECOND) == 1600
        assert s.refused == ["NoRoom", "MemoryOfRunningTask"]


async def test_a_resize_that_is_refused_frees_what_was_assumed(api, eventually):
    async with scene(api, eventually) as s:
        s.decide(model.Resize, SECOND, cpu_milli=400)
        await eventually(lambda: s.size(SECOND)[0] == "400m")
        api.actuate_resize(SECOND)
        await eventually(lambda: s.charged(SECOND) == 400)
        api.fail_next("patch pods/resize", status=403, reason="Forbidden")
        s.decide(model.Resize, cpu_milli=1500)
        await eventually(lambda: s.refused == ["PodRefused"])
        assert s.charged() == 1000


async def test_what_nobody_carries_out_is_refused(api, eventually):
    on = profiles.Switches(speculate=True, scale=True)
    async with scene(api, eventually, switches=on) as s:
        s.decide(model.Speculate, attempt=model.TaskId("demo/x"))
        s.world.scheduler.adjuster.take(model.Scale(job=model.JobId("c"), workers=3, reason="a test"))
        assert s.refused == ["NoSecond", "NoCluster"]
        s.tasks.second = model.TaskId("demo/wc-00003")
        s.decide(model.Speculate, attempt=model.TaskId("demo/x"), avoids=("n7",))
        assert s.refused == ["NoSecond", "NoCluster"]
        assert s.tasks.avoided == ("n7",)
