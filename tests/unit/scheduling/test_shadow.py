"""A shadow profile's cycles: what they keep, what they may cost, and that they change nothing."""

import dataclasses
import itertools

from boathouse.scheduling import shadow
from boathouse_policies import framework, profiles
from tests.builders import core


def shell_with_job(profile="fair"):
    shell = core.Shell([core.node("n0"), core.node("n1")], profile=profile)
    shell.submit(count=2)
    return shell


class Refuses:
    """A Hooks that raises."""

    def begins(self, *_):
        raise RuntimeError("planted")


def observe(subject, shell, cycle_cpu_s=1.0):
    view = shell.view()
    plan = framework.run_cycle(shell.queue, shell.profile, view)
    subject.observe(shell.queue, view, plan, cycle_cpu_s)


def clock(step_s):
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def test_a_profile_agrees_with_itself():
    subject = shadow.Shadow(profiles.build("fair"))
    observe(subject, shell_with_job())
    assert (subject.agreed, subject.differed, list(subject.differences)) == (1, 0, [])


def test_a_shadow_cycle_leaves_the_next_real_plan_as_it_was():
    shell, untouched = shell_with_job(), shell_with_job()
    observe(shadow.Shadow(profiles.build("boathouse")), shell)
    assert shell.plan().decisions == untouched.plan().decisions


def test_what_only_one_plan_places_is_a_difference():
    full, empty = shell_with_job().plan(), core.Shell([core.node("n0")]).plan()
    (difference,) = shadow.compare(empty, full, 3.0)
    assert (difference.now_s, len(difference.real), len(difference.shadow)) == (3.0, 0, 2)


def test_shadow_cycles_beyond_a_tenth_of_the_cpu_are_dropped():
    subject, shell = shadow.Shadow(profiles.build("fair"), clock(1.0)), shell_with_job()
    for _ in range(100):
        observe(subject, shell, cycle_cpu_s=1.0)
    ran = subject.agreed + subject.differed
    assert ran + subject.dropped == 100
    assert 5 <= ran <= 11


def test_a_failure_ends_shadow_cycles_and_nothing_else():
    broken = dataclasses.replace(profiles.build("fair"), hooks=(Refuses(),))
    subject, shell = shadow.Shadow(broken), shell_with_job()
    observe(subject, shell)
    observe(subject, shell)
    assert subject.error == "RuntimeError: planted"
    assert subject.agreed + subject.differed + subject.dropped == 0
    assert len(core.placements(shell.plan())) == 2
