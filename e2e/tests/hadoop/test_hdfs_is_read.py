"""The HDFS of a Hadoop cluster is read by others: by maps of MRJobs near its blocks, and by Spark."""

import collections

import pytest

from e2e.tests import hadoop_harness, harness, spark_harness
from e2e.tests.hadoop_harness import TEXT, Clusters
from e2e.tests.spark_harness import Applications

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

FILES = 24
SIZE_BYTES = 1_000_000
"""A block, and so a map."""
TINY = {"requests": {"cpu": "40m", "memory": "96Mi"}, "limits": {"cpu": "1"}}
"""All maps fit on one node, so every node has room for those that it has the blocks of."""
SAYS_WHERE = 'cat >/dev/null; printf \'%s\\t%s\\n\' "$(uname -n)" "$mapreduce_map_input_file"'


def test_maps_run_on_the_nodes_of_the_only_replicas_of_their_blocks(hadoop: Clusters) -> None:
    hadoop.start("lake", hdfs={"replication": 1})
    hadoop.ready("lake")
    hdfs = hadoop.hdfs("lake")
    for number in range(FILES):
        hdfs.write(f"/in/{number:02d}", TEXT[:SIZE_BYTES])
    mapper = {"command": ["sh", "-c", SAYS_WHERE], "resources": TINY}
    urls = {"input": ["hdfs://lake/in"], "output": "hdfs://lake/out"}
    hadoop.place.start("near", mapper=mapper, reducer=None, numReduceTasks=None, storage=None, **urls)
    job = hadoop.succeed("near")
    assert job.maps.total == FILES
    cores = {host: pod["spec"]["nodeName"] for host, pod in hadoop.pods("lake").items()}
    maps = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in hadoop.place.raw_pods("near")}
    local_bytes, of_nodes = 0, collections.Counter[str]()
    parts = [data for name, data in hdfs.files("/out").items() if name.startswith("part-")]
    for line in b"".join(parts).decode().splitlines():
        pod, url = line.split("\t")
        ((host,),) = hdfs.block_hosts(url.removeprefix("hdfs://lake"))
        of_nodes[cores[host]] += 1
        local_bytes += SIZE_BYTES if maps[pod] == cores[host] else 0
    nodes = len(hadoop.cluster.workers())
    print(f"{local_bytes} of {FILES * SIZE_BYTES} bytes are read from the map's node; a random placement: 1 of {nodes}")
    print(f"blocks of the nodes: {dict(of_nodes)}")
    assert sum(of_nodes.values()) == FILES
    assert local_bytes >= 0.9 * FILES * SIZE_BYTES


def test_spark_reads_and_writes_the_hdfs_of_a_cluster(hadoop: Clusters, apps: Applications) -> None:
    hadoop.start("lake")
    hadoop.ready("lake")
    hadoop_harness.fill(hadoop, "lake")
    program = apps.program((spark_harness.FOLDER / "wordcount.py").read_text())
    arguments = ["hdfs://lake/in", "hdfs://lake/out"]
    apps.start("words", mainApplicationFile=program, arguments=arguments, hadoopClusters=["lake"], storage=None)
    apps.succeed("words")
    assert hadoop.words("lake", "/out") == harness.counted(TEXT)
