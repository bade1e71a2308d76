"""What must hold after every event, whatever the workload, profile and shell."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_sim import simulation
from boathouse_sim.invariants import Invariants
from tests.unit.sim import make

phases = st.builds(
    make.phase,
    tasks=st.integers(1, 5),
    seconds=st.integers(0, 40),
    mb=st.integers(1, 40).map(lambda hundreds: hundreds * 100),
    cores=st.integers(1, 4),
    kind=st.sampled_from(["map", "reduce"]),
    model=st.sampled_from(["step", "sawtooth"]),
    factor=st.sampled_from([1.0, 1.5, 3.0]),
)


@st.composite
def workloads(draw):
    count = draw(st.integers(1, 5))
    jobs = [
        make.job(str(i), *draw(st.lists(phases, min_size=1, max_size=2)), at_s=draw(st.integers(0, 60)))
        for i in range(count)
    ]
    return make.workload(*jobs, nodes=draw(st.integers(1, 3)), node_mb=4000, cores=4)


@pytest.mark.parametrize("name", simulation.names())
@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(workload=workloads(), heartbeat_s=st.sampled_from([None, 1.0]))
def test_no_node_is_over_committed_time_runs_on_and_every_task_runs_once(name, workload, heartbeat_s):
    found = simulation.simulate(workload, name, heartbeat_s=heartbeat_s, watch=Invariants())
    assert (found.jobs, found.tasks) == (len(workload.jobs), workload.tasks)
    longest_s = [max(phase.duration_ms for phase in job.phases) / 1000 for job in workload.jobs]
    assert all(time_s >= least_s for time_s, least_s in zip(found.job_times_s, longest_s, strict=True))


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(workload=workloads())
def test_nothing_is_left_in_the_ledger_and_the_room(workload):
    driver = simulation.shell(workload, "yarn-me", heartbeat_s=1.0)
    while driver.advance():
        pass
    assert (len(driver.world.ledger), len(driver.world.room), dict(driver.world.room.reserved)) == (0, 0, {})


def test_a_task_larger_than_what_others_leave_gets_its_turn_under_reservations():
    small = [make.job(str(i), make.phase(1, 10, 3000), at_s=5 * i) for i in range(20)]
    large = make.job("20", make.phase(1, 10, 4000), at_s=1)
    found = simulation.simulate(make.workload(*small, large, node_mb=4000), "yarn")
    assert found.job_times_s[-1] < 60.0
