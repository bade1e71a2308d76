"""Hadoop clusters grow and shrink: with their load, and by their weights where several want the same room."""

import re
import time
from typing import Any

import pytest

from boathouse_cli import mrclusters, mrjobs
from boathouse_e2e import faults
from e2e.tests import command_line, hadoop_harness, harness
from e2e.tests.hadoop_harness import Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(2400)]

MAPS = 24
MAPS_OF_A_CROWD = 60
WEIGHTS = {"heavy": 2, "light": 1}
GSP = {
    "policy": "GSP",
    "periodSeconds": 10,
    "growBy": 2,
    "shrinkBy": 1,
    "drainTimeoutSeconds": 900,  # so that no container is lost
}
GGP = {"policy": "GGP", "periodSeconds": 10, "offerNodes": 50}
SETTLED_S = 4 * 10
"""Periods of GGP after its last growth."""
SHORT_OF_ROOM: dict[str, Any] = {
    "master": {"resources": {"cpu": "500m"}},
    "core": {"resources": {"cpu": "300m", "memory": "1Gi"}},
    "transient": {"maximum": 20},
}
"""Two of these leave room for about seven transient nodes."""


def fill_with_lines(clusters: Clusters, name: str, files: int) -> None:
    """Store files of one line, for a map each."""
    hdfs = clusters.hdfs(name)
    for number in range(files):
        hdfs.write(f"/in/{number:03d}.txt", f"line {number}\n".encode())


def slow(clusters: Clusters, on: str, name: str, *, map_s: int, reduce_s: int = 0) -> str:
    """Start a job that copies lines, each map and the reduce in so many seconds. Maps log their hosts."""
    mapper = {"command": ["sh", "-c", f"cat; echo on $(uname -n) >&2; sleep {map_s}"]}
    reducer = {"command": ["sh", "-c", f"cat; sleep {reduce_s}"]}
    return clusters.streaming(on, name, mapper=mapper, reducer=reducer, files=None)


def check_undisturbed(clusters: Clusters, on: str, job: mrjobs.MRJob) -> None:
    """The application of a job lost no attempt."""
    found = clusters.history(on, job)
    assert (found["mapsCompleted"], found["reducesCompleted"]) == (MAPS, 1)
    for count in ("failedMapAttempts", "failedReduceAttempts", "killedMapAttempts", "killedReduceAttempts"):
        assert found[count] == 0, (count, found)


def test_a_cluster_grows_under_load_and_shrinks_again_without_a_lost_attempt(hadoop: Clusters) -> None:
    with faults.recording(hadoop.cluster) as recording:
        hadoop.start("lake", transient={"maximum": 3}, resizing=GSP)
        hadoop.ready("lake")
        fill_with_lines(hadoop, "lake", MAPS)
        slow(hadoop, "lake", "slow", map_s=15, reduce_s=90)
        harness.until(
            lambda: hadoop.look("lake").status.transient.ready >= 2,
            "the cluster grows",
            timeout_s=hadoop_harness.TIMEOUT_S,
        )
        print(hadoop.look("lake").status.size)
        job = hadoop.succeed("slow")
        cluster = hadoop.until_transient("lake", 0)
        check_undisturbed(hadoop, "lake", job)
        lines = sorted(b"".join(hadoop.hdfs("lake").files("/out-slow").values()).splitlines())
        assert [line.rstrip(b"\t") for line in lines] == sorted(b"line %d" % number for number in range(MAPS))
        logs = command_line.output(hadoop.place, "logs", "mrjob/slow")
        assert re.search(r" stderr: on t\d+$", logs, re.MULTILINE), "logs of nodes that have gone remain"
        for level in cluster.status.levels:
            print(f"{level.at_s - cluster.created_s:5.0f} s: {level.core} core, {level.transient} transient nodes")
        assert max(level.transient for level in cluster.status.levels) >= 2
        assert recording.hosts_used_twice() == []
        assert recording.over_commits() == []


def crowd(clusters: Clusters) -> None:
    """Bring up two clusters with more load than there is room for; they do not grow yet."""
    for name, weight in WEIGHTS.items():
        clusters.start(name, weight=weight, **SHORT_OF_ROOM)
    for name in WEIGHTS:
        clusters.ready(name)
        fill_with_lines(clusters, name, MAPS_OF_A_CROWD)
        slow(clusters, name, f"{name}-job", map_s=60)
    for name in WEIGHTS:
        clusters.running(f"{name}-job")


def has_settled(cluster: mrclusters.MRCluster) -> bool:
    """Whether a cluster has grown, and takes no more."""
    sizes, size = cluster.status.transient, cluster.status.size
    return bool(sizes.ready == sizes.wanted > 0 and size and time.time() - size.at_s > SETTLED_S)


def test_two_clusters_share_the_room_for_transient_nodes_by_their_weights(hadoop: Clusters) -> None:
    crowd(hadoop)
    # Both at once: who is offered nodes alone takes all of them.
    hadoop.cluster.apply(
        *(hadoop.manifest(name, weight=weight, resizing=GGP, **SHORT_OF_ROOM) for name, weight in WEIGHTS.items())
    )

    def settled() -> tuple[mrclusters.MRCluster, mrclusters.MRCluster] | None:
        heavy, light = hadoop.look("heavy"), hadoop.look("light")
        return (heavy, light) if has_settled(heavy) and has_settled(light) else None

    heavy, light = harness.until(settled, "both have grown", timeout_s=hadoop_harness.TIMEOUT_S)
    print(heavy.status, light.status, sep="\n")
    total = heavy.status.transient.wanted + light.status.transient.wanted
    assert total >= 3
    assert abs(heavy.status.transient.wanted - total * 2 / 3) <= 1, "nodes are whole"
    for name in WEIGHTS:
        hadoop.cluster.run("delete", "mrjob", f"{name}-job", "-n", hadoop.place.namespace, "--wait=false")
    for name in WEIGHTS:
        hadoop.until_transient(name, 0)
