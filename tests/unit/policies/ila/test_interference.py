"""Algorithms 1 and 3 of ILA in cycles: who is accepted where, and what a cycle assumes."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies import ila, model, profiles
from boathouse_policies.framework import CycleState, PendingClass
from boathouse_policies.ila import profiling
from boathouse_policies.ila.iasm import Judged
from boathouse_policies.ila.monitoring import Running
from boathouse_policies.yarn_me.penalty import Elastic, Mapper
from tests.builders import core
from tests.builders.core_ila import SIZE, IlaShell, constant, exponential_model, hosts, linear

CROWDED = linear(1.0, c_u=2.0, c_a=2.0)
"""Twice as slow where half of the host's CPUs are used by others."""


COMPUTES = {"demand": (1.0, 0.0, 0.0)}
"""What is known of a job whose tasks use a CPU and read nothing."""


def test_one_task_for_each_host_where_any_neighbour_slows_it_down():
    shell = IlaShell(hosts(3), model_=CROWDED)
    shell.submit(count=6, **COMPUTES)
    assert sorted(name[:2] for name in core.nodes_of(shell.cycle())) == ["h0", "h1", "h2"]


def test_tasks_without_interference_share_a_host():
    shell = IlaShell(hosts(1), model_=constant(1.0))
    shell.submit(count=4, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 4


def test_nobody_is_refused_where_nothing_is_measured():
    shell = IlaShell(hosts(1), model_=constant(6.0), measured=False)
    shell.submit(count=4, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 4


def test_a_node_that_is_measured_no_more_refuses_nobody():
    shell = IlaShell(hosts(1), model_=constant(6.0))
    shell.submit(count=4, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 1
    shell.report(*(model.Measured(now_s=0.0, name=model.NodeName(name), usage={}) for name in ("h0v0", "h0v1")))
    assert len(core.nodes_of(shell.cycle(5.0))) == 3


def test_the_models_error_is_let_pass():
    shell = IlaShell(hosts(1), model_=constant(1.12))
    shell.submit(count=2, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 2
    shell = IlaShell(hosts(1), ila.Config(first_error=0.05), model_=constant(1.1))
    shell.submit(count=2, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 1


def test_the_error_widens_the_threshold_only_so_far():
    shell = IlaShell(hosts(1), ila.Config(first_error=5.0), model_=constant(1.4))
    shell.submit(count=2, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 1


def never_accepting(count: int) -> tuple[IlaShell, list[model.Placement]]:
    """Return a shell in which tasks slow one another down, and the one that runs; the others are overdue at 300 s."""
    shell = IlaShell(hosts(1), ila.static(1), model_=constant(3.0))
    shell.submit(count=count, **COMPUTES)
    running = core.placements(shell.cycle(0.0))
    assert len(running) == 1
    assert core.nodes_of(shell.cycle(295.0)) == []
    return shell, running


def test_nobody_waits_for_ever_beside_what_never_ends():
    shell, _ = never_accepting(count=2)
    assert len(core.nodes_of(shell.cycle(300.0))) == 1


def test_after_the_longest_wait_one_task_follows_the_other():
    shell, _ = never_accepting(count=6)
    placed = core.placements(shell.cycle(300.0))
    assert len(placed) == 3
    shell.finish(placed[0])
    assert len(core.nodes_of(shell.cycle(301.0))) == 1


def test_who_waited_for_too_long_waits_anew_once_a_host_has_accepted_a_task():
    shell, running = never_accepting(count=9)
    for placed in (*running, *core.placements(shell.cycle(300.0))):
        shell.finish(placed)
    again = core.placements(shell.cycle(301.0))
    assert len(again) == 4
    shell.finish(again[0])
    assert core.nodes_of(shell.cycle(302.0)) == []


@pytest.mark.parametrize(("threshold", "placed"), [(1.0, 1), (2.0, 3), (None, 4)])
def test_a_higher_threshold_lets_more_in(threshold, placed):
    shell = IlaShell(hosts(1), ila.static(threshold), model_=CROWDED)
    shell.submit(count=4, **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == placed


def test_after_twenty_idle_seconds_a_host_takes_what_raises_its_throughput():
    shell = IlaShell(hosts(1), model_=CROWDED)
    shell.submit(count=4, **COMPUTES)
    assert len(core.nodes_of(shell.cycle(0.0))) == 1
    assert len(core.nodes_of(shell.cycle(19.0))) == 0
    assert len(core.nodes_of(shell.cycle(20.0))) == 2  # 2 / 1.5 > 1 / 1 and 3 / 2 > 2 / 1.5; then one slot is idle
    assert len(core.nodes_of(shell.cycle(50.0))) == 0


def reached(shell):
    return shell.interference.thresholds._reached.tolist()


def test_the_threshold_of_a_host_changes_when_a_task_is_bound_not_when_it_is_considered():
    shell = IlaShell(hosts(1), model_=CROWDED)
    shell.submit(count=2, **COMPUTES)
    shell.cycle(0.0)
    shell.advance(20.0)
    shell.plan()
    assert reached(shell) == [1.0]
    shell.cycle(20.0)
    assert reached(shell) == [1.5]


def test_who_is_refused_everywhere_is_retried_when_a_host_may_be_ripe():
    shell = IlaShell(hosts(1), ila.Config(recheck_s=60.0), model_=CROWDED)
    task_class = shell.submit(count=2, **COMPUTES)
    plan = shell.cycle(0.5)
    waits = [wait for wait in plan.decisions if isinstance(wait, model.Reservation | model.Wait)]
    assert [(wait.task_class.id, wait.until_s) for wait in waits] == [(task_class.id, 21.0)]
    assert "slow down" in shell.queue.unschedulable()[task_class.id].message


def test_who_only_lacks_room_waits_for_room_alone():
    shell = IlaShell(hosts(1, vms_per_host=1, cpus=1), model_=constant(1.0))
    task_class = shell.submit(count=2, **COMPUTES)
    shell.cycle()
    assert shell.queue.unschedulable()[task_class.id] == model.Verdict(code=model.Code.UNSCHEDULABLE)


def test_a_class_that_fits_no_node_at_all_is_unschedulable():
    shell = IlaShell(hosts(2), model_=CROWDED)
    shell.submit("job", 3, **COMPUTES)
    task_class = shell.submit("huge", 1, **COMPUTES, size=core.amount(64_000, 1), submitted_s=1.0)
    shell.cycle()
    assert shell.queue.unschedulable()[task_class.id].code is model.Code.NEVER_FITS


def test_all_that_no_host_takes_are_parked_at_once_and_each_says_until_when():
    shell = IlaShell(hosts(2), model_=CROWDED)
    names = {shell.submit(f"job{i}", 3, submitted_s=float(i), **COMPUTES).id for i in range(4)}
    plan = shell.cycle(0.0)
    assert {wait.task_class.id for wait in plan.decisions if isinstance(wait, model.Reservation | model.Wait)} == names
    assert {verdict.code for verdict in shell.queue.unschedulable().values()} == {model.Code.PATIENCE}


def test_a_refusal_counts_the_nodes_with_room():
    shell = IlaShell(hosts(2), model_=CROWDED)
    task_class = shell.submit(count=4, **COMPUTES)
    plan = shell.cycle()
    assert [(r.reason, r.nodes) for r in plan.diagnosis(task_class.id).refusals] == [(ila.Interference.reason, 4)]


def test_the_next_job_is_tried_where_the_first_would_suffer():
    shell = IlaShell(hosts(1), model_=linear(1.0, c_u=4.0, c_a=4.0, t_r=-20.0))
    shell.submit("computes", 2, **COMPUTES)
    shell.submit("reads", 1, submitted_s=1.0, demand=(0.1, 0.2, 0.0))
    assert core.classes_of(shell.cycle()) == ["computes/map", "reads/map"]


def test_of_nodes_that_are_as_close_the_one_with_least_interference_is_taken():
    shell = IlaShell(hosts(2), ila.Config(threshold=9.0), model_=CROWDED)
    shell.submit("first", 1, **COMPUTES)
    first = core.nodes_of(shell.cycle())[0]
    shell.submit("second", 1, **COMPUTES)
    assert core.nodes_of(shell.cycle())[0][:2] != first[:2]


def test_interference_outranks_locality():
    shell = IlaShell(hosts(2), model_=CROWDED)
    shell.submit("first", 1, **COMPUTES, locations=("h0v0",))
    shell.cycle(0.0)
    shell.submit("second", 1, **COMPUTES, locations=("h0v1",))
    assert core.nodes_of(shell.cycle(1.0)) == []
    assert core.nodes_of(shell.cycle(6.5))[0][:2] == "h1"


def test_locality_outranks_the_least_interference():
    shell = IlaShell(hosts(2), ila.Config(threshold=9.0), model_=CROWDED)
    shell.submit("first", 1, **COMPUTES, locations=("h0v0",))
    shell.submit("second", 1, **COMPUTES, locations=("h0v1",), submitted_s=1.0)
    assert core.nodes_of(shell.cycle()) == ["h0v0", "h0v1"]


def test_other_stages_are_not_judged_but_count_as_neighbours():
    shell = IlaShell(hosts(1), model_=CROWDED)
    shell.submit("spark", 2, stage=model.Stage.EXECUTOR)
    assert len(core.nodes_of(shell.cycle())) == 2
    shell.submit("job", 1, **COMPUTES)
    assert core.nodes_of(shell.cycle()) == []


@pytest.mark.parametrize("stage", [model.Stage.EXECUTOR, model.Stage.MAP])
def test_a_gang_that_is_taken_back_is_no_neighbour(stage):
    shell = IlaShell(hosts(1, vms_per_host=1, cpus=2), model_=CROWDED)
    gang = shell.submit("gang", 3, stage=stage, gang_min=3)
    shell.submit("job", 1, **COMPUTES, submitted_s=1.0)
    assert core.classes_of(shell.cycle()) == ["job/map"]
    assert shell.queue.unschedulable()[gang.id].code is model.Code.GANG
    assert reached(shell) == [1.0]


def test_a_placement_that_is_taken_back_leaves_everything_as_it_was():
    shell = IlaShell(hosts(2, cpus=4), model_=CROWDED)
    shell.submit("job", 0)
    slowdowns, task = slowdowns_in_cycle(shell), judged(shell, 1.0, 0.1)
    slowdowns.place(0, task, is_judged=True)
    before = slowdowns.on_all(task).copy(), slowdowns.limits(task.margin).copy(), slowdowns.thresholds.reached.tolist()
    slowdowns.place(1, task, is_judged=True)
    slowdowns.undo(1, task.demand)
    assert slowdowns.on_all(task) == pytest.approx(before[0])
    assert slowdowns.limits(task.margin).tolist() == before[1].tolist()
    assert slowdowns.thresholds.reached.tolist() == before[2]


def test_asking_what_is_refused_does_not_begin_the_wait():
    shell = IlaShell(hosts(1), ila.static(1), model_=constant(3.0))
    shell.submit(count=2, **COMPUTES)
    shell.cycle(0.0)
    refused = shell.submit("other", 1, **COMPUTES, submitted_s=1.0)
    shell.now_s = 1.0
    pending = PendingClass(shell.queue.sorted_classes().queued[-1], shell.profile, CycleState(shell.view()))
    shell.interference.begins(shell.queue, pending.state)
    assert pending.task_class.id == refused.id
    has_room, wait = shell.interference.retry(pending)
    assert has_room
    assert wait.until_s == 6
    assert shell.interference.profiles.get(refused.id).refused_s == math.inf


def test_a_refused_placement_leaves_no_threshold():
    shell = IlaShell(hosts(1), model_=CROWDED)
    shell.submit(count=2, **COMPUTES)
    shell.cycle(0.0)
    shell.advance(20.0)
    (decision,) = core.placements(shell.plan())
    shell.report(model.Refused(now_s=20.0, decision=decision, reason="Outdated"))
    shell.report_task(model.Placed, decision.task, decision.node)
    assert reached(shell) == [1.0]


def test_what_was_measured_decides_for_the_tasks_that_follow():
    shell = IlaShell(hosts(1), model_=linear(1.0, c_u=1.0, c_a=1.0))
    shell.submit("job", 4)
    first = core.placements(shell.cycle(0.0))[0]
    shell.now_s = 10.0
    shell.finish(first, cpu_s=1.0)  # a tenth of a CPU
    assert len(core.nodes_of(shell.cycle(10.0))) == 3


def test_a_task_with_distant_input_teaches_its_own_demand():
    shell = IlaShell(hosts(1), model_=constant(1.0))
    task_class = shell.submit("job", 2)
    first = core.placements(shell.cycle(0.0))[0]
    shell.finish(first, seconds=40.0, cpu_s=10.0, remote_bytes=200e6)
    profile = shell.interference.profiles.get(task_class.id)
    assert profile.demand.read == pytest.approx(0.2)
    assert profile.demand_at(model.Distance.RACK) == pytest.approx((0.25, 0.0, 0.0))


def test_observations_refit_the_model_every_hundred():
    shell = IlaShell(hosts(1, cpus=8), ila.Config(refit_every=30))
    before = model_of(shell, "")
    shell.submit(count=200, **COMPUTES)
    for i in range(60):
        placed = core.placements(shell.cycle(10.0 * i))
        shell.now_s += 5.0
        for placement in placed:
            shell.finish(placement, seconds=12.0 + i % 5, cpu_s=10.0)
    assert model_of(shell, "") is not before


def test_the_state_survives_a_restart():
    shell = namespaces_shell()
    run_maps(shell, "a", slowdown=2.0)
    state = json.loads(json.dumps(shell.interference.dump()))
    again = ila.Interference(ila.Config())
    again.load(state)
    assert again.learners.of("a").model.dump() == model_of(shell, "a").dump()
    assert again.learners.of("a").error == pytest.approx(shell.interference.learners.of("a").error, abs=1e-4)
    again.load(state | {"programs": {"sort": [1.0, 0.5, 0.25]}})
    assert again.dump()["programs"] == {"sort": [1.0, 0.5, 0.25]}
    again.load({"later": 1, "learners": {"a": {"model": {"family": "cubic"}}}, "programs": {"sort": [1.0]}})
    assert again.learners.of("a").model is again.learners.first.model  # that is a later version's


def test_the_model_that_an_earlier_version_had_of_all_namespaces_is_dropped():
    interference = ila.Interference(ila.Config())
    interference.load({"learner": {"model": exponential_model().dump(), "error": 0.5, "fitted": True}})
    assert interference.learners.of("a") is interference.learners.first
    assert interference.learners.first.error == ila.Config().first_error


def test_the_profiles_have_their_names():
    assert {"ila", "iao", "lao", "ila-static-1", "ila-static-8"} <= set(profiles.names())
    assert profiles.build("lao").observers[0].__class__.__name__ == "AdaptiveDelay"
    assert profiles.build("iao").name == "iao"


@pytest.mark.parametrize("wrong", [{"threshold": 0.5}, {"ewma": 0.0}, {"delay_s": -1.0}, {"refit_every": 0}])
def test_a_configuration_without_meaning_is_refused(wrong):
    with pytest.raises(ValueError, match=f"ila: {next(iter(wrong))}"):
        ila.Config(**wrong)


# Namespaces


def namespaces_shell(**config):
    """A shell whose models are fitted after thirty maps."""
    return IlaShell(hosts(4, cpus=8), ila.Config(refit_every=30, threshold=8.0, **config))


def model_of(shell, namespace):
    return shell.interference.learners.of(namespace).model


def run_maps(shell, namespace, *, slowdown, count=120, **counters):
    """Maps of a namespace say that they compute, and take so many times of what they would alone."""
    shell.submit(f"of-{namespace}", count, namespace=namespace, submitted_s=shell.now_s)
    left = count
    while left:
        placed = core.placements(shell.cycle(shell.now_s + 1.0))
        shell.now_s += 10.0
        for i, placement in enumerate(placed):
            shell.finish(placement, seconds=10.0 * slowdown + i % 3, **{"cpu_s": 10.0} | counters)
        left -= len(placed)


def predicted_for(shell, namespace):
    """The slowdown of a task that computes beside a few others, by the namespace's model."""
    beside = [0.1, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    return shell.interference.learners.of(namespace).predict(beside, profiling.Demand(1.0, 0.0, 0.0))


def test_forged_run_times_raise_what_is_predicted_for_their_own_namespace_alone():
    shell = namespaces_shell()
    run_maps(shell, "honest", slowdown=1.0)
    before = [predicted_for(shell, name) for name in ("honest", "new")]
    run_maps(shell, "forger", slowdown=6.0, count=300)
    assert predicted_for(shell, "forger") > max(before) + 0.2
    assert [predicted_for(shell, name) for name in ("honest", "new")] == before


def test_a_namespaces_tasks_are_judged_by_its_own_model_in_the_same_cycle():
    shell = IlaShell(hosts(1), model_=constant(1.0))
    shell.interference.learners.observe("slow", [0.0] * 8, profiling.IDLE, 1.0)
    shell.interference.learners.of("slow").model = constant(6.0)
    shell.submit("theirs", 2, namespace="slow", **COMPUTES)
    shell.submit("ours", 2, namespace="ours", submitted_s=1.0, **COMPUTES)
    assert sorted(core.classes_of(shell.cycle())) == ["ours/map", "ours/map"]


def test_a_forged_error_of_the_model_lets_nobody_else_pass():
    shell = IlaShell(hosts(1), model_=constant(1.2))
    shell.interference.learners.observe("forger", [0.0] * 8, profiling.IDLE, 1.0)
    shell.interference.learners.of("forger").error = 9.0
    shell.submit("ours", 2, namespace="ours", **COMPUTES)
    assert len(core.nodes_of(shell.cycle())) == 1


def test_a_task_that_says_it_uses_more_than_a_host_has_counts_as_one_that_uses_a_host():
    shell = namespaces_shell()
    run_maps(shell, "forger", slowdown=1.0, count=1, cpu_s=1e9, read_bytes=1e18, written_bytes=1e18)
    (profile,) = shell.interference.profiles._known.values()
    assert profile.demand == profiling.Demand(16.0, 1.0, 1.0)


# Physical bounds


def slowdowns_seen(monkeypatch, shell):
    """The slowdowns from which the models learn from now on."""
    seen = []
    monkeypatch.setattr(shell.interference.learners, "observe", lambda *observed: seen.append(observed[-1]))
    return seen


def run_map(shell, *, seconds, resized=None, **of):
    """A map of a class whose demand is known runs, and tells that it computed for all that time."""
    task_class = shell.submit(demand=(1.0, 0.0, 0.0), **of)
    (placed,) = core.placements(shell.cycle(0.0))
    if resized is not None:
        size = {"resources": resized, "distance": model.Distance.NODE}
        shell.report_task(model.Placed, placed.task, placed.node, **size)
    shell.now_s = seconds
    shell.finish(placed, seconds=seconds, cpu_s=seconds)
    return shell.interference.profiles.get(task_class.id).demand


@pytest.mark.parametrize("estimated_s", [0.0012, 0.045, 3.0])
def test_a_map_of_one_core_uses_no_more_than_a_core_however_wrong_its_estimate(estimated_s, monkeypatch):
    shell = IlaShell(hosts(1, cpus=8))
    seen = slowdowns_seen(monkeypatch, shell)
    demand = run_map(shell, seconds=3.0, estimates=model.Fixed(seconds=estimated_s), cpu_limit_milli=1000)
    assert demand == pytest.approx((1.0, 0.0, 0.0))
    assert seen == [pytest.approx(1.0)]  # it computed for 3 s, so it would have taken as long alone


@pytest.mark.parametrize(("estimated_s", "slowdown"), [(0.045, 20.0), (77000.0, 0.05)])
def test_no_run_time_differs_from_that_without_neighbours_by_more_than_a_bound(estimated_s, slowdown, monkeypatch):
    shell = IlaShell(hosts(1, cpus=8))
    seen = slowdowns_seen(monkeypatch, shell)
    run_map(shell, seconds=3.0, estimates=model.Fixed(seconds=estimated_s))
    assert seen == [pytest.approx(slowdown)]


def test_what_a_task_pays_for_less_memory_is_not_laid_to_its_neighbours(monkeypatch):
    shell = IlaShell(hosts(1))
    seen, ideal = slowdowns_seen(monkeypatch, shell), SIZE.memory_bytes
    penalty = Mapper(ideal_s=10.0, ideal_bytes=ideal, undersized_s=15.0)
    estimates = Elastic(penalty, ideal_bytes=ideal, step_bytes=ideal // 8)
    run_map(shell, seconds=15.0, resized=core.amount(1000, 0.25), estimates=estimates)
    assert seen == [1.0]


@pytest.mark.parametrize(("sigma_s", "learned"), [(None, [2.0]), (1.0, [2.0]), (8.0, [])])
def test_an_estimate_that_may_be_far_off_tells_nothing_of_neighbours(sigma_s, learned, monkeypatch):
    shell = IlaShell(hosts(1))
    seen = slowdowns_seen(monkeypatch, shell)
    run_map(shell, seconds=20.0, estimates=model.Fixed(seconds=10.0, sigma_s=sigma_s))
    assert seen == learned


def test_a_program_that_is_known_to_use_more_than_a_class_can_is_taken_to_use_what_it_can():
    shell = IlaShell(hosts(1))
    shell.interference.load({"programs": {"ns/a/0/map": [158.0, 0.5, 0.0], "ns/b/0/map": [-1.0, math.inf, 0.0]}})
    task_class = shell.submit(kind="ns/a", cpu_limit_milli=1500)
    assert shell.interference.profiles.get(task_class.id).demand == (1.5, 0.5, 0.0)
    assert list(shell.interference.dump()["programs"]) == ["ns/a/0/map"]


@pytest.mark.parametrize("error", [1.1, 2.6e12, math.inf, math.nan, -1.0])
def test_a_model_with_an_error_beyond_reason_is_not_loaded(error):
    interference = ila.Interference(ila.Config())
    interference.load({"learners": {"a": {"model": exponential_model().dump(), "error": error, "fitted": True}}})
    assert interference.learners.of("a").model is interference.learners.first.model
    assert interference.learners.of("a").error == ila.Config().first_error


def test_the_namespace_that_learnt_nothing_for_longest_begins_anew():
    learners = ila.Learners(ila.Config(learners_kept=2))
    for name in ("a", "b", "a", "c"):
        learners.observe(name, [0.0] * 8, profiling.IDLE, 1.0)
    assert [learners.of(name) is learners.first for name in "abc"] == [False, True, False]


# A cycle's columns


def judged(shell, cpu, read=0.0, write=0.0):
    """A task with a demand, in no namespace."""
    first = shell.interference.learners.first
    return Judged(profiling.Demand(cpu, read, write), first.model, first.margin)


def slowdowns_in_cycle(shell):
    """What is predicted as a cycle begins."""
    shell.interference.begins(shell.queue, CycleState(shell.view()))
    return shell.interference.slowdowns


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.05, 1.0), st.floats(0, 0.5)), min_size=1, max_size=10))
@settings(max_examples=40, deadline=None)
def test_updates_within_a_cycle_equal_the_next_cycles_computation(tasks):
    shell = IlaShell(hosts(3, cpus=16), ila.Config(threshold=50.0))
    shell.submit("job", 0)
    slowdowns = slowdowns_in_cycle(shell)
    for i, (node, cpu, disk) in enumerate(tasks):
        task = judged(shell, cpu, disk, disk / 2)
        slowdowns.place(node, task, is_judged=True)
        name = shell.view().layout.names[node]
        running = Running(model.ClassId(f"c{i}"), name, core.amount(1000, 1), task.demand, False, False, False, 0.0)
        shell.interference.monitor.placed(model.TaskId(str(i)), running)
    task = judged(shell, 0.7, 0.1, 0.1)
    assert slowdowns.on_all(task) == pytest.approx(slowdowns_in_cycle(shell).on_all(task), rel=1e-9)


def test_a_task_that_was_not_judged_leaves_the_threshold():
    shell = IlaShell(hosts(1), model_=CROWDED)
    shell.submit("job", 0)
    slowdowns = slowdowns_in_cycle(shell)
    slowdowns.thresholds.reached[0] = 2.0
    slowdowns.place(0, judged(shell, 1.0), is_judged=False)
    assert slowdowns.thresholds.reached[0] == 2.0


def test_within_a_cycle_too_a_disk_is_busy_for_all_of_its_time_at_most():
    shell = IlaShell(hosts(1), ila.Config(threshold=50.0), model_=linear(1.0, io_u=1.0))
    shell.submit("job", 0)
    slowdowns = slowdowns_in_cycle(shell)
    for _ in range(3):
        slowdowns.place(0, judged(shell, 0.1, 0.4), is_judged=True)
    assert slowdowns.on_all(judged(shell, 0.0)).tolist() == [2.0, 2.0]


def test_columns_of_nodes_without_a_host_are_their_own():
    shell = IlaShell([core.node("a"), core.node("b")], model_=CROWDED)
    shell.submit(count=4, **COMPUTES)
    assert sorted(core.nodes_of(shell.cycle())) == ["a", "b"]
    assert math.isfinite(np.sum(reached(shell)))


def test_cpu_of_other_pods_counts_by_their_requests_where_nothing_is_measured():
    shell = IlaShell(hosts(2), model_=CROWDED, measured=False)
    shell.ledger.observe(core.account("foreign", "h0v0", core.amount(2000, 1)))
    shell.submit("job", 1, **COMPUTES, locations=("h0v1",))
    shell.submit("other", 0)
    assert slowdowns_in_cycle(shell).on_all(judged(shell, 1.0)).tolist() == [2.0, 2.0, 1.0, 1.0]


# The best model of a program


def best_shell(program="ns/quick", count=8):
    """A shell whose exponential model is wrong about a program: its maps take 10 s whatever runs beside them."""
    shell = IlaShell(hosts(4, cpus=8), ila.Config(threshold=8.0, best_model=True), constant(3.0))
    for number in range(count):
        shell.submit(f"job-{number}", kind=program, submitted_s=shell.now_s)
        placed = core.placements(shell.cycle())[0]
        shell.now_s += 10.0
        shell.finish(placed, cpu_s=10.0)
    return shell


def figures_of(shell, kind):
    """The figures of one more map that is placed."""
    shell.submit("next", kind=kind, submitted_s=shell.now_s)
    return dict(core.placements(shell.cycle())[0].figures)


def test_a_program_is_judged_by_the_model_that_predicted_it_best():
    figures = figures_of(best_shell(), "ns/quick")
    assert figures["slowdownModel"] > 0
    assert figures["slowdownError"] < 0.1
    assert figures["slowdown"] < 1.5


def test_other_programs_are_judged_by_the_papers_model_until_they_are_known():
    figures = figures_of(best_shell(), "ns/other")
    assert "slowdownModel" not in figures
    assert figures["slowdown"] == 3.0


def test_what_is_best_survives_a_restart():
    shell, after = best_shell(), IlaShell(hosts(4, cpus=8), ila.Config(threshold=8.0, best_model=True), constant(3.0))
    after.interference.load(shell.interference.dump())
    assert figures_of(after, "ns/quick")["slowdownModel"] > 0
