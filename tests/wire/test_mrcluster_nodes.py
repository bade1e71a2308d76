"""Nodes of Hadoop clusters are scheduled as tasks, and policies resize their clusters."""

from __future__ import annotations

import collections

import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrcluster.names import Role
from boathouse.scheduling import decider
from boathouse_policies import model
from boathouse_policies.framework import gathering
from tests.builders import manifests
from tests.builders.operators.applications import App
from tests.builders.operators.elastic_clusters import PERIOD_S, add_nodes, scaling
from tests.wire import test_scheduling_gangs


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Let controllers decide often."""
    monkeypatch.setattr(decider, "ADVISED_EVERY_S", 0.01)


async def test_a_cluster_under_load_grows_by_idle_nodes_and_shrinks_again(api, eventually):
    add_nodes(api, 9)
    async with scaling(api) as operator:
        cluster = operator.add(core=2, most=20)
        cluster.tasks = 500
        await eventually(lambda: operator.turn(PERIOD_S) and len(operator.placed(cluster)) == 9)
        first = cluster.targets[0]
        assert (first.nodes, first.offer) == (7, 5)
        assert first.reason == "GSP: F = 125.00 is above 1.5; 6 of 6 idle nodes, weight 1 of 1"
        cluster.tasks = 0
        await eventually(lambda: operator.turn(PERIOD_S) and cluster.transient == [])
        assert cluster.targets[-1].reason == "GSP: F = 0.00 is below 0.25"
        await eventually(lambda: len(operator.world.placed()) == 3)


async def test_two_clusters_divide_idle_nodes_by_weight(api, eventually):
    add_nodes(api, 10)
    async with scaling(api) as operator:
        heavy, light = operator.add("heavy", weight=2), operator.add("light")
        await eventually(lambda: operator.turn() and len(operator.world.placed()) == 4)
        heavy.tasks = light.tasks = 500
        operator.turn(PERIOD_S)
        await eventually(lambda: operator.turn() and len(operator.world.placed()) == 10)
        assert [len(operator.placed(cluster, Role.TRANSIENT)) for cluster in (heavy, light)] == [4, 2]


async def test_a_growing_cluster_takes_no_room_that_is_reserved_for_a_gang(api, eventually):
    add_nodes(api, 6)
    app = App(minimum=3)
    async with scaling(api) as operator:
        test_scheduling_gangs.submit(operator.world, app)
        await eventually(lambda: app.driver in operator.world.placed())
        held = test_scheduling_gangs.reserved(operator.world, app)
        assert len(held) == 3
        cluster = operator.add()
        cluster.tasks = 500
        await eventually(lambda: operator.turn() and len(operator.placed(cluster)) == 2)
        for _ in range(5):
            operator.turn(PERIOD_S)
            operator.world.scheduler.cycle()
        assert (cluster.targets, cluster.transient) == ([], [])
        assert test_scheduling_gangs.reserved(operator.world, app) == held


@pytest.mark.parametrize("profile", ["fair", "boathouse"])
async def test_room_that_a_cluster_releases_is_given_to_a_gang_before_any_cluster_grows(
    api, eventually, monkeypatch, profile
):
    monkeypatch.setattr(gathering, "PATIENCE_S", 0.0)
    add_nodes(api, 6)
    app = App(minimum=3)
    async with scaling(api, profile=profile) as operator:
        given, growing = operator.add("given"), operator.add("growing")
        given.tasks = 2
        given.resize(2)
        await eventually(lambda: operator.turn() and len(operator.world.placed()) == 5)
        operator.publish(app.job, app.classes)
        test_scheduling_gangs.submit(operator.world, app)
        growing.tasks = 500
        for _ in range(5):
            operator.turn(PERIOD_S)
            operator.world.scheduler.cycle()
        assert growing.transient == []
        given.resize(1)
        api.add(manifests.node("n6", cpu="1", memory="2Gi"))
        api.add(manifests.node("n7", cpu="1", memory="2Gi"))
        await eventually(lambda: operator.turn() and app.driver in operator.world.placed())
        assert growing.transient == []


async def test_clusters_of_several_namespaces_stay_within_the_limits_of_their_queues(api, eventually):
    add_nodes(api, 12)
    config = OperatorConfig.model_validate(
        {
            "queues": [
                {"name": "default", "weight": 1},
                {"name": "small", "weight": 1, "limits": {"cpu": "4"}, "namespaces": ["a"]},
            ]
        }
    )
    async with scaling(api, config=config) as operator:
        limited, free = operator.add(namespace="a", queue="small"), operator.add(namespace="b")
        limited.tasks = free.tasks = 500
        await eventually(lambda: operator.turn(PERIOD_S) and len(operator.placed(free)) == 8)
        for _ in range(5):
            operator.turn(PERIOD_S)
            operator.world.scheduler.cycle()
        assert len(operator.placed(limited)) == 4


async def test_core_nodes_of_a_cluster_are_on_different_nodes_and_those_of_two_share(api, eventually):
    add_nodes(api, 3, rooms=8)
    async with scaling(api) as operator:
        clusters = [operator.add("a", core=3), operator.add("b", core=3)]
        await eventually(lambda: operator.turn() and len(operator.world.placed()) == 8)
        for cluster in clusters:
            assert set(operator.placed(cluster, Role.CORE).values()) == {"n0", "n1", "n2"}


async def test_a_later_leader_keeps_core_nodes_apart_too(api, eventually):
    add_nodes(api, 2, rooms=8)
    async with scaling(api) as operator:
        first = operator.add(core=1)
        await eventually(lambda: operator.turn() and len(operator.placed(first)) == 2)
    async with scaling(api) as operator:
        cluster = operator.add(core=3)
        await eventually(lambda: operator.turn() and len(operator.placed(cluster, Role.CORE)) == 2)
        counts = collections.Counter(operator.placed(cluster, Role.CORE).values())
        assert counts == {"n0": 1, "n1": 1}
        last = cluster.key("c2")
        await eventually(lambda: operator.turn() and "anti-affinity" in why(operator, last))
        api.add(manifests.node("n2", cpu="8", memory="16Gi"))
        await eventually(lambda: operator.turn() and operator.placed(cluster).get("c2") == "n2")


def why(operator, key: str) -> str:
    return operator.world.condition(key).get("message", "") if key in operator.world.waiting() else ""


async def test_a_host_whose_pod_ended_before_it_was_seen_gets_another_of_the_same_name(api, eventually):
    add_nodes(api, 3)
    async with scaling(api) as operator:
        cluster = operator.add(core=2)
        operator.turn()
        await eventually(lambda: len(operator.placed(cluster)) == 3)
        key, pods = model.TaskId(cluster.key("c1")), operator.world.scheduler.state.pods
        await eventually(lambda: pods.get(key).is_on_node)
        before = api.get("pods", key)["metadata"]["uid"]
        api.remove("pods", key)
        await eventually(lambda: pods.get(key).has_ended)
        await eventually(lambda: operator.turn() and len(operator.placed(cluster)) == 3)
        assert api.get("pods", key)["metadata"]["uid"] != before
