"""The simulator by hand: small cases that can be worked out on paper."""

import dataclasses

import pytest

from boathouse_policies import framework, model, profiles
from boathouse_sim import simulation
from boathouse_sim.simulation import Instant
from boathouse_sim.workload import Errors
from tests.builders import simulations


def test_tasks_that_fit_together_run_together():
    # 3 of 4,000 MB on 10,000: two at once, then the third.
    assert simulations.job_times_s(simulations.workload(simulations.job("0", simulations.phase(3, 10, 4000)))) == (
        20.0,
    )


def test_the_next_phase_starts_when_the_last_task_of_the_one_before_was_placed_not_ended():
    phases = simulations.phase(1, 10, 6000), simulations.phase(1, 10, 4000, kind="reduce")
    assert simulations.job_times_s(simulations.workload(simulations.job("0", *phases))) == (10.0,)
    assert simulations.job_times_s(simulations.workload(simulations.job("0", *phases), node_mb=9000)) == (20.0,)


def test_a_job_after_another_is_submitted_at_its_end():
    jobs = (
        simulations.job("0", simulations.phase(seconds=7)),
        simulations.job("1", simulations.phase(seconds=5), after="0"),
    )
    found = simulations.results(simulations.workload(*jobs), "fifo")
    assert (found.job_times_s, found.makespan_s) == ((7.0, 5.0), 12.0)


def test_the_first_come_is_served_first_and_the_shortest_first_under_srjf():
    jobs = simulations.job("0", simulations.phase(2, 10, 9000)), simulations.job("1", simulations.phase(1, 1, 9000))
    assert simulations.job_times_s(simulations.workload(*jobs), "fifo") == (20.0, 21.0)
    assert simulations.job_times_s(simulations.workload(*jobs), "srjf") == (21.0, 1.0)


def test_under_fair_sharing_the_job_that_holds_less_is_next():
    jobs = simulations.job("0", simulations.phase(4, 10, 5000)), simulations.job("1", simulations.phase(2, 10, 5000))
    assert simulations.job_times_s(simulations.workload(*jobs), "fair") == (30.0, 20.0)


def test_a_reserved_node_is_not_filled_by_the_small_behind():
    jobs = (
        simulations.job("0", simulations.phase(1, 10, 6000)),
        simulations.job("1", simulations.phase(1, 10, 10_000), at_s=1),
        simulations.job("2", simulations.phase(1, 30, 1000), at_s=2),
    )
    assert simulations.job_times_s(simulations.workload(*jobs), "yarn") == (10.0, 19.0, 48.0)
    assert simulations.job_times_s(simulations.workload(*jobs), "yarn-no-reservations") == (10.0, 41.0, 30.0)


def test_one_node_as_large_as_all_takes_what_no_single_one_can():
    jobs = [simulations.job(str(i), simulations.phase(1, 10, 6000)) for i in range(3)]
    assert simulations.job_times_s(simulations.workload(*jobs, nodes=2), "fifo") == (10.0, 10.0, 20.0)
    assert simulations.job_times_s(simulations.workload(*jobs, nodes=2), "meganode") == (10.0, 10.0, 10.0)


def test_utilisation_is_memory_time_over_makespan_and_cluster():
    found = simulations.results(
        simulations.workload(simulations.job("0", simulations.phase(1, 10, 4000, cores=2))), "fifo"
    )
    assert (found.memory_utilisation, found.cpu_utilisation) == (0.4, 2 / 16)


def test_a_task_waits_rather_than_run_with_so_little_memory_that_it_would_end_its_job_later():
    jobs = (
        simulations.job("0", simulations.phase(1, 10, 6000)),
        simulations.job("1", simulations.phase(1, 100, 8000, factor=1.5), at_s=1),
    )
    found = simulations.results(simulations.workload(*jobs), "yarn-me")
    assert (found.elastic_tasks, found.job_times_s) == (0, (10.0, 109.0))


def test_tasks_run_with_less_memory_where_their_job_ends_no_later_for_it():
    # One after the other: 30 s. The second in half its ideal: 1.25 times as long; the third in a sixth, what is left.
    elastic = simulations.job("0", simulations.phase(3, 10, 6000, model="sawtooth", factor=1.5))
    found = simulations.results(simulations.workload(elastic), "yarn-me")
    assert (found.elastic_tasks, found.job_times_s) == (2, (14.8,))


def test_a_task_that_runs_longer_than_estimated_delays_its_job():
    late = Errors(duration=(0.5, 0.5))
    assert simulations.job_times_s(simulations.workload(), errors=late) == (15.0,)


def test_an_underestimated_memory_spills_in_regular_tasks_too():
    workload = simulations.workload(simulations.job("0", simulations.phase(1, 10, 1000, model="step", factor=2.0)))
    assert simulations.job_times_s(workload, errors=Errors(memory=(0.5, 0.5))) == (20.0,)
    assert simulations.job_times_s(workload, errors=Errors(memory=(0.5, 0.5), penalty=(0.5, 0.5))) == (30.0,)


def test_equal_seeds_give_equal_results_and_others_do_not():
    workload = simulations.workload(
        *(simulations.job(str(i), simulations.phase(5, 10 + i, 3000), at_s=i) for i in range(4))
    )
    errors = Errors(duration=(-0.5, 0.5))

    def run(seed):
        return dataclasses.replace(simulations.results(workload, "fair", errors=errors, seed=seed), cpu_s=0.0)

    assert run(1) == run(1)
    assert run(1).job_times_s != run(2).job_times_s


def test_an_unknown_profile_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"choose from: .*capacity, .*fair, fifo"):
        simulation.shell(simulations.workload(), "best")


@pytest.mark.parametrize("heartbeat_s", [None, 1.0])
def test_a_phase_that_waits_for_the_end_of_the_one_before_starts_then(heartbeat_s):
    maps, reduces = simulations.phase(3, 10, 4000), simulations.phase(1, 10, 1000, kind="reduce")
    behind = simulations.workload(simulations.job("0", maps, dataclasses.replace(reduces, when_ended=True)))
    (later_s,) = simulations.job_times_s(behind, heartbeat_s=heartbeat_s)
    (sooner_s,) = simulations.job_times_s(
        simulations.workload(simulations.job("0", maps, reduces)), heartbeat_s=heartbeat_s
    )
    assert later_s >= 30.0
    assert later_s > sooner_s


class Suspending(framework.Observer):
    """Decides to suspend what has started."""

    def __init__(self):
        self.started, self.refused = [], []

    def observe(self, event):
        if isinstance(event, model.Started):
            self.started.append(event)
        elif isinstance(event, model.Refused):
            self.refused.append(event.decision.task.id)

    def advise(self, _queue, _view):
        found, self.started = self.started, []
        size = model.Resources(cpu_milli=0, memory_bytes=0)
        tasks = [(model.Task(id=event.task, task_class=event.task_class), event.node) for event in found]
        return [
            model.Suspend(task=task, node=node, resources=size, until_s=None, reason="test") for task, node in tasks
        ]


def test_a_shell_whose_tasks_only_run_refuses_to_suspend_them():
    script = Suspending()
    profile = dataclasses.replace(profiles.build("fifo"), controllers=(script,), observers=(script,))
    simulations.run(Instant(simulations.workload(simulations.job("0", simulations.phase(3, 10, 4000))), profile))
    assert len(script.refused) == len(set(script.refused)) > 0
