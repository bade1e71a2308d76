"""From the API's pods to the nodes of a cluster, and why the NameNode does not start."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrcluster import names as cluster_names
from boathouse.resources.mrcluster.names import Role
from boathouse.scheduling import transforms
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.pods import reader
from boathouse.services.mrcluster.settings import files
from tests.unit.services.mrcluster import test_pods
from tests.unit.services.mrcluster.builders import cluster

TRANSFORM_POD = transforms.pods(names.SCHEDULER_NAME, labels=cluster_names.POD_LABELS, containers=reader.CONTAINERS)
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:20Z"}}
EMPTY = {"terminated": {"exitCode": 78, "message": "NameVolumeEmpty: the volume of the master is empty"}}


def container(name, state=None, *, ready=True, restarts=0, last=None):
    fields = {"name": name, "state": RUNNING if state is None else state, "ready": ready, "restartCount": restarts}
    return fields | ({"lastState": last} if last else {})


def look(host="c0", *statuses, node="n1", phase="Running", labels=None, **metadata):
    """The node of a pod as the operator makes it, with these statuses of its containers."""
    manifest = test_pods.pod(host)
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    manifest["metadata"]["labels"] |= labels or {}
    manifest["spec"] |= {"nodeName": node} if node else {}
    manifest["status"] = {"phase": phase, "containerStatuses": list(statuses), "podIP": "10.0.0.7"}
    return reader.node_pod(TRANSFORM_POD(msgspec.convert(manifest, wire.PodView)))


@pytest.mark.parametrize("host", ["master", "c0", "t17"])
def test_a_pod_that_the_operator_makes_is_a_node(host):
    pod = look(host, container(reader.AGENT))
    assert (pod.host, pod.role, pod.number) == (host, naming.role_of(host), naming.number_of(host))
    assert (pod.node, pod.address, pod.life) == ("n1", "10.0.0.7", PodLife.RUNNING)
    assert pod.settings == files.render(cluster()).digest
    assert pod.resources.memory_bytes > 0
    assert pod.created_s == 1767225600.0


def test_every_container_that_the_operator_makes_is_read():
    made = {each["name"] for host in ("master", "c0", "t17") for each in test_pods.pod(host)["spec"]["containers"]}
    assert made == reader.CONTAINERS


@pytest.mark.parametrize(
    "labels", [{"boathouse.dev/host": "c01"}, {"boathouse.dev/host": "t1"}, {"boathouse.dev/task-type": "map"}]
)
def test_a_pod_whose_labels_do_not_agree_is_no_node(labels):
    assert look("c0", labels=labels) is None


def test_a_pod_without_a_node_of_kubernetes_is_unplaced():
    pod = look(node="", phase="Pending")
    assert (pod.life, pod.node, pod.placed_s, pod.is_ready) == (PodLife.UNPLACED, None, None, False)


def test_a_node_is_ready_once_all_of_its_containers_are():
    assert look("c0", container("datanode"), container("nodemanager")).is_ready
    assert not look("c0", container("datanode"), container("nodemanager", ready=False)).is_ready
    assert not look("c0").is_ready


def test_restarts_of_all_containers_count():
    assert look("c0", container("datanode", restarts=2), container("nodemanager", restarts=1)).restarts == 3


def test_a_pod_that_was_deleted_or_has_ended_serves_no_more():
    assert look(deletionTimestamp="2026-01-01T00:01:00Z").is_over
    assert look(phase="Failed").is_over


def test_an_image_that_cannot_be_pulled_is_the_problem():
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    pod = look("c0", container("datanode", waiting, ready=False), phase="Pending")
    assert (pod.life, pod.problem.reason) == (PodLife.STARTING, "ImagePullFailed")


def test_a_daemon_that_ends_again_and_again_is_the_problem_with_its_last_words():
    ended = {"terminated": {"exitCode": 1, "message": "NameNotResolved: DNS has no address of master\n"}}
    status = container("datanode", {"waiting": {"reason": "CrashLoopBackOff"}}, ready=False, last=ended)
    problem = look("c0", status).problem
    assert problem.reason == "CrashLoopBackOff"
    assert problem.message.endswith("datanode ended with exit code 1: NameNotResolved: DNS has no address of master")


@pytest.mark.parametrize("reason", ["NameVolumeEmpty", "ForeignCluster"])
def test_a_volume_that_the_name_node_refuses_is_the_problem_also_between_restarts(reason):
    ended = {"terminated": {"exitCode": 78, "message": f"{reason}: the volume of the master"}}
    backing_off = {"waiting": {"reason": "CrashLoopBackOff"}}
    for status in (
        container("namenode", ended, ready=False),
        container("namenode", backing_off, ready=False, restarts=3, last=ended),
        container("namenode", ready=False, restarts=3, last=ended),
    ):
        problem = look("master", status, container("agent")).problem
        assert (problem.reason, problem.message) == (reason, "the volume of the master")


def test_a_name_node_that_accepted_its_volume_after_a_restart_has_no_problem():
    assert look("master", container("namenode", restarts=3, last=EMPTY)).problem is None


def test_another_end_of_the_name_node_and_another_containers_end_are_no_refusals():
    killed = {"terminated": {"exitCode": 137, "message": "NameVolumeEmpty: x"}}
    assert look("master", container("namenode", ready=False, last=killed)).problem is None
    assert look("master", container("history", ready=False, last=EMPTY)).problem is None


def test_a_refusal_without_a_reason_counts_as_an_empty_volume():
    ended = {"terminated": {"exitCode": 78, "message": "?"}}
    assert look("master", container("namenode", ended, ready=False)).problem.reason == "NameVolumeEmpty"


def test_a_client_of_a_job_is_no_node_of_the_cluster():
    assert look("c0", labels={"boathouse.dev/task-type": Role.CLIENT.value}) is None
