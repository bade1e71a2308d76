"""Observers are told what was done, not what was decided."""

import pytest

from boathouse_policies import model
from tests.builders import simulations
from tests.builders.simulations import Script, resize_first, resume_first, suspend_first, suspend_until

FACTS = model.Suspended | model.Resumed | model.Resized | model.Refused


LONG = simulations.mapreduce(map=simulations.mapper(30))


def reports_of(script, *jobs, kinds=FACTS, **options):
    """The events of some kinds that observers get of a script's decisions about jobs."""
    script.run(simulations.live_workload(*jobs or [LONG], tick_ms=1000, **options))
    return script.of(kinds)


def facts(decisions, *jobs, **options):
    """The reports of a script's decisions, as (kind, second)."""
    return [(type(event).__name__, event.now_s) for event in reports_of(Script(decisions), *jobs, **options)]


def test_a_suspension_is_reported_when_the_task_stops_and_when_it_gets_its_resources_back():
    assert facts({5.0: suspend_first, 12.0: resume_first}) == [("Suspended", 5.0), ("Resumed", 12.0)]


def test_the_end_of_a_timed_suspension_is_reported():
    assert facts({5.0: suspend_until(9.0)}) == [("Suspended", 5.0), ("Resumed", 9.0)]


def test_a_suspension_is_reported_with_what_the_task_keeps_and_until_when():
    (event,) = reports_of(Script({5.0: suspend_until(9.0)}), kinds=model.Suspended)
    assert (event.resources.cpu_milli, event.until_s) == (0, 9.0)


def test_a_resize_is_reported_once_the_task_has_the_size():
    jobs = [simulations.mapreduce(str(i), submit_ms=i, map=simulations.mapper(30 - 10 * i)) for i in range(2)]
    assert facts({5.0: resize_first(500)}) == [("Resized", 5.0)]
    assert facts({5.0: resize_first(2000)}, *jobs, cores=2) == [("Resized", 20.001)]


@pytest.mark.parametrize(
    "decide", [resume_first, lambda e: 2 * suspend_first(e)[:1]], ids=["resumed", "suspended twice"]
)
def test_what_does_not_suit_the_tasks_state_is_refused(decide):
    reported = facts({5.0: decide, 9.0: resume_first} if decide is not resume_first else {5.0: decide})
    assert ("Refused", 5.0) in reported


def test_a_decision_about_a_task_that_has_ended_is_refused():
    later = simulations.mapreduce("1", submit_ms=12_000)
    assert facts({11.0: resize_first(500)}, simulations.mapreduce("0"), later) == [("Refused", 11.0)]


def test_a_second_attempt_of_a_task_that_has_one_is_refused():
    def twice(events):
        first = suspend_first(events)[0].task
        return [
            model.Speculate(
                task=first,
                attempt=model.TaskId(f"{first.id}-{which}"),
                node=model.NodeName("n0"),
                resources=model.Resources(cpu_milli=1000, memory_bytes=1),
                reason="test",
            )
            for which in ("second", "third")
        ]

    (refused,) = reports_of(Script({5.0: twice}), kinds=model.Refused)
    assert refused.decision.attempt[-5:] == "third"
