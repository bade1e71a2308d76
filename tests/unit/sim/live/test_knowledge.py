"""What policies are told of run times while a live simulation goes on."""

import dataclasses

import pytest

from boathouse_policies import profiles
from boathouse_policies.framework import Observer
from boathouse_policies.model import Finished, Submitted
from boathouse_sim.conditions import RunTimes
from tests.builders import simulations


class Seen(Observer):
    def __init__(self):
        self.told, self.finished = [], []

    def observe(self, event):
        if isinstance(event, Submitted):
            self.told += [(event.job.name, one.estimates.duration_s(one.resources)) for one in event.classes]
        elif isinstance(event, Finished):
            self.finished.append((event.task_class.rsplit("/", 1)[1], event.duration_s))


def seen(*jobs, cores=1, **conditions) -> Seen:
    found, profile = Seen(), profiles.build("fifo")
    profile = dataclasses.replace(profile, observers=(*profile.observers, found))
    simulations.live_world(simulations.live_workload(*jobs, cores=cores, **conditions), profile)
    return found


TWICE = (
    simulations.mapreduce("a", program="p"),
    simulations.mapreduce("b", program="p", submit_ms=20_000),
    simulations.mapreduce("c", program="q", submit_ms=40_000),
)


@pytest.mark.parametrize(
    ("run_times", "expected"),
    [(RunTimes.EXACT, [10, 10, 10]), (RunTimes.NOTHING, [None] * 3), (RunTimes.LEARNED, [None, 10, None])],
)
def test_policies_are_told_what_the_conditions_say(run_times, expected):
    first = dict(reversed(seen(*TWICE, run_times=run_times).told))
    assert [first[name] for name in "abc"] == expected


def test_a_job_that_runs_has_new_estimates_once_its_first_task_ended():
    told = seen(simulations.mapreduce("a", maps=3, program="p"), run_times=RunTimes.LEARNED).told
    assert told[:2] == [("a", None), ("a", 10)]


def test_a_misjudged_program_is_told_wrong_by_at_most_the_factor():
    first = dict(reversed(seen(*TWICE, run_times=RunTimes.LEARNED, misjudged=10.0).told))
    assert 1 <= first["b"] <= 100
    assert first["b"] != 10


def test_a_reducers_wait_for_maps_is_no_part_of_its_run_time():
    early = simulations.mapreduce("a", maps=2, reduces=1, program="p")
    ran = dict(seen(early, cores=3, run_times=RunTimes.LEARNED).finished)
    assert ran["reduce"] == pytest.approx(4 + 6, abs=0.01)
    assert dict(seen(early, cores=3).finished)["reduce"] == pytest.approx(10 + 4 + 6, abs=0.01)
