"""Suspensions, resumes and resizes of running tasks: each request, in order, and what may go wrong beside it."""

import contextlib

import pytest

from boathouse.cluster import errors, store
from boathouse.resources import names
from boathouse.scheduling import adjuster
from boathouse.suspension import stages
from boathouse_policies import model, profiles
from tests.builders import core, manifests
from tests.builders.operators.desks import settle
from tests.builders.operators.suspensions import (
    CONTINUED,
    OTHER,
    SHRUNK,
    SINCE_S,
    TASK,
    UNTIL_S,
    WHOLE,
    TaskDesk,
    record,
)

ORDER, RECORD, SHRINK, CONTINUE = ("suspend", TASK), ("annotate", "t 1"), ("resize", "t 1m/10m"), ("resize", "t 1m/2")
REFUSED = errors.Forbidden(403, "Forbidden", "a LimitRange")


@contextlib.asynccontextmanager
async def desk(*tasks: str, **options):
    """A desk on which tasks run."""
    world = TaskDesk(**options)
    for task in tasks or (TASK,):
        world.show_task(task=task)
    world.submit_tasks(*tasks or (TASK,))
    async with world.writing():
        yield world


async def test_a_task_pauses_then_its_record_is_written_then_its_pod_shrinks():
    async with desk() as world:
        world.now_s += 1
        world.suspend()
        await settle()
        assert (list(world.requests), world.control.orders) == ([ORDER], [("1-1", UNTIL_S - SINCE_S - 1)])
        world.now_s += 2.0004
        await world.answer(*ORDER, "")
        (noted,) = world.annotated
        assert list(world.requests) == [RECORD]
        assert (noted["revision"], noted["uid"]) == ("1", "uid-t")
        written = stages.parse(noted["annotations"][names.ANNOTATION_SUSPENSION])
        assert written == record(since_s=SINCE_S + 3, why="a test")  # in milliseconds
        await world.answer(*RECORD, world.task(record=written))
        assert list(world.requests) == [SHRINK]
        assert (world.resized[0]["manager"], world.resized[0]["uid"]) == ("boathouse-1", "uid-t")
        await world.answer(*SHRINK, world.task(SHRUNK, actual="1", record=written))
        assert (world.refusals, world.suspensions("suspended", "WaitingForMaps")) == ([], 1)
        assert (world.row(TASK).state.value, world.charged()) == ("resizing", 1000)
        world.show_task(SHRUNK, record=written)
        assert (world.row(TASK).suspension.stage.value, world.charged()) == ("suspended", 1)


async def test_orders_have_numbers_and_last_no_longer_than_a_task_accepts():
    async with desk(TASK, OTHER) as world:
        world.suspend(until_s=None)
        world.suspend(OTHER, until_s=SINCE_S + 1e9)
        await settle()
        most_s = adjuster.contract.MOST_SUSPENDED_S
        assert world.control.orders == [("1-1", most_s), ("1-2", most_s)]


async def test_a_policy_records_no_end_later_than_that_at_which_the_task_continues_by_itself():
    async with desk() as world:
        world.suspend(until_s=SINCE_S + 1e9)
        await settle()
        await world.answer(*ORDER, "")
        (noted,) = world.annotated
        written = stages.parse(noted["annotations"][names.ANNOTATION_SUSPENSION])
        assert written.until_s == SINCE_S + adjuster.contract.MOST_SUSPENDED_S


async def test_a_suspension_whose_time_is_over_is_not_begun():
    async with desk() as world:
        world.suspend(until_s=SINCE_S)
        await settle()
        assert (world.refusals, world.control.orders) == (["Outdated"], [])


@pytest.mark.parametrize("answer", ["PhasePassed", "NotAcknowledged"])
async def test_a_task_that_does_not_pause_is_left_alone(answer):
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, answer)
        assert (world.refusals, dict(world.requests)) == ([answer], {})
        assert world.suspensions("refused", answer) == 1


async def test_a_decision_that_is_repeated_is_carried_out_once():
    async with desk() as world:
        for _ in range(3):
            world.suspend()
        await settle()
        assert list(world.requests) == [ORDER]
        for stage in ("1", "1m"):
            world.show_task(SHRUNK, actual=stage, record=record())
            world.suspend()
            await settle()
        assert (len(world.control.orders), world.refusals) == (1, [])


async def test_the_record_is_written_into_the_version_that_still_has_the_size():
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, errors.Conflict(409, "Conflict", ""))
        later = world.task()
        await world.answer("get", "t", later)
        assert list(world.requests) == [("annotate", f"t {later.metadata.resource_version}")]


@pytest.mark.parametrize("size", [("500m", "2"), SHRUNK])
async def test_a_pod_that_others_resized_before_its_record_was_written_is_left_alone(size):
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, errors.Conflict(409, "Conflict", ""))
        resized = world.task(size)
        await world.answer("get", "t", resized)
        assert (world.refusals, world.resized) == (["Outdated"], [])
        assert world.row(TASK).facts.metadata.resource_version == resized.metadata.resource_version


async def test_the_cpu_of_a_pod_that_shrank_before_its_task_paused_is_not_recorded():
    async with desk() as world:
        world.suspend()
        await settle()
        world.show_task(SHRUNK)
        await world.answer(*ORDER, "")
        assert (world.refusals, dict(world.requests)) == (["Resuming"], {})


async def test_a_pod_that_ended_while_its_task_paused_is_left_alone():
    async with desk() as world:
        world.suspend()
        await settle()
        world.delete(world.task())
        await world.answer(*ORDER, "")
        assert (world.refusals, dict(world.requests)) == (["Outdated"], {})


async def test_a_suspension_that_is_cancelled_before_its_pod_shrank_does_not_shrink_it():
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        world.take(model.Resume, cpu_milli=1000)
        await world.answer(*RECORD, world.task(record=record()))
        assert (world.refusals, world.resized) == (["Outdated"], [])


async def test_a_suspension_that_is_cancelled_while_its_pod_shrinks_is_resumed_at_once():
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, world.task(record=record()))
        world.take(model.Resume, cpu_milli=1000)
        await world.answer(*SHRINK, world.task(SHRUNK, actual="1", record=record()))
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [CONTINUE]


async def test_each_write_has_a_place_of_its_pods_namespace(monkeypatch):
    taken = []

    class Places(adjuster.fair.Places):
        def take(self, namespace):
            taken.append(namespace)
            return super().take(namespace)

    monkeypatch.setattr(adjuster.fair, "Places", Places)
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, world.task(record=record()))
        world.take(model.Resume, cpu_milli=1000)
        await world.answer(*SHRINK, world.task(SHRUNK, actual="1", record=record()))
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert taken == [world.row(TASK).namespace] * 2


async def test_a_pod_that_is_being_deleted_is_not_shrunk():
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        world.show_task(is_deleted=True)
        await world.answer(*RECORD, world.task(record=record()))
        assert (world.refusals, world.resized) == (["Outdated"], [])


async def test_a_shrink_that_takes_too_long_is_not_sent(monkeypatch):
    monkeypatch.setattr(stages, "SHRUNK_WITHIN_S", 0.0)
    async with desk() as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        assert (world.refusals, dict(world.requests)) == (["TooSlow"], {})


async def test_a_namespace_that_refuses_to_shrink_a_task_is_left_alone_for_a_time():
    async with desk(TASK, OTHER) as world:
        world.suspend()
        await settle()
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, world.task(record=record()))
        await world.answer(*SHRINK, REFUSED)
        assert world.refusals == ["LimitRange"]
        world.now_s += 599
        world.suspend(OTHER, until_s=world.now_s + 60)
        assert world.refusals == ["LimitRange", "LimitRange"]
        world.now_s += 1
        world.suspend(OTHER, until_s=world.now_s + 60)
        await settle()
        assert list(world.requests) == [("suspend", OTHER)]


async def test_nobody_is_suspended_where_a_quota_counts_limits():
    async with desk() as world:
        quota = manifests.quota_view(hard={"limits.cpu": "9"})
        world.scheduler.intake.on_quota(store.Added(key=quota.metadata.key, new=quota))
        world.suspend()
        assert world.refusals == ["Quota"]


async def test_a_pod_without_a_status_of_its_resources_is_not_suspended_yet():
    async with desk() as world:
        world.show_task(actual=None)
        world.suspend()
        assert world.refusals == ["NotYet"]


@pytest.mark.parametrize(
    ("size", "fields", "reason"),
    [
        (("10m", "1"), {}, "NothingToLend"),
        (("1", ""), {}, "NothingToLend"),
        (CONTINUED, {"record": record()}, "Resuming"),
        (WHOLE, {"actual": "500m"}, "NotRunning"),
    ],
)
async def test_a_task_that_has_no_cpu_to_lend_is_not_suspended(size, fields, reason):
    async with desk() as world:
        world.show_task(size, **fields)
        world.suspend()
        assert world.refusals == [reason]


async def test_a_node_that_cannot_resize_is_left_alone_until_it_changes():
    async with desk(TASK, OTHER) as world:
        world.show_task(SHRUNK, actual="1", record=record(), resize="Infeasible")
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [CONTINUE]
        world.suspend(OTHER)
        assert world.refusals == ["Infeasible"]
        world.node("n1", allocatable={"cpu": "2010m", "memory": "8Gi", "pods": "110"}, labels={"kubelet": "newer"})
        world.suspend(OTHER)
        await settle()
        assert ("suspend", OTHER) in world.requests


@pytest.mark.parametrize("most", ["MOST_OF_NAMESPACE", "MOST_SUSPENDING"])
async def test_tasks_that_never_pause_take_a_bounded_part_of_the_suspensions_in_flight(monkeypatch, most):
    monkeypatch.setattr(adjuster, most, 1)
    async with desk(TASK, OTHER) as world:
        world.suspend(TASK)
        world.suspend(OTHER)
        await settle()
        assert (world.refusals, list(world.requests)) == (["TooMany"], [ORDER])
        await world.answer(*ORDER, "NotAcknowledged")
        world.suspend(OTHER)
        await settle()
        assert list(world.requests) == [("suspend", OTHER)]


async def test_the_suspensions_of_another_namespace_take_no_place_of_this_one(monkeypatch):
    monkeypatch.setattr(adjuster, "MOST_OF_NAMESPACE", 1)
    async with desk(TASK, "team/t") as world:
        world.suspend(TASK)
        world.suspend("team/t")
        await settle()
        assert world.refusals == []


async def test_what_is_switched_off_is_refused():
    async with desk(switches=profiles.Switches(suspend=False, resize=False, scale=False)) as world:
        world.suspend()
        world.take(model.Resize, cpu_milli=500)
        world.take(model.Speculate, attempt=model.TaskId("demo/x"))
        world.scheduler.adjuster.take(model.Scale(job=model.JobId("c"), workers=3, reason="a test"))
        assert world.refusals == ["SwitchedOff"] * 4


async def test_a_pod_of_another_owner_is_neither_suspended_nor_resized():
    async with desk() as world:
        world.show(manifests.pod_view("p", node="n1", phase="Running"))
        world.suspend("demo/nobody")
        world.take(model.Resume, "demo/nobody")
        world.take(model.Resize, "demo/nobody")
        world.suspend("demo/p")
        world.take(model.Resize, "demo/p")
        assert world.refusals == ["NotRunning", "NotRunning", "NotRunning", "NotSupported", "NotYet"]


# Resuming


async def test_a_task_continues_first_and_gets_its_request_back_once_there_is_room():
    async with desk(TASK, OTHER) as world:
        world.show_task(SHRUNK, record=record())
        world.take(model.Resume, cpu_milli=1000)
        await settle()
        assert (list(world.requests), world.charged()) == ([CONTINUE], 1000)
        third = world.task(task="demo/v")
        world.show(third)
        await world.answer(*CONTINUE, world.task(CONTINUED, record=record()))
        assert world.suspensions("resumed", "Advised") == 1
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert (dict(world.requests), world.scheduler.state.ledger.free("n1")[0]) == ({}, -990)
        world.delete(third)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [("resize", "t 1/2")]
        await world.answer("resize", "t 1/2", world.task(WHOLE, record=record()))
        assert (world.charged(), list(world.scheduler.state.pods.suspensions())) == (1000, [])


async def test_a_write_of_a_suspension_is_not_begun_again_while_it_is_in_flight():
    async with desk() as world:
        world.show_task(SHRUNK, record=record())
        world.take(model.Resume, cpu_milli=1000)
        world.take(model.Resume, cpu_milli=1000)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert len(world.resized) == 1


async def test_a_refused_resume_is_reported_once_and_repeated_with_the_request():
    async with desk() as world:
        world.show_task(SHRUNK, record=record())
        world.take(model.Resume, cpu_milli=1000)
        await settle()
        for size, delay_s in (("1m/2", 1.0), ("1/2", 2.0), ("1m/2", 5.0)):
            await world.answer("resize", f"t {size}", REFUSED)
            world.scheduler.adjuster.reconcile_suspensions()
            await settle()
            assert dict(world.requests) == {}
            world.now_s += delay_s
            world.scheduler.adjuster.reconcile_suspensions()
            await settle()
        assert [event["reason"] for event in world.published] == ["ResumeRefused"]
        assert world.suspensions("resumed", "Advised") == 0


async def test_a_growth_that_its_node_defers_is_taken_back():
    async with desk() as world:
        world.show_task(WHOLE, actual="1m", record=record(), resize="Deferred")
        world.scheduler.adjuster.reconcile_suspensions()
        world.now_s += stages.DEFERRED_S
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [CONTINUE]


@pytest.mark.parametrize("is_submitted", [True, False])
async def test_a_task_whose_record_was_removed_gets_another_one_and_is_resumed(is_submitted):
    async with desk() as world:
        world.show_task(SHRUNK, record=record())
        world.scheduler.adjuster.reconcile_suspensions()
        if not is_submitted:
            world.scheduler.withdraw(model.JobId("j"))
        world.show_task(SHRUNK)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        (noted,) = world.annotated
        written = stages.parse(noted["annotations"][names.ANNOTATION_SUSPENSION])
        assert written == record(reason="RecordLost", by="operator", order="", until_s=SINCE_S)
        (key,) = world.requests
        await world.answer(*key, world.task(SHRUNK, record=written))
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [CONTINUE]


async def test_a_successor_gives_a_task_without_a_record_the_size_of_its_class():
    async with desk() as world:
        world.show_task(SHRUNK)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        written = stages.parse(world.annotated[0]["annotations"][names.ANNOTATION_SUSPENSION])
        assert (written.cpu_request_milli, written.cpu_limit_milli) == (1000, 2000)


async def test_a_task_that_is_no_longer_submitted_gets_a_limit_that_keeps_it_burstable():
    async with desk() as world:
        world.submit_tasks(OTHER)
        world.show_task(SHRUNK)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        written = stages.parse(world.annotated[0]["annotations"][names.ANNOTATION_SUSPENSION])
        assert (written.cpu_request_milli, written.cpu_limit_milli) == (1000, 1001)


async def test_a_record_that_cannot_be_written_is_repeated_later():
    async with desk() as world:
        world.show_task(SHRUNK)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        (key,) = world.requests
        await world.answer(*key, REFUSED)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert dict(world.requests) == {}
        world.now_s += 1
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [key]


async def test_a_fault_in_one_suspension_leaves_the_others_alone():
    async with desk(TASK, OTHER) as world:
        world.suspend()
        world.suspend(OTHER)
        await settle()
        await world.answer(*ORDER, RuntimeError("a fault"))
        await world.answer("suspend", OTHER, "")
        assert [verb for verb, _ in world.requests] == ["annotate"]
        world.suspend()
        await settle()
        assert ORDER in world.requests


async def test_a_task_that_another_writer_resized_is_left_alone():
    async with desk() as world:
        world.show_task(("500m", "700m"), record=record())
        world.now_s = UNTIL_S
        world.take(model.Resume, cpu_milli=1000)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert (dict(world.requests), list(world.scheduler.state.pods.suspensions())) == ({}, [])


# By hand


async def test_the_author_of_a_job_suspends_its_reducers_and_resumes_them():
    async with desk() as world:
        world.submit_tasks(suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert world.control.orders == [("1-1", UNTIL_S - SINCE_S)]
        await world.answer(*ORDER, "")
        written = stages.parse(world.annotated[0]["annotations"][names.ANNOTATION_SUSPENSION])
        assert (written.by, written.reason) == ("user", "ByHand")
        await world.answer(*RECORD, world.task(record=written))
        await world.answer(*SHRINK, world.task(SHRUNK, actual="1", record=written))
        assert world.suspensions("suspended", "ByHand") == 1
        world.take(model.Resume, cpu_milli=1000)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert dict(world.requests) == {}  # no policy resumes it
        world.submit_tasks()
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert list(world.requests) == [CONTINUE]
        await world.answer(*CONTINUE, world.task(CONTINUED, record=written))
        assert world.suspensions("resumed", "Withdrawn") == 1


async def test_no_policy_cancels_what_the_author_of_a_job_suspends():
    async with desk() as world:
        world.submit_tasks(suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        world.take(model.Resume, cpu_milli=1000)
        await world.answer(*ORDER, "")
        await world.answer(*RECORD, world.task(record=record(by="user")))
        assert list(world.requests) == [SHRINK]


@pytest.mark.parametrize(("reason", "delay_s"), [("PhasePassed", None), ("NotAcknowledged", 5.0)])
async def test_a_reducer_that_does_not_pause_is_asked_again_later_unless_it_never_will(reason, delay_s):
    async with desk() as world:
        world.submit_tasks(suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        await world.answer(*ORDER, reason)
        for second in range(1, 20):
            world.now_s = SINCE_S + second / 2
            world.scheduler.adjuster.reconcile_suspensions()
            await settle()
            if world.requests:
                break
        assert (world.now_s - SINCE_S if world.requests else None) == delay_s


async def test_a_reducer_that_cannot_be_suspended_is_asked_again_later():
    async with desk() as world:
        world.show_task(actual=None)
        world.submit_tasks(suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        assert world.suspensions("refused", "NotYet") == 1
        world.now_s += 1
        world.scheduler.adjuster.reconcile_suspensions()
        assert world.suspensions("refused", "NotYet") == 1
        world.now_s += 4
        world.scheduler.adjuster.reconcile_suspensions()
        assert world.suspensions("refused", "NotYet") == 2


async def test_reducers_are_asked_at_intervals_and_not_past_the_time():
    async with desk(TASK, OTHER) as world:
        assert world.scheduler.adjuster.next_s() == float("inf")
        world.submit_tasks(suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        world.submit_tasks(TASK, OTHER, suspend_until_s=UNTIL_S)
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert len(world.control.orders) == 1 + 1  # both are of the job, whether they are submitted or not
        assert world.scheduler.adjuster.next_s() == SINCE_S + stages.BY_HAND_EVERY_S
        world.now_s = UNTIL_S
        for task in (TASK, OTHER):
            await world.answer("suspend", task, "NotAcknowledged")
        world.scheduler.adjuster.reconcile_suspensions()
        await settle()
        assert dict(world.requests) == {}


# Other decisions


async def test_a_running_task_is_resized_where_there_is_room():
    async with desk(TASK, OTHER) as world:
        world.take(model.Resize, cpu_milli=1500)
        world.take(model.Resize, cpu_milli=1000, memory=1 << 29)
        assert world.refusals == ["NoRoom", "MemoryOfRunningTask"]
        world.take(model.Resize, cpu_milli=1000)
        world.take(model.Resize, cpu_milli=400)
        world.take(model.Resize, cpu_milli=400)
        await settle()
        assert list(world.requests) == [("resize", "t 400m/2")]
        await world.answer("resize", "t 400m/2", world.task(("400m", "2"), actual="1"))
        assert world.charged() == 1000
        world.show_task(("400m", "2"))
        assert world.charged() == 400
        world.take(model.Resize, OTHER, cpu_milli=1600)
        assert world.charged(OTHER) == 1000
        await settle()
        assert (list(world.requests), world.charged(OTHER)) == ([("resize", "u 1600m/2")], 1600)
        assert world.refusals == ["NoRoom", "MemoryOfRunningTask"]


async def test_a_running_task_gets_nothing_that_is_kept_for_a_gang():
    async with desk() as world:
        gang = core.task_class(core.job("gang"), name="executor", gang_min=1)
        queue = world.scheduler.state.queue
        queue.submit(core.job("gang"), [gang], core.tasks(gang, 1))
        queue.reserved.reserve(model.NodeName("n1"), gang.id, world.now_s)
        world.take(model.Resize, cpu_milli=1500)
        assert (world.refusals, world.charged()) == (["KeptForGang"], 1000)
        queue.withdraw(model.JobId("gang"))
        world.take(model.Resize, cpu_milli=1500)
        await settle()
        assert world.charged() == 1500


async def test_limits_are_only_raised_and_stay_above_the_request():
    async with desk() as world:
        world.take(model.Resize, cpu_milli=2005, memory=2 << 30)
        await settle()
        assert world.resized[0]["resources"] == {
            "requests": {"cpu": "2005m", "memory": "2Gi"},
            "limits": {"cpu": "2006m"},
        }


async def test_a_resize_that_is_refused_frees_what_was_assumed():
    async with desk() as world:
        world.take(model.Resize, cpu_milli=1500)
        await settle()
        assert (world.charged(), world.refusals) == (1500, [])
        await world.answer("resize", "t 1500m/2", REFUSED)
        assert (world.refusals, world.charged()) == (["PodRefused"], 1000)


@pytest.mark.parametrize("size", [SHRUNK, CONTINUED])
async def test_a_suspended_task_is_not_resized(size):
    async with desk() as world:
        world.show_task(size, record=record())
        world.take(model.Resize, cpu_milli=400)
        assert world.refusals == ["NotRunning"]


async def test_what_nobody_carries_out_is_refused():
    async with desk(switches=profiles.Switches(speculate=True, scale=True)) as world:
        world.take(model.Speculate, attempt=model.TaskId("demo/x"))
        world.take(model.Speculate, "demo/nobody", attempt=model.TaskId("demo/x"))
        world.scheduler.adjuster.take(model.Scale(job=model.JobId("c"), workers=3, reason="a test"))
        refused = ["NoSecond", "NotSupported", "NoCluster"]
        assert world.refusals == refused
        world.control.second = model.TaskId("demo/t2")
        world.take(model.Speculate, attempt=model.TaskId("demo/x"), avoids=("n7",))
        assert (world.refusals, world.control.avoided) == (refused, ("n7",))
        for result in ("started", "refused"):
            assert world.metric("boathouse_speculations_total", result=result) == 1
