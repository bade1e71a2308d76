"""Nodes of a cluster as they are read from pods, and why the NameNode does not start."""

import pytest

from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import files, model, pods
from boathouse.services.mrcluster.planning.observation import node_pod
from tests.builders.mrclusters import cluster, node_manifest
from tests.builders.observed_pods import observed_pod, terminated, waiting

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:20Z"}}
EMPTY = terminated(78, "NameVolumeEmpty: the volume of the master is empty")


def status_of(name, state=None, *, ready=True, restarts=0, last=None):
    fields = {"name": name, "state": RUNNING if state is None else state, "ready": ready, "restartCount": restarts}
    return fields | ({"lastState": last} if last else {})


def read_node(host="c0", *statuses, node="n1", phase="Running", labels=None, **metadata):
    """Return the node of a pod that the operator created, with these statuses of its containers."""
    manifest = node_manifest(host)
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    manifest["metadata"]["labels"] |= labels or {}
    manifest["spec"] |= {"nodeName": node} if node else {}
    manifest["status"] = {"phase": phase, "containerStatuses": list(statuses), "podIP": "10.0.0.7"}
    return node_pod(observed_pod(manifest))


@pytest.mark.parametrize("host", ["master", "c0", "t17"])
def test_a_pod_that_the_operator_creates_is_a_node(host):
    pod = read_node(host, status_of(pods.AGENT))
    assert (pod.host, pod.role, pod.number) == (host, model.role_of(host), model.number_of(host))
    assert (pod.node, pod.address, pod.life) == ("n1", "10.0.0.7", PodLife.RUNNING)
    assert pod.settings == files.render(cluster()).digest
    assert pod.resources.memory_bytes > 0


def test_every_container_that_the_operator_creates_is_read():
    hosts = ("master", "c0", "t17")
    created = {container["name"] for host in hosts for container in node_manifest(host)["spec"]["containers"]}
    assert created == pods.CONTAINERS


@pytest.mark.parametrize(
    "labels", [{"boathouse.dev/host": "c01"}, {"boathouse.dev/host": "t1"}, {"boathouse.dev/task-type": "map"}]
)
def test_a_pod_whose_labels_do_not_agree_is_no_node(labels):
    assert read_node("c0", labels=labels) is None


def test_a_pod_without_a_node_of_kubernetes_is_unplaced():
    pod = read_node(node="", phase="Pending")
    assert (pod.life, pod.node, pod.is_ready) == (PodLife.UNPLACED, None, False)


def test_a_node_is_ready_once_all_of_its_containers_are():
    assert read_node("c0", status_of("datanode"), status_of("nodemanager")).is_ready
    assert not read_node("c0", status_of("datanode"), status_of("nodemanager", ready=False)).is_ready
    assert not read_node("c0").is_ready


def test_a_pod_that_was_deleted_or_has_ended_serves_no_more():
    assert read_node(deletionTimestamp="2026-01-01T00:01:00Z").is_over
    assert read_node(phase="Failed").is_over


def test_an_image_that_cannot_be_pulled_is_the_problem():
    pod = read_node("c0", status_of("datanode", waiting("ErrImagePull", "not found"), ready=False), phase="Pending")
    assert (pod.life, pod.problem.reason) == (PodLife.STARTING, "ImagePullFailed")


def test_a_daemon_in_crash_loop_is_the_problem_with_its_last_output():
    ended = terminated(1, "NameNotResolved: DNS has no address of master\n")
    status = status_of("datanode", waiting("CrashLoopBackOff"), ready=False, last=ended)
    problem = read_node("c0", status).problem
    assert problem.reason == "CrashLoopBackOff"
    assert problem.message.endswith("datanode ended with exit code 1: NameNotResolved: DNS has no address of master")


@pytest.mark.parametrize("reason", ["NameVolumeEmpty", "ForeignCluster"])
def test_a_volume_that_the_name_node_refuses_is_the_problem_also_between_restarts(reason):
    ended, backing_off = terminated(78, f"{reason}: the volume of the master"), waiting("CrashLoopBackOff")
    for status in (
        status_of("namenode", ended, ready=False),
        status_of("namenode", backing_off, ready=False, restarts=3, last=ended),
        status_of("namenode", ready=False, restarts=3, last=ended),
    ):
        problem = read_node("master", status, status_of("agent")).problem
        assert (problem.reason, problem.message) == (reason, "the volume of the master")


def test_a_name_node_that_accepted_its_volume_after_a_restart_has_no_problem():
    assert read_node("master", status_of("namenode", restarts=3, last=EMPTY)).problem is None


def test_another_end_of_the_name_node_and_another_containers_end_are_no_refusals():
    killed = terminated(137, "NameVolumeEmpty: x")
    assert read_node("master", status_of("namenode", ready=False, last=killed)).problem is None
    assert read_node("master", status_of("history", ready=False, last=EMPTY)).problem is None


def test_a_refusal_without_a_reason_counts_as_an_empty_volume():
    ended = terminated(78, "?")
    assert read_node("master", status_of("namenode", ended, ready=False)).problem.reason == "NameVolumeEmpty"


def test_a_client_of_a_job_is_no_node_of_the_cluster():
    assert read_node("c0", labels={"boathouse.dev/task-type": Role.CLIENT.value}) is None
