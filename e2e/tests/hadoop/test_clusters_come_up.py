"""A Hadoop cluster of three core nodes comes up, each on a node of its own; where the time goes is printed."""

import pytest

from boathouse.resources.mrcluster.names import ConditionType
from e2e.tests import hadoop_times, harness
from e2e.tests.hadoop_harness import CORES, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

SLOTS = 2 * CORES


def test_three_core_nodes_come_up_on_nodes_of_their_own(hadoop: Clusters) -> None:
    hadoop.start("lake")
    cluster = hadoop.ready("lake")
    harness.until(lambda: hadoop.look("lake").status.slots == SLOTS, "all NodeManagers are registered")
    print(hadoop_times.measured(hadoop, "lake"))
    pods = hadoop.pods("lake")
    assert sorted(pods) == ["c0", "c1", "c2", "master"]
    assert len({pods[f"c{number}"]["spec"]["nodeName"] for number in range(CORES)}) == CORES
    assert cluster.status.hdfs["liveDataNodes"] == CORES
    assert not cluster.holds(ConditionType.DEGRADED)
    assert hadoop.raw("lake")["status"]["clusterID"] == f"CID-{cluster.uid}"
