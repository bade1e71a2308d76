"""What happens to one Hadoop cluster leaves another one alone, though both are on the same nodes."""

import pytest

from boathouse.resources.mrcluster.names import ConditionType, Reason
from boathouse_e2e import errors
from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

IN_MEMORY = {"emptyDir": True, "medium": "Memory", "size": "64Mi"}
LESS_CPU = {"cpu": "400m"}
"""Of one of the clusters: with two full ones, no node has room for the client of a job."""
CHUNK = bytes(8 * 1024 * 1024)
MOST_CHUNKS = 30
"""Three volumes of 64 MiB have no room for so many."""


def serves_with_another_version(clusters: Clusters, name: str) -> bool:
    """Whether a cluster is up, and says that its image is not of the version of its spec."""
    found = clusters.look(name)
    is_up = found.holds(ConditionType.READY) and not found.core.pending
    return is_up and found.reason == Reason.VERSION_MISMATCH


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
    core = {"resources": {**LESS_CPU, "memory": "1344Mi"}, "volume": IN_MEMORY}
    hadoop.start("bad", version="3.4.1", master={"resources": LESS_CPU}, core=core, hdfs={"replication": 1})
    hadoop.start("good")
    hadoop.ready("good")
    harness.until(
        lambda: serves_with_another_version(hadoop, "bad"), "the other one is up", timeout_s=hadoop_harness.TIMEOUT_S
    )
    hadoop_harness.fill(hadoop, "good")
    before = hadoop_harness.restarts(hadoop.pods("good"))
    fill_up(hadoop, "bad")
    check_works(hadoop, "good", "beside-a-full-disk")
    hadoop.kill("bad", *hadoop.pods("bad"))
    check_works(hadoop, "good", "beside-a-crash")
    assert hadoop_harness.restarts(hadoop.pods("good")) == before
    assert hadoop.look("good").phase == "Ready"
