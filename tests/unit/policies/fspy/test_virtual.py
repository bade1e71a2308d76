"""The fair world: Algorithms 2 and 3, and eq. 10."""

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies.fspy import config, virtual
from boathouse_policies.fspy.jobs import Shape
from tests.builders import core
from tests.builders.core_fspy import shape

ROUNDING = 1 + 1e-9


def fair_world(cpu=4.0, memory=4.0, **constants) -> virtual.World:
    world = virtual.World(config.Config(**constants))
    world.resize((cpu, memory), 0.0)
    return world


def add(world: virtual.World, name: str, what: Shape | None = None, at_s: float = 0.0, **fields) -> virtual.VirtualJob:
    owner = core.job(name, submitted_s=at_s, **fields)
    world.add(owner, what or shape(), at_s)
    return world.jobs[owner.id]


# Algorithm 2


def test_what_a_job_cannot_use_is_allocated_to_the_jobs_after_it():
    given_ = virtual.allocate([(2, 2), (4, 4), (10, 10)], [1, 1, 1], (12, 12))
    assert given_ == [(2, 2), (4, 4), (6, 6)]


def test_equal_jobs_share_equally():
    assert virtual.allocate([(9, 9)] * 3, [1, 1, 1], (12, 12)) == [(4, 4)] * 3


def test_the_scarcer_resource_bounds_both():
    assert virtual.allocate([(8, 2)], [1], (4, 4)) == [(4, 1)]
    assert virtual.allocate([(2, 8)], [1], (4, 4)) == [(1, 4)]


def test_a_heavier_job_has_more_of_the_share():
    assert virtual.allocate([(12, 12), (12, 12)], [1, 3], (12, 12)) == [(3, 3), (9, 9)]


amounts = st.tuples(st.just(0.0) | st.floats(0.001, 50), st.floats(0.5, 50))  # a millicore is the least


@given(st.lists(st.tuples(amounts, st.sampled_from([1.0, 2.0])), min_size=1, max_size=12), amounts)
def test_nobody_has_more_than_bound_or_fair_share_and_all_no_more_than_the_cluster(jobs, cluster):
    jobs.sort(key=lambda world: world[0][1] / world[1])
    bounds, weights = [bound for bound, _ in jobs], [weight for _, weight in jobs]
    shares = virtual.allocate(bounds, weights, cluster)
    left = list(cluster)
    for j, share in enumerate(shares):
        fair = weights[j] / sum(weights[j:])
        for resource in (0, 1):
            assert share[resource] <= min(bounds[j][resource], left[resource] * fair) * ROUNDING + 1e-9
        left = [left[0] - share[0], left[1] - share[1]]
    assert all(sum(share[r] for share in shares) <= cluster[r] * ROUNDING for r in (0, 1))


@given(st.lists(amounts, min_size=1, max_size=12), amounts)
def test_a_resource_is_used_up_or_all_have_their_bound(bounds, cluster):
    """Of one resource, the fair scheduler leaves nothing idle that somebody could use."""
    bounds = sorted((0.0, memory) for _, memory in bounds)
    used = sum(memory for _, memory in virtual.allocate(bounds, [1.0] * len(bounds), cluster))
    assert used == pytest.approx(min(cluster[1], sum(memory for _, memory in bounds)))


# Algorithm 3


def test_a_virtual_size_falls_by_the_virtual_resource_times_the_interval():
    world = fair_world()
    job = add(world, "a", shape(tasks=2, task_s=10))
    assert (job.size_left(0), job.size_left(3), job.size_left(10)) == (20, 14, 0)


def test_sizes_fall_more_slowly_when_another_job_is_submitted():
    world = fair_world(memory=2)
    job = add(world, "a", shape(tasks=2, task_s=10))
    add(world, "b", shape(tasks=2, task_s=10), at_s=4.0)
    assert job.size_left(6.0) == 20 - 2 * 4 - 1 * 2


def test_the_others_share_what_a_finished_job_leaves():
    world = fair_world(memory=2)
    long, short = add(world, "long", shape(tasks=2, task_s=10)), add(world, "short", shape(tasks=2, task_s=2))
    world.advance(6.0)
    assert (short.finished, short.finish_s) == (True, 4.0)
    assert long.size_left(6.0) == 20 - 1 * 4 - 2 * 2


def test_completions_long_ago_are_caught_up_with_one_by_one():
    world = fair_world(memory=1)
    jobs = [add(world, name, shape(task_s=task_s)) for name, task_s in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    world.advance(100.0)
    assert [job.finish_s for job in jobs] == [3.0, 5.0, 6.0]


def test_a_masters_container_works_nothing_off():
    world = fair_world()
    job = add(world, "a", shape(tasks=2, task_s=10, master=(0.0, 1.0)))
    assert (job.share[1], job.rate) == (3, 2)


def test_an_uber_jobs_master_works():
    world = fair_world()
    job = add(world, "a", shape(task_s=10, memory=2.0, master=(0.0, 1.0), uber=True))
    assert (job.share[1], job.rate) == (2, 2)


def test_a_job_whose_share_is_small_beside_its_master_still_gets_on():
    share, bound = (0.0, 1.0), (0.0, 8.0)
    heavy = shape(tasks=4, master=(0.0, 4.0))
    assert virtual.working_memory(share, bound, heavy, 0.5) == 1 / 8 * 4 * 0.5
    assert virtual.working_memory((0.0, 7.0), bound, heavy, 0.5) == 3


def test_a_cluster_that_grows_serves_faster():
    world = fair_world(memory=1)
    job = add(world, "a", shape(tasks=2, task_s=10))
    world.resize((4.0, 2.0), 4.0)
    assert (job.size_left(4.0), job.rate) == (16, 2)


def test_nothing_happens_where_there_is_no_cluster():
    world = virtual.World(config.Config())
    job = add(world, "a")
    world.advance(1e6)
    assert (job.rate, job.size_left(1e6)) == (0, 10)


# Eq. 10


def test_a_predicted_size_counts_from_the_submission():
    world = fair_world()
    job = add(world, "a", shape(tasks=2, task_s=None))
    world.reshape(job, shape(tasks=2, task_s=30), 5.0)
    assert job.size_left(5.0) == 60 - 2 * 5
    assert (job.size, job.bound[1]) == (60, 2)


def test_a_job_that_used_up_more_than_its_predicted_size_has_finished():
    world = fair_world()
    job = add(world, "a", shape(tasks=2, task_s=None))
    world.reshape(job, shape(tasks=2, task_s=2), 5.0)
    world.advance(5.0)
    assert (job.finished, job.finish_s) == (True, 5.0)


def test_a_job_of_unknown_size_never_finishes_virtually():
    world = fair_world()
    job = add(world, "a", shape(tasks=4, task_s=None))
    world.advance(1000.0)
    assert not job.finished
    world.reshape(job, shape(tasks=4, task_s=500), 1000.0)
    world.advance(1000.0)
    assert job.finished  # 4 x 1000 s used up, 2000 predicted


def test_a_finished_job_of_another_shape_and_the_same_size_stays_finished():
    world = fair_world()
    job = add(world, "a", shape(tasks=1, task_s=5))
    world.advance(20.0)
    world.reshape(job, shape(tasks=5, task_s=1), 20.0)
    assert (job.finished, job.finish_s, world.queue) == (True, 5.0, [])


def test_a_finished_job_that_turns_out_larger_is_unfinished_again():
    world = fair_world()
    job = add(world, "a", shape(tasks=1, task_s=5))
    world.advance(20.0)
    world.reshape(job, shape(tasks=1, task_s=8), 20.0)
    assert (job.finished, job.size_left(20.0)) == (False, 3)


# Real ends


def test_a_job_of_known_size_stays_until_it_finishes_virtually():
    world = fair_world(memory=1)
    job, other = add(world, "a", shape(task_s=10)), add(world, "b", shape(task_s=30))
    world.end(job.id, 4.0, succeeded=True)
    assert other.rate == 0.5
    world.advance(20.0)
    assert (job.id in world.jobs, other.rate) == (False, 1.0)


def test_a_job_of_unknown_size_leaves_with_its_real_end():
    world = fair_world(memory=1)
    job, other = add(world, "a", shape(task_s=None)), add(world, "b", shape(task_s=30))
    world.end(job.id, 4.0, succeeded=True)
    assert (job.id in world.jobs, other.rate, other.used) == (False, 1.0, 2.0)


def test_a_job_that_was_cancelled_leaves_at_once():
    world = fair_world(memory=1)
    job, other = add(world, "a", shape(task_s=10)), add(world, "b", shape(task_s=30))
    world.end(job.id, 4.0, succeeded=False)
    assert (job.id in world.jobs, other.rate) == (False, 1.0)


def test_the_queue_is_ordered_by_memory_of_the_bound_then_submission_then_id():
    world = fair_world(memory=40)
    for name, at_s, tasks in (("wide", 0.0, 9), ("late", 2.0, 3), ("b", 1.0, 3), ("a", 1.0, 3)):
        add(world, name, shape(tasks=tasks, task_s=1000.0, cpu=0.0), at_s=at_s)
    assert [job.id for job in world.queue] == ["a", "b", "late", "wide"]


courses = st.lists(
    st.tuples(st.floats(0, 20), st.integers(1, 9), st.one_of(st.none(), st.floats(0.5, 30)), st.floats(0, 2)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(courses)
def test_virtual_sizes_only_fall(course):
    world, now_s = fair_world(), 0.0
    for i, (wait_s, tasks, task_s, master) in enumerate(course):
        before = {job.id: job.size_left(now_s) for job in world.jobs.values()}
        now_s += wait_s
        add(world, f"j{i}", shape(tasks, task_s, master=(0.0, master)), at_s=now_s)
        for job in world.jobs.values():
            if job.id in before:
                assert job.size_left(now_s) <= before[job.id]
        assert sum(job.share[1] for job in world.queue) <= 4 * ROUNDING


@settings(max_examples=60, deadline=None)
@given(courses)
def test_every_job_of_known_size_finishes_virtually(course):
    world, now_s = fair_world(), 0.0
    for i, (wait_s, tasks, task_s, master) in enumerate(course):
        now_s += wait_s
        add(world, f"j{i}", shape(tasks, task_s or 1.0, master=(0.0, master)), at_s=now_s)
    world.advance(1e6)
    assert all(job.finished for job in world.jobs.values())


@settings(max_examples=30, deadline=None)
@given(courses, st.integers(2, 9))
def test_it_does_not_matter_how_often_one_looks(course, looks):
    outcomes = []
    for parts in (1, looks):
        world, now_s = fair_world(), 0.0
        for i, (wait_s, tasks, task_s, _) in enumerate(course):
            for _ in range(parts):
                now_s += wait_s / parts
                world.advance(now_s)
            add(world, f"j{i}", shape(tasks, task_s), at_s=sum(wait for wait, *_ in course[: i + 1]))
        outcomes.append({job.id: job.size_left(world.now_s) for job in world.jobs.values()})
    assert outcomes[0] == pytest.approx(outcomes[1], abs=1e-6)
