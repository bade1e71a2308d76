"""Algorithms 1 and 3 of ILA in cycles: who is accepted where, and what a cycle reckons with."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import ila, model, profiles
from boathouse_policies.framework import CycleState, PendingClass
from boathouse_policies.ila import metrics
from boathouse_policies.ila.monitoring import Running
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import Shell, always, hosts, linear, placed_on
from tests.unit.policies.ila.test_models import truth

CROWDED = linear(1.0, c_u=2.0, c_a=2.0)
"""Twice as slow where half of the host's CPUs are used by others."""


def known(world, name="job", count=1, cpu=1.0, **fields):
    """A job of whose tasks the CPU is known, and that they read nothing."""
    one = world.maps(name, count, **fields)
    world.uses(one, cpu)
    return one


def test_one_task_for_each_host_where_any_neighbour_slows_it_down():
    world = Shell(hosts(3), model_=CROWDED)
    known(world, count=6)
    assert sorted(one[:2] for one in placed_on(world.go())) == ["h0", "h1", "h2"]


def test_a_task_that_minds_nobody_goes_beside_others():
    world = Shell(hosts(1), model_=always(1.0))
    known(world, count=4)
    assert len(placed_on(world.go())) == 4


def test_nobody_is_refused_where_nothing_is_measured():
    world = Shell(hosts(1), model_=always(6.0), measured=False)
    known(world, count=4)
    assert len(placed_on(world.go())) == 4


def test_a_node_that_is_measured_no_more_refuses_nobody():
    world = Shell(hosts(1), model_=always(6.0))
    known(world, count=4)
    assert len(placed_on(world.go())) == 1
    for name in ("h0v0", "h0v1"):
        world.tell(model.Measured(now_s=world.now_s, name=model.NodeName(name), usage={}))
    assert len(placed_on(world.go(5.0))) == 3


def test_the_models_error_is_let_pass():
    world = Shell(hosts(1), model_=always(1.12))
    known(world, count=2)
    assert len(placed_on(world.go())) == 2
    world = Shell(hosts(1), ila.Config(first_error=0.05), model_=always(1.1))
    known(world, count=2)
    assert len(placed_on(world.go())) == 1


def test_the_error_widens_the_threshold_only_so_far():
    world = Shell(hosts(1), ila.Config(first_error=5.0), model_=always(1.4))
    known(world, count=2)
    assert len(placed_on(world.go())) == 1


def test_nobody_waits_for_ever_beside_what_never_ends():
    world = Shell(hosts(1), ila.static(1), model_=always(3.0))
    known(world, count=2)
    assert len(placed_on(world.go(0.0))) == 1
    assert placed_on(world.go(295.0)) == []
    assert len(placed_on(world.go(300.0))) == 1


@pytest.mark.parametrize(("threshold", "placed"), [(1.0, 1), (2.0, 3), (None, 4)])
def test_a_higher_threshold_lets_more_in(threshold, placed):
    world = Shell(hosts(1), ila.static(threshold), model_=CROWDED)
    one = world.maps("job", 4)
    if world.interference is not None:
        world.uses(one, 1.0)
    assert len(placed_on(world.go())) == placed


def test_after_twenty_idle_seconds_a_host_takes_what_raises_its_throughput():
    world = Shell(hosts(1), model_=CROWDED)
    known(world, count=4)
    assert len(placed_on(world.go(0.0))) == 1
    assert len(placed_on(world.go(19.0))) == 0
    assert len(placed_on(world.go(20.0))) == 2  # 2 / 1.5 > 1 / 1 and 3 / 2 > 2 / 1.5; then one slot is idle
    assert len(placed_on(world.go(50.0))) == 0


def reached(world):
    return world.interference.thresholds._reached.tolist()


def test_the_threshold_of_a_host_changes_when_a_task_is_bound_not_when_it_is_considered():
    world = Shell(hosts(1), model_=CROWDED)
    known(world, count=2)
    world.go(0.0)
    world.now_s = 20.0
    world.room.tick(20.0)
    world.plan()
    assert reached(world) == [1.0]
    world.go(20.0)
    assert reached(world) == [1.5]


def test_who_is_refused_everywhere_is_retried_when_a_host_may_be_ripe():
    world = Shell(hosts(1), ila.Config(recheck_s=60.0), model_=CROWDED)
    one = known(world, count=2)
    plan = world.go(0.5)
    holds = [hold for hold in plan.decisions if isinstance(hold, model.Reservation | model.Wait)]
    assert [(hold.task_class.id, hold.until_s) for hold in holds] == [(one.id, 21.0)]
    assert "slow down" in world.room.unschedulable()[one.id].message


def test_who_only_lacks_room_waits_for_room_alone():
    world = Shell(hosts(1, each=1, cpus=1), model_=always(1.0))
    one = known(world, count=2)
    world.go()
    assert world.room.unschedulable()[one.id] == model.Verdict(code=model.Code.UNSCHEDULABLE)


def test_a_class_that_fits_no_node_at_all_is_told_so():
    world = Shell(hosts(2), model_=CROWDED)
    known(world, "job", 3)
    one = known(world, "huge", 1, size=make.amount(64_000, 1), submitted_s=1.0)
    world.go()
    assert world.room.unschedulable()[one.id].code is model.Code.NEVER_FITS


def test_all_that_no_host_takes_are_parked_at_once_and_each_says_until_when():
    world = Shell(hosts(2), model_=CROWDED)
    names = {known(world, f"job{i}", 3, submitted_s=float(i)).id for i in range(4)}
    plan = world.go(0.0)
    assert {hold.task_class.id for hold in plan.decisions if isinstance(hold, model.Reservation | model.Wait)} == names
    assert {verdict.code for verdict in world.room.unschedulable().values()} == {model.Code.PATIENCE}


def test_a_refusal_counts_the_nodes_with_room():
    world = Shell(hosts(2), model_=CROWDED)
    one = known(world, count=4)
    plan = world.go()
    assert [(r.reason, r.nodes) for r in plan.diagnosis(one.id).refusals] == [(ila.Interference.reason, 4)]


def test_the_next_job_is_tried_where_the_first_would_suffer():
    world = Shell(hosts(1), model_=linear(1.0, c_u=4.0, c_a=4.0, t_r=-20.0))
    known(world, "computes", 2)
    one = world.maps("reads", 1, submitted_s=1.0)
    world.uses(one, 0.1, 0.2)
    placed = [one.job.id for one in make.placements(world.go())]
    assert placed == ["computes", "reads"]


def test_of_nodes_that_are_as_close_the_one_with_least_interference_is_taken():
    world = Shell(hosts(2), ila.Config(threshold=9.0), model_=CROWDED)
    known(world, "first", 1)
    first = placed_on(world.go())[0]
    known(world, "second", 1)
    assert placed_on(world.go())[0][:2] != first[:2]


def test_interference_comes_before_locality():
    world = Shell(hosts(2), model_=CROWDED)
    known(world, "first", 1, locations=("h0v0",))
    world.go(0.0)
    known(world, "second", 1, locations=("h0v1",))
    assert placed_on(world.go(1.0)) == []
    assert placed_on(world.go(6.5))[0][:2] == "h1"


def test_closeness_comes_before_the_least_interference():
    world = Shell(hosts(2), ila.Config(threshold=9.0), model_=CROWDED)
    known(world, "first", 1, locations=("h0v0",))
    known(world, "second", 1, locations=("h0v1",), submitted_s=1.0)
    assert placed_on(world.go()) == ["h0v0", "h0v1"]


def test_other_stages_are_not_judged_but_count_as_neighbours():
    world = Shell(hosts(1), model_=CROWDED)
    world.maps("spark", 2, stage=model.Stage.EXECUTOR)
    assert len(placed_on(world.go())) == 2
    known(world, "job", 1)
    assert placed_on(world.go()) == []


@pytest.mark.parametrize("stage", [model.Stage.EXECUTOR, model.Stage.MAP])
def test_a_gang_that_is_taken_back_is_no_neighbour(stage):
    world = Shell(hosts(1, each=1, cpus=2), model_=CROWDED)
    gang = world.maps("gang", 3, stage=stage, gang_min=3)
    known(world, "job", 1, submitted_s=1.0)
    assert [one.job.id for one in make.placements(world.go())] == ["job"]
    assert world.room.unschedulable()[gang.id].code is model.Code.GANG
    assert reached(world) == [1.0]


def test_a_placement_that_is_taken_back_leaves_everything_as_it_was():
    world = Shell(hosts(2, cpus=4), model_=CROWDED)
    world.maps("job", 0)
    slowdowns, demand = in_cycle(world), metrics.Demand(1.0, 0.1, 0.0)
    slowdowns.place(0, demand, is_judged=True)
    before = slowdowns.on_all(demand).copy(), slowdowns.limits.copy()
    slowdowns.place(1, demand, is_judged=True)
    slowdowns.undo(1, demand)
    assert slowdowns.on_all(demand) == pytest.approx(before[0])
    assert slowdowns.limits.tolist() == before[1].tolist()


def test_asking_what_is_refused_does_not_begin_the_wait():
    world = Shell(hosts(1), ila.static(1), model_=always(3.0))
    known(world, count=2)
    world.go(0.0)
    refused = known(world, "other", 1, submitted_s=1.0)
    world.now_s = 1.0
    pending = PendingClass(world.room.sorted_classes().queued[-1], world.profile, CycleState(world.view()))
    world.interference.begins(world.room, pending.state)
    assert pending.task_class.id == refused.id
    has_room, wait = world.interference.retry(pending)
    assert has_room
    assert wait.until_s == 6
    assert world.interference.profiles.get(refused.id).refused_s == math.inf


def test_the_threshold_that_a_placement_made_goes_with_its_refusal():
    world = Shell(hosts(1), model_=CROWDED)
    known(world, count=2)
    world.go(0.0)
    world.now_s = 20.0
    world.room.tick(20.0)
    (decision,) = make.placements(world.plan())
    world.tell(model.Refused(now_s=20.0, decision=decision, reason="Outdated"))
    ids = {"task": decision.task.id, "task_class": decision.task_class.id, "job": decision.job.id}
    world.tell(
        model.Placed(now_s=20.0, node=decision.node, resources=decision.resources, distance=decision.distance, **ids)
    )
    assert reached(world) == [1.0]


def test_what_was_measured_decides_for_the_tasks_that_follow():
    world = Shell(hosts(1), model_=linear(1.0, c_u=1.0, c_a=1.0))
    world.maps("job", 4)
    first = make.placements(world.go(0.0))[0]
    world.now_s = 10.0
    world.finish(first, cpu_s=1.0)  # a tenth of a CPU
    assert len(placed_on(world.go(10.0))) == 3


def test_a_task_with_distant_input_teaches_its_own_demand():
    world = Shell(hosts(1), model_=always(1.0))
    one = world.maps("job", 2)
    first = make.placements(world.go(0.0))[0]
    world.finish(first, seconds=40.0, cpu_s=10.0, remote_bytes=200e6)
    profile = world.interference.profiles.get(one.id)
    assert profile.demand.read == pytest.approx(0.2)
    assert profile.demand_at(model.Distance.RACK) == pytest.approx((0.25, 0.0, 0.0))


def test_observations_refit_the_model_every_hundred():
    world = Shell(hosts(1, cpus=8), ila.Config(refit_every=30))
    learner = world.interference.learner
    before = learner.model
    known(world, count=200)
    for i in range(60):
        world.now_s = 10.0 * i
        for one in make.placements(world.go()):
            world.now_s = 10.0 * i + 5.0
            world.finish(one, seconds=12.0 + i % 5, cpu_s=10.0)
    assert learner.model is not before


def test_the_state_survives_a_restart():
    world = Shell(hosts(1), model_=truth("exponential"))
    world.interference.learner.error = 0.2
    state = world.interference.dump()
    again = ila.Interference(ila.Config())
    again.load(state)
    assert again.learner.error == 0.2
    assert again.learner.model.dump() == state["learner"]["model"]
    again.load({"later": 1, "learner": {"model": {"family": "cubic"}}, "programs": {"sort": [1.0]}})  # a later version
    assert again.learner.model.dump() == state["learner"]["model"]


def test_the_profiles_have_their_names():
    assert {"ila", "iao", "lao", "ila-static-1", "ila-static-8"} <= set(profiles.names())
    assert profiles.build("lao").observers[0].__class__.__name__ == "AdaptiveDelay"
    assert profiles.build("iao").name == "iao"


@pytest.mark.parametrize("wrong", [{"threshold": 0.5}, {"ewma": 0.0}, {"delay_s": -1.0}, {"refit_every": 0}])
def test_a_configuration_without_meaning_is_refused(wrong):
    with pytest.raises(ValueError, match=f"ila: {next(iter(wrong))}"):
        ila.Config(**wrong)


# A cycle's columns


def in_cycle(world):
    """What is predicted as a cycle begins."""
    world.interference.begins(world.room, CycleState(world.view()))
    return world.interference.slowdowns


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.05, 1.0), st.floats(0, 0.5)), min_size=1, max_size=10))
@settings(max_examples=40, deadline=None)
def test_updates_within_a_cycle_equal_the_next_cycles_computation(tasks):
    world = Shell(hosts(3, cpus=16), ila.Config(threshold=50.0))
    world.maps("job", 0)
    slowdowns = in_cycle(world)
    for i, (node, cpu, disk) in enumerate(tasks):
        demand = metrics.Demand(cpu, disk, disk / 2)
        slowdowns.place(node, demand, is_judged=True)
        name = world.view().layout.names[node]
        running = Running(model.ClassId(f"c{i}"), name, 1000, demand, False, False, False, 0.0)
        world.interference.monitor.placed(model.TaskId(str(i)), running)
    judged = metrics.Demand(0.7, 0.1, 0.1)
    assert slowdowns.on_all(judged) == pytest.approx(in_cycle(world).on_all(judged), rel=1e-9)


def test_a_task_that_was_not_judged_leaves_the_threshold():
    world = Shell(hosts(1), model_=CROWDED)
    world.maps("job", 0)
    slowdowns = in_cycle(world)
    slowdowns.thresholds.reached[0] = 2.0
    slowdowns.place(0, metrics.Demand(1.0, 0.0, 0.0), is_judged=False)
    assert slowdowns.thresholds.reached[0] == 2.0


def test_within_a_cycle_too_a_disk_is_busy_for_all_of_its_time_at_most():
    world = Shell(hosts(1), ila.Config(threshold=50.0), model_=linear(1.0, io_u=1.0))
    world.maps("job", 0)
    slowdowns = in_cycle(world)
    for _ in range(3):
        slowdowns.place(0, metrics.Demand(0.1, 0.4, 0.0), is_judged=True)
    assert slowdowns.on_all(metrics.IDLE).tolist() == [2.0, 2.0]


def test_columns_of_nodes_without_a_host_are_their_own():
    world = Shell([make.node("a"), make.node("b")], model_=CROWDED)
    known(world, count=4)
    assert sorted(placed_on(world.go())) == ["a", "b"]
    assert math.isfinite(np.sum(reached(world)))


def test_cpu_of_other_pods_counts_by_their_requests_where_nothing_is_measured():
    world = Shell(hosts(2), model_=CROWDED, measured=False)
    world.ledger.observe(make.pod("foreign", "h0v0", make.amount(2000, 1)))
    known(world, "job", 1, locations=("h0v1",))
    world.maps("other", 0)
    assert in_cycle(world).on_all(metrics.Demand(1.0, 0.0, 0.0)).tolist() == [2.0, 2.0, 1.0, 1.0]
