"""Observers are told what was done, not what was decided."""

import dataclasses

import pytest

from boathouse_policies import model, profiles
from boathouse_sim.live import Live
from tests.unit.sim.live import make
from tests.unit.sim.live.test_rates import resized, resumed, suspended, with_script

FACTS = model.Suspended | model.Resumed | model.Resized | model.Refused


def facts(decisions, *jobs, **options):
    """What observers are told of a script's decisions, as (kind, second)."""
    script = make.Script(decisions)
    jobs = jobs or [make.mapreduce(one=make.container(make.cpu(30)))]
    with_script(make.workload(*jobs, tick_ms=1000, **options), script)
    return [(type(event).__name__, event.now_s) for event in script.events if isinstance(event, FACTS)]


def test_a_suspension_is_told_when_the_task_stops_and_when_it_gets_its_resources_back():
    assert facts({5.0: suspended, 12.0: resumed}) == [("Suspended", 5.0), ("Resumed", 12.0)]


def test_a_task_that_resumes_when_its_time_is_up_is_told_of():
    assert facts({5.0: lambda e: suspended(e, until_s=9.0)}) == [("Suspended", 5.0), ("Resumed", 9.0)]


def test_a_suspension_is_told_with_what_the_task_keeps_and_until_when():
    script = make.Script({5.0: lambda e: suspended(e, until_s=9.0)})
    with_script(make.workload(make.mapreduce(one=make.container(make.cpu(30))), tick_ms=1000), script)
    (told,) = script.seen(model.Suspended)
    assert (told.resources.cpu_milli, told.until_s) == (0, 9.0)


def test_a_resize_is_told_once_the_task_has_the_size():
    jobs = [make.mapreduce(str(i), submit_ms=i, one=make.container(make.cpu(30 - 10 * i))) for i in range(2)]
    assert facts({5.0: resized(500)}) == [("Resized", 5.0)]
    assert facts({5.0: resized(2000)}, *jobs, cores=2) == [("Resized", 20.001)]


@pytest.mark.parametrize("decide", [resumed, lambda e: 2 * suspended(e)[:1]], ids=["resumed", "suspended twice"])
def test_what_does_not_suit_the_tasks_state_is_refused(decide):
    told = facts({5.0: decide, 9.0: resumed} if decide is not resumed else {5.0: decide})
    assert ("Refused", 5.0) in told


def test_a_decision_about_a_task_that_has_ended_is_refused():
    later = make.mapreduce("1", submit_ms=12_000)
    assert facts({11.0: resized(500)}, make.mapreduce("0"), later) == [("Refused", 11.0)]


def test_a_second_attempt_of_a_task_that_has_one_is_refused():
    def twice(events):
        first = suspended(events)[0].task
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

    script = make.Script({5.0: twice})
    profile = dataclasses.replace(profiles.build("fifo"), controllers=(script,), observers=(script,))
    driver = Live(make.workload(make.mapreduce(one=make.container(make.cpu(30))), tick_ms=1000), profile)
    while driver.advance():
        pass
    assert [event.decision.attempt[-5:] for event in script.seen(model.Refused)] == ["third"]
