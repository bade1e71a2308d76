"""Whether the volume of a host can still be mounted somewhere."""

import dataclasses

import msgspec

from boathouse.cluster import views
from boathouse.scheduling.volumes import rules
from boathouse.services.mrcluster.objects import claim_facts
from boathouse.services.mrcluster.planning.observation import ClaimFacts
from boathouse_policies import model

KEY = "demo/etl-c0"
NODES = [
    model.Node(name=model.NodeName(name), allocatable=model.Resources(), labels={"kubernetes.io/hostname": name})
    for name in ("n1", "n2")
]


def facts_of(*, bound=True, nodes=NODES, on=()):
    annotations = {views.BIND_COMPLETED: "yes"} if bound else {}
    claim = {"metadata": {"name": "etl-c0", "annotations": annotations}, "spec": {"volumeName": "v" if bound else ""}}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(on)}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if on else {}
    objects = dataclasses.replace(
        rules.Storage(),
        claims={KEY: msgspec.convert(claim, views.ClaimView)},
        volumes={"v": msgspec.convert({"metadata": {"name": "v"}, "spec": affinity}, views.VolumeView)},
    )
    return claim_facts(objects, nodes, KEY)


def test_a_volume_of_the_network_is_reachable_wherever_nodes_are():
    assert facts_of() == ClaimFacts(is_bound=True)
    assert not facts_of(nodes=[]).is_lost


def test_a_volume_on_a_node_is_lost_with_the_node():
    assert facts_of(on=["n2"]) == ClaimFacts(is_bound=True, is_tied=True, node_exists=True)
    assert facts_of(on=["n3"]).is_lost


def test_a_claim_without_a_volume_is_not_lost():
    assert facts_of(bound=False) == ClaimFacts()


def test_a_claim_that_does_not_exist_has_no_facts():
    assert claim_facts(rules.Storage(), NODES, KEY) is None
