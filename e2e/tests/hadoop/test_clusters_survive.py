"""Nodes of a Hadoop cluster are killed: nothing in its HDFS is lost, and its jobs go on."""

from typing import Any

import pytest

from boathouse_e2e import hadoop_web
from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import CORES, TEXT, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

SLOW_MAPPER = {"command": ["sh", "-c", "sleep 45; exec python3 mapper.py"]}
ON_CLAIMS: dict[str, Any] = {}
ON_THE_NODE: dict[str, Any] = {"volume": {"emptyDir": True}}


def until_whole(clusters: Clusters, name: str) -> None:
    """Wait until HDFS has all nodes and all replicas again."""

    def whole() -> bool:
        figures = clusters.look(name).status.hdfs
        healthy = (figures.get("missingBlocks"), figures.get("underReplicatedBlocks")) == (0, 0)
        return healthy and figures["liveDataNodes"] == CORES

    clusters.ready(name)
    harness.until(whole, f"mrcluster/{name} has all replicas", timeout_s=hadoop_harness.TIMEOUT_S)


@pytest.mark.parametrize(
    "core", [pytest.param(ON_CLAIMS, id="with-its-volume"), pytest.param(ON_THE_NODE, id="without-its-volume")]
)
def test_a_killed_core_node_is_created_again_and_no_data_are_lost(hadoop: Clusters, core: dict[str, Any]) -> None:
    hadoop.start("lake", core=core)
    hadoop.ready("lake")
    hadoop_harness.fill(hadoop, "lake")
    before = hadoop.hdfs("lake").files("/in")
    hadoop.kill("lake", hadoop.hdfs("lake").block_hosts("/in/a.txt")[0][0])
    hadoop.streaming("lake", "meanwhile")
    hadoop.succeed("meanwhile")
    assert hadoop.words("lake", "/out-meanwhile") == harness.counted(TEXT)
    until_whole(hadoop, "lake")
    assert hadoop.hdfs("lake").files("/in") == before


def test_hdfs_and_a_running_job_go_on_after_the_pod_of_the_master_is_killed(hadoop: Clusters) -> None:
    hadoop.start("lake")
    hadoop.ready("lake")
    hadoop_harness.fill(hadoop, "lake")
    cluster_id = hadoop.raw("lake")["status"]["clusterID"]
    hadoop.streaming("lake", "through", mapper=SLOW_MAPPER)
    running = hadoop.running("through")
    hadoop.kill("lake", hadoop_web.MASTER)
    job = hadoop.succeed("through")
    assert [application.id for application in job.applications] == [
        application.id for application in running.applications
    ]
    assert hadoop.words("lake", "/out-through") == harness.counted(TEXT)
    until_whole(hadoop, "lake")
    assert hadoop.raw("lake")["status"]["clusterID"] == cluster_id
