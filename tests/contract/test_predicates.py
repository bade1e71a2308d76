"""Boathouse and kube-scheduler, on the same API server, find the same nodes feasible."""

from __future__ import annotations

import itertools
import logging

import pytest

from boathouse.cluster import client, config
from tests.contract.predicates import comparison, generator, mutations

log = logging.getLogger(__name__)
pytestmark = pytest.mark.apiserver

BATCH = 60

NUMBERS = itertools.count()  # no name twice: what was deleted may still be on its way out


async def compare(
    cluster, *, seed: int, cases: int = generator.CASES, about: tuple[str, ...] = ()
) -> list[comparison.Difference]:
    found: list[comparison.Difference] = []
    asked, feasible = 0, 0
    async with client.ApiClient(config.from_kubeconfig(cluster.kubeconfig)) as api:
        await comparison.prepare(api)
        made = generator.cases(seed, NUMBERS, cases, about)
        while batch := list(itertools.islice(made, BATCH)):
            async with comparison.boathouse(api):
                one = comparison.Comparison(api, "default", batch)
                found += await one.differences()
                await one.clear()
                asked, feasible = asked + len(one.asked), feasible + len(one.feasible)
    log.info("seed %d: %d pods on %d nodes, %d feasible, %d differences", seed, cases, asked, feasible, len(found))
    assert asked / 10 < feasible < asked * 9 / 10, "nearly all answers are the same: this proves little"
    return found


@pytest.mark.timeout(600)
async def test_both_schedulers_find_the_same_nodes_feasible_for_sixty_generated_pods(bare_control_plane):
    found = await compare(bare_control_plane, seed=1, cases=60)
    assert not found, "\n".join(map(str, found))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", generator.SEEDS)
async def test_both_schedulers_find_the_same_nodes_feasible_for_two_thousand(bare_control_plane, seed):
    found = await compare(bare_control_plane, seed=seed)
    assert not found, "\n".join(map(str, found))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", mutations.BROKEN)
async def test_a_predicate_that_is_left_out_is_found(bare_control_plane, monkeypatch, broken):
    mutation = mutations.BROKEN[broken]
    monkeypatch.setattr(mutation.owner, mutation.attribute, mutation.value)
    assert await compare(bare_control_plane, seed=1, cases=mutation.cases, about=mutation.about)
