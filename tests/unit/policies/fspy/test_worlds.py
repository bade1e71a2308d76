"""The fair worlds of queues and namespaces."""

import pytest
from hypothesis import given, strategies as st

from boathouse_policies import fspy, model
from boathouse_policies.fspy import virtual
from boathouse_policies.fspy.virtual import World, Worlds
from tests.builders import core
from tests.builders.core_fspy import shape

CLUSTER = (12.0, 24.0)
QUEUES = {name: model.Queue(name=name, weight=weight) for name, weight in (("a", 3.0), ("b", 1.0))}


def worlds(*shares: tuple[str, str]) -> Worlds:
    found = Worlds(fspy.Config())
    for i, (queue, namespace) in enumerate(shares):
        found.add(core.job(f"j{i}", queue, namespace=namespace), shape(tasks=99), 0.0)
    found.resize(CLUSTER, QUEUES, 0.0)
    return found


def parts(found: Worlds) -> list[float]:
    """The memory of each world, as a share of the cluster's."""
    return [world.cluster[1] / CLUSTER[1] for world in found.pending()]


def test_queues_share_by_weight_and_namespaces_of_a_queue_equally():
    assert parts(worlds(("a", "x"), ("a", "y"), ("b", "x"))) == [0.375, 0.375, 0.25]


def test_a_queue_without_jobs_leaves_its_share_to_the_others():
    found = worlds(("a", "x"), ("b", "x"))
    found.end(model.JobId("j0"), 1.0, succeeded=False)
    found.resize(CLUSTER, QUEUES, 1.0)
    assert parts(found) == [1.0]


def test_a_job_of_a_queue_that_does_not_exist_takes_nothing_from_others():
    found = worlds(("gone", "x"), ("b", "x"))
    assert parts(found) == [0.0, 1.0]
    assert parts(worlds(("gone", "x"))) == [0.0]


def test_sizes_of_one_namespace_do_not_depend_on_the_number_of_jobs_of_another():
    few, many = worlds(("b", "x"), ("b", "y")), worlds(("b", "x"), *[("b", "y")] * 9)
    left = [found.jobs[model.JobId("j0")].size_left(10.0) for found in (few, many)]
    assert left[0] == left[1] < 99 * 10.0


def test_an_empty_fair_world_advances_with_its_next_job():
    found = worlds(("a", "x"))
    found.end(model.JobId("j0"), 1.0, succeeded=False)
    found.add(core.job("next", "a", namespace="x"), shape(tasks=12, task_s=2.0), 5.0)
    found.resize(CLUSTER, QUEUES, 5.0)
    found.resize(CLUSTER, QUEUES, 7.0)
    assert found.jobs[model.JobId("next")].finish_s == 7.0


arrivals = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40), st.booleans()), min_size=1, max_size=12)


@given(arrivals)
def test_one_queue_and_namespace_is_the_fair_world_of_the_paper(jobs):
    found, papers = Worlds(fspy.Config()), World(fspy.Config())
    for i, (at_s, tasks, ends) in enumerate(sorted(jobs)):
        now_s, job = float(at_s), core.job(f"j{i}", "a", submitted_s=float(at_s))
        for world in (found, papers):
            world.add(job, shape(tasks=tasks), now_s)
        found.resize(CLUSTER, QUEUES, now_s)
        papers.resize(CLUSTER, now_s)
        if ends:
            for world in (found, papers):
                world.end(job.id, now_s + 1, succeeded=bool(tasks % 2))
    left = {job.id: (job.used, job.finished) for job in found.jobs.values()}
    assert left == {job.id: (pytest.approx(job.used), job.finished) for job in papers.jobs.values()}


def test_a_world_without_jobs_is_dropped():
    found = worlds(("a", "x"), ("a", "y"))
    found.end(model.JobId("j0"), 1.0, succeeded=False)
    found.resize(CLUSTER, QUEUES, 1.0)
    assert list(found._worlds) == [("a", "y")]


def test_few_jobs_that_are_over_stay_in_all_worlds(monkeypatch):
    monkeypatch.setattr(virtual, "MOST_ENDED_WORLDS", 2)
    found = worlds(*[("a", f"n{number}") for number in range(5)])
    for number in range(4):
        found.end(model.JobId(f"j{number}"), 0.0, succeeded=True)
    assert sorted(found.jobs) == ["j2", "j3", "j4"]


def test_few_jobs_that_are_over_stay_in_a_world(monkeypatch):
    monkeypatch.setattr(virtual, "MOST_ENDED", 2)
    found = worlds(*[("a", "x")] * 5)
    for number in range(4):
        found.end(model.JobId(f"j{number}"), 0.0, succeeded=True)
    assert sorted(found.jobs) == ["j2", "j3", "j4"]
