"""Executors as policies know them."""

import datetime as dt

import pytest

from boathouse.cluster import wire
from boathouse.scheduling.pods import facts
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import pod_reader
from boathouse_policies import model

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def executor_pod(phase="Running", node="n1", *, deleted=False, disrupted="", **status):
    conditions = [wire.Condition(type="PodScheduled", status="True", last_transition_time=NOW)]
    if disrupted:
        conditions.append(wire.Condition(type="DisruptionTarget", status="True", reason=disrupted))
    metadata = wire.ObjectMeta(name="e", namespace="demo", uid="u", deletion_timestamp=NOW if deleted else None)
    pod = wire.PodStatus(phase=phase, conditions=tuple(conditions), **status)
    size = model.Resources(cpu_milli=500)
    return pod_reader.of_executor(facts.PodFacts(metadata=metadata, status=pod, node_name=node, resources=size))


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        (executor_pod("Pending", node=""), PodLife.UNPLACED),
        (executor_pod("Pending"), PodLife.STARTING),
        (executor_pod(), PodLife.RUNNING),
        (executor_pod("Succeeded"), PodLife.SUCCEEDED),
        (executor_pod(deleted=True), PodLife.SUCCEEDED),
        (executor_pod("Failed"), PodLife.FAILED),
    ],
)
def test_an_executor_is_in_the_state_of_its_phase_and_has_ended_when_it_is_deleted(pod, state):
    assert pod.state is state


def test_an_executor_has_its_node_its_size_and_the_time_of_its_binding():
    pod = executor_pod()
    assert (pod.node, pod.resources.cpu_milli, pod.placed_s) == ("n1", 500, NOW.timestamp())


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (executor_pod("Failed"), "ExecutorFailed"),
        (executor_pod("Failed", reason="Evicted"), "Evicted"),
        (executor_pod(deleted=True, disrupted="PreemptionByScheduler"), "PreemptionByScheduler"),
        (executor_pod(disrupted="PreemptionByScheduler"), ""),
        (executor_pod(deleted=True), ""),
    ],
)
def test_an_executor_that_was_disrupted_has_failed_for_that_reason(pod, reason):
    assert pod.reason == reason


def test_a_pod_that_ended_does_not_end_otherwise():
    failed = executor_pod("Failed")
    assert pod_reader.ended(failed) is failed
    assert pod_reader.ended(executor_pod(), "DriverFailed").reason == "DriverFailed"
