"""A shadow profile's cycles: what they keep, what they may cost, and that they change nothing."""

import dataclasses
import itertools

import numpy as np
import pytest

from boathouse.scheduling import shadow
from boathouse_policies import framework, model, profiles
from tests.builders import core, core_affinity


def shell_with_job(profile="fair", **fields):
    shell = core.Shell([core.node("n0"), core.node("n1")], profile=profile)
    shell.submit(count=2, **fields)
    return shell


class Refuses(framework.Observer):
    """A Hooks and an Observer that raises."""

    def begins(self, *_):
        raise RuntimeError("planted")

    def observe(self, _):
        raise RuntimeError("planted")


class Nowhere(framework.Filter):
    """Refuses all nodes."""

    def mask(self, _pending, state, where):
        return np.zeros(state.free.shape[1], np.bool_)[where]


def freeze(subject, shell, cycle_cpu_s=1.0, filters=()):
    view = shell.view()
    plan = framework.run_cycle(shell.queue, shell.profile, view)
    subject.freeze(shell.queue, view, plan, filters, cycle_cpu_s)
    return plan, view


def compare_once(subject, shell, cycle_cpu_s=1.0):
    freeze(subject, shell, cycle_cpu_s)
    subject.run()


def clock(step_s):
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def counts(subject):
    return subject.agreed, subject.differed, subject.dropped


def test_a_profile_agrees_with_itself():
    subject = shadow.Shadow(profiles.build("fair"))
    compare_once(subject, shell_with_job())
    assert counts(subject) == (1, 0, 0)
    assert not subject.differences


def test_the_state_is_that_of_before_the_decisions_though_they_were_applied_meanwhile():
    subject, shell = shadow.Shadow(profiles.build("fair")), shell_with_job()
    plan, view = freeze(subject, shell)
    shell.queue.apply(plan, view.now_s)
    shell.queue.withdraw(model.JobId("job"))
    subject.run()
    assert counts(subject) == (1, 0, 0)


@pytest.mark.parametrize("name", ["boathouse", "ikayak", "fspy"])
def test_a_shadow_cycle_leaves_the_next_real_plan_as_it_was(name):
    shell, untouched = shell_with_job(), shell_with_job()
    compare_once(shadow.Shadow(profiles.build(name)), shell)
    assert shell.plan().decisions == untouched.plan().decisions


def test_the_filters_of_the_real_cycle_hold_in_both():
    subject, shell = shadow.Shadow(profiles.build("fair")), shell_with_job()
    freeze(subject, shell, filters=(Nowhere(),))
    subject.run()
    (difference,) = subject.differences
    assert (len(difference.real), difference.shadow, difference.shadow_reason) == (2, (), "Unschedulable")


def test_what_only_one_plan_places_is_a_difference():
    full, empty = shell_with_job().plan(), core.Shell([core.node("n0")]).plan()
    (difference,) = shadow.compare(empty, full, 3.0)
    assert (difference.now_s, difference.subject) == (3.0, "job map")
    assert (len(difference.real), len(difference.shadow)) == (0, 2)


def test_shadow_cycles_beyond_a_tenth_of_the_cpu_are_dropped():
    subject, shell = shadow.Shadow(profiles.build("fair"), cpu_s=clock(0.5)), shell_with_job()
    for _ in range(100):
        compare_once(subject, shell, cycle_cpu_s=1.0)  # a shadow cycle costs 1 s
    agreed, differed, dropped = counts(subject)
    assert (differed, agreed + dropped) == (0, 100)
    assert 5 <= agreed <= 11


def test_a_state_that_a_later_cycle_replaces_is_dropped():
    subject, shell = shadow.Shadow(profiles.build("fair"), cpu_s=lambda: 0.0), shell_with_job()
    freeze(subject, shell)
    compare_once(subject, shell)
    assert counts(subject) == (1, 0, 1)


def test_a_failure_ends_shadow_cycles_and_nothing_else():
    broken = dataclasses.replace(profiles.build("fair"), hooks=(Refuses(),))
    subject, shell = shadow.Shadow(broken), shell_with_job()
    compare_once(subject, shell)
    compare_once(subject, shell)
    assert subject.error == "RuntimeError: planted"
    assert counts(subject) == (0, 0, 0)
    assert len(core.placements(shell.plan())) == 2


EVENT = core.submitted(core.job())


def test_an_observer_that_fails_ends_the_shadow():
    subject = shadow.Shadow(dataclasses.replace(profiles.build("fair"), observers=(Refuses(),)))
    subject.observe(EVENT)
    assert subject.error == "RuntimeError: planted"


def test_learning_counts_and_ends_a_shadow_that_it_makes_too_expensive():
    subject, shell = shadow.Shadow(profiles.build("fair"), cpu_s=clock(1.0)), shell_with_job()
    subject.observe(EVENT)
    compare_once(subject, shell)
    assert counts(subject) == (0, 0, 1)
    for _ in range(20):
        subject.observe(EVENT)
    assert subject.error.startswith("TooExpensive: ")


def test_a_cycle_is_dropped_if_other_pods_decide_about_a_pending_class():
    subject, shell = shadow.Shadow(profiles.build("fair")), core_affinity.AffinityShell([core.node("n0")], {"x": {}})
    term = model.PodTerm(pods=model.PodSet(namespaces=("x",), selector=core_affinity.label("a", "b")), topology_key="h")
    shell.submit_pods(constraints=model.Constraints(pod_anti_affinity=(term,)))
    shell.queue.sorted_classes().declare(shell.ledger.tallies)
    compare_once(subject, shell)
    assert counts(subject) == (0, 0, 1)
