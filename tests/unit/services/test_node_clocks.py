"""Times that a node's clock wrote are used only if they can be right."""

import time

import pytest

from boathouse.resources import names
from boathouse.services.frame import pod_life
from boathouse.services.sparkapp import pods
from tests.builders.observed_pods import observed_pod
from tests.builders.operators import server_clocks
from tests.builders.operators.server_clocks import text

STEPS = pytest.mark.parametrize("step_s", [-86400, -3600, 3600, 86400])
OWNER = {"apiVersion": names.API_VERSION, "kind": "SparkApp", "uid": "a", "controller": True}
LABELS = {"boathouse.dev/job-uid": "a", "boathouse.dev/task-type": "driver", "boathouse.dev/attempt": "1"}
PLACED_S = int(time.time()) - 600.0


def read_pod(phase, state, placed_s=PLACED_S):
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": text(placed_s)}
    container = {"name": "spark-kubernetes-driver", "state": state}
    manifest = {
        "metadata": {
            "ownerReferences": [OWNER],
            "labels": LABELS,
            "name": "p",
            "namespace": "demo",
            "uid": "u",
            "creationTimestamp": text(placed_s),
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase, "conditions": [placed], "containerStatuses": [container]},
    }
    pod = observed_pod(manifest)
    return pod, pod_life.container(pod, pods.DRIVER_CONTAINER)


def times_by_a_node(step_s):
    """Return when containers started and ended by their node, which are 60 and 120 s after their placement."""
    running = read_pod("Running", {"running": {"startedAt": text(PLACED_S + 60 + step_s)}})
    ended = read_pod("Failed", {"terminated": {"exitCode": 1, "finishedAt": text(PLACED_S + 120 + step_s)}})
    return pod_life.started_s(*running), pod_life.ended_s(*ended)


def test_times_of_a_node_whose_clock_is_right_are_kept():
    assert times_by_a_node(0) == (PLACED_S + 60, PLACED_S + 120)


def test_a_container_that_started_a_moment_ago_did_so():
    placed_s = int(time.time()) - 60.0
    running = read_pod("Running", {"running": {"startedAt": text(placed_s + 55)}}, placed_s)
    assert pod_life.started_s(*running) == placed_s + 55


@STEPS
def test_times_that_cannot_be_right_are_those_of_the_placement(step_s):
    assert times_by_a_node(step_s) == (PLACED_S, PLACED_S)


@pytest.mark.parametrize("server_s", server_clocks.STEPS_S)
@pytest.mark.parametrize(("node_s", "after_s"), [(0, 60), (-86400, 0), (-3600, 0), (3600, 0), (86400, 0)])
def test_a_node_is_right_or_wrong_by_the_clock_of_the_api_server(monkeypatch, server_s, node_s, after_s):
    server_clocks.known_server(monkeypatch, server_s)
    placed_s = PLACED_S + server_s
    pod = read_pod("Running", {"running": {"startedAt": text(placed_s + 60 + node_s)}}, placed_s)
    assert pod_life.started_s(*pod) == placed_s + after_s
