"""Changes of clusters reconcile the jobs that they concern, and no others."""

from __future__ import annotations

from tests.unit.services.conftest import Build
from tests.unit.services.hadoop import builders
from tests.unit.services.mrjob_hadoop.world import CLUSTER, World


def marks(world: World) -> list[str]:
    """Return the jobs that are marked from now on."""
    found: list[str] = []
    world.jobs._mark = found.append  # type: ignore[assignment]
    return found


async def test_a_change_or_the_deletion_of_its_cluster_reconciles_a_job() -> None:
    world = World()
    await world.reconcile()
    found = marks(world)
    world.directory.put(Build.replace(CLUSTER, is_ready=False))
    world.directory.forget(CLUSTER.uid)
    assert found == [Build.UID, Build.UID]


async def test_clusters_of_others_that_come_and_go_reconcile_no_job() -> None:
    world = World()
    await world.reconcile()
    found = marks(world)
    world.directory.put(builders.cluster(uid="c-2", name="lake", namespace="other"))
    world.directory.forget("c-2")
    assert found == []
