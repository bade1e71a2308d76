"""MRClusters after etcd was restored from a backup: their status is older than their volumes and agents."""

from __future__ import annotations

import pytest

from boathouse.services.frame.resync import Resync
from tests.builders.operators.mrclusters import KEY, RunningMRCluster, mrcluster
from tests.wire import waiting

GROWN = {"transient": {"minimum": 2, "maximum": 3}}


@pytest.fixture
async def world(api):
    async with RunningMRCluster(api).running() as made:
        yield made


def version(body):
    return body and body["metadata"]["resourceVersion"]


async def restored(world, client, backup):
    """Restore, and do what the operator does every two minutes."""
    objects = world.leader.controllers.stores["MRCluster"]
    await waiting.eventually(lambda: version(objects.get(KEY)) == version(world.api.get("mrclusters", KEY)))
    world.api.restore(backup)
    await Resync(client, objects, ()).run_once()


async def ready(world, transient):
    await world.until(
        lambda: (
            world.phase() == "Ready"
            and world.status()["transient"]["ready"] == transient
            and len(world.hosts()) == 3 + transient
        )
    )


async def test_a_cluster_that_had_grown_grows_again_with_the_same_claims(api, client, world):
    api.add(mrcluster(transient={"maximum": 3}))
    await ready(world, 0)
    backup = api.world.backup()
    world.change(**GROWN)
    await ready(world, 2)
    await restored(world, client, backup)
    world.change(**GROWN)
    await ready(world, 2)
    assert world.nodes.formatted == [None]


async def test_orders_after_a_restore_reach_an_agent_that_holds_later_ones(api, client, world):
    api.add(mrcluster(**GROWN))
    await ready(world, 2)
    backup = api.world.backup()
    world.change(transient={"minimum": 1})
    await ready(world, 1)
    held = world.nodes.agent.version
    await restored(world, client, backup)
    world.change(transient={"minimum": 0})
    await ready(world, 0)
    assert world.nodes.agent.version > held
    assert world.nodes.formatted == [None]
