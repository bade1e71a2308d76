"""Live worlds with YARN's heartbeats: when containers are allocated, launched and free again."""

import dataclasses

import pytest

from boathouse_lab.invariants import Invariants
from boathouse_policies import model, profiles
from boathouse_sim import conditions
from boathouse_sim.conditions import Conditions, RunTimes
from boathouse_sim.live import LiveHeartbeats
from boathouse_sim.workload import Timing
from tests.builders import simulations
from tests.builders.simulations import Script, suspend_until


def times_s(*apps, period_s=1.0, **how):
    return simulations.job_times_s(simulations.live_workload(*apps, **how), heartbeat_s=period_s)


def test_a_task_is_allocated_at_one_heartbeat_learned_of_at_the_next_and_launched_at_a_third():
    assert times_s(simulations.mapreduce()) == (3 + 10,)
    assert times_s(simulations.mapreduce(), period_s=3.0) == (9 + 10,)
    assert times_s(simulations.mapreduce(), launch_ms=500) == (3.5 + 10,)


def test_a_node_takes_one_container_at_a_heartbeat():
    assert times_s(simulations.mapreduce(maps=4), cores=4) == (3 + 10 + 3,)
    assert times_s(simulations.mapreduce(maps=4), cores=1, nodes=4)[0] < 3 + 10 + 1  # at different phases of a period


def test_room_that_came_free_is_used_at_the_nodes_next_heartbeat():
    assert times_s(simulations.mapreduce(maps=2, map=simulations.mapper(10.5)), cores=1) == (14 + 2 + 10.5,)


def test_a_job_is_charged_for_what_ended_until_its_node_reports_it():
    found = simulations.live_workload(simulations.mapreduce(map=simulations.mapper(10.5)))
    charged = set()

    def watch(world):
        if not world.pods and len(world.ledger):
            charged.add(world.clock.now_ms)

    world = simulations.run(LiveHeartbeats(found, profiles.build("fifo")), watch)
    assert charged == {13_500}
    assert (world.clock.now_ms, len(world.ledger)) == (14_000, 0)


def test_a_driver_is_launched_at_the_first_heartbeat_after_its_allocation_and_executors_at_the_second():
    app = simulations.spark(executors=1, cores=1, tasks=(1,), driver=simulations.container(mb=1000))
    # The driver is allocated at 1 s and runs from 2 s on; the executor is allocated at 2 s and runs from 4 s on.
    assert times_s(app) == (4 + 10,)


def test_run_times_are_learned_and_neighbours_are_felt_as_without_heartbeats():
    jobs = [simulations.mapreduce(str(i), maps=4, reduces=1, program="p", submit_ms=i * 1000) for i in range(3)]
    found = simulations.live_workload(*jobs, cores=4, run_times=RunTimes.LEARNED, contention=conditions.Saturation())
    assert simulations.results(found, "boathouse", heartbeat_s=1.0).jobs == 3
    script = Script()
    profile = dataclasses.replace(profiles.build("fifo"), observers=(script,))
    simulations.run(LiveHeartbeats(found, profile)).finished()
    assert any(
        isinstance(event, model.Submitted) and event.classes[0].estimates is not model.UNKNOWN
        for event in script.events
    )


def test_plain_jobs_with_learned_run_times_may_have_heartbeats():
    found = dataclasses.replace(simulations.workload(), conditions=Conditions(run_times=RunTimes.LEARNED))
    assert simulations.job_times_s(found, heartbeat_s=1.0) == (13.0,)


@pytest.mark.parametrize("profile", ["fifo", "fair", "yarn", "yarn-me", "ila", "ikayak", "boathouse"])
def test_nothing_is_lost_when_nodes_fail(profile):
    apps = [simulations.mapreduce(str(i), maps=6, reduces=2, submit_ms=700 * i, replicas=2) for i in range(3)]
    found = simulations.live_workload(
        *apps, simulations.spark(), nodes=3, contention=conditions.Saturation(), reads_load_sources=True,
        outages=simulations.outages(("n1", 9.3, 20.0)), tick_ms=1500,
    )  # fmt: skip
    world = simulations.run(LiveHeartbeats(found, profiles.build(profile)), Invariants())
    assert (world.finished().jobs, len(world.ledger), len(world.pods), len(world.room)) == (4, 0, 0, 0)


def test_decisions_on_running_tasks_are_carried_out():
    script = Script({5.0: suspend_until(9.0)})
    profile = dataclasses.replace(profiles.build("fifo"), controllers=(script,), observers=(script,))
    found = simulations.live_workload(simulations.mapreduce(map=simulations.mapper(30)), tick_ms=1000)
    outcome = simulations.run(LiveHeartbeats(found, profile)).finished()
    (suspended,) = script.of(model.Suspended)
    assert outcome.job_times_s == (3 + 30 + 9 - suspended.now_s,)


@pytest.mark.parametrize(
    ("app", "timing", "message"),
    [
        (simulations.spark(min_executors=2, driver=simulations.container()), Timing(), "starts whole"),
        (simulations.mapreduce(), Timing(am_container_mb=1000), "am_container_mb"),
    ],
)
def test_what_has_no_meaning_with_heartbeats_is_refused(app, timing, message):
    found = dataclasses.replace(simulations.live_workload(app), timing=timing)
    with pytest.raises(ValueError, match=message):
        simulations.results(found, heartbeat_s=1.0)
