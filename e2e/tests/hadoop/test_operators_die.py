"""The operator is killed while a Hadoop cluster grows, while it drains a node, and while a job is submitted to it."""

import functools
import signal
from collections.abc import Callable

import pytest

from boathouse_e2e import faults
from e2e.tests import hadoop_harness, harness, replicas
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(2400)]

MOST = 6
GROWS = ("before-mrcluster.submit:2", "after-mrcluster.submit:2", "after-scheduler.create")
"""A leader comes to the submission when it begins, too."""
DRAINS = ("before-mrcluster.delete-pod", "after-mrcluster.delete-pod")
SUBMITS = ("before-mrjob.submit", "after-mrjob.submit", "before-mrjob.leave", "after-mrjob.leave")


@pytest.fixture
def lake(hadoop: Clusters) -> str:
    """A cluster of the size that its spec says, with a text in it."""
    name = hadoop.start("lake", transient={"maximum": MOST})
    hadoop.ready(name)
    hadoop_harness.fill(hadoop, name)
    replicas.wait_for_both(hadoop.cluster)
    return name


def harmed(clusters: Clusters, failpoint: str, act: Callable[[], object]) -> None:
    """Act while all replicas die at a failpoint; return when one has, with replicas that do not."""
    with replicas.unharmed_in_the_end(clusters.cluster):
        replicas.die_at(clusters.cluster, failpoint)
        act()
        replicas.wait_for_death(clusters.cluster, failpoint)
    replicas.wait_for_both(clusters.cluster)


def resize(clusters: Clusters, name: str, count: int) -> None:
    """Have a cluster keep so many transient nodes."""
    clusters.patch(name, transient={"minimum": count})


def kill_leader_once(clusters: Clusters, come: Callable[[], bool], what: str) -> None:
    """Kill the leader as soon as a moment has come."""
    harness.until(come, what, timeout_s=hadoop_harness.TIMEOUT_S, every_s=0.05)
    leader = replicas.leader(clusters.cluster)
    leader.send(signal.SIGKILL)
    replicas.wait_for_successor(clusters.cluster, leader.epoch)


def test_a_cluster_grows_to_its_size_with_an_operator_that_dies(hadoop: Clusters, lake: str) -> None:
    with faults.recording(hadoop.cluster) as recording:
        for count, failpoint in enumerate(GROWS, start=1):
            harmed(hadoop, failpoint, functools.partial(resize, hadoop, lake, count))
            hadoop.until_transient(lake, count)
        resize(hadoop, lake, len(GROWS) + 1)
        kill_leader_once(hadoop, lambda: bool(hadoop.look(lake).status.transient.pending), "the cluster grows")
        hadoop.until_transient(lake, len(GROWS) + 1)
        assert recording.hosts_used_twice() == []
        assert recording.over_commits() == []


def test_a_node_is_drained_by_an_operator_that_dies(hadoop: Clusters, lake: str) -> None:
    most = len(DRAINS) + 1
    resize(hadoop, lake, most)
    hadoop.until_transient(lake, most)
    core = hadoop_harness.restarts({host: pod for host, pod in hadoop.pods(lake).items() if not host.startswith("t")})
    for left, failpoint in zip((most - 1, most - 2), DRAINS, strict=True):
        harmed(hadoop, failpoint, functools.partial(resize, hadoop, lake, left))
        hadoop.until_transient(lake, left)
    resize(hadoop, lake, 0)
    kill_leader_once(hadoop, lambda: bool(hadoop.look(lake).status.leaving), "a node is drained")
    hadoop.until_transient(lake, 0)
    assert hadoop_harness.restarts(hadoop.pods(lake)) == core


def test_an_operator_that_dies_while_it_submits_submits_each_job_once(hadoop: Clusters, lake: str) -> None:
    jobs = {failpoint: failpoint.replace(".", "-") for failpoint in SUBMITS}
    for failpoint, name in jobs.items():
        harmed(hadoop, failpoint, functools.partial(hadoop.streaming, lake, name))
    for name in jobs.values():
        hadoop.succeed(name)
        assert hadoop.words(lake, f"/out-{name}") == harness.counted(TEXT)
    submitted = sorted(application["name"] for application in hadoop.applications(lake))
    assert submitted == sorted(jobs.values())
