"""Boathouse and kube-scheduler, on the same API server, find the same nodes feasible."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from boathouse.cluster import catalogue, client, config
from boathouse.scheduling.pods import requests
from boathouse_policies import model
from boathouse_policies.framework import eligibility as static
from boathouse_policies.framework.affinity import judges, tallies
from tests.contract.predicates import comparison, generator

pytestmark = pytest.mark.apiserver

BATCH = 60
UNMANAGED = "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller"

NUMBERS = itertools.count()  # no name twice: what was deleted may still be on its way out


@pytest.fixture(scope="module")
def bare_control_plane(start_control_plane):
    """One whose nodes are the test's alone: no KWOK, and no controller that taints or evicts."""
    return start_control_plane(
        "predicates",
        kwok_nodes=0,
        controller_manager_args=(UNMANAGED,),
        apiserver_args=("--disable-admission-plugins=TaintNodesByCondition",),
        scheduler_args=("--kube-api-qps=1000", "--kube-api-burst=1000"),
    )


async def compare(cluster, *, seed: int, cases: int) -> list[comparison.Difference]:
    rng = random.Random(seed)
    found: list[comparison.Difference] = []
    async with client.ApiClient(config.from_kubeconfig(cluster.kubeconfig)) as api:
        await prepare(api)
        for first in range(0, cases, BATCH):
            batch = [generator.case(rng, next(NUMBERS)) for _ in range(min(BATCH, cases - first))]
            async with comparison.boathouse(api):
                one = comparison.Comparison(api, "default", batch)
                found += await one.differences()
                await one.clear()
                assert len(one.feasible) > len(one.asked) // 8, "hardly any probe fits anywhere: this proves little"
                assert len(one.feasible) < len(one.asked) * 7 // 8, "nearly every probe fits: this proves little"
    return found


async def prepare(api: client.ApiClient) -> None:
    accounts = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=dict)
    await comparison.ensure(api, accounts, {"metadata": {"name": "default"}}, "default")
    await comparison.ensure(api, comparison.RUNTIME_CLASSES, generator.RUNTIME_CLASS)
    labels = {"metadata": {"labels": generator.NAMESPACE_LABELS}}
    await api.patch(catalogue.NAMESPACES.untyped(), generator.NAMESPACE, labels)


@pytest.mark.timeout(600)
async def test_both_schedulers_find_the_same_nodes_feasible_for_sixty_generated_pods(bare_control_plane):
    found = await compare(bare_control_plane, seed=1, cases=60)
    assert not found, "\n".join(map(str, found))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
async def test_both_schedulers_find_the_same_nodes_feasible_for_hundreds_more(bare_control_plane, seed):
    found = await compare(bare_control_plane, seed=seed, cases=120)
    assert not found, "\n".join(map(str, found))


def everywhere(judge: judges.Judge) -> model.BoolVector:
    return np.ones_like(judge._counts[0].domains.exist)


BROKEN = {
    "taints": (static, "untolerated", lambda *_: None),
    "labels": (static, "selected", lambda *_: True),
    "host-ports": (model.HostPort, "conflicts", lambda *_: False),
    "init-containers-and-sidecars": (requests, "_include_init_containers", lambda *_, **__: None),
    "pod-level-requests": (requests, "_override_by_pod_level", lambda *_, **__: None),
    "pod-affinity": (judges.Judge, "near", everywhere),
    "pod-anti-affinity": (judges.Judge, "apart", everywhere),
    "anti-affinity-of-pods-that-are-there": (judges.Judge, "unforbidden", everywhere),
    "topology-spread": (judges.Judge, "even", everywhere),
    "pods-that-are-being-deleted": (
        tallies.Tallies,
        "_selects",
        lambda self, tally, pod: all(self.belongs(pod, one) for one in tally.sets),
    ),
    "namespaces-of-terms": (
        tallies.Tallies,
        "belongs",
        lambda _, pod, pods: pods.selector is not None and tallies.matches(pods.selector, pod.labels),
    ),
}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", BROKEN)
async def test_a_predicate_that_is_left_out_is_found(bare_control_plane, monkeypatch, broken):
    monkeypatch.setattr(*BROKEN[broken])
    assert await compare(bare_control_plane, seed=1, cases=60)
