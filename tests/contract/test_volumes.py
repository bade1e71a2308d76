"""Pods with claims, on a real API server with its volume controller, bound by Boathouse's scheduler."""

from __future__ import annotations

import contextlib
import uuid

import pytest

from boathouse.cluster import catalogue, errors, informer, views
from boathouse.scheduling.options import Options
from tests.contract.predicates import comparison

pytestmark = pytest.mark.apiserver

NODES = [f"kwok-{i}" for i in range(4)]


class World:
    """A namespace in which Boathouse runs, and the storage that a test makes; all names are of this test alone."""

    def __init__(self, api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.tag = uuid.uuid4().hex[:6]
        self.watches: dict[str, informer.Informer] = {}

    def knows(self, plural: str, *keys: str) -> bool:
        """Whether the scheduler has seen these: each kind has its watch, and none waits for another."""
        return all(self.watches[plural].get(key) for key in keys)

    async def storage_class(self, *, provisioner: str = views.NO_PROVISIONER, **more) -> str:
        name = f"class-{self.tag}"
        manifest = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await self.api.create(views.CLASSES.untyped(), manifest | more)
        return name

    async def volume(
        self, name: str, by: str, *, node: str = "", labels=None, mode: str = "ReadWriteOnce", **more
    ) -> str:
        name = f"{name}-{self.tag}"
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": [mode]}
        spec |= {"storageClassName": by, "hostPath": {"path": "/volume"}}
        if node:
            here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        if "csi" in more:
            del spec["hostPath"]
        manifest = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec | more}
        await self.api.create(views.VOLUMES.untyped(), manifest)
        return name

    def claim_spec(self, by: str, *, mode: str = "ReadWriteOnce", size: str = "1Gi", volume: str = "") -> dict:
        spec = {"storageClassName": by, "accessModes": [mode], "resources": {"requests": {"storage": size}}}
        return spec | ({"volumeName": volume} if volume else {})

    async def claim(self, name: str, by: str, **more) -> None:
        manifest = {"metadata": {"name": name}, "spec": self.claim_spec(by, **more)}
        await self.api.create(views.CLAIMS.untyped(), manifest, self.namespace)

    async def pod(self, name: str, *claims: str, **spec) -> None:
        sources = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} for i, one in enumerate(claims)]
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
        whole = {"schedulerName": "boathouse", "containers": [container], "volumes": sources} | spec
        await self.api.create(catalogue.PODS.untyped(), {"metadata": {"name": name}, "spec": whole}, self.namespace)

    async def node_of(self, pod: str) -> str:
        return (await self.api.get(catalogue.PODS, pod, self.namespace)).spec.node_name

    async def refusal(self, pod: str) -> str:
        found = (await self.api.get(catalogue.PODS, pod, self.namespace)).condition("PodScheduled")
        return f"{found.reason}: {found.message}" if found is not None and found.status == "False" else ""

    async def selected(self, claim: str) -> str:
        found = await self.api.get(views.CLAIMS, claim, self.namespace)
        return found.metadata.annotations.get(views.SELECTED_NODE, "")

    async def bind(self, claim: str) -> None:
        """Do the part of a provisioner: make the volume on the node that was selected."""
        known = await self.api.get(views.CLAIMS, claim, self.namespace)
        node = known.metadata.annotations[views.SELECTED_NODE]
        reference = {"namespace": self.namespace, "name": claim, "uid": known.metadata.uid}
        reference |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        await self.volume(f"made-{claim}", known.storage_class, node=node, claimRef=reference)


@pytest.fixture
async def world(api, namespace):
    options = Options(namespaces=frozenset({namespace}), pending_ahead=0)
    made = World(api, namespace)
    async with comparison.boathouse(api, options=options) as parts:
        made.watches = parts.storage
        yield made
    for kind in (views.VOLUMES, views.CLASSES):
        for one in (await api.list(kind)).items:
            if one.metadata.name.endswith(made.tag):
                with contextlib.suppress(errors.NotFound):
                    await api.delete(kind, one.metadata.name)


async def test_pods_of_a_stateful_set_go_where_a_local_volume_is_at_hand(world, eventually):
    by = await world.storage_class()
    for node in ("kwok-1", "kwok-3"):
        await world.volume(node, by, node=node)
    template = {"metadata": {"name": "data"}, "spec": world.claim_spec(by)}
    container = {"name": "c", "image": "none"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "db"}},
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [template],
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"schedulerName": "boathouse", "containers": [container]},
        },
    }
    sets = catalogue.Resource(group="apps", plural="statefulsets", kind="StatefulSet", view=dict)
    await world.api.create(sets, {"metadata": {"name": "db"}, "spec": spec}, world.namespace)

    async def placed() -> bool:
        pods = (await world.api.list(catalogue.PODS, world.namespace)).items
        return sorted(one.spec.node_name for one in pods) == ["kwok-1", "kwok-3"]

    await eventually(placed)
    assert all(one.is_bound for one in (await world.api.list(views.CLAIMS, world.namespace)).items)


async def test_a_claim_is_provisioned_where_the_class_allows_and_the_pod_waits_for_it(world, eventually):
    topology = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["kwok-2"]}]}]
    by = await world.storage_class(provisioner="example.com/test", allowedTopologies=topology)
    await world.claim("data", by)
    await world.pod("p", "data")

    async def asked() -> bool:
        return await world.selected("data") == "kwok-2"

    async def placed() -> bool:
        return await world.node_of("p") == "kwok-2"

    await eventually(asked)
    await world.pod("later")
    await eventually(lambda: world.node_of("later"))
    assert not await placed()
    await world.bind("data")
    await eventually(placed)


async def test_a_provisioner_that_gives_a_node_up_gets_another(world, eventually):
    by = await world.storage_class(provisioner="example.com/test")
    await world.claim("data", by)
    await world.pod("p", "data")
    await eventually(lambda: world.selected("data"))
    first = await world.selected("data")
    gone = {"metadata": {"annotations": {views.SELECTED_NODE: None}}}
    await world.api.patch(views.CLAIMS, "data", gone, world.namespace)

    async def another() -> bool:
        return await world.selected("data") not in ("", first)

    await eventually(another)
    await world.bind("data")
    await eventually(lambda: world.node_of("p"))
    assert await world.node_of("p") == await world.selected("data") != first


async def test_a_driver_without_room_on_a_node_gets_no_claim_there(world, eventually):
    drivers, capacities = views.CSI_DRIVERS.untyped(), views.CAPACITIES.untyped()
    name = f"roomy-{world.tag}.example.com"
    by = await world.storage_class(provisioner=name)
    here = {"matchLabels": {"kubernetes.io/hostname": "kwok-3"}}
    for offered, size, labels in (("here", "5Gi", here), ("anywhere", "100Mi", {})):
        offer = {"metadata": {"name": offered}, "storageClassName": by, "capacity": size, "nodeTopology": labels}
        await world.api.create(capacities, offer, world.namespace)
    await world.api.create(drivers, {"metadata": {"name": name}, "spec": {"storageCapacity": True}})
    offers = [f"{world.namespace}/{offered}" for offered in ("here", "anywhere")]
    await eventually(lambda: world.knows("csidrivers", name) and world.knows("csistoragecapacities", *offers))
    await world.claim("data", by)
    await world.pod("p", "data")
    await eventually(lambda: world.selected("data"))
    assert await world.selected("data") == "kwok-3"
    await world.api.delete(drivers, name)


async def test_a_volume_of_a_zone_keeps_its_pods_out_of_others(world, eventually):
    by = await world.storage_class()
    far = {"topology.kubernetes.io/zone": "far-away"}
    volume = await world.volume("far", by, labels=far)
    await world.claim("data", by, volume=volume)
    await world.pod("p", "data")

    async def refused() -> bool:
        return "node(s) had no available volume zone" in await world.refusal("p")

    await eventually(refused)
    await world.api.patch(views.VOLUMES, volume, {"metadata": {"labels": {"topology.kubernetes.io/zone": None}}})
    await eventually(lambda: world.node_of("p"))


async def test_a_missing_claim_is_named_with_its_field_and_the_pod_is_bound_once_it_exists(world, eventually):
    await world.pod("p", "data")

    async def named() -> bool:
        return "VolumeClaimNotFound: spec.volumes[v0].persistentVolumeClaim" in await world.refusal("p")

    await eventually(named)
    by = await world.storage_class()
    await world.volume("late", by, node="kwok-0")
    await world.claim("data", by)
    await eventually(lambda: world.node_of("p"))
    assert await world.node_of("p") == "kwok-0"


async def test_an_unbound_claim_that_schedulers_do_not_bind_is_named(world, eventually):
    by = await world.storage_class(volumeBindingMode="Immediate")
    await world.claim("data", by)
    await world.pod("p", "data")

    async def named() -> bool:
        return (await world.refusal("p")).startswith("VolumeClaimNotBound: spec.volumes[v0].persistentVolumeClaim")

    await eventually(named)


async def test_a_claim_of_a_class_that_does_not_exist_is_named(world, eventually):
    await world.claim("data", "no-such-class")
    await world.pod("p", "data")

    async def named() -> bool:
        return (await world.refusal("p")).startswith("StorageClassNotFound: spec.volumes[v0].persistentVolumeClaim")

    await eventually(named)


async def test_the_claim_of_an_ephemeral_volume_is_bound_too(world, eventually):
    by = await world.storage_class()
    await world.volume("scratch", by, node="kwok-2")
    template = {"spec": world.claim_spec(by)}
    await world.pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])
    await eventually(lambda: world.node_of("p"))
    assert await world.node_of("p") == "kwok-2"


async def test_a_claim_for_one_pod_only_is_mounted_by_one_pod_after_the_other(world, eventually):
    by = await world.storage_class()
    volume = await world.volume("one", by, mode="ReadWriteOncePod")
    await world.claim("data", by, mode="ReadWriteOncePod", volume=volume)
    await world.pod("first", "data")
    await eventually(lambda: world.node_of("first"))
    await world.pod("second", "data")

    async def refused() -> bool:
        return "ReadWriteOncePod" in await world.refusal("second")

    await eventually(refused)
    assert not await world.node_of("second")
    await world.api.delete(catalogue.PODS, "first", world.namespace, grace_period_s=0)
    await eventually(lambda: world.node_of("second"))


@pytest.fixture
async def driver(world, eventually):
    """A driver that takes one volume on each node, as the scheduler knows."""
    name = f"few-{world.tag}.example.com"
    csi_nodes = views.CSI_NODES.untyped()
    for node in NODES:
        limit = [{"name": name, "nodeID": node, "allocatable": {"count": 1}}]
        await world.api.create(csi_nodes, {"metadata": {"name": node}, "spec": {"drivers": limit}})
    await eventually(lambda: world.knows("csinodes", *NODES))
    yield name
    for node in NODES:
        await world.api.delete(csi_nodes, node)


async def test_a_node_takes_no_more_volumes_of_a_driver_than_it_says(world, driver, eventually):
    by = await world.storage_class(provisioner=driver)
    for i in range(5):
        source = {"driver": driver, "volumeHandle": f"v{i}"}
        volume = await world.volume(f"csi{i}", by, csi=source)
        await world.claim(f"data{i}", by, volume=volume)
        await world.pod(f"p{i}", f"data{i}")

    async def nodes() -> list[str]:
        return sorted([await world.node_of(f"p{i}") for i in range(5)])

    async def full() -> bool:
        waits = [one for i in range(5) if "exceed max volume count" in (one := await world.refusal(f"p{i}"))]
        return await nodes() == ["", *NODES] and len(waits) == 1

    await eventually(full)
