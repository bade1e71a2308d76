"""What a cycle decides once room came free: as if all classes looked at all nodes anew."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import framework, model, profiles
from boathouse_policies.baselines import Fifo
from boathouse_sim import table2
from boathouse_sim.instant import Instant
from tests.unit.policies import builders as make
from tests.unit.policies.plainly import plainly
from tests.unit.policies.test_properties import clusters, loads, world_of
from tests.unit.sim import make as sim

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

PROFILES = [("fifo", "packed"), ("fair", "least-loaded"), ("yarn-no-reservations", "least-loaded")]


# In whole courses


def decisions(workload, name, placement):
    """Who was placed where and when in the course of a simulation."""
    driver = Instant(workload, profiles.build(name, placement=placement))
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
def test_whole_simulations_decide_the_same_with_all_nodes_reranked(name, placement, workload):
    found = decisions(workload, name, placement)
    with plainly():
        assert decisions(workload, name, placement) == found


def waiting(plan: framework.Plan) -> dict[str, int]:
    return {class_id: left.count for class_id, left in plan.left.items()}


def reasons(plan: framework.Plan, jobs: Collection[str] | None = None) -> dict[str, tuple[str, int]]:
    """Why and how many tasks wait, by class: of all jobs, or of some."""
    left = plan.left.items()
    return {one: (why.verdict.code, why.count) for one, why in left if jobs is None or why.pending.job.id in jobs}


@pytest.mark.parametrize("profile", profiles.names())
@settings(max_examples=20, deadline=None)
@given(clusters(), loads())
def test_a_first_cycle_decides_the_same_with_all_nodes_reranked(profile, nodes, load):
    found = world_of(nodes, load, (profile, "least-loaded")).plan()
    with plainly():
        expected = world_of(nodes, load, (profile, "least-loaded")).plan()
    assert found.decisions == expected.decisions
    assert waiting(found) == waiting(expected)
    # Who waits for room and for its queue's limit may be told either.
    free = [job.id for job, _, _ in load if job.queue != "limited"]
    assert reasons(found, free) == reasons(expected, free)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=40, deadline=None)
@given(clusters(), loads(), st.randoms(use_true_random=False))
def test_who_looks_only_where_room_came_free_goes_where_it_would_have_gone(profile, nodes, load, chance: random.Random):
    narrow, wide = world_of(nodes, load, profile), world_of(nodes, load, profile)
    running = [one.task.id for one in make.placements(narrow.cycle())]
    wide.cycle()
    while running:
        for _ in range(min(len(running), chance.randint(1, 3))):
            over = running.pop(chance.randrange(len(running)))
            narrow.end(over)
            wide.end(over)
        wide.room.nodes_changed()  # all look at all nodes
        with plainly():
            expected = wide.cycle()
        found = narrow.cycle()
        assert found.decisions == expected.decisions
        running += [one.task.id for one in make.placements(found)]
        waits, named = waiting(expected), waiting(found)
        # Who waits for room and for its queue's limit may be parked for either, and is looked at accordingly.
        assert named.keys() <= waits.keys() | wide.room.unschedulable().keys()
        assert all(waits.get(class_id, count) == count for class_id, count in named.items())


# Who is named


def test_a_class_that_did_not_fit_what_came_free_stays_parked_and_is_not_named():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("small", 8, size=make.amount(1000, 1))
    world.submit("large", 1, size=make.amount(3000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/small/map-0")
    assert set(world.cycle().left) == {"small/map"}
    assert set(world.room.unschedulable()) == {"small/map", "large/map"}


def test_who_fitted_and_was_too_late_is_named_with_all_its_tasks():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("first", 6, size=make.amount(1000, 1))
    world.submit("second", 3, size=make.amount(1000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/first/map-0")
    assert reasons(world.cycle()) == {"first/map": ("Unschedulable", 1), "second/map": ("Unschedulable", 3)}


def full():
    """A cluster of two full nodes with tasks that wait; one task has just ended."""
    world = make.World(make.nodes(2, make.amount(4000, 8)), profile=profiles.build("fair"))
    first = world.submit("first", 20, size=make.amount(1000, 2))
    world.cycle()
    world.end(f"ns/{first.id}-0")
    return world


def test_what_is_left_waiting_is_named_and_explained():
    plan = full().plan()
    (left,) = plan.left.values()
    assert (len(make.placements(plan)), left.count, left.verdict.code) == (1, 11, model.Code.UNSCHEDULABLE)
    assert plan.diagnosis("first/map").message == "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory."


def test_who_is_new_in_a_full_cluster_is_turned_away_with_a_reason():
    world = full()
    world.cycle()
    world.submit("second", 3, size=make.amount(1000, 2))
    world.submit("giant", 1, size=make.amount(9000, 2))
    world.cycle()
    assert {one: verdict.code for one, verdict in world.room.unschedulable().items()} == {
        "first/map": model.Code.UNSCHEDULABLE,
        "second/map": model.Code.UNSCHEDULABLE,
        "giant/map": model.Code.NEVER_FITS,
    }


# What else matters


def holding(world, **extended):
    """Somebody's pod on each node."""
    for node in ("n0", "n1"):
        size = model.Resources.of(extended=extended)
        world.ledger.observe(framework.Account(id=f"x/{node}", node=node, resources=size, uid="x"))


def test_a_pod_that_holds_what_its_node_does_not_have_changes_nothing():
    world, plain = full(), full()
    holding(plain)
    holding(world, invented=5)
    assert make.where(world.plan()) == make.where(plain.plan()) != []


def test_nodes_that_a_class_may_not_use_are_left_out():
    world = make.World([make.node("a", labels={"disk": "ssd"}), make.node("b")], profile=profiles.build("fair"))
    world.submit("first", 4, size=make.amount(4000, 8))
    pending_classes = model.Constraints(node_selector=(("disk", "ssd"),))
    world.submit("second", 1, size=make.amount(4000, 8), submitted_s=-1.0, constraints=pending_classes)
    world.cycle()
    world.room.withdraw(model.JobId("first"))
    for name in ("first/map-0", "second/map-0"):
        world.end(f"ns/{name}")
    world.submit("third", 1, size=make.amount(4000, 8), constraints=pending_classes)
    assert [node for _, node in make.where(world.plan())] == ["a"]


def test_a_cycle_in_which_nobody_is_looked_at_decides_nothing():
    world = full()
    world.cycle()
    world.cycle()
    plan = world.plan()
    assert (plan.decisions, dict(plan.left)) == ([], {})


def test_an_order_whose_keys_are_constant_is_not_asked_again_for_jobs_that_got_nothing():
    class Counted(Fifo):
        asked = 0

        def key(self, *those):
            self.asked += 1
            return super().key(*those)

    world = make.World(make.nodes(2), profile=dataclasses.replace(profiles.build("fifo"), order=Counted()))
    for i in range(20):
        world.submit(f"job{i:02}", 20)
    world.cycle()
    world.end("ns/job00/map-0")
    before = world.profile.order.asked
    assert len(make.placements(world.plan())) == 1
    assert world.profile.order.asked - before <= 1


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
