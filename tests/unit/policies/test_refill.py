"""The short way through the usual cycle of a full cluster decides what the general way does."""

import dataclasses

import numpy as np
import pytest

from boathouse_policies import framework, model, profiles
from boathouse_policies.baselines import fifo
from boathouse_policies.framework import refill
from boathouse_sim import table2
from boathouse_sim.instant import Instant
from tests.unit.policies import builders as make
from tests.unit.sim import make as sim

PROFILES = [("fifo", "packed"), ("fair", "least-loaded"), ("yarn-no-reservations", "least-loaded")]


class NeverWaits:
    """Patience in name only: a profile that has it goes the general way."""

    def wait(self, *_) -> None:
        return None


def decisions(workload, profile):
    """Who was placed where and when in the course of a simulation."""
    driver = Instant(workload, profile)
    made, place = [], driver.world.place

    def remember(decision):
        made.append((driver.world.clock.now_ms, decision.task.id, decision.node))
        return place(decision)

    driver.world.place = remember
    while driver.advance():
        pass
    return made


def drawn(seed):
    return table2.Table2(tasks=(1, 40), duration_s=(1, 40), arrival_s=200).draw(12, 5, np.random.default_rng(seed))


def in_stages():
    """Two classes of a job wait at once; tasks of equal length end together."""
    stages = make_stages(30, 2500), make_stages(20, 3100), make_stages(25, 4000)
    return sim.workload(*(sim.job(str(i), *one, at_s=i) for i, one in enumerate(stages)), nodes=4)


def make_stages(seconds, mb):
    return sim.phase(9, seconds, mb), sim.phase(7, seconds // 2, mb // 2, kind="reduce")


@pytest.mark.parametrize("workload", [drawn(0), drawn(1), in_stages()], ids=["drawn 0", "drawn 1", "in stages"])
@pytest.mark.parametrize(("name", "placement"), PROFILES)
def test_whole_simulations_are_the_same_the_short_and_the_general_way(name, placement, workload):
    short = profiles.build(name, placement=placement)
    general = dataclasses.replace(short, patience=NeverWaits())
    assert decisions(workload, short) == decisions(workload, general)


def full(**fields):
    """A cluster of two full nodes, with tasks that wait: `fields` are of their class."""
    world = make.World(make.nodes(2, make.amount(4000, 8)), profile=profiles.build("fair"))
    first = world.submit("first", 20, size=make.amount(1000, 2), **fields)
    world.cycle()
    world.end(f"ns/{first.id}-0")
    return world


def goes_short(world):
    return refill.plan(world.room, world.profile, world.view()) is not None


def test_what_is_left_waiting_is_named_and_explained():
    world = full()
    assert goes_short(world)
    plan = world.plan()
    (left,) = plan.left.values()
    assert (len(make.placements(plan)), left.count, left.verdict.code) == (1, 11, model.Code.UNSCHEDULABLE)
    assert plan.diagnosis("first/map").message == "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory."


def holding(world, **extended):
    """Somebody's pod on each node."""
    for node in ("n0", "n1"):
        size = model.Resources.of(extended=extended)
        world.ledger.observe(framework.Account(id=f"x/{node}", node=node, resources=size, uid="x"))


def test_a_pod_that_holds_what_its_node_does_not_have_changes_nothing():
    world, plain = full(), full()
    holding(plain)
    holding(world, invented=5)
    assert goes_short(world)
    assert make.where(world.plan()) == make.where(plain.plan()) != []


def test_who_is_new_in_a_full_cluster_is_turned_away_the_short_way():
    world = full()
    world.cycle()
    world.submit("second", 3, size=make.amount(1000, 2))
    world.submit("giant", 1, size=make.amount(9000, 2))
    assert goes_short(world)
    world.cycle()
    assert {one: verdict.code for one, verdict in world.room.parked().items()} == {
        "first/map": model.Code.UNSCHEDULABLE,
        "second/map": model.Code.UNSCHEDULABLE,
        "giant/map": model.Code.NEVER_FITS,
    }


def test_an_order_whose_keys_are_constant_is_asked_for_each_job_once():
    class Counted(fifo.Fifo):
        asked = 0

        def key(self, *those):
            self.asked += 1
            return super().key(*those)

    world = full()
    world.profile = dataclasses.replace(profiles.build("fifo"), order=Counted())
    for index in range(1, 5):
        world.end(f"ns/first/map-{index}")
        assert goes_short(world)
        world.cycle()
    assert world.profile.order.asked == 1


def test_nodes_that_a_class_may_not_use_are_left_out():
    world = make.World([make.node("a", labels={"disk": "ssd"}), make.node("b")], profile=profiles.build("fair"))
    world.submit("first", 4, size=make.amount(4000, 8))
    wants = model.Constraints(node_selector=(("disk", "ssd"),))
    world.submit("second", 1, size=make.amount(4000, 8), submitted_s=-1.0, constraints=wants)
    world.cycle()
    world.room.withdraw(model.JobId("first"))
    for name in ("first/map-0", "second/map-0"):
        world.end(f"ns/{name}")
    world.submit("third", 1, size=make.amount(4000, 8), constraints=wants)
    assert [node for _, node in make.where(world.plan())] == ["a"]


@pytest.mark.parametrize("change", ["limits", "kept", "new class", "offered", "patience"])
def test_whatever_else_may_matter_goes_the_general_way(change):
    world = full()
    match change:
        case "limits":
            world.room.set_queues([model.Queue.of(model.QueueName("default"), limits={"cpu": 64_000})])
        case "kept":
            world.room.kept[model.NodeName("n0")] = model.ClassId("first/map")
        case "new class":
            world.submit("second", 1)
        case "patience":
            world.profile = dataclasses.replace(world.profile, patience=NeverWaits())
    offered = {"offered": [model.NodeName("n0")]} if change == "offered" else {}
    assert refill.plan(world.room, world.profile, world.view(**offered)) is None


def test_a_key_is_asked_again_for_whoever_holds_something_else_even_if_a_snapshot_was_missed():
    world = full()
    world.submit("second", 20, size=make.amount(1000, 2), submitted_s=1.0)
    world.cycle()
    for index in range(1, 5):
        world.end(f"ns/first/map-{index}")
        world.view()  # somebody else looks
        world.cycle()
    held = [world.view().job_usage(model.JobId(name))[model.CPU] for name in ("first", "second")]
    assert held == [4000, 4000]
