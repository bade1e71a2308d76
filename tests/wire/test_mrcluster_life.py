"""MRClusters from their creation to their end: they come up, grow, shrink, roll and expire."""

import pytest

from tests.wire.mrcluster_world import KEY, World, mrcluster


@pytest.fixture
async def world(api):
    async with World(api).running() as made:
        yield made


@pytest.fixture
def ready(api, world, eventually):
    """Return a function that creates a cluster and waits until it is ready."""

    async def create(**spec):
        api.add(mrcluster(**spec))
        await eventually(lambda: world.phase() == "Ready")

    return create


async def test_a_cluster_comes_up(api, world, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    assert world.hosts() == ["c0", "c1", "master", "t0"]
    assert world.status()["clusterID"] == f"CID-{world.uid()}"
    assert world.nodes.formatted == [None]
    assert set(world.nodes.created.values()) == {1}
    assert [len(api.objects(each)) for each in ("services", "configmaps", "networkpolicies")] == [1, 1, 2]
    assert len(api.objects("persistentvolumeclaims")) == 3
    placed = {host: pod["spec"]["nodeName"] for host, pod in world.nodes.pods().items()}
    assert placed["c0"] != placed["c1"]
    assert KEY
