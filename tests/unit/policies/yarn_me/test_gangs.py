"""Gangs whose expected tasks may have less memory: all of them have the same."""

import pytest

from boathouse_policies import model, profiles
from boathouse_policies.yarn_me import penalty
from tests.unit.policies import builders

GIB = 1 << 30


class World(builders.World):
    """Nodes of these sizes in GiB, and a driver of 1 GiB with executors that request 4 GiB each."""

    def __init__(self, *gib, executors=2, profile="yarn-me", slower_s=200.0):
        nodes = [builders.node(f"n{i}", builders.amount(8000, size)) for i, size in enumerate(gib)]
        super().__init__(nodes, profile=profiles.build(profile))
        job, run_s = builders.job("app"), model.Fixed(seconds=100.0)
        run_time = penalty.Mapper(ideal_s=100.0, ideal_bytes=4 * GIB, undersized_s=slower_s)
        elastic = penalty.Elastic(run_time, ideal_bytes=4 * GIB, step_bytes=GIB)
        driver = builders.task_class(
            job, builders.amount(1000, 1), "driver", stage=model.Stage.DRIVER, gang_min=1, estimates=run_s
        )
        self.executor = builders.task_class(
            job,
            builders.amount(1000, 4),
            "executor",
            stage=model.Stage.EXECUTOR,
            gang_min=executors,
            estimates=elastic,
        )
        tasks = [*builders.tasks(driver, 1), *builders.tasks(self.executor, executors, expected=True)]
        self.room.submit(job, [driver, self.executor], tasks)
        counts = {driver.id: 1, self.executor.id: executors}
        event = model.Submitted(now_s=0.0, job=job, classes=(driver, self.executor), tasks=counts)
        for observer in self.profile.observers:
            observer.observe(event)

    def sizes(self):
        """The sizes in GiB of the executors for which a cycle reserves room beside their driver."""
        decisions = self.plan().decisions
        sizes = [each.resources.memory_bytes / GIB for each in decisions if isinstance(each, model.Reservation)]
        assert len(builders.placements(self.plan())) == bool(sizes)
        return sizes


@pytest.mark.parametrize("profile", ["yarn-me", "fair"])
def test_executors_have_all_their_memory_where_it_fits(profile):
    assert World(6, 4, profile=profile).sizes() == [4, 4]


@pytest.mark.parametrize("nodes", [(6, 2), (2, 6), (6,), (5, 1)])
def test_all_executors_have_the_size_of_the_smallest(nodes):
    assert World(*nodes).sizes() == [1, 1]


@pytest.mark.parametrize("profile", ["yarn-me", "boathouse"])
def test_executors_have_the_least_memory_where_the_first_would_leave_none_for_the_second(profile):
    assert World(5, profile=profile).sizes() == [1, 1]


def test_a_gang_that_fits_with_no_size_is_not_placed():
    assert World(2).sizes() == []


def test_executors_that_would_delay_their_application_are_not_made_smaller():
    assert World(5, slower_s=250.0).sizes() == []


def test_profiles_without_elastic_memory_place_no_smaller_executors():
    assert World(5, profile="fair").sizes() == []


def test_room_that_a_gang_does_not_need_any_more_is_free_for_others_in_the_same_cycle():
    world = World(6, 2)
    other = world.submit("other", size=builders.amount(1000, 3), submitted_s=9.0)
    assert other.id in {each.task_class.id for each in builders.placements(world.plan())}
