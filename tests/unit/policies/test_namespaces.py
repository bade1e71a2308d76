"""Namespaces share a queue: fairly between them, by priority only within one, and as before where there is one."""

from __future__ import annotations

import collections
import dataclasses
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources import config
from boathouse_policies import framework, model, profiles
from tests.builders import core
from tests.builders.core_plain import plain_rankings
from tests.builders.core_strategies import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS = config.PROFILES
"""The profiles of the operator's configuration."""

FEW = settings(max_examples=12, deadline=None)


class NamespacesShell(core.ReportingShell):
    """Runs a cycle each second."""

    def cycle(self, now_s: float | None = None, **options) -> framework.Plan:
        return super().cycle(self.now_s + 1.0 if now_s is None else now_s, **options)

    def held(self) -> dict[str, int]:
        """Tasks that run, by namespace."""
        shares = self.view().by_share
        return {namespace: amounts[model.PODS] for (_, namespace), amounts in shares.items()}

    def end_tasks(self, running: list[str], count: int, chance: random.Random) -> None:
        """So many tasks end, in any order, each followed by a cycle."""
        for _ in range(count):
            self.end(running.pop(chance.randrange(len(running))))
            running += core.task_ids(self.cycle())


def namespaces_shell(profile: str = "fair", cpus: int = 12, **fields) -> NamespacesShell:
    """A shell with one node."""
    return NamespacesShell(core.nodes(1, core.amount(1000 * cpus, cpus)), profile=profile, **fields)


# Shares

COURSES = st.randoms(use_true_random=False)


@pytest.mark.parametrize("profile", OPERATORS)
@settings(max_examples=4, deadline=None)
@given(priority=st.sampled_from([0, 1_000_000_000]), chance=COURSES)
def test_a_namespace_of_a_hundred_jobs_or_a_high_priority_gets_half_beside_one_job(profile, priority, chance):
    shell = namespaces_shell(profile)
    shell.submit("only", 200, namespace="modest", submitted_s=9.0)
    for i in range(100):
        shell.submit(f"many-{i}", 2, namespace="greedy", priority=priority, submitted_s=float(i % 7))
    shell.end_tasks(core.task_ids(shell.cycle()), 30, chance)
    assert all(abs(tasks - 6) <= 1 for tasks in shell.held().values()), shell.held()


@pytest.mark.parametrize("profile", OPERATORS)
@settings(max_examples=3, deadline=None)
@given(chance=COURSES)
def test_a_late_namespace_gets_its_half_as_tasks_end(profile, chance):
    shell = namespaces_shell(profile)
    shell.submit("first", 200, namespace="a", priority=5)
    running = core.task_ids(shell.cycle())
    assert shell.held() == {"a": 12}
    shell.submit("second", 200, namespace="b", submitted_s=9.0)
    shell.end_tasks(running, 80, chance)
    assert all(abs(tasks - 6) <= 1 for tasks in shell.held().values()), shell.held()


def end_one_each_ten_minutes(profile, submit) -> Iterator[NamespacesShell]:
    """Yield the shell after each cycle: nodes full of small tasks of `a`, of which one ends after the other."""
    shell = NamespacesShell(core.nodes(4, core.amount(4000, 4)), profile=profile)
    shell.submit("small", 200, core.amount(1000, 1), namespace="a")
    running = core.task_ids(shell.cycle())
    submit(shell)
    for _ in range(60):
        shell.end(running.pop(0))
        running += core.task_ids(shell.cycle(shell.now_s + 600.0))
        yield shell


@pytest.mark.parametrize("profile", ["yarn-me", "yarn", "fspy"])
def test_kept_nodes_give_a_namespace_no_more_than_its_share(profile):
    large = {"size": core.amount(4000, 4), "namespace": "b", "submitted_s": 9.0}
    for shell in end_one_each_ten_minutes(profile, lambda shell: shell.submit("large", 50, **large)):
        assert shell.held().get("b", 0) <= 2 + 1, shell.held()
    assert shell.held()["a"] >= 4


@pytest.mark.parametrize("profile", ["yarn-me", "yarn", "fspy"])
@pytest.mark.parametrize("giants", [1, 3])
def test_a_task_that_fits_nowhere_stops_no_other_namespace(profile, giants):
    def submit(shell):
        for i in range(giants):
            shell.submit(f"giant-{i}", 1, core.amount(4000, 4), namespace="b", submitted_s=9.0)

    for shell in end_one_each_ten_minutes(profile, submit):
        assert shell.held()["a"] >= 8, shell.held()


def test_what_a_namespace_does_not_use_others_may():
    shell = namespaces_shell()
    shell.submit("small", 2, namespace="a")
    shell.submit("large", 50, namespace="b")
    shell.cycle()
    assert shell.held() == {"a": 2, "b": 10}


def test_tasks_of_jobs_of_which_nothing_waits_count_for_their_namespace():
    shell = namespaces_shell(cpus=4)
    shell.submit("runs", 2, namespace="a")
    shell.cycle()
    shell.submit("more", 4, namespace="a")
    shell.submit("other", 4, namespace="b", submitted_s=9.0)
    shell.cycle()
    assert shell.held() == {"a": 2, "b": 2}


def test_what_a_namespace_holds_of_another_queue_does_not_count():
    queues = [core.queue(name) for name in ("default", "other")]
    shell = namespaces_shell(cpus=8, queues=queues)
    shell.submit("elsewhere", 4, queue="other", namespace="a")
    shell.cycle()
    for namespace in ("a", "b"):
        shell.submit(f"here-{namespace}", 4, namespace=namespace)
    shell.cycle()
    shares = shell.view().by_share
    assert [shares["default", name][model.PODS] for name in ("a", "b")] == [2, 2]


def test_shares_are_of_the_resource_of_which_a_namespace_holds_most():
    shell = NamespacesShell(core.nodes(1, core.amount(90_000, 180)))
    shell.submit("memory", 90, core.amount(1000, 4), namespace="a")
    shell.submit("cpu", 90, core.amount(3000, 1), namespace="b")
    shell.cycle()
    assert shell.held() == {"a": 30, "b": 20}  # of the example in DRF's section 4.1, tenfold


# Priority

priorities = st.lists(st.sampled_from([-5, 0, 7, 1_000_000_000]), min_size=2, max_size=6)


@pytest.mark.parametrize("profile", OPERATORS)
@FEW
@given(mine=priorities, others=priorities)
def test_priority_takes_nothing_from_another_namespace(profile, mine, others):
    def shares(mine: list[int], others: list[int]) -> dict[str, int]:
        shell = namespaces_shell(profile)
        for namespace, some in (("a", mine), ("b", others)):
            for i, priority in enumerate(some):
                shell.submit(f"{namespace}-{i}", 5, namespace=namespace, priority=priority)
        shell.cycle()
        return shell.held()

    assert shares(mine, others) == shares([0] * len(mine), [0] * len(others))


@pytest.mark.parametrize("profile", OPERATORS)
def test_priority_orders_within_a_namespaces_share(profile):
    shell = namespaces_shell(profile)
    for namespace in ("a", "b"):
        shell.submit(f"{namespace}-low", 20, namespace=namespace)
        shell.submit(f"{namespace}-high", 4, namespace=namespace, priority=9, submitted_s=9.0)
    shell.cycle()
    held = {job: shell.view().job_usage(model.JobId(job))[model.PODS] for job in ("a-low", "a-high", "b-low", "b-high")}
    assert held == {"a-low": 2, "a-high": 4, "b-low": 2, "b-high": 4}


# The order, against one written down plainly


@dataclasses.dataclass
class Plain:
    """A job as the plain order sees it."""

    name: str
    namespace: str
    priority: int
    submitted_s: float
    cpu: int
    gib: int
    left: int
    held: int = 0

    def share(self, cpus: int, tasks: int) -> float:
        return max(tasks * self.cpu / (1000 * cpus), tasks * self.gib / cpus, tasks / 110)


plain_jobs = st.lists(
    st.builds(
        Plain,
        name=st.just(""),
        namespace=st.sampled_from(["a", "b", "c"]),
        priority=st.sampled_from([0, 0, 3]),
        submitted_s=st.sampled_from([0.0, 1.0, 2.0]),
        cpu=st.sampled_from([1000, 2000, 4000]),
        gib=st.sampled_from([1, 2, 4]),
        left=st.integers(1, 8),
    ),
    min_size=1,
    max_size=8,
)


def plainly_ordered(jobs: list[Plain], cpus: int, profile: str) -> list[str]:
    """Whose task is placed, one after the other, on one node."""
    free_cpu, free_gib, order = 1000 * cpus, cpus, []
    waiting = list(jobs)
    while waiting:
        held = collections.Counter[tuple[str, str]]()
        for job in jobs:
            held[job.namespace, "cpu"] += job.held * job.cpu
            held[job.namespace, "gib"] += job.held * job.gib
            held[job.namespace, "pods"] += job.held

        def rank(
            job: Plain, held: collections.Counter[tuple[str, str]] = held
        ) -> tuple[float, str, int, float, float, str]:
            of = job.namespace
            share = max(held[of, "cpu"] / (1000 * cpus), held[of, "gib"] / cpus, held[of, "pods"] / 110)
            key = job.share(cpus, job.held) if profile == "fair" else job.submitted_s
            return (round(share, 9), of, -job.priority, round(key, 9), job.submitted_s, job.name)

        job = min(waiting, key=rank)
        if job.cpu > free_cpu or job.gib > free_gib or not job.left:
            waiting.remove(job)
            continue
        free_cpu, free_gib, job.left, job.held = free_cpu - job.cpu, free_gib - job.gib, job.left - 1, job.held + 1
        order.append(job.name)
    return order


@pytest.mark.parametrize("profile", ["fair", "fifo"])
@pytest.mark.parametrize("single", [False, True])
@settings(max_examples=40, deadline=None)
@given(jobs=plain_jobs)
def test_turns_are_those_of_the_order_as_one_would_write_it_down(profile, single, jobs):
    shell = namespaces_shell(profile, cpus=16)
    jobs = [dataclasses.replace(job, name=f"j{i}") for i, job in enumerate(jobs)]
    for job in jobs:
        job.namespace = "a" if single else job.namespace
        fields = {"namespace": job.namespace, "priority": job.priority, "submitted_s": job.submitted_s}
        shell.submit(job.name, job.left, core.amount(job.cpu, job.gib), **fields)
    got = [placed.job.id for placed in core.placements(shell.plan())]
    assert got == plainly_ordered(jobs, 16, profile)


# Courses in one namespace and in several

loads = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([0, 0, 5]),
        st.integers(1, 6),
        st.sampled_from([core.amount(1000, 1), core.amount(2000, 1), core.amount(500, 3)]),
    ),
    min_size=1,
    max_size=8,
)


def course(profile: framework.Profile, load, chance: random.Random, names) -> list[list[tuple[str, str]]]:
    """What each cycle decides as tasks end, one or two at a time."""
    shell = NamespacesShell(core.nodes(2, core.amount(6000, 6)), profile=profile)
    for i, (namespace, priority, count, size) in enumerate(load):
        shell.submit(f"j{i}", count, size, namespace=names(namespace), priority=priority, submitted_s=float(i % 3))
    plans = [shell.cycle()]
    running = core.task_ids(plans[0])
    while running:
        for _ in range(min(len(running), 1 + chance.randrange(2))):
            shell.end(running.pop(chance.randrange(len(running))))
        plans.append(shell.cycle())
        running += core.task_ids(plans[-1])
    return [core.where(plan) for plan in plans]


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=6, deadline=None)
@given(load=loads, seed=st.integers(0, 99))
def test_in_one_namespace_all_decisions_are_those_without_namespaces(profile, load, seed):
    named, unnamed = (
        course(profiles.build(profile), load, random.Random(seed), lambda _, name=name: name) for name in ("team", "")
    )
    assert named == unnamed


@pytest.mark.parametrize("profile", ["fair", "fifo", "yarn-no-reservations"])
@settings(max_examples=25, deadline=None)
@given(load=loads, seed=st.integers(0, 99))
def test_in_several_namespaces_decisions_equal_those_with_all_nodes_reranked(profile, load, seed):
    found = course(profiles.build(profile), load, random.Random(seed), str)
    with plain_rankings():
        assert course(profiles.build(profile), load, random.Random(seed), str) == found


# Acceptance

QUEUE = model.QueueName("default")


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({"namespace": "strange"}, "this namespace"),
        ({"namespace": "team", "priority_class": "urgent"}, "priority class 'urgent'"),
    ],
)
def test_a_queue_takes_no_job_that_it_does_not_accept_and_says_why(fields, who):
    queue = model.Queue(name=QUEUE, namespaces=frozenset({"team"}), priority_classes=frozenset({"low"}))
    shell = namespaces_shell(queues=[queue])
    shell.submit("refused", 3, **fields)
    shell.submit("accepted", 1, namespace="team", priority_class="low")
    shell.submit("without", 1, namespace="team")
    plan = shell.cycle()
    assert sorted(placed.job.id for placed in core.placements(plan)) == ["accepted", "without"]
    left = plan.left["refused/map"]
    assert (left.verdict.code, left.verdict.message) == (
        model.Code.QUEUE_NOT_ALLOWED,
        f"queue 'default' does not accept {who}",
    )


def test_a_job_is_placed_once_its_queue_accepts_it():
    shell = namespaces_shell(queues=[model.Queue(name=QUEUE, namespaces=frozenset({"team"}))])
    shell.submit("refused", 1, namespace="strange")
    assert not core.placements(shell.cycle())
    shell.queue.set_queues([model.Queue(name=QUEUE)])
    assert len(core.placements(shell.cycle())) == 1
