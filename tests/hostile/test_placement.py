"""How long another namespace's tasks wait to be placed, with and without each kind of attack: medians of pairs.

Printed, never asserted: see the table at the end of `make test-hostile`, and build/reports/hostile.json.
"""

from __future__ import annotations

import statistics

import pytest

from boathouse_e2e import hostile, kubelets
from tests.hostile.attacks import clusters, forgeries, plans, poison, pressure, results, rights, system, variety
from tests.hostile.form import named

pytestmark = [pytest.mark.apiserver, pytest.mark.long, pytest.mark.timeout(900)]

PAIRS = 5
SHAPE = kubelets.Shape(maps=30, reduces=0, cpu="100m")
KINDS = {
    "poison objects": named(poison.ATTACKS, "pods of a thousand extended resources"),
    "forged results": named(results.ATTACKS, "reasons that no runtime has"),
    "forged pods": named(forgeries.ATTACKS, "pods on nodes that do not exist"),
    "forged plans": named(plans.ATTACKS, "a plan that no setup has posted"),
    "refused creates": named(pressure.ATTACKS, "2,000 maps behind a full quota"),
    "deleted tasks": named(pressure.ATTACKS, "a tenant that deletes its task pods in a loop"),
    "toggled jobs": named(pressure.ATTACKS, "a job that is suspended and resumed in a loop"),
    "many shapes": named(variety.ATTACKS, "600 pods of 600 shapes"),
    "many selectors": named(variety.ATTACKS, "600 selectors"),
    "selectors of all": named(variety.ATTACKS, "2,000 selectors of the pods of all namespaces"),
    "long lists": named(variety.ATTACKS, "affinity lists of 1 MB"),
    "large jobs": named(variety.ATTACKS, "40 jobs of the largest size"),
    "a high class": named(rights.ATTACKS, "tasks of the highest priority class"),
    "many clusters": named(clusters.ATTACKS, "30 clusters in one namespace"),
    "edited authorities": named(system.ATTACKS, "certificate authorities that a tenant edits"),
}


async def placement_s(siege):
    """The time for which a job of the victim's waited for the scheduler."""
    siege.seen()
    name = await siege.victim_finishes(SHAPE)
    return hostile.placement_s(siege.seen(), name)


@pytest.mark.parametrize("kind", KINDS)
async def test_placement_beside_an_attack_and_alone(siege, record, kind):
    alone_s, beside_s = [], []
    for _ in range(PAIRS):
        alone_s.append(await placement_s(siege))
        async with siege.under(KINDS[kind]):
            beside_s.append(await placement_s(siege))
        await siege.over()
    siege.check()
    record(
        placement=kind,
        pairs=PAIRS,
        alone_s=statistics.median(alone_s),
        beside_s=statistics.median(beside_s),
        alone_all_s=alone_s,
        beside_all_s=beside_s,
    )
