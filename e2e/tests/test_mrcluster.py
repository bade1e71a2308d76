"""An MRCluster that runs jobs, on a real cluster. Those of `hadoop` need four nodes."""

import pytest

from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = pytest.mark.cluster


def test_a_hadoop_cluster_runs_a_streaming_job_and_a_jar_on_a_text_in_its_hdfs(hadoop: Clusters) -> None:
    hadoop.start("lake", core={"count": 2})
    cluster = hadoop.ready("lake")
    assert (cluster.core.text, cluster.hdfs["liveDataNodes"]) == ("2/2", 2)
    hadoop_harness.fill(hadoop, "lake")
    hadoop.streaming("lake", "commands")
    hadoop.succeed("commands")
    hadoop.example("lake", "jar", "wordcount", "/in", "/out-jar")
    hadoop.succeed("jar")
    assert hadoop.words("lake", "/out-commands") == hadoop.words("lake", "/out-jar") == harness.counted(TEXT)
