"""Pod affinity, anti-affinity and topology spread are those of a plain reference, for every course of events."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import framework, model
from boathouse_policies.framework import eligibility
from tests.unit.policies import builders as make
from tests.unit.policies.plainly import plainly

from . import drawing, reference

WORDS = ("pod affinity", "anti-affinity", "topology spread")


class World(make.World):
    """A world in which pods have labels, and a reference that is told of the same."""

    def __init__(self, nodes: list[model.Node], namespaces: dict[str, dict[str, str]]) -> None:
        super().__init__(nodes)
        self.all_nodes, self.namespaces = nodes, namespaces
        self.pods: dict[str, reference.Pod] = {}
        self.pending: dict[str, tuple[model.TaskClass, str]] = {}
        for name, labels in namespaces.items():
            self.ledger.set_namespace(name, labels)

    def show(self, name: str, pod: reference.Pod) -> None:
        """A pod of another scheduler is there."""
        self.pods[f"ns/{name}"] = pod
        freed = self.ledger.observe(
            make.pod(
                name,
                pod.node,
                make.amount(10),
                namespace=pod.namespace,
                labels=pod.labels,
                anti_affinity=pod.constraints.pod_anti_affinity,
                is_ending=pod.is_ending,
            )
        )
        if freed is not None:
            self.room.capacity_freed(freed, self.ledger.free(freed.node))

    def want(self, name: str, count: int, namespace: str, **fields) -> None:
        """Pods are pending."""
        one = self.submit(name, count, make.amount(10), namespace=namespace, **fields)
        self.pending[one.id] = one, namespace

    def of_class(self, one: model.TaskClass, namespace: str, node: str = "") -> reference.Pod:
        return reference.Pod(namespace, one.labels, one.constraints, node)

    @property
    def cluster(self) -> reference.Cluster:
        return reference.Cluster(self.all_nodes, list(self.pods.values()), self.namespaces)

    def settle(self) -> list[framework.Plan]:
        """Run cycles until nothing is a reason for another; every placement must be allowed when it is made."""
        plans = []
        for _ in range(200):
            self.room.wake(self.ledger.take_woken())
            if not self.room.tick(self.now_s):
                return plans
            plan = self.cycle()
            plans.append(plan)
            for one in make.placements(plan):
                pod = self.of_class(one.task_class, one.job.namespace, one.node)
                node = self.cluster.node(one.node)
                assert node is not None
                if not one.task_class.gang_min:
                    assert not self.cluster.refusal(pod, node)
                self.pods[one.task.id] = pod
        raise AssertionError("cycles go on for ever")

    def check_nothing_is_left_that_could_start(self) -> None:
        cluster = self.cluster
        for queued in self.room.sorted_classes().queued:
            one = queued.task_class
            pod = self.of_class(one, queued.job.namespace)
            if not queued.pool.count or one.gang_min:
                continue
            for node in self.all_nodes:
                free = self.ledger.free(node.name)
                assert free is not None
                has_room = free[model.PODS] >= 1 and free[model.CPU] >= 10
                if has_room and eligibility.refusal(one.constraints, node) is None:
                    assert cluster.refusal(pod, node), f"{one} could start on {node}"

    def end(self, task_id: str) -> None:
        del self.pods[task_id]
        super().end(task_id)


def worlds(data: st.DataObject, most_pods: int = 8) -> World:
    nodes = data.draw(drawing.nodes())
    world = World(nodes, data.draw(drawing.namespaces))
    where = st.sampled_from([*[node.name for node in nodes], *[node.name for node in nodes], "gone"])
    for i, pod in enumerate(data.draw(st.lists(drawing.pods(where), max_size=most_pods))):
        world.show(f"p{i}", pod)
    return world


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_each_node_is_refused_for_the_reason_of_the_reference(data):
    world = worlds(data)
    world.want(
        "job", 1, data.draw(st.sampled_from("xy")), labels=data.draw(drawing.labels),
        constraints=data.draw(drawing.constraints),
    )  # fmt: skip
    view = world.view()
    state = framework.CycleState(view)
    classes = world.room.sorted_classes()
    classes.declare(view.tallies)
    state.count_pods()
    (queued,) = classes.queued
    pending = framework.PendingClass(queued, world.profile, state)
    pod = world.of_class(queued.task_class, queued.job.namespace)
    for place, node in enumerate(view.nodes):
        among = [i == place for i in range(len(view.nodes))]
        found = [
            refusal.reason
            for one in world.profile.filters
            if one.of_pods
            for refusal in one.refusals(pending, state, np.array(among))
        ]
        expected = world.cluster.refusal(pod, node)
        assert (found[0] if found else "") == expected


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_placement_is_allowed_when_it_is_made_and_nothing_is_left_that_could_start(data):
    world = worlds(data)
    for i in range(data.draw(st.integers(1, 4))):
        world.want(
            f"j{i}", data.draw(st.integers(1, 4)), data.draw(st.sampled_from("xy")),
            labels=data.draw(drawing.labels), constraints=data.draw(drawing.constraints),
        )  # fmt: skip
    world.settle()
    world.check_nothing_is_left_that_could_start()
    rng = random.Random(data.draw(st.integers(0, 99)))
    for i in range(data.draw(st.integers(0, 6))):
        change(world, rng, data, i)
        world.settle()
        world.check_nothing_is_left_that_could_start()


def change(world: World, rng: random.Random, data: st.DataObject, i: int) -> None:
    """A pod comes, ends or changes, or a namespace's labels do."""
    names = sorted(world.pods)
    match rng.choice(("come", "end", "end", "label", "delete", "namespace")):
        case "come":
            where = st.sampled_from([node.name for node in world.all_nodes])
            world.show(f"q{i}", data.draw(drawing.pods(where)))
        case "end" if names:
            world.end(rng.choice(names))
        case "label" | "delete" as how if names:
            name = rng.choice(names)
            pod = world.pods[name]
            more = {"is_ending": True} if how == "delete" else {"labels": data.draw(drawing.labels)}
            world.show(name.removeprefix("ns/"), dataclasses.replace(pod, **more))
        case "namespace":
            labels = data.draw(drawing.labels)
            world.namespaces["x"] = labels
            world.ledger.set_namespace("x", labels)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_gang_starts_where_each_of_its_pods_is_allowed_beside_the_others(data):
    world = worlds(data)
    world.want(
        "gang", data.draw(st.integers(2, 4)), "x", gang_min=2,
        labels=data.draw(drawing.labels), constraints=data.draw(drawing.constraints),
    )  # fmt: skip
    world.want("other", 2, "x", labels=data.draw(drawing.labels), constraints=data.draw(drawing.constraints))
    for plan in world_plans(world):
        for one, cluster in plan:
            node = cluster.node(one.node)
            assert not cluster.refusal(world.of_class(one.task_class, one.job.namespace, one.node), node)


def world_plans(world: World):
    """The placements of a cycle, each with the cluster before it."""
    before = dict(world.pods)
    for plan in world.settle():
        found = []
        for one in make.placements(plan):
            found.append((one, reference.Cluster(world.all_nodes, list(before.values()), world.namespaces)))
            before[one.task.id] = world.of_class(one.task_class, one.job.namespace, one.node)
        yield found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_many_nodes_and_few_nodes_are_ranked_alike(data):
    world = worlds(data)
    loads = [
        (f"j{i}", data.draw(st.integers(1, 3)), data.draw(st.sampled_from("xy")), data.draw(drawing.labels),
         data.draw(drawing.constraints))
        for i in range(3)
    ]  # fmt: skip
    for name, count, namespace, labels, constraints in loads:
        world.want(name, count, namespace, labels=labels, constraints=constraints)
    quick = make.where(world.plan())
    offered = make.where(world.plan(offered=[node.name for node in world.all_nodes]))
    with plainly():
        assert make.where(world.plan()) == quick == offered
