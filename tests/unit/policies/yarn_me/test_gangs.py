"""Gangs whose expected tasks may have less memory: all of them have the same."""

import pytest

from boathouse_policies import model
from tests.builders import core
from tests.builders.core_elastic import elastic_estimates


class GangShell(core.ReportingShell):
    """Nodes of these sizes in GiB, and a driver of 1 GiB with executors that request 4 GiB each."""

    def __init__(self, *gib, executors=2, profile="yarn-me", slower=2.0):
        super().__init__([core.node(f"n{i}", core.amount(8000, size)) for i, size in enumerate(gib)], profile=profile)
        job, size = core.job("app"), core.amount(1000, 4)
        estimates = elastic_estimates(size, 100.0, slower, step_bytes=core.GIB)
        fields = {"stage": model.Stage.DRIVER, "gang_min": 1, "estimates": model.Fixed(seconds=100.0)}
        driver = core.task_class(job, core.amount(1000, 1), "driver", **fields)
        fields = {"stage": model.Stage.EXECUTOR, "gang_min": executors, "estimates": estimates}
        executor = core.task_class(job, size, "executor", **fields)
        self.submit_job(job, [driver, executor], [core.task(driver), *core.tasks(executor, executors, expected=True)])

    def sizes(self):
        """The sizes in GiB of the executors for which a cycle reserves room beside their driver."""
        plan = self.plan()
        reserved = [decision for decision in plan.decisions if isinstance(decision, model.Reservation)]
        assert len(core.placements(plan)) == bool(reserved)
        return [reservation.resources.memory_bytes / core.GIB for reservation in reserved]


@pytest.mark.parametrize("profile", ["yarn-me", "fair"])
def test_executors_have_all_their_memory_where_it_fits(profile):
    assert GangShell(6, 4, profile=profile).sizes() == [4, 4]


@pytest.mark.parametrize("nodes", [(6, 2), (2, 6), (6,), (5, 1)])
def test_all_executors_have_the_size_of_the_smallest(nodes):
    assert GangShell(*nodes).sizes() == [1, 1]


@pytest.mark.parametrize("profile", ["yarn-me", "boathouse"])
def test_executors_have_the_least_memory_where_the_first_would_leave_none_for_the_second(profile):
    assert GangShell(5, profile=profile).sizes() == [1, 1]


def test_a_gang_that_fits_with_no_size_is_not_placed():
    assert GangShell(2).sizes() == []


def test_executors_that_would_delay_their_application_are_not_made_smaller():
    assert GangShell(5, slower=2.5).sizes() == []


def test_profiles_without_elastic_memory_place_no_smaller_executors():
    assert GangShell(5, profile="fair").sizes() == []


def test_room_that_a_gang_does_not_need_any_more_is_free_for_others_in_the_same_cycle():
    shell = GangShell(6, 2)
    other = shell.submit("other", size=core.amount(1000, 3), submitted_s=9.0)
    assert other.id in core.classes_of(shell.plan())
