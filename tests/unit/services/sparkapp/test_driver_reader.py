"""From the API's pods to drivers, and who is to blame when one failed."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import transforms
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import wiring
from boathouse.services.sparkapp.pods import driver_reader

OWNER = {"apiVersion": names.API_VERSION, "kind": "SparkApp", "uid": "a", "controller": True}
LABELS = {"boathouse.dev/job-uid": "a", "boathouse.dev/task-type": "driver", "boathouse.dev/attempt": "3"}
TRANSFORM_POD = transforms.pods(
    names.SCHEDULER_NAME, labels=wiring.SPARKAPPS.pod_labels, containers=wiring.SPARKAPPS.pod_containers
)


def look(phase="Running", state=None, node="n1", labels=None, deleted=None, annotations=None, **status):
    containers = [{"name": "spark-kubernetes-driver", "state": state}] if state else []
    metadata = {
        "name": "pi-a3-driver",
        "namespace": "demo",
        "uid": "u",
        "ownerReferences": [OWNER],
        "labels": LABELS if labels is None else labels,
        "annotations": annotations or {},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    } | ({"deletionTimestamp": deleted} if deleted else {})
    manifest = {
        "metadata": metadata,
        "spec": {"nodeName": node},
        "status": {"phase": phase, "containerStatuses": containers, "podIP": "10.0.0.7"} | status,
    }
    return driver_reader.driver(TRANSFORM_POD(msgspec.convert(manifest, wire.PodView)))


def ended(exit_code=1, message="", reason="Error", **status):
    terminated = {"exitCode": exit_code, "reason": reason, "message": message, "finishedAt": "2026-01-01T00:01:00Z"}
    return look("Failed", {"terminated": terminated}, **status).ending


def test_a_running_driver_has_its_attempt_its_node_and_its_address():
    pod = look(state={"running": {"startedAt": "2026-01-01T00:00:20Z"}})
    assert (pod.attempt, pod.state, pod.node, pod.address) == (3, PodLife.RUNNING, "n1", "10.0.0.7")
    assert pod.started_s == 1767225620.0


def test_a_driver_without_a_node_is_unplaced():
    pod = look("Pending", node="")
    assert (pod.state, pod.node, pod.placed_s) == (PodLife.UNPLACED, None, None)


@pytest.mark.parametrize(
    "labels", [{}, LABELS | {"boathouse.dev/attempt": "0"}, LABELS | {"boathouse.dev/attempt": "9" * 20}]
)
def test_a_pod_with_other_labels_is_no_driver(labels):
    assert look(labels=labels) is None


@pytest.mark.parametrize(
    ("written", "read"), [("1073741824", 1073741824), ("", 0), ("-1", 0), ("1" * 19, 0), ("1Gi", 0)]
)
def test_a_driver_says_how_much_memory_was_chosen_for_its_executors(written, read):
    assert look(annotations={names.ANNOTATION_EXECUTOR_MEMORY: written}).executor_bytes == read


def test_a_driver_that_cannot_start_says_why():
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    assert look("Pending", waiting).problem.reason == "ImagePullFailed"


@pytest.mark.parametrize(
    ("found", "reason", "is_infrastructure"),
    [
        (ended(1), "Error", False),
        (ended(137, reason="OOMKilled"), "OOMKilled", False),
        (ended(137), "DriverLost", True),
        (ended(127, reason="StartError"), "StartError", False),
        (look("Failed").ending, "DriverLost", True),
        (look("Failed", reason="Evicted").ending, "Evicted", True),
        (look("Failed", reason="Evicted", message="Pod exceeds the limit").ending, "Evicted", False),
        (look("Failed", reason="OutOfcpu").ending, "OutOfcpu", True),
        (look("Failed", deleted="2026-01-01T00:00:30Z").ending, "PodLost", True),
    ],
)
def test_who_is_to_blame(found, reason, is_infrastructure):
    assert (found.reason, found.is_infrastructure) == (reason, is_infrastructure)


def test_the_last_lines_of_a_driver_are_printable_and_bounded():
    log = ended(1, message="x" * 5000 + "\x1b[31mred\n").log
    assert len(log) <= 2048
    assert log.endswith("[31mred\n")
    assert "\x1b" not in log
