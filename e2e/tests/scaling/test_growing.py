"""Jobs of each kind on a cluster that has no worker: a provisioner adds real nodes for them, and removes all again."""

import pytest

from e2e.tests import hadoop_harness, harness, spark_harness
from e2e.tests.hadoop_harness import Clusters
from e2e.tests.scaling.provisioner import WORKERS, Provisioner
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, squares, total

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

TEXT = harness.text(4_000_000)
ON_THE_NODE = {"volume": {"emptyDir": True}}
LARGE = {"requests": {"cpu": "900m", "memory": "256Mi"}, "limits": {"cpu": "1"}}
"""Two of these fit on a node."""


def test_an_mrjob_runs_from_no_node_to_its_end(place: harness.Place, provisioner: Provisioner) -> None:
    place.put("in/a.txt", TEXT)
    place.start("words", mapper={"command": ["python3", "mapper.py"], "resources": LARGE})
    place.succeed("words", spark_harness.TIMEOUT_S)
    assert harness.pairs(place.parts("words")) == harness.counted(TEXT)
    assert provisioner.added == WORKERS
    provisioner.until_empty()


def test_a_spark_application_gets_nodes_for_its_driver_and_its_minimum_of_executors(
    apps: Applications, provisioner: Provisioner
) -> None:
    squares(apps, "grown", executor={"instances": 3, "coreRequest": "700m", "memory": "512m"})
    app = apps.succeed("grown")
    assert (total(apps, "grown"), app.attempt) == (EXPECTED, 1)
    assert provisioner.added == WORKERS
    provisioner.until_empty()


def test_a_hadoop_cluster_runs_a_job_on_nodes_that_came_for_it(hadoop: Clusters, provisioner: Provisioner) -> None:
    core = {"count": 2, "resources": {"cpu": "600m", "memory": "1280Mi"}, **ON_THE_NODE}
    hadoop.start("lake", master=ON_THE_NODE, core=core)
    hadoop.ready("lake")
    assert provisioner.added == WORKERS
    hadoop_harness.fill(hadoop, "lake")
    hadoop.streaming("lake", "words")
    hadoop.succeed("words")
    assert hadoop.words("lake", "/out-words") == harness.counted(hadoop_harness.TEXT)
    hadoop.cluster.run("delete", "mrcluster", "lake", "-n", hadoop.place.namespace)
    provisioner.until_empty()
