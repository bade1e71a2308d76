"""Times that a node's clock wrote are used only if they can be right."""

import datetime as dt
import time

import pytest

from boathouse.resources import names
from boathouse.services.frame import pod_life
from boathouse.services.sparkapp.pods import driver_reader
from tests.builders.observed_pods import observed_pod

STEPS = pytest.mark.parametrize("step_s", [-86400, -3600, 3600, 86400])
OWNER = {"apiVersion": names.API_VERSION, "kind": "SparkApp", "uid": "a", "controller": True}
LABELS = {"boathouse.dev/job-uid": "a", "boathouse.dev/task-type": "driver", "boathouse.dev/attempt": "1"}
PLACED_S = int(time.time()) - 600.0


def text(epoch_s):
    return dt.datetime.fromtimestamp(epoch_s, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_pod(phase, state):
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": text(PLACED_S)}
    container = {"name": "spark-kubernetes-driver", "state": state}
    manifest = {
        "metadata": {
            "ownerReferences": [OWNER],
            "labels": LABELS,
            "name": "p",
            "namespace": "demo",
            "uid": "u",
            "creationTimestamp": text(PLACED_S),
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase, "conditions": [placed], "containerStatuses": [container]},
    }
    pod = observed_pod(manifest)
    return pod, pod_life.container(pod, driver_reader.CONTAINER)


def times_by_a_node(step_s):
    """Return when containers started and ended by their node, which are 60 and 120 s after their placement."""
    running = read_pod("Running", {"running": {"startedAt": text(PLACED_S + 60 + step_s)}})
    ended = read_pod("Failed", {"terminated": {"exitCode": 1, "finishedAt": text(PLACED_S + 120 + step_s)}})
    return pod_life.started_s(*running), pod_life.ended_s(*ended)


def test_times_of_a_node_whose_clock_is_right_are_kept():
    assert times_by_a_node(0) == (PLACED_S + 60, PLACED_S + 120)


@STEPS
def test_times_that_cannot_be_right_are_those_of_the_placement(step_s):
    assert times_by_a_node(step_s) == (PLACED_S, PLACED_S)
