"""What the tests' cluster autoscalers make of pods."""

import pytest

from boathouse_e2e.autoscaling import Size, simulate
from tests.builders import manifests

NODES = {"n1": Size.of({"cpu": "2", "memory": "4Gi"})}
APART = {"labelSelector": {"matchLabels": {"role": "core"}}}


def pending(name, *, reason="Unschedulable", **more):
    pod = manifests.pod(name, **more)
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}],
    }
    return pod


def core(name):
    pod = pending(name, labels={"role": "core"})
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}
    return pod


@pytest.mark.parametrize(
    ("pods", "unplaced"),
    [
        ([pending("a", cpu="1"), pending("b", cpu="1")], []),
        ([pending("a", cpu="1500m"), pending("b", cpu="1")], ["b"]),
        ([pending("a", memory="3Gi"), pending("b", memory="2Gi")], ["b"]),
        ([core("a"), core("b")], ["b"]),
        ([pending("a", cpu="3", reason="QueueLimit")], []),
    ],
    ids=["room", "cpu", "memory", "anti-affinity", "another-reason"],
)
def test_a_node_is_missing_for_pods_that_fit_on_none_beside_the_others(pods, unplaced):
    assert simulate(NODES, pods)[1] == unplaced


def test_a_node_is_used_by_pods_that_are_on_it_and_by_pods_that_would_come():
    bound = manifests.pod("a", node="n1", phase="Running")
    assert simulate(NODES, [bound])[0] == simulate(NODES, [pending("b")])[0] == {"n1"}
    assert simulate(NODES, [])[0] == set()


def test_a_node_with_pods_of_daemon_sets_only_is_empty():
    pod = manifests.pod("proxy", node="n1", phase="Running")
    pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "kube-proxy"}]
    assert simulate(NODES, [pod])[0] == set()
