"""What a custom resource says, with every default decided."""

import pytest

from boathouse.resources.config import HadoopDefaults
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.model import Requests
from tests.builders.mrclusters import cluster, cluster_refusal

GIB = 1024**3


def test_an_empty_spec_is_a_cluster_of_three_core_nodes():
    found = cluster()
    assert (found.spec.core.count, found.most_core_nodes, found.replication) == (3, 3, 3)
    assert found.spec.transient.maximum == 0
    assert found.requests[Role.MASTER] == Requests(cpu_milli=500, memory_bytes=2 * GIB)
    assert found.requests[Role.CORE] == found.requests[Role.TRANSIENT] == Requests(cpu_milli=1000, memory_bytes=2 * GIB)


def test_the_image_of_the_spec_wins():
    assert cluster(image="mine:1").image == "mine:1"
    assert cluster().image == "localhost/hadoop:test"


def test_without_any_image_the_cluster_is_refused():
    assert "set spec.image" in cluster_refusal(defaults=HadoopDefaults()).message


def test_a_small_cluster_has_as_many_copies_as_core_nodes():
    assert cluster(core={"count": 2}).replication == 2


def test_the_replication_stays_when_the_cluster_grows():
    assert cluster(core={"count": 5}, status={"firstCoreNodes": 1}).replication == 1


@pytest.mark.parametrize("first", [None, "3", -1, {}])
def test_a_status_that_cannot_be_read_leaves_the_replication_to_the_spec(first):
    assert cluster(status={"firstCoreNodes": first}).replication == 3


def test_the_replication_of_the_spec_wins():
    assert cluster(hdfs={"replication": 2}, status={"firstCoreNodes": 1}).replication == 2


def test_a_queue_that_does_not_exist_is_refused():
    assert cluster_refusal(queue="nowhere").reason == "QueueNotFound"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("core", {"resources": {"memory": "much"}}),
        ("master", {"volume": {"size": "1e99999999999999999999x"}}),
        ("hdfs", {"blockSize": "big"}),
        ("core", {"scratch": "x"}),
        ("transient", {"scratch": "x"}),
        ("core", {"count": "three"}),
    ],
)
def test_what_the_crd_would_refuse_is_refused_here_too(field, value):
    assert cluster_refusal(**{field: value}).reason == "InvalidSpec"
