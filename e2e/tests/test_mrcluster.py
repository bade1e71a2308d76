"""An MRCluster that runs jobs, on a real cluster. Those of `hadoop` need four nodes."""

from typing import Any

import pytest

from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = pytest.mark.cluster

OPTIONS = {
    "input": ["/lines"],
    "mapper": {"command": ["sh", "-c", 'echo "$my_name"; cat']},
    "reducer": None,
    "numReduceTasks": None,
    "files": None,
    "conf": {"my.name": "map"},
    "inputFormat": "NLineInputFormat",
    "linesPerMap": 2,
    "mapInputIgnoreKey": True,
    "outputSeparator": ",",
    "lazyOutput": True,
}
"""Fields that Hadoop carries out, as tasks of Boathouse do."""
NOWHERE = {"tests.boathouse.dev/none": "true"}
SHORT_TEXT = TEXT[: TEXT.index(b"\n", 2_000_000)]
"""Of two blocks, so two maps."""


def senders(clusters: Clusters) -> list[Any]:
    """Which pods of their namespace the NetworkPolicies let in; each policy lets in some."""
    found = clusters.cluster.get("networkpolicies", "-n", clusters.place.namespace)["items"]
    peers = [peer for policy in found for rule in policy["spec"]["ingress"] for peer in rule["from"]]
    return [peer["podSelector"] for peer in peers if "namespaceSelector" not in peer]


def test_a_hadoop_cluster_runs_a_streaming_job_and_a_jar_on_a_text_in_its_hdfs(hadoop: Clusters) -> None:
    hadoop.start("lake", core={"count": 2})
    cluster = hadoop.ready("lake")
    assert (cluster.status.core.text, cluster.status.hdfs["liveDataNodes"]) == ("2/2", 2)
    hadoop_harness.fill(hadoop, "lake", SHORT_TEXT)
    hadoop.streaming("lake", "commands")
    hadoop.succeed("commands")
    hadoop.example("lake", "jar", "wordcount", "/in", "/out-jar")
    hadoop.succeed("jar")
    assert hadoop.words("lake", "/out-commands") == hadoop.words("lake", "/out-jar") == harness.counted(SHORT_TEXT)
    hadoop.hdfs("lake").write("/lines/a", b"a\r\nb\rc\n")
    hadoop.streaming("lake", "options", **OPTIONS)
    hadoop.succeed("options")
    found = hadoop.hdfs("lake").files("/out-options")
    del found["_SUCCESS"]
    assert found == {"part-00000": b"map,\na,\nb,\n", "part-00001": b"map,\nc,\n"}


def test_who_reaches_a_hadoop_cluster_follows_its_spec(hadoop: Clusters) -> None:
    hadoop.start("lake", nodeSelector=NOWHERE)
    harness.until(lambda: len(senders(hadoop)) == 2 and {} in senders(hadoop), "pods of the namespace reach it")
    hadoop.patch("lake", networkPolicy="Cluster")
    harness.until(lambda: len(senders(hadoop)) == 2 and {} not in senders(hadoop), "only pods of jobs reach it")
    hadoop.patch("lake", networkPolicy="None")
    harness.until(lambda: not senders(hadoop), "it has no NetworkPolicies")
