"""What a cycle decides once room came free: as if all classes looked at all nodes anew."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_lab import table2
from boathouse_policies import framework, model, profiles
from boathouse_policies.baselines import Fifo
from boathouse_sim.simulation import Instant
from tests.builders import core, core_strategies as strategies, simulations
from tests.builders.core_plain import plain_rankings
from tests.builders.core_strategies import clusters, loaded_shell, loads

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

PROFILES = [("fifo", "packed"), ("fair", "least-loaded"), ("yarn-no-reservations", "least-loaded")]


# In whole courses


def decisions(workload, name, placement):
    """The placements of a simulation."""
    return simulations.placement_log(Instant(workload, profiles.build(name, placement=placement)))


def table2_workload(seed):
    return table2.Table2(tasks=(1, 40), duration_s=(1, 40), arrival_s=200).draw(12, 5, np.random.default_rng(seed))


def in_stages():
    """Two classes of a job wait at once; tasks of equal length end together."""
    stages = make_stages(30, 2500), make_stages(20, 3100), make_stages(25, 4000)
    return simulations.workload(*(simulations.job(str(i), *stage, at_s=i) for i, stage in enumerate(stages)), nodes=4)


def make_stages(seconds, mb):
    return simulations.phase(9, seconds, mb), simulations.phase(7, seconds // 2, mb // 2, kind="reduce")


@pytest.mark.parametrize(
    "workload", [table2_workload(0), table2_workload(1), in_stages()], ids=["drawn 0", "drawn 1", "in stages"]
)
@pytest.mark.parametrize(("name", "placement"), PROFILES)
def test_whole_simulations_decide_the_same_with_all_nodes_reranked(name, placement, workload):
    found = decisions(workload, name, placement)
    with plain_rankings():
        assert decisions(workload, name, placement) == found


def waiting_counts(plan: framework.Plan) -> dict[str, int]:
    return {class_id: pending.left for class_id, pending in plan.left.items()}


def reasons(plan: framework.Plan, jobs: Collection[str] | None = None) -> dict[str, tuple[str, int]]:
    """Why and how many tasks wait, by class: of all jobs, or of some."""
    left = plan.left.items()
    return {
        class_id: (pending.verdict.code, pending.left)
        for class_id, pending in left
        if jobs is None or pending.job.id in jobs
    }


@pytest.mark.parametrize("profile", strategies.PROFILES)
@settings(max_examples=10, deadline=None)
@given(clusters(), loads())
def test_a_first_cycle_decides_the_same_with_all_nodes_reranked(profile, nodes, load):
    found = loaded_shell(nodes, load, (profile, "least-loaded")).plan()
    with plain_rankings():
        expected = loaded_shell(nodes, load, (profile, "least-loaded")).plan()
    assert found.decisions == expected.decisions
    assert waiting_counts(found) == waiting_counts(expected)
    # Who waits for room and for its queue's limit may be told either.
    free = [job.id for job, _, _ in load if job.queue != "limited"]
    assert reasons(found, free) == reasons(expected, free)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=20, deadline=None)
@given(clusters(), loads(), st.randoms(use_true_random=False))
def test_a_search_of_freed_nodes_decides_as_a_search_of_all_nodes(profile, nodes, load, chance: random.Random):
    narrow, wide = loaded_shell(nodes, load, profile), loaded_shell(nodes, load, profile)
    running = core.task_ids(narrow.cycle())
    wide.cycle()
    while running:
        for _ in range(min(len(running), chance.randint(1, 3))):
            over = running.pop(chance.randrange(len(running)))
            narrow.end(over)
            wide.end(over)
        wide.queue.nodes_changed()  # all look at all nodes
        with plain_rankings():
            expected = wide.cycle()
        found = narrow.cycle()
        assert core.placements(found) == core.placements(expected)
        running += core.task_ids(found)
        waits, named = waiting_counts(expected), waiting_counts(found)
        # Who waits for room and for its queue's limit may be parked for either, and is looked at accordingly.
        assert named.keys() <= waits.keys() | wide.queue.unschedulable().keys()
        assert all(waits.get(class_id, count) == count for class_id, count in named.items())


# Who is named


def test_a_class_that_did_not_fit_what_came_free_stays_parked_and_is_not_named():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit("small", 8, size=core.amount(1000, 1))
    shell.submit("large", 1, size=core.amount(3000, 1), submitted_s=1.0)
    shell.cycle()
    shell.end("ns/small/map-0")
    assert set(shell.cycle().left) == {"small/map"}
    assert set(shell.queue.unschedulable()) == {"small/map", "large/map"}


def test_who_fitted_and_was_too_late_is_named_with_all_its_tasks():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit("first", 6, size=core.amount(1000, 1))
    shell.submit("second", 3, size=core.amount(1000, 1), submitted_s=1.0)
    shell.cycle()
    shell.end("ns/first/map-0")
    assert reasons(shell.cycle()) == {"first/map": ("Unschedulable", 1), "second/map": ("Unschedulable", 3)}


def full_shell():
    """A cluster of two full nodes with tasks that wait; one task has just ended."""
    shell = core.Shell(core.nodes(2, core.amount(4000, 8)), profile="fair")
    first = shell.submit("first", 20, size=core.amount(1000, 2))
    shell.cycle()
    shell.end(f"ns/{first.id}-0")
    return shell


def test_what_is_left_waiting_is_named_and_explained():
    plan = full_shell().plan()
    (pending,) = plan.left.values()
    assert (len(core.placements(plan)), pending.left, pending.verdict.code) == (1, 11, model.Code.UNSCHEDULABLE)
    assert plan.diagnosis("first/map").message == "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory."


def test_who_is_new_in_a_full_cluster_is_turned_away_with_a_reason():
    shell = full_shell()
    shell.cycle()
    shell.submit("second", 3, size=core.amount(1000, 2))
    shell.submit("giant", 1, size=core.amount(9000, 2))
    shell.cycle()
    assert {class_id: verdict.code for class_id, verdict in shell.queue.unschedulable().items()} == {
        "first/map": model.Code.UNSCHEDULABLE,
        "second/map": model.Code.UNSCHEDULABLE,
        "giant/map": model.Code.NEVER_FITS,
    }


# What else matters


def test_a_pod_that_holds_what_its_node_does_not_have_changes_nothing():
    shell, plain = full_shell(), full_shell()
    for node in ("n0", "n1"):
        plain.ledger.observe(core.account(node, node, core.amount()))
        shell.ledger.observe(core.account(node, node, core.amount(invented=5)))
    assert core.where(shell.plan()) == core.where(plain.plan()) != []


def test_nodes_that_a_class_may_not_use_are_left_out():
    shell = core.Shell([core.node("a", labels={"disk": "ssd"}), core.node("b")], profile="fair")
    shell.submit("first", 4, size=core.amount(4000, 8))
    pending_classes = model.Constraints(node_selector=(("disk", "ssd"),))
    shell.submit("second", 1, size=core.amount(4000, 8), submitted_s=-1.0, constraints=pending_classes)
    shell.cycle()
    shell.queue.withdraw(model.JobId("first"))
    for name in ("first/map-0", "second/map-0"):
        shell.end(f"ns/{name}")
    shell.submit("third", 1, size=core.amount(4000, 8), constraints=pending_classes)
    assert core.nodes_of(shell.plan()) == ["a"]


def test_a_cycle_in_which_nobody_is_looked_at_decides_nothing():
    shell = full_shell()
    shell.cycle()
    shell.cycle()
    plan = shell.plan()
    assert (plan.decisions, dict(plan.left)) == ([], {})


def test_an_order_whose_keys_are_constant_is_not_asked_again_for_jobs_that_got_nothing():
    class Counted(Fifo):
        asked = 0

        def key(self, *those):
            self.asked += 1
            return super().key(*those)

    shell = core.Shell(core.nodes(2), profile=dataclasses.replace(profiles.build("fifo"), order=Counted()))
    for i in range(20):
        shell.submit(f"job{i:02}", 20)
    shell.cycle()
    shell.end("ns/job00/map-0")
    before = shell.profile.order.asked
    assert len(core.placements(shell.plan())) == 1
    assert shell.profile.order.asked - before <= 1


def test_a_key_is_asked_again_for_whoever_holds_something_else_even_if_a_snapshot_was_missed():
    shell = full_shell()
    shell.submit("second", 20, size=core.amount(1000, 2), submitted_s=1.0)
    shell.cycle()
    for index in range(1, 5):
        shell.end(f"ns/first/map-{index}")
        shell.view()  # somebody else looks
        shell.cycle()
    held = [shell.view().job_usage(model.JobId(name))[model.CPU] for name in ("first", "second")]
    assert held == [4000, 4000]
