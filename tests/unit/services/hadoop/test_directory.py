"""The directory of clusters, in which jobs and applications find the clusters of their namespace."""

import dataclasses

import pytest

from boathouse.resources.mrcluster import names
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop import MRCLUSTERS, ClusterFacts, Directory
from boathouse_policies.model import NodeName
from tests.builders.mrclusters import cluster_facts


@pytest.fixture
def directory() -> Directory:
    return Directory()


def test_the_kind_has_the_names_of_its_crd() -> None:
    assert (MRCLUSTERS.kind, MRCLUSTERS.plural) == (names.KIND, names.PLURAL)


def test_a_cluster_is_found_by_its_name_in_its_namespace_only(directory: Directory) -> None:
    directory.put(cluster_facts(name="lake", namespace="a"))
    assert directory.find("a", "lake") == cluster_facts(name="lake", namespace="a")
    assert directory.find("b", "lake") is None
    assert directory.find("a", "pond") is None


def test_a_cluster_has_the_addresses_of_its_master() -> None:
    facts = cluster_facts(name="lake", namespace="a")
    assert facts.name_node == "master.lake-nodes.a.svc:8020"
    assert facts.web_hdfs == "master.lake-nodes.a.svc:9870"


def test_a_host_is_on_the_node_of_its_pod(directory: Directory) -> None:
    directory.put(cluster_facts(hosts={"c0": "n7", "t12": "n3"}))
    assert directory.node_of("a", "c0.lake-nodes.a.svc") == NodeName("n7")
    assert directory.node_of("a", "t12.lake-nodes.a.svc") == NodeName("n3")
    assert directory.node_of("a", "c0.lake-nodes.a.svc.cluster.local") == NodeName("n7")


@pytest.mark.parametrize(
    "fqdn",
    ["c1.lake-nodes.a.svc", "c0.pond-nodes.a.svc", "c0", "", ".", "10.0.0.1", "c0.c0.lake-nodes.a.svc"],
)
def test_an_unknown_host_has_no_node(directory: Directory, fqdn: str) -> None:
    directory.put(cluster_facts(hosts={"c0": "n7"}))
    assert directory.node_of("a", fqdn) is None


def test_a_job_learns_no_nodes_of_a_cluster_in_another_namespace(directory: Directory) -> None:
    directory.put(cluster_facts(hosts={"c0": "n7"}))
    assert directory.node_of("b", "c0.lake-nodes.a.svc") is None


def test_a_deleted_cluster_is_unknown(directory: Directory) -> None:
    facts = cluster_facts(hosts={"c0": "n7"})
    directory.put(facts)
    directory.forget(facts.uid)
    directory.forget(facts.uid)
    assert directory.find("a", "lake") is directory.get(facts.uid) is None
    assert directory.node_of("a", "c0.lake-nodes.a.svc") is None


def test_a_cluster_that_is_created_again_replaces_its_predecessor(directory: Directory) -> None:
    before = cluster_facts(uid="1", hosts={"c0": "n7"})
    after = dataclasses.replace(cluster_facts(uid="2", hosts={"c0": "n8"}), domain="lake-2-nodes.a.svc")
    directory.put(before)
    directory.put(after)
    directory.forget(before.uid)
    assert directory.find("a", "lake") == after
    assert directory.node_of("a", "c0.lake-2-nodes.a.svc") == NodeName("n8")
    assert directory.node_of("a", "c0.lake-nodes.a.svc") is None


def test_subscribers_learn_of_each_change_once(directory: Directory) -> None:
    changed: list[ObjectUid] = []
    directory.subscribe(changed.append)
    facts = cluster_facts()
    moved = cluster_facts(hosts={"c0": "n8"})
    for cluster in (facts, facts, moved):
        directory.put(cluster)
    directory.forget(facts.uid)
    assert changed == [facts.uid] * 3


def test_a_subscriber_finds_the_new_facts(directory: Directory) -> None:
    found: list[ClusterFacts | None] = []
    directory.subscribe(lambda uid: found.append(directory.get(uid)))
    directory.put(cluster_facts())
    directory.forget(cluster_facts().uid)
    assert found == [cluster_facts(), None]


def test_a_cluster_is_in_use_until_the_last_job_has_ended(directory: Directory) -> None:
    lake, pond, a, b = map(ObjectUid, ("lake", "pond", "a", "b"))
    directory.use(a, [lake, pond])
    directory.use(b, [lake])
    assert (directory.users(lake), directory.users(pond)) == (2, 1)
    directory.use(a, [pond])
    directory.use(b, [])
    assert (directory.users(lake), directory.users(pond)) == (0, 1)
