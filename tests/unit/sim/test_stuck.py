"""A simulation always ends: with results, or with an error that says who waits for what."""

import dataclasses

import pytest

from boathouse_policies import model, profiles
from boathouse_policies.framework.questions import Patience
from boathouse_sim import simulation
from boathouse_sim.base_world import StuckError
from boathouse_sim.live import Live
from boathouse_sim.simulation import Heartbeats, Instant
from boathouse_sim.workload import Timing
from tests.builders import simulations

OFTEN = simulations.outages(mean_time_to_failure_s=60, mean_time_to_recovery_s=10)


class Endless(Patience):
    """Waits for a better node for ever."""

    def wait(self, pending, node, state):
        verdict = model.Verdict(code=model.Code.PATIENCE, message=f"waits for a node better than {node}")
        until_s = state.view.now_s + 5
        return model.Wait(task_class=pending.task_class, job=pending.job, verdict=verdict, until_s=until_s)


def test_a_gang_that_never_fits_ends_a_simulation_in_which_nodes_fail():
    gang = simulations.spark(executors=3, driver=simulations.container(mb=200), min_executors=3, mb=5000)
    with pytest.raises(StuckError, match=r"1 jobs have not ended: s; pending tasks: 3 of s/0/executor \(Gang: "):
        simulations.results(simulations.live_workload(gang, nodes=2, outages=OFTEN))


@pytest.mark.parametrize("profile", ["yarn", "capacity", "yarn-me", "fair"])
def test_a_gang_starts_on_nodes_that_come_free_one_after_the_other(profile):
    maps = [simulations.mapreduce(str(i), map=simulations.mapper(5.0 + 5.0 * i, mb=8000)) for i in range(2)]
    gang = simulations.spark(
        executors=2, driver=simulations.container(mb=500), min_executors=2, mb=7000, submit_ms=1000
    )
    assert simulations.results(simulations.live_workload(*maps, gang, nodes=2), profile).job_times_s == (
        5.0,
        10.0,
        29.0,
    )


def test_a_task_that_runs_longer_than_any_node_ends_the_simulation(monkeypatch):
    monkeypatch.setattr("boathouse_sim.live.world._MOST_LOST", 50)
    job = simulations.mapreduce(map=simulations.mapper(10_000))
    with pytest.raises(StuckError, match="the task 0/0/map-0 was lost 50 times and never ended"):
        simulations.results(simulations.live_workload(job, outages=OFTEN))


def test_executors_that_became_idle_without_their_driver_work_on_when_it_is_back():
    app = simulations.spark(executors=1, tasks=(1, 1), driver=simulations.container(mb=200, cores=2), cores=2)
    found = simulations.live_workload(app, nodes=2, cores=2, outages=simulations.outages(("n0", 5, 15)))
    assert simulations.results(found).job_times_s == (25.0,)


def test_masters_that_fill_the_cluster_end_a_simulation_with_heartbeats():
    jobs = [simulations.job(name, simulations.phase(mb=4000)) for name in "012"]
    timing = Timing(am_container_mb=2000, am_container_cores=1)
    workload = dataclasses.replace(simulations.workload(*jobs, nodes=1, node_mb=4000), timing=timing)
    with pytest.raises(StuckError, match=r"3 jobs have not ended: 0, 1, 2; pending tasks: 1 of 0/0/map"):
        simulation.simulate(workload, "fifo", heartbeat_s=1.0)


@pytest.mark.parametrize("shell", [Instant, Heartbeats, Live])
def test_a_policy_that_waits_for_ever_ends_a_simulation(shell):
    profile = dataclasses.replace(profiles.build("fifo"), patience=Endless())
    workload = simulations.live_workload(simulations.mapreduce()) if shell is Live else simulations.workload()
    with pytest.raises(StuckError, match="waits for a node better than 0"):
        simulations.run(shell(workload, profile)).finished()
