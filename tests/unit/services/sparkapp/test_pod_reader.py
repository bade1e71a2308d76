"""Drivers and executors as they are read from pods, for policies too, and whose fault a failure is."""

import datetime as dt

import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import observation
from boathouse_policies import model
from tests.builders.observed_pods import observed_pod, terminated, waiting

OWNER = {"apiVersion": names.API_VERSION, "kind": "SparkApp", "uid": "a", "controller": True}
LABELS = {"boathouse.dev/job-uid": "a", "boathouse.dev/task-type": "driver", "boathouse.dev/attempt": "3"}


def read_driver(phase="Running", state=None, node="n1", labels=LABELS, deleted=None, annotations=None, **status):
    containers = [{"name": "spark-kubernetes-driver", "state": state}] if state else []
    metadata = {
        "name": "pi-a3-driver",
        "namespace": "demo",
        "uid": "u",
        "ownerReferences": [OWNER],
        "labels": labels,
        "annotations": annotations or {},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    } | ({"deletionTimestamp": deleted} if deleted else {})
    manifest = {
        "metadata": metadata,
        "spec": {"nodeName": node},
        "status": {"phase": phase, "containerStatuses": containers, "podIP": "10.0.0.7"} | status,
    }
    return observation.driver_pod(observed_pod(manifest))


def read_ending(exit_code=1, message="", reason="Error"):
    return read_driver("Failed", terminated(exit_code, message, reason)).ending


def test_a_running_driver_has_its_attempt_its_node_and_its_address():
    pod = read_driver(state={"running": {"startedAt": "2026-01-01T00:00:20Z"}})
    assert (pod.attempt, pod.state, pod.node, pod.address) == (3, PodLife.RUNNING, "n1", "10.0.0.7")
    assert pod.started_s == 1767225620.0


def test_a_driver_without_a_node_is_unplaced():
    pod = read_driver("Pending", node="")
    assert (pod.state, pod.node, pod.placed_s) == (PodLife.UNPLACED, None, None)


@pytest.mark.parametrize(
    "labels", [{}, LABELS | {"boathouse.dev/attempt": "0"}, LABELS | {"boathouse.dev/attempt": "9" * 20}]
)
def test_a_pod_with_other_labels_is_no_driver(labels):
    assert read_driver(labels=labels) is None


@pytest.mark.parametrize(
    ("annotation", "executor_bytes"), [("1073741824", 1073741824), ("", 0), ("-1", 0), ("1" * 19, 0), ("1Gi", 0)]
)
def test_a_driver_says_how_much_memory_was_chosen_for_its_executors(annotation, executor_bytes):
    assert read_driver(annotations={names.ANNOTATION_EXECUTOR_MEMORY: annotation}).executor_bytes == executor_bytes


def test_a_driver_that_cannot_start_says_why():
    assert read_driver("Pending", waiting("ErrImagePull", "not found")).problem.reason == "ImagePullFailed"


@pytest.mark.parametrize(
    ("read", "reason", "is_infrastructure"),
    [
        (lambda: read_ending(1), "Error", False),
        (lambda: read_ending(137, reason="OOMKilled"), "OOMKilled", False),
        (lambda: read_ending(137), "DriverLost", True),
        (lambda: read_ending(127, reason="StartError"), "StartError", False),
        (lambda: read_driver("Failed").ending, "DriverLost", True),
        (lambda: read_driver("Failed", reason="Evicted").ending, "Evicted", True),
        (lambda: read_driver("Failed", reason="Evicted", message="Pod exceeds the limit").ending, "Evicted", False),
        (lambda: read_driver("Failed", reason="OutOfcpu").ending, "OutOfcpu", True),
        (lambda: read_driver("Failed", deleted="2026-01-01T00:00:30Z").ending, "PodLost", True),
    ],
)
def test_a_failure_is_the_infrastructures_or_the_applications(read, reason, is_infrastructure):
    found = read()
    assert (found.reason, found.is_infrastructure) == (reason, is_infrastructure)


def test_the_last_lines_of_a_driver_are_printable_and_bounded():
    log = read_ending(1, message="x" * 5000 + "\x1b[31mred\n").log
    assert len(log) <= 2048
    assert log.endswith("[31mred\n")
    assert "\x1b" not in log


NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def executor_pod(phase="Running", node="n1", *, deleted=False, disrupted="", **status):
    conditions = [wire.Condition(type="PodScheduled", status="True", last_transition_time=NOW)]
    if disrupted:
        conditions.append(wire.Condition(type="DisruptionTarget", status="True", reason=disrupted))
    metadata = wire.ObjectMeta(name="e", namespace="demo", uid="u", deletion_timestamp=NOW if deleted else None)
    pod = wire.PodStatus(phase=phase, conditions=tuple(conditions), **status)
    size = model.Resources(cpu_milli=500)
    return observation.of_executor(facts.PodFacts(metadata=metadata, status=pod, node_name=node, resources=size))


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
    assert observation.ended(failed) is failed
    assert observation.ended(executor_pod(), "DriverFailed").reason == "DriverFailed"
