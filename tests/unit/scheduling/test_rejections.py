"""Pods that a kubelet refused, and the nodes left alone for it."""

import pytest

from boathouse.cluster import wire
from boathouse.scheduling import refusals
from boathouse_policies import framework, model, profiles
from tests.builders.manifests import container_status, pod_view

RAN = wire.ContainerStatus(name="main", state=wire.ContainerState(terminated=wire.StateTerminated(exit_code=1)))


def failed(reason: str, *statuses: wire.ContainerStatus) -> wire.PodView:
    return wire.PodView(status=wire.PodStatus(phase="Failed", reason=reason, container_statuses=statuses))


@pytest.mark.parametrize("reason", ["OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "NodePorts"])
def test_a_kubelets_reasons_are_recognized(reason):
    assert refusals.rejection(failed(reason)) == reason


def test_a_container_that_failed_by_itself_is_no_rejection():
    assert refusals.rejection(failed("", RAN)) is None
    assert refusals.rejection(failed("Terminated", RAN)) is None
    assert refusals.rejection(pod_view(statuses=(container_status(actuated=None),))) is None


class World:
    """One node, one class that waits, and a clock."""

    def __init__(self, cpu_milli: int = 4000) -> None:
        self.now_s = 100.0
        self.exclusions = refusals.Exclusions(lambda: self.now_s)
        axis = model.Axis()
        self.ledger = framework.Ledger(axis)
        self.ledger.set_node(model.Node(name=model.NodeName("n1"), allocatable=model.Resources(cpu_milli=cpu_milli)))
        self.room = framework.SchedulingQueue(axis, [model.Queue.of(model.QueueName("q"))])
        job = model.Job(id=model.JobId("j"), queue=model.QueueName("q"), submitted_s=0)
        one = model.TaskClass(id=model.ClassId("c"), job=job.id, resources=model.Resources(cpu_milli=1000))
        self.room.submit(job, [one], [model.Task(id=model.TaskId("t"), task_class=one.id)])

    def plan(self) -> framework.Plan:
        base = profiles.build("fair")
        profile = framework.Profile(name="x", order=base.order, filters=(*base.filters, self.exclusions))
        return framework.run_cycle(self.room, profile, self.ledger.snapshot(self.now_s))


def test_a_node_that_refused_is_not_chosen_and_the_reason_says_why():
    world = World()
    world.exclusions.exclude(model.ClassId("c"), model.NodeName("n1"))
    plan = world.plan()
    assert not plan.decisions
    assert "1 node(s) rejected a pod of this class less than 30 s ago" in plan.diagnosis(model.ClassId("c")).message


def test_other_kinds_of_pods_may_still_go_there():
    world = World()
    world.exclusions.exclude(model.ClassId("another"), model.NodeName("n1"))
    assert len(world.plan().decisions) == 1


def test_a_pod_that_waits_is_explained_while_another_kind_is_kept_from_the_node():
    world = World(cpu_milli=500)
    world.exclusions.exclude(model.ClassId("another"), model.NodeName("n1"))
    message = world.plan().diagnosis(model.ClassId("c")).message
    assert message.endswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_after_half_a_minute_the_node_is_tried_again():
    world = World()
    world.exclusions.exclude(model.ClassId("c"), model.NodeName("n1"))
    assert world.exclusions.next_s() == 130
    world.now_s = 130
    assert world.exclusions.expire()
    assert not world.exclusions.expire()
    assert len(world.plan().decisions) == 1
