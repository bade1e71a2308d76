"""Whether the volume of a host can still be mounted somewhere."""

import dataclasses

import msgspec

from boathouse.cluster import views
from boathouse.scheduling.volumes import rules
from boathouse.services.mrcluster.objects import is_lost
from boathouse_policies import model

KEY = "demo/etl-c0"
NODES = [
    model.Node(name=model.NodeName(name), allocatable=model.Resources(), labels={"kubernetes.io/hostname": name})
    for name in ("n1", "n2")
]


def is_lost_claim(*, bound=True, nodes=NODES, on=()):
    annotations = {views.BIND_COMPLETED: "yes"} if bound else {}
    claim = {"metadata": {"name": "etl-c0", "annotations": annotations}, "spec": {"volumeName": "v" if bound else ""}}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(on)}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if on else {}
    objects = dataclasses.replace(
        rules.Storage(),
        claims={KEY: msgspec.convert(claim, views.ClaimView)},
        volumes={"v": msgspec.convert({"metadata": {"name": "v"}, "spec": affinity}, views.VolumeView)},
    )
    return is_lost(objects, nodes, KEY)


def test_a_volume_of_the_network_is_reachable_wherever_nodes_are():
    assert not is_lost_claim()
    assert not is_lost_claim(nodes=[])


def test_a_volume_on_a_node_is_lost_with_the_node():
    assert not is_lost_claim(on=["n2"])
    assert is_lost_claim(on=["n3"])


def test_a_claim_without_a_volume_is_not_lost():
    assert not is_lost_claim(bound=False, nodes=[])


def test_a_claim_that_does_not_exist_is_not_lost():
    assert not is_lost(rules.Storage(), NODES, KEY)
