"""What happens to one Hadoop cluster leaves another one alone, though both are on the same nodes."""

import pytest

from boathouse.resources.mrcluster.names import ConditionType
from boathouse_e2e import errors, images
from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

IN_MEMORY = {"emptyDir": True, "medium": "Memory", "size": "64Mi"}
LESS_CPU = {"cpu": "400m"}
"""Of one of the clusters: with two full ones, no node has room for the client of a job."""
CHUNK = bytes(8 * 1024 * 1024)
MOST_CHUNKS = 30
"""Three volumes of 64 MiB have no room for so many."""


def check_works(clusters: Clusters, name: str, job: str) -> None:
    """A cluster counts words."""
    clusters.streaming(name, job)
    clusters.succeed(job)
    assert clusters.words(name, f"/out-{job}") == harness.counted(TEXT)


def fill_up(clusters: Clusters, name: str) -> None:
    """Write to the HDFS of a cluster until it is full."""
    hdfs = clusters.hdfs(name)
    for number in range(MOST_CHUNKS):
        try:
            hdfs.write(f"/ballast/{number}", CHUNK)
        except errors.ClusterError as error:
            print(f"after {number} files of {len(CHUNK)} bytes: {error}")
            return
    raise AssertionError(f"{MOST_CHUNKS} files of {len(CHUNK)} bytes have room")


def test_a_full_disk_and_a_crash_of_a_cluster_of_another_version_leave_its_neighbour_alone(hadoop: Clusters) -> None:
    images.load(hadoop.cluster, [images.OLDER_HADOOP])
    other = {"image": images.OLDER_HADOOP, "version": "3.3.5", "hdfs": {"replication": 1}}
    core = {"resources": {**LESS_CPU, "memory": "1344Mi"}, "volume": IN_MEMORY}
    hadoop.start("older", **other, master={"resources": LESS_CPU}, core=core)
    hadoop.start("newer")
    for name in ("newer", "older"):
        assert not hadoop.ready(name).holds(ConditionType.DEGRADED)  # as it is if its image has another version
        hadoop_harness.fill(hadoop, name)
        check_works(hadoop, name, f"on-the-{name}")
    before = hadoop_harness.restarts(hadoop.pods("newer"))
    fill_up(hadoop, "older")
    check_works(hadoop, "newer", "beside-a-full-disk")
    hadoop.kill("older", *hadoop.pods("older"))
    check_works(hadoop, "newer", "beside-a-crash")
    assert hadoop_harness.restarts(hadoop.pods("newer")) == before
    assert hadoop.look("newer").phase == "Ready"
