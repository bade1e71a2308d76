"""While a write is under way, pods and nodes come and go, and a task may be decided anew."""

import dataclasses
import json

import pytest

from boathouse.cluster import boundary, errors, views, wire
from boathouse.resources import names
from boathouse.scheduling import executor, jobs
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.volumes import rules
from boathouse_policies import framework, model
from tests.builders import manifests
from tests.builders.operators.desks import NOT_FOUND, OVERLOADED, TAKEN, Desk, foreign_pod, operation, settle, task_pod
from tests.builders.operators.suspensions import TASK, TaskDesk


async def test_a_pod_recreated_during_its_predecessors_bind_is_bound():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1"))
        assert await desk.decide() == [("bind", "u1 n1")]
        desk.delete(foreign_pod("u1"))
        desk.show(foreign_pod("u2", revision=3))
        await desk.answer("bind", "u1 n1", NOT_FOUND)
        await desk.answer("get", "p", foreign_pod("u2", revision=3))
        assert await desk.decide() == [("bind", "u2 n1")]


async def test_a_successor_that_is_being_bound_stays_in_the_book():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1"))
        await desk.decide()
        desk.delete(foreign_pod("u1"))
        desk.show(foreign_pod("u2", revision=3))
        assert await desk.decide() == [("bind", "u1 n1"), ("bind", "u2 n1")]
        await desk.answer("bind", "u1 n1", NOT_FOUND)
        await desk.answer("get", "p", foreign_pod("u2", revision=3))
        assert desk.scheduler.state.ledger.state("demo/p") is framework.State.ASSUMED
        await desk.answer("bind", "u2 n1", OVERLOADED)
        desk.now_s += 60
        assert await desk.decide() == [("bind", "u2 n1")]


async def test_a_failure_on_a_node_that_went_does_not_take_back_what_was_decided_since():
    async with Desk().writing() as desk:
        desk.node("n1")
        task = desk.submit()
        assert await desk.decide() == [("create", "t n1")]
        desk.delete_node("n1")
        desk.node("n2")
        desk.submit()
        assert await desk.decide() == [("create", "t n1"), ("create", "t n2")]
        await desk.answer("create", "t n1", OVERLOADED)
        assert desk.scheduler.state.ledger.state(task) is framework.State.ASSUMED
        assert desk.row(task).operation.has_begun


async def test_a_pod_that_went_while_it_was_bound_waits_no_more():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1"))
        await desk.decide()
        await desk.answer("bind", "u1 n1", NOT_FOUND)
        await desk.answer("get", "p", NOT_FOUND)
        assert await desk.decide() == []
        assert not list(desk.scheduler.state.pods.waiting())


async def test_a_pod_is_bound_after_what_is_being_written_of_its_waiting():
    async with Desk().writing() as desk:
        desk.show(foreign_pod("u1"))
        assert await desk.decide() == [("status", "p")]
        desk.node("n1")
        assert await desk.decide() == [("status", "p")]
        await desk.answer("status", "p")
        assert sorted(desk.requests) == [("bind", "u1 n1")]


async def test_nothing_is_written_of_a_pods_waiting_while_it_is_bound():
    async with Desk().writing() as desk:
        desk.show(foreign_pod("u1"))
        await desk.decide()
        await desk.answer("status", "p", OVERLOADED)  # to be tried again
        desk.node("n1")
        await desk.decide()
        desk.now_s += 60
        assert await desk.decide() == [("bind", "u1 n1")]


async def test_the_condition_of_a_pod_whose_binding_failed_is_written_again():
    async with Desk().writing() as desk:
        desk.show(foreign_pod("u1"))
        await desk.decide()
        await desk.answer("status", "p", OVERLOADED)
        desk.node("n1")
        await desk.decide()
        await desk.answer("bind", "u1 n1", OVERLOADED)
        desk.delete_node("n1")
        desk.now_s += 60
        assert await desk.decide() == [("status", "p")]


async def test_an_answer_that_is_older_than_what_the_watch_showed_since_changes_nothing():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.node("n2")
        task = desk.submit()
        ((verb, what),) = await desk.decide()
        elsewhere = "n2" if what.endswith("n1") else "n1"
        stale = task_pod(task, node=elsewhere, revision=5)
        await desk.answer(verb, what, TAKEN)
        desk.show(stale)
        desk.delete(task_pod(task, node=elsewhere, revision=6))
        await desk.answer("get", "t", stale)
        assert len(desk.scheduler.state.ledger) == 0


async def test_a_pod_that_turns_out_to_have_no_node_is_not_asked_for_again_and_again():
    async with Desk().writing() as desk:
        desk.node("n1")
        task = desk.submit()
        await desk.decide()
        await desk.answer("create", "t n1", TAKEN)
        await desk.answer("get", "t", task_pod(task, node="", revision=5))
        desk.now_s += 60
        assert not desk.scheduler.state.pods.unconfirmed(30)
        assert await desk.decide() == [("bind", "uid-t n1")]


def claim(revision: int, *, bound: bool) -> views.ClaimView:
    annotations = {views.SELECTED_NODE: "n1"} | ({views.BIND_COMPLETED: "yes"} if bound else {})
    meta = wire.ObjectMeta(
        name="c", namespace="demo", uid="c", resource_version=str(revision), annotations=annotations if revision else {}
    )
    return views.ClaimView(
        metadata=meta, spec=views.ClaimSpec(storage_class_name="late", volume_name="v" if bound else "")
    )


MOUNTS = (wire.Volume(name="v", persistent_volume_claim=wire.ClaimSource(claim_name="c")),)


def provisioning() -> tuple[dict[str, views.ClaimView], Desk]:
    """Return the claims, of which one is not provisioned yet, and a desk that knows them."""
    claims = {"demo/c": claim(0, bound=False)}
    classes = {"late": manifests.storage_class_view(provisioner="d")}
    return claims, Desk(dataclasses.replace(rules.Storage(), claims=claims, classes=classes))


async def test_a_pod_recreated_during_provisioning_is_bound_once_its_volume_exists():
    claims, provisioned = provisioning()
    async with provisioned.writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1", volumes=MOUNTS))
        await desk.decide()
        desk.delete(foreign_pod("u1", volumes=MOUNTS))
        desk.show(foreign_pod("u2", revision=3, volumes=MOUNTS))
        assert await desk.decide() == [("patch", "c 1"), ("patch", "c 2")]
        claims["demo/c"] = claim(4, bound=False)
        await desk.answer("patch", "c 2", claims["demo/c"])
        await desk.answer("patch", "c 1", claims["demo/c"])
        claims["demo/c"] = claim(5, bound=True)
        desk.scheduler.executor.check_volumes()
        assert await desk.decide() == [("bind", "u2 n1")]


@pytest.mark.parametrize("reason", ["VolumeProvisioningFailed", "VolumeBindingTimedOut"])
async def test_a_pod_whose_volume_cannot_be_bound_tries_another_node(reason):
    claims, provisioned = provisioning()
    async with provisioned.writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1", volumes=MOUNTS))
        await desk.decide()
        claims["demo/c"] = claim(4, bound=False)
        await desk.answer("patch", "c 1", claims["demo/c"])
        desk.now_s += executor.VOLUMES_BOUND_WITHIN_S - 1
        desk.scheduler.executor.check_volumes()
        assert desk.refused == []
        if reason == "VolumeProvisioningFailed":
            claims["demo/c"] = manifests.claim_view(revision=5)
        else:
            desk.now_s += 1
        desk.scheduler.executor.check_volumes()
        assert desk.refused == [("demo/p", "n1", reason)]
        assert desk.scheduler.state.ledger.account("demo/p") is None
        if reason == "VolumeBindingTimedOut":
            return  # the claim may still be provisioned for the node
        desk.now_s += 20
        assert await desk.decide() == [("status", "p")]
        await desk.answer("status", "p")
        desk.node("n2")
        desk.now_s += 1
        assert ("patch", "c 2") in await desk.decide()
        assert desk.row("demo/p").operation.node == "n2"


async def test_a_pod_that_exists_is_resized_to_the_decided_size_before_it_is_bound():
    desk = TaskDesk()
    async with desk.writing():
        desk.submit_tasks()
        desk.show(desk.task(node="", phase="Pending"))
        row, entry = desk.row(TASK), desk.scheduler.state.jobs.entry(model.JobId("j"))
        small = model.Resources(cpu_milli=400, memory_bytes=1 << 30)
        task = dataclasses.replace(row.task, pod_uid=row.uid)
        bind = model.Bind(task=task, task_class=entry.classes[0], job=entry.job, node="n1", resources=small)
        desk.scheduler.executor.start(desk.scheduler.state.pods.decide(row, bind))
        await settle()
        assert list(desk.requests) == [("resize", "t 400m/800m")]
        await desk.answer("resize", "t 400m/800m", desk.task(("400m", "800m"), node="", phase="Pending"))
        assert list(desk.requests) == [("bind", "uid-t n1")]


async def test_a_pod_that_cannot_be_resized_is_not_bound():
    desk = TaskDesk()
    async with desk.writing():
        desk.submit_tasks()
        desk.show(desk.task(node="", phase="Pending"))
        row, entry = desk.row(TASK), desk.scheduler.state.jobs.entry(model.JobId("j"))
        small = model.Resources(cpu_milli=400, memory_bytes=1 << 30)
        task = dataclasses.replace(row.task, pod_uid=row.uid)
        bind = model.Bind(task=task, task_class=entry.classes[0], job=entry.job, node="n1", resources=small)
        desk.scheduler.executor.start(desk.scheduler.state.pods.decide(row, bind))
        await settle()
        await desk.answer("resize", "t 400m/800m", errors.Forbidden(403, "Forbidden", "a LimitRange"))
        assert (dict(desk.requests), desk.refused) == ({}, [(TASK, "n1", "PodRefused")])


class Faulty(framework.Filter):
    """Fails for the tasks of one job."""

    job = "bad"

    def concerns(self, pending):
        if pending.task_class.job == self.job:
            raise ValueError("a fault of one job")
        return False

    def key(self, _pending):
        return None

    def mask(self, *_):
        return None

    def refusals(self, *_):
        return []


def with_a_fault(desk: Desk) -> Faulty:
    """Submit two jobs, to the first of which the filter objects."""
    desk.node("n1")
    state, fault = desk.scheduler.state, Faulty()
    faulty = dataclasses.replace(state.profile, filters=(*state.profile.filters, fault))
    object.__setattr__(state, "profile", faulty)
    desk.submit("demo/bad", job_id="bad")
    desk.submit("demo/good", job_id="good")
    return fault


async def test_a_job_that_makes_the_cycle_fail_is_set_aside_and_others_are_scheduled():
    async with Desk().writing() as desk:
        with_a_fault(desk)
        assert await desk.decide() == [("create", "good n1")]
        assert model.JobId("bad") in desk.scheduler.state.jobs.aside
        assert desk.scheduler.diagnosis("bad").reason == "SetAside"


async def test_a_job_that_was_set_aside_is_tried_after_a_minute_and_then_after_twice_as_long():
    async with Desk().writing() as desk:
        fault = with_a_fault(desk)
        await desk.decide()
        desk.now_s += jobs.ASIDE_S
        assert await desk.decide() == [("create", "good n1")]
        fault.job = "another"
        assert desk.scheduler.decider.next_s() == desk.now_s + 2 * jobs.ASIDE_S
        desk.now_s += 2 * jobs.ASIDE_S
        assert await desk.decide() == [("create", "bad n1"), ("create", "good n1")]
        assert desk.scheduler.diagnosis("bad") is None


async def test_no_job_is_set_aside_for_a_cycle_that_fails_without_any_too():
    class Failing(framework.Controller):
        def advise(self, *_):
            raise KeyError("a fault of the profile")

    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit("demo/good", job_id="good")
        state = desk.scheduler.state
        sound, failing = state.profile, dataclasses.replace(state.profile, controllers=(Failing(),))
        object.__setattr__(state, "profile", failing)
        with pytest.raises(KeyError):
            await desk.decide()
        object.__setattr__(state, "profile", sound)
        assert await desk.decide() == [("create", "good n1")]


async def test_a_job_that_was_set_aside_and_deleted_is_not_tried_again():
    async with Desk().writing() as desk:
        with_a_fault(desk)
        await desk.decide()
        desk.scheduler.withdraw(model.JobId("bad"))
        desk.now_s += jobs.ASIDE_S
        assert await desk.decide() == [("create", "good n1")]
        assert model.JobId("bad") not in desk.scheduler.state.jobs.aside


async def test_a_task_is_over_whose_pod_had_ended_before_it_was_submitted():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(task_pod("demo/t", node="n1", revision=5))
        ended = task_pod("demo/t", node="n1", revision=6, phase="Succeeded")
        desk.delete(ended)
        desk.show(foreign_pod("later", revision=7, node="elsewhere"))
        desk.submit()
        ((verb, what),) = await desk.decide()
        await desk.answer(verb, what, TAKEN)
        await desk.answer("get", "t", ended)
        assert await desk.decide() == []


async def test_the_end_of_a_former_pod_is_not_that_of_one_that_has_its_name():
    async with Desk().writing() as desk:
        desk.show(foreign_pod("new", revision=7))
        desk.scheduler.intake._answered(desk.row("demo/p"), foreign_pod("old", revision=5, phase="Failed"))
        desk.node("n1")
        assert await desk.decide() == [("bind", "new n1")]


async def test_a_pod_that_the_watch_showed_while_another_was_being_made_waits():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit()
        ((verb, what),) = await desk.decide()
        ahead = task_pod("demo/t", node="", revision=5)
        desk.show(ahead)
        desk.show(foreign_pod("later", revision=7, node="elsewhere"))
        await desk.answer(verb, what, TAKEN)
        await desk.answer("get", "t", ahead)
        assert await desk.decide() == [("bind", f"{ahead.metadata.uid} n1")]


async def test_what_is_decided_after_the_executor_has_ended_does_not_begin():
    async with Desk().writing() as desk:
        desk.node("n1")
    desk.submit()
    assert await desk.decide() == []


async def test_observers_are_notified_of_a_placement_whose_write_failed():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit()
        await desk.decide()
        await desk.answer("create", "t n1", OVERLOADED)
        assert [one[:2] for one in desk.refused] == [("demo/t", "n1")]


async def test_observers_are_notified_of_a_placement_whose_node_was_deleted():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit()
        desk.scheduler.cycle()
        desk.delete_node("n1")
        await desk.decide()
        assert desk.refused == [("demo/t", "n1", "Outdated")]


async def test_observers_are_notified_of_a_placement_whose_pod_was_deleted():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1"))
        await desk.decide()
        await desk.answer("bind", "u1 n1", NOT_FOUND)
        await desk.answer("get", "p", NOT_FOUND)
        assert desk.refused == [("demo/p", "n1", "PodGone")]


async def test_a_placement_that_is_written_is_not_refused():
    async with Desk().writing() as desk:
        desk.node("n1")
        task = desk.submit()
        await desk.decide()
        await desk.answer("create", "t n1", task_pod(task, node="n1", revision=3))
        assert desk.observer.events == []


async def test_a_pod_that_cannot_be_written_for_a_fault_is_tried_again_and_the_others_are_written():
    async with Desk().writing() as desk:
        desk.node("n1")
        first, second = desk.submit(job_id="j"), desk.submit("demo/u", job_id="k")
        await desk.decide()
        await desk.answer("create", "t n1", ValueError("a fault of ours"))
        await desk.answer("create", "u n1", task_pod(second, node="n1", revision=3))
        assert desk.row(second).state is PodState.BOUND
        desk.now_s += 60
        assert ("create", "t n1") in await desk.decide()
        assert desk.row(first).state is PodState.CREATING


async def decided_with_a_fault_in_the_intake(desk, monkeypatch):
    def fails(*_):
        raise ValueError("a fault of ours")

    desk.node("n1")
    task = desk.submit()
    monkeypatch.setattr(desk.scheduler.intake, "_done", fails)
    await desk.decide()
    return task


async def test_a_job_is_set_aside_when_the_answer_to_a_write_cannot_be_taken_in(monkeypatch):
    async with Desk().writing() as desk:
        task = await decided_with_a_fault_in_the_intake(desk, monkeypatch)
        await desk.answer("create", "t n1", task_pod(task, node="n1", revision=3))
        assert model.JobId("j") in desk.scheduler.state.jobs.aside
        assert desk.scheduler.state.ledger.state(task) is framework.State.ASSUMED


async def test_a_pod_without_a_job_is_set_aside_when_the_answer_to_its_write_cannot_be_taken_in(monkeypatch):
    async with Desk().writing() as desk:
        task = await decided_with_a_fault_in_the_intake(desk, monkeypatch)
        desk.scheduler.withdraw(model.JobId("j"))
        await desk.answer("create", "t n1", task_pod(task, node="n1", revision=3))
        assert desk.scheduler.state.aside.counts["Pod", boundary.Reason.WRITING] == 1


@pytest.mark.parametrize("kind", [model.Resize, model.Resume])
def test_what_is_decided_of_a_task_that_does_not_run_is_refused(kind):
    desk, task = Desk(), model.Task(id=model.TaskId("demo/t"), task_class=model.ClassId("j/map"))
    size = model.Resources(cpu_milli=1, memory_bytes=1)
    desk.scheduler.adjuster.take(kind(task=task, node=model.NodeName("n1"), resources=size, reason="test"))
    assert desk.refused == [("demo/t", "n1", "NotRunning")]


@pytest.mark.parametrize(
    ("figures", "noted"),
    [((), {}), ((("slowdown", 1.23456), ("threshold", 2.0)), {"slowdown": 1.2346, "threshold": 2.0})],
)
def test_the_figures_of_a_placement_are_noted_on_its_pod(figures, noted):
    decided = operation()
    decided.placement = dataclasses.replace(decided.placement, figures=figures)
    text = executor._figures(decided).get(names.ANNOTATION_FIGURES, "{}")
    assert json.loads(text) == noted


def test_figures_that_are_too_long_are_left_out():
    decided = operation()
    decided.placement = dataclasses.replace(decided.placement, figures=((("x" * 600), 1.0),))
    assert not executor._figures(decided)
