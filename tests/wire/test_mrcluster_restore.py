"""MRClusters after etcd was restored from a backup: their status is older than their volumes and agents."""

from __future__ import annotations

from boathouse.services.frame.object_store import Resync
from tests.builders.operators.mrclusters import KEY, mrcluster
from tests.wire import waiting

GROWN = {"transient": {"minimum": 2, "maximum": 3}}


def version(body):
    return body and body["metadata"]["resourceVersion"]


async def restored(hadoop, client, backup):
    """Restore, and do what the operator does every two minutes."""
    objects = hadoop.leader.controllers.stores["MRCluster"]
    await waiting.eventually(lambda: version(objects.get(KEY)) == version(hadoop.api.get("mrclusters", KEY)))
    hadoop.api.restore(backup)
    await Resync(client, objects, ()).run_once()


async def ready(hadoop, transient):
    await hadoop.until(
        lambda: (
            hadoop.phase() == "Ready"
            and hadoop.status()["transient"]["ready"] == transient
            and len(hadoop.hosts()) == 3 + transient
        )
    )


async def test_a_cluster_that_had_grown_grows_again_with_the_same_claims(api, client, hadoop):
    api.add(mrcluster(transient={"maximum": 3}))
    await ready(hadoop, 0)
    backup = api.world.backup()
    hadoop.change(**GROWN)
    await ready(hadoop, 2)
    await restored(hadoop, client, backup)
    hadoop.change(**GROWN)
    await ready(hadoop, 2)
    assert hadoop.nodes.formatted == [None]


async def test_orders_after_a_restore_reach_an_agent_that_holds_later_ones(api, client, hadoop):
    api.add(mrcluster(**GROWN))
    await ready(hadoop, 2)
    backup = api.world.backup()
    hadoop.change(transient={"minimum": 1})
    await ready(hadoop, 1)
    held = hadoop.nodes.agent.version
    await restored(hadoop, client, backup)
    hadoop.change(transient={"minimum": 0})
    await ready(hadoop, 0)
    assert hadoop.nodes.agent.version > held
    assert hadoop.nodes.formatted == [None]
