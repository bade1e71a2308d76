"""What must hold after every event, whatever the workload, profile and shell."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_lab.invariants import Invariants
from boathouse_sim import simulation
from tests.builders import simulations
from tests.builders.core_strategies import PROFILES
from tests.builders.simulations import drawn_workloads


@pytest.mark.parametrize("name", [*PROFILES, "meganode"])
@hypothesis.settings(max_examples=10, deadline=None)
@hypothesis.given(workload=drawn_workloads(), heartbeat_s=st.sampled_from([None, 1.0]))
def test_no_node_is_over_committed_time_runs_on_and_every_task_runs_once(name, workload, heartbeat_s):
    found = simulation.simulate(workload, name, heartbeat_s=heartbeat_s, watch=Invariants())
    assert (found.jobs, found.tasks) == (len(workload.jobs), workload.tasks)
    longest_s = [max(phase.duration_ms for phase in job.phases) / 1000 for job in workload.jobs]
    assert all(time_s >= least_s for time_s, least_s in zip(found.job_times_s, longest_s, strict=True))


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(workload=drawn_workloads())
def test_nothing_is_left_in_the_ledger_and_the_room(workload):
    world = simulations.run(simulation.shell(workload, "yarn-me", heartbeat_s=1.0))
    assert (len(world.ledger), len(world.room), dict(world.room.reserved)) == (0, 0, {})


def test_a_task_larger_than_what_others_leave_gets_its_turn_under_reservations():
    small = [simulations.job(str(i), simulations.phase(1, 10, 3000), at_s=5 * i) for i in range(20)]
    large = simulations.job("20", simulations.phase(1, 10, 4000), at_s=1)
    found = simulation.simulate(simulations.workload(*small, large, node_mb=4000), "yarn")
    assert found.job_times_s[-1] < 60.0
