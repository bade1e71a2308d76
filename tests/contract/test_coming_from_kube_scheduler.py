"""Rows of docs/coming-from-kube-scheduler.md: where the two schedulers differ, both answers."""

from __future__ import annotations

import itertools

import pytest

from boathouse.cluster import client, config
from tests.contract.predicates import comparison, generator

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]

NAMES = (f"from-{number}" for number in itertools.count())
PORTWORX = "kubernetes.io/portworx-volume"


def node(name, *, ready=True, **allocatable):
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "110", **allocatable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name, cpu="100m", **spec):
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    spec = {"automountServiceAccountToken": False, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def portworx(volume):
    return [{"name": "data", "portworxVolume": {"volumeID": volume}}]


async def answers(cluster, of_node, probe, *, held=(), csi_node=None):
    """Whether kube-scheduler and Boathouse place the probe on the node."""
    case = generator.Case(
        number=0,
        features=frozenset(),
        nodes=(of_node,),
        csi_nodes=() if csi_node is None else (csi_node,),
        held=held,
        probe=probe,
        volume=None,
        claim=None,
    )
    async with client.ApiClient(config.from_kubeconfig(cluster.kubeconfig)) as api:
        await comparison.prepare(api)
        async with comparison.boathouse(api):
            both = comparison.Comparison(api, "default", [case])
            await both.set_up()
            found = [await both.ask(which) for which in (comparison.KUBE, comparison.OURS)]
            await both.clear()
    return tuple(not refusal for refusals in found for refusal in refusals.values())


async def test_a_node_that_is_not_ready_is_refused_without_a_taint(bare_control_plane):
    name = next(NAMES)
    assert await answers(bare_control_plane, node(name, ready=False), pod("probe")) == (True, False)


async def test_room_nominated_for_pods_of_all_schedulers_is_left_to_them(bare_control_plane):
    name = next(NAMES)
    waiting = pod(f"{name}-waiting", cpu="900m", schedulerName="other")
    status = {"phase": "Pending", "nominatedNodeName": name}
    held = (generator.Held(manifest=waiting, status=status, deleted=False),)
    assert await answers(bare_control_plane, node(name), pod("probe", cpu="500m"), held=held) == (True, False)


async def test_portworx_volumes_are_not_counted(bare_control_plane):
    name = next(NAMES)
    running = pod(f"{name}-running", nodeName=name, volumes=portworx("a"))
    held = (generator.Held(manifest=running, status={"phase": "Running"}, deleted=False),)
    driver = {"name": "pxd.portworx.com", "nodeID": name, "allocatable": {"count": 1}}
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": PORTWORX}
    csi_node = {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": [driver]}}
    probe = pod("probe", volumes=portworx("b"))
    assert await answers(bare_control_plane, node(name), probe, held=held, csi_node=csi_node) == (False, True)
