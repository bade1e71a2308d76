"""Clusters in the properties of an application."""

from boathouse.services.sparkapp import objects
from tests.builders.mrclusters import cluster_facts
from tests.builders.sparkapps import ATTEMPT, app


def test_a_cluster_is_a_nameservice_of_its_name():
    before = objects.properties(app(), ATTEMPT)
    added = objects.properties(app(), ATTEMPT, [cluster_facts()]).items() - before.items()
    assert dict(added) == {
        "spark.hadoop.dfs.nameservices": "lake",
        "spark.hadoop.dfs.ha.namenodes.lake": "nn",
        "spark.hadoop.dfs.namenode.rpc-address.lake.nn": "master.lake-nodes.a.svc:8020",
        "spark.hadoop.dfs.client.failover.proxy.provider.lake": "org.apache.hadoop.hdfs.server.namenode.ha."
        "ConfiguredFailoverProxyProvider",
        "spark.hadoop.dfs.client.use.datanode.hostname": "true",
    }


def test_several_clusters_and_those_of_the_user_are_all_seen():
    conf = {"spark.hadoop.dfs.nameservices": "theirs, lake", "spark.hadoop.dfs.ha.namenodes.theirs": "a,b"}
    found = objects.properties(app(sparkConf=conf), ATTEMPT, [cluster_facts(), cluster_facts(uid="u-2", name="pond")])
    assert found["spark.hadoop.dfs.nameservices"] == "theirs,lake,pond"
    assert found["spark.hadoop.dfs.ha.namenodes.theirs"] == "a,b"
    assert found["spark.hadoop.dfs.namenode.rpc-address.pond.nn"] == "master.pond-nodes.a.svc:8020"


def test_without_clusters_nothing_changes():
    assert not any("dfs" in key for key in objects.properties(app(), ATTEMPT))
