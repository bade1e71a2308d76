"""Namespaces share a queue: fairly between them, by priority only within one, and as before where there is one."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.resources import config
from boathouse_policies import framework, model, profiles

from . import builders as make
from .plainly import plainly

if TYPE_CHECKING:
    import random

OPERATORS = config.PROFILES
"""The profiles of the operator's configuration."""

FEW = settings(max_examples=40, deadline=None)


class Cluster(make.World):
    """A world whose profile hears of jobs and placements, as in the operator."""

    def submit(
        self, name: str = "job", count: int = 1, size: model.Resources | None = None, **fields
    ) -> model.TaskClass:
        one = super().submit(name, count, size, **fields)
        (waiting,) = self.room.classes_of(one.job)
        event = model.Submitted(now_s=self.now_s, job=waiting.job, classes=(one,), tasks={one.id: count})
        self.tell(event)
        return one

    def tell(self, event: model.Event) -> None:
        for observer in self.profile.observers:
            observer.observe(event)

    def cycle(self, **options) -> framework.Plan:
        self.now_s += 1.0
        plan = super().cycle(**options)
        for one in make.placements(plan):
            self.tell(
                model.Placed(
                    now_s=self.now_s,
                    task=one.task.id,
                    task_class=one.task_class.id,
                    job=one.job.id,
                    node=one.node,
                    resources=one.resources,
                    distance=one.distance,
                )
            )
        return plan

    def held(self) -> dict[str, int]:
        """Tasks that run, by namespace."""
        shares = self.view().by_share
        return {namespace: amounts[model.PODS] for (_, namespace), amounts in shares.items()}


def cluster(profile: str = "fair", cpus: int = 12, **fields) -> Cluster:
    return Cluster([make.node("n0", make.amount(1000 * cpus, cpus))], profile=profiles.build(profile), **fields)


def run(world: Cluster, running: list[str], ends: int, chance: random.Random) -> None:
    """So many tasks end, in any order, each followed by a cycle."""
    for _ in range(ends):
        world.end(running.pop(chance.randrange(len(running))))
        running += [one.task.id for one in make.placements(world.cycle())]


# Shares

COURSES = st.randoms(use_true_random=False)


@pytest.mark.parametrize("profile", OPERATORS)
@pytest.mark.parametrize("priority", [0, 1_000_000_000])
@settings(max_examples=10, deadline=None)
@given(chance=COURSES)
def test_a_namespace_of_a_hundred_jobs_or_a_high_priority_gets_half_beside_one_job(profile, priority, chance):
    world = cluster(profile)
    world.submit("only", 200, namespace="modest", submitted_s=9.0)
    for i in range(100):
        world.submit(f"many-{i}", 2, namespace="greedy", priority=priority, submitted_s=float(i % 7))
    running = [one.task.id for one in make.placements(world.cycle())]
    run(world, running, 30, chance)
    assert all(abs(tasks - 6) <= 1 for tasks in world.held().values()), world.held()


@pytest.mark.parametrize("profile", OPERATORS)
@settings(max_examples=10, deadline=None)
@given(chance=COURSES)
def test_a_namespace_that_comes_late_gets_its_half_as_tasks_end(profile, chance):
    world = cluster(profile)
    world.submit("first", 200, namespace="a", priority=5)
    running = [one.task.id for one in make.placements(world.cycle())]
    assert world.held() == {"a": 12}
    world.submit("second", 200, namespace="b", submitted_s=9.0)
    run(world, running, 80, chance)
    assert all(abs(tasks - 6) <= 1 for tasks in world.held().values()), world.held()


@pytest.mark.parametrize("profile", ["yarn-me", "yarn", "fspy"])
def test_kept_nodes_give_a_namespace_no_more_than_its_share(profile):
    world = Cluster(make.nodes(4, make.amount(4000, 4)), profile=profiles.build(profile))
    world.submit("small", 200, make.amount(1000, 1), namespace="a")
    running = [one.task.id for one in make.placements(world.cycle())]
    world.submit("large", 50, make.amount(4000, 4), namespace="b", submitted_s=9.0)
    for _ in range(60):
        world.now_s += 600.0
        world.end(running.pop(0))
        running += [one.task.id for one in make.placements(world.cycle())]
        assert world.held().get("b", 0) <= 2 + 1, world.held()
    assert world.held()["a"] >= 4


@pytest.mark.parametrize("profile", ["yarn-me", "yarn", "fspy"])
@pytest.mark.parametrize("giants", [1, 3])
def test_a_task_that_fits_nowhere_stops_no_other_namespace(profile, giants):
    world = Cluster(make.nodes(4, make.amount(4000, 4)), profile=profiles.build(profile))
    world.submit("small", 200, make.amount(1000, 1), namespace="a")
    running = [one.task.id for one in make.placements(world.cycle())]
    for i in range(giants):
        world.submit(f"giant-{i}", 1, make.amount(4000, 4), namespace="b", submitted_s=9.0)
    for _ in range(60):
        world.now_s += 600.0
        world.end(running.pop(0))
        running += [one.task.id for one in make.placements(world.cycle())]
        assert world.held()["a"] >= 8, world.held()


def test_what_a_namespace_does_not_use_others_may():
    world = cluster()
    world.submit("small", 2, namespace="a")
    world.submit("large", 50, namespace="b")
    world.cycle()
    assert world.held() == {"a": 2, "b": 10}


def test_tasks_of_jobs_of_which_nothing_waits_count_for_their_namespace():
    world = cluster(cpus=4)
    world.submit("runs", 2, namespace="a")
    world.cycle()
    world.submit("more", 4, namespace="a")
    world.submit("other", 4, namespace="b", submitted_s=9.0)
    world.cycle()
    assert world.held() == {"a": 2, "b": 2}


def test_what_a_namespace_holds_of_another_queue_does_not_count():
    queues = [model.Queue.of(model.QueueName(name)) for name in ("default", "other")]
    world = cluster(cpus=8, queues=queues)
    world.submit("elsewhere", 4, queue="other", namespace="a")
    world.cycle()
    for namespace in ("a", "b"):
        world.submit(f"here-{namespace}", 4, namespace=namespace)
    world.cycle()
    shares = world.view().by_share
    assert [shares["default", name][model.PODS] for name in ("a", "b")] == [2, 2]


def test_shares_are_of_the_resource_of_which_a_namespace_holds_most():
    world = Cluster([make.node("n0", make.amount(90_000, 180))])
    world.submit("memory", 90, make.amount(1000, 4), namespace="a")
    world.submit("cpu", 90, make.amount(3000, 1), namespace="b")
    world.cycle()
    assert world.held() == {"a": 30, "b": 20}  # of the example in DRF's section 4.1, tenfold


# Priority

priorities = st.lists(st.sampled_from([-5, 0, 7, 1_000_000_000]), min_size=2, max_size=6)


@pytest.mark.parametrize("profile", OPERATORS)
@FEW
@given(mine=priorities, others=priorities)
def test_priority_takes_nothing_from_another_namespace(profile, mine, others):
    def shares(mine: list[int], others: list[int]) -> dict[str, int]:
        world = cluster(profile)
        for namespace, some in (("a", mine), ("b", others)):
            for i, priority in enumerate(some):
                world.submit(f"{namespace}-{i}", 5, namespace=namespace, priority=priority)
        world.cycle()
        return world.held()

    assert shares(mine, others) == shares([0] * len(mine), [0] * len(others))


@pytest.mark.parametrize("profile", OPERATORS)
def test_priority_orders_within_a_namespaces_share(profile):
    world = cluster(profile)
    for namespace in ("a", "b"):
        world.submit(f"{namespace}-low", 20, namespace=namespace)
        world.submit(f"{namespace}-high", 4, namespace=namespace, priority=9, submitted_s=9.0)
    world.cycle()
    held = {job: world.view().job_usage(model.JobId(job))[model.PODS] for job in ("a-low", "a-high", "b-low", "b-high")}
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
@settings(max_examples=80, deadline=None)
@given(jobs=plain_jobs)
def test_turns_are_those_of_the_order_as_one_would_write_it_down(profile, single, jobs):
    world = cluster(profile, cpus=16)
    jobs = [dataclasses.replace(job, name=f"j{i}") for i, job in enumerate(jobs)]
    for job in jobs:
        job.namespace = "a" if single else job.namespace
        fields = {"namespace": job.namespace, "priority": job.priority, "submitted_s": job.submitted_s}
        world.submit(job.name, job.left, make.amount(job.cpu, job.gib), **fields)
    got = [one.job.id for one in make.placements(world.plan())]
    assert got == plainly_ordered(jobs, 16, profile)


# Courses in one namespace and in several

loads = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([0, 0, 5]),
        st.integers(1, 6),
        st.sampled_from([make.amount(1000, 1), make.amount(2000, 1), make.amount(500, 3)]),
    ),
    min_size=1,
    max_size=8,
)


def course(profile: framework.Profile, load, chance: random.Random, names) -> list[list[tuple[str, str]]]:
    """What each cycle decides as tasks end, one or two at a time."""
    world = Cluster(make.nodes(2, make.amount(6000, 6)), profile=profile)
    for i, (namespace, priority, count, size) in enumerate(load):
        world.submit(f"j{i}", count, size, namespace=names(namespace), priority=priority, submitted_s=float(i % 3))
    plans = [world.cycle()]
    running = [one.task.id for one in make.placements(plans[0])]
    while running:
        for _ in range(min(len(running), 1 + chance.randrange(2))):
            world.end(running.pop(chance.randrange(len(running))))
        plans.append(world.cycle())
        running += [one.task.id for one in make.placements(plans[-1])]
    return [make.where(plan) for plan in plans]


@pytest.mark.parametrize("profile", profiles.names())
@settings(max_examples=15, deadline=None)
@given(load=loads, seed=st.integers(0, 99))
def test_in_one_namespace_all_decisions_are_those_without_namespaces(profile, load, seed):
    import random

    named, unnamed = (
        course(profiles.build(profile), load, random.Random(seed), lambda _, name=name: name) for name in ("team", "")
    )
    assert named == unnamed


@pytest.mark.parametrize("profile", ["fair", "fifo", "yarn-no-reservations"])
@settings(max_examples=60, deadline=None)
@given(load=loads, seed=st.integers(0, 99))
def test_in_several_namespaces_decisions_equal_those_with_all_nodes_reranked(profile, load, seed):
    import random

    found = course(profiles.build(profile), load, random.Random(seed), str)
    with plainly():
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
    world = cluster(queues=[queue])
    world.submit("refused", 3, **fields)
    world.submit("accepted", 1, namespace="team", priority_class="low")
    world.submit("without", 1, namespace="team")
    plan = world.cycle()
    assert sorted(one.job.id for one in make.placements(plan)) == ["accepted", "without"]
    left = plan.left["refused/map"]
    assert (left.verdict.code, left.verdict.message) == (
        model.Code.QUEUE_NOT_ALLOWED,
        f"queue 'default' does not accept {who}",
    )


def test_a_job_is_placed_once_its_queue_accepts_it():
    world = cluster(queues=[model.Queue(name=QUEUE, namespaces=frozenset({"team"}))])
    world.submit("refused", 1, namespace="strange")
    assert not make.placements(world.cycle())
    world.room.set_queues([model.Queue(name=QUEUE)])
    assert len(make.placements(world.cycle())) == 1
