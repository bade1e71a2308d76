"""What must hold for every cluster, load and course of events."""

from __future__ import annotations

import collections
import copy
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies import framework, model, profiles
from boathouse_policies.framework import eligibility
from tests.builders import core
from tests.builders.core_strategies import (
    PROFILES,
    QUEUES,
    clusters,
    loaded_shell,
    loads,
    ports,
    profile_names,
    selectors,
    sizes,
    taints,
)

if TYPE_CHECKING:
    import random

FEW = settings(max_examples=35, deadline=None)


def over_committed(view: framework.ClusterView) -> bool:
    used = view.requested > 0
    return bool(((view.requested > view.layout.allocatable) & used).any())


def conflicts(ports: tuple[model.HostPort, ...]) -> bool:
    return any(a.conflicts(b) for i, a in enumerate(ports) for b in ports[i + 1 :])


@FEW
@given(clusters(), loads(), profile_names)
def test_no_node_is_ever_over_committed(nodes, load, profile):
    shell = loaded_shell(nodes, load, profile)
    shell.cycle()
    view = shell.view()
    assert not over_committed(view)
    assert not any(conflicts(taken) for taken in view.host_ports.values())
    for queue in QUEUES:
        usage, limits = view.queue_usage(queue.name), [(shell.axis.row(name), most) for name, most in queue.limits]
        assert all(sum(usage[row : row + 1]) <= most for row, most in limits)


@FEW
@given(clusters(), loads(), profile_names)
def test_nothing_is_left_waiting_that_fits_unless_it_is_held_for_a_reason(nodes, load, profile):
    shell = loaded_shell(nodes, load, profile)
    first = shell.cycle()
    placed = {placed.task.id for placed in core.placements(first)}
    for job, classes, tasks in load:
        for task_class in classes:
            waiting = [t for t in tasks if t.task_class == task_class.id and t.id not in placed]
            assert (task_class.id in first.left) is bool(waiting)
            if waiting and first.left[task_class.id].verdict.code in (model.Code.UNSCHEDULABLE, model.Code.NEVER_FITS):
                assert not fits_somewhere(shell, task_class), (job.id, task_class.id)


def fits_somewhere(shell: core.Shell, task_class: model.TaskClass) -> bool:
    """Judged by plain loops, without masks."""

    need = shell.axis.vector(task_class.resources)
    view = shell.view()
    for i, node in enumerate(view.nodes):
        free = view.free()[:, i]
        taken = view.host_ports.get(node.name, ())
        clash = any(a.conflicts(b) for a in task_class.constraints.host_ports for b in taken)
        if eligibility.refusal(task_class.constraints, node) is None and not clash and (free >= need)[need > 0].all():
            return True
    return False


@FEW
@given(clusters(), loads(), profile_names, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_in_which_things_were_said(nodes, load, profile, chance: random.Random):
    shuffled_nodes, shuffled_load = list(nodes), [(j, c, list(t)) for j, c, t in load]
    chance.shuffle(shuffled_nodes)
    chance.shuffle(shuffled_load)
    for _, _, tasks in shuffled_load:
        chance.shuffle(tasks)
    plan, shuffled = (
        loaded_shell(nodes, load, profile).plan(),
        loaded_shell(shuffled_nodes, shuffled_load, profile).plan(),
    )
    assert plan.decisions == shuffled.decisions
    assert sorted(plan.diagnoses(), key=str) == sorted(shuffled.diagnoses(), key=str)


@FEW
@given(clusters(), loads(), profile_names)
def test_a_cycle_changes_nothing_that_it_is_given(nodes, load, profile):
    shell = loaded_shell(nodes, load, profile)
    view = shell.view()
    before = copy.deepcopy(
        (view.requested, view.by_job, view.by_queue, view.by_class, view.host_ports, len(shell.queue))
    )
    once = framework.run_cycle(shell.queue, shell.profile, view)
    again = framework.run_cycle(shell.queue, shell.profile, view)
    assert once.decisions == again.decisions
    np.testing.assert_equal(
        (view.requested, view.by_job, view.by_queue, view.by_class, view.host_ports, len(shell.queue)), before
    )


@FEW
@given(clusters(), loads(), profile_names)
def test_a_gang_is_placed_whole_or_not_at_all(nodes, load, profile):
    shell = loaded_shell(nodes, load, profile)
    shell.cycle()
    counts = shell.view().by_class
    for _, classes, tasks in load:
        gang = [task_class for task_class in classes if task_class.gang_min]
        placed = [counts.get(task_class.id, 0) for task_class in gang]
        assert not any(placed) or all(n >= task_class.gang_min for n, task_class in zip(placed, gang, strict=True))
        assert len(tasks) >= sum(counts.get(task_class.id, 0) for task_class in classes)


@FEW
@given(clusters(), loads())
def test_the_second_cycle_has_nothing_to_add_to_the_first(nodes, load):
    shell = loaded_shell(nodes, load)
    shell.cycle()
    assert not shell.queue.tick(shell.now_s)  # a shell that asks is not sent round in circles
    shell.queue.nodes_changed()
    shell.queue.set_queues(QUEUES)
    assert core.placements(shell.plan()) == []


# Fair share's bounds

weights = st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=2, max_size=5)


def served(weights_of_jobs: list[float], cpus: int = 40) -> list[int]:
    """Tasks of 1 CPU that each job gets of a full node."""
    shell = core.Shell([core.node(allocatable=core.amount(1000 * cpus, 64))])
    for i, weight in enumerate(weights_of_jobs):
        shell.submit(f"j{i}", 100, size=core.amount(1000, 1), weight=weight)
    shell.cycle()
    return [int(shell.view().job_usage(model.JobId(f"j{i}"))[model.PODS]) for i in range(len(weights_of_jobs))]


@FEW
@given(weights)
def test_max_min_no_job_has_more_than_a_task_above_another_by_weight(weights_of_jobs):
    got = served(weights_of_jobs)
    assert sum(got) == 40
    for mine, my_weight in zip(got, weights_of_jobs, strict=True):
        for other, its_weight in zip(got, weights_of_jobs, strict=True):
            assert mine / my_weight <= other / its_weight + 1.0 / my_weight + 1e-9


@FEW
@given(weights, st.data())
def test_more_weight_never_means_less(weights_of_jobs, data):
    who = data.draw(st.integers(0, len(weights_of_jobs) - 1))
    more = [w + 1.0 if i == who else w for i, w in enumerate(weights_of_jobs)]
    assert served(more)[who] >= served(weights_of_jobs)[who]


@FEW
@given(weights, st.integers(1, 4))
def test_queues_keep_the_same_bound_whatever_their_number_of_jobs(weights_of_queues, jobs_each):
    queues = [model.Queue(name=model.QueueName(f"q{i}"), weight=w) for i, w in enumerate(weights_of_queues)]
    shell = core.Shell([core.node(allocatable=core.amount(40_000, 64))], queues, profiles.build("fifo"))
    for i, queue in enumerate(queues):
        for j in range(jobs_each if i else 1):
            shell.submit(f"{queue.name}-{j}", 50, queue=queue.name)
    shell.cycle()
    got = [int(shell.view().queue_usage(queue.name)[model.PODS]) for queue in queues]
    assert sum(got) == 40
    for mine, queue in zip(got, queues, strict=True):
        for other, its in zip(got, queues, strict=True):
            assert mine / queue.weight <= other / its.weight + 1.0 / queue.weight + 1e-9


# What is mended equals what is computed anew

names = st.sampled_from([model.NodeName(f"n{i}") for i in range(4)])
pod_names = st.sampled_from([f"p{i}" for i in range(8)])
events = st.one_of(
    st.tuples(st.just("node"), names, sizes, taints),
    st.tuples(st.just("node gone"), names),
    st.tuples(st.just("bound"), pod_names, names, sizes, ports),
    st.tuples(st.just("unbound"), pod_names),
    st.tuples(st.just("assume"), pod_names, names, sizes, ports),
    st.tuples(st.just("forget"), pod_names),
    st.tuples(st.just("gone"), pod_names),
    st.tuples(st.just("resize"), pod_names, sizes),
    st.tuples(st.just("resize failed"), pod_names),
    st.tuples(st.just("snapshot")),
)


def apply_event(ledger: framework.Ledger, event: tuple) -> None:  # noqa: C901  one line for each kind of event
    match event:
        case ("node", name, size, some):
            ledger.set_node(core.node(name, size, taints=some))
        case ("node gone", name):
            ledger.remove_node(name)
        case ("bound", name, on, size, taken):
            charged = {"job": f"job-{name[-1]}", "queue": "default", "namespace": f"ns-{int(name[-1]) % 2}"}
            ledger.observe(core.account(name, on, size, host_ports=taken, **charged))
        case ("unbound", name):
            ledger.observe(core.account(name, None))
        case ("assume", name, on, size, taken):
            assume(ledger, name, on, size, taken)
        case ("forget", name):
            ledger.forget(model.TaskId(f"ns/{name}"))
        case ("gone", name):
            ledger.gone(model.TaskId(f"ns/{name}"))
        case ("resize", name, size):
            ledger.assume_resize(model.TaskId(f"ns/{name}"), size)
        case ("resize failed", name):
            ledger.forget_resize(model.TaskId(f"ns/{name}"))
        case ("snapshot",):
            ledger.snapshot(0.0)


def assume(
    ledger: framework.Ledger, name: str, on: str, size: model.Resources, taken: tuple[model.HostPort, ...]
) -> None:
    task_id = model.TaskId(f"ns/{name}")
    if task_id not in ledger:
        of = core.task_class(core.job("assumed"), size, constraints=model.Constraints(host_ports=taken))
        ledger.assume(core.create(of, on, task=model.Task(id=task_id, task_class=of.id)))


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=40))
def test_the_ledgers_columns_equal_recomputed_sums_after_any_events(course):
    ledger = framework.Ledger(model.Axis())
    for event in course:
        apply_event(ledger, event)
        view = ledger.snapshot(0.0)
        np.testing.assert_array_equal(view.requested, ledger.recomputed())
        assert sorted(view.layout.names) == list(view.layout.names)


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=40))
def test_usage_and_ports_equal_recomputed_sums_after_any_events(course):
    ledger = framework.Ledger(model.Axis())
    for event in course:
        apply_event(ledger, event)
    accounts = [a for i in range(8) if (a := ledger.account(model.TaskId(f"ns/p{i}"))) is not None]
    view = ledger.snapshot(0.0)
    pods = {job: int(view.job_usage(job)[model.PODS]) for job in view.by_job}
    here = [a for a in accounts if a.node in view.layout.index]
    assert pods == {job: sum(a.job == job for a in here) for job in {a.job for a in here} if job is not None}
    charged = collections.Counter((a.queue, a.namespace) for a in here if a.queue is not None)
    assert {share: amounts[model.PODS] for share, amounts in view.by_share.items()} == charged
    assert {queue: int(usage[model.PODS]) for queue, usage in view.by_queue.items()} == collections.Counter(
        queue for queue, _ in charged.elements()
    )
    taken = {
        node: sorted(p for a in accounts if a.node == node for p in a.host_ports) for node in {a.node for a in accounts}
    }
    assert {node: list(found) for node, found in view.host_ports.items()} == {n: p for n, p in taken.items() if p}


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=20), selectors)
def test_an_updated_static_mask_equals_a_recomputed_one(course, selector):
    constraints = model.Constraints(node_selector=selector)
    ledger = framework.Ledger(model.Axis())
    for event in course:
        apply_event(ledger, event)
        view = ledger.snapshot(0.0)
        mended = view.eligibilities.of(constraints, view.layout)
        anew = eligibility.Eligibilities().of(constraints, view.layout)
        assert mended.refusals == anew.refusals
        np.testing.assert_array_equal(mended.mask, anew.mask)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=10, deadline=None)
@given(clusters(), loads(), st.randoms(use_true_random=False))
def test_no_wake_is_lost_every_task_that_can_run_has_run_when_all_is_over(profile, nodes, load, chance: random.Random):
    shell = loaded_shell(nodes, load, (profile, "least-loaded"))
    running = [placed.task.id for placed in core.placements(shell.cycle())]
    while running:
        shell.end(running.pop(chance.randrange(len(running))))
        running += [placed.task.id for placed in core.placements(shell.cycle())]
        assert not over_committed(shell.view())
    for class_id, verdict in shell.queue.unschedulable().items():
        task_class = next(c for _, classes, _ in load for c in classes if c.id == class_id)
        if verdict.code in (model.Code.UNSCHEDULABLE, model.Code.NEVER_FITS):
            assert not fits_somewhere(shell, task_class), class_id
