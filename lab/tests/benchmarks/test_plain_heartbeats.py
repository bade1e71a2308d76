"""Under heartbeats every container goes where a simulator of plain loops gives it."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from benchmarks import plain_heartbeats
from boathouse_policies import profiles
from boathouse_sim.simulation import Heartbeats
from boathouse_sim.workload import Timing
from tests.builders import simulations
from tests.builders.simulations import drawn_workloads

MASTER_MB, MASTER_CORES = 200, 1
timings = st.builds(
    Timing,
    am_container_mb=st.sampled_from([0, MASTER_MB]),
    am_container_cores=st.sampled_from([0, MASTER_CORES]),
    allocs_per_node_heartbeat=st.integers(1, 3),
)


class Recorder:
    """Records the placements that policies are told of."""

    def __init__(self):
        self.placements = []

    def observe(self, event):
        if type(event).__name__ == "Placed":
            self.placements.append((event.now_s, int(event.job), int(event.node.removeprefix("n"))))


class Plain(plain_heartbeats.PlainHeartbeats):
    """Records the same of the plain simulator."""

    def run(self):
        self.placements = []
        super().run()
        return self.placements

    def allocated(self, container):
        self.placements.append((self.now_ms / 1000, container.job.place, self.nodes.index(container.node)))
        super().allocated(container)


def with_room_for_masters(workload, timing):
    """Masters that fill the nodes would keep all tasks out for ever."""
    cluster, jobs = workload.cluster, len(workload.jobs)
    cluster = dataclasses.replace(
        cluster,
        node_mem_mb=cluster.node_mem_mb + jobs * MASTER_MB,
        node_cores=cluster.node_cores + jobs * MASTER_CORES,
    )
    return dataclasses.replace(workload, cluster=cluster, timing=timing)


@pytest.mark.parametrize("name", plain_heartbeats.PROFILES)
@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(workload=drawn_workloads(), timing=timings)
def test_the_same_job_gets_each_container_of_the_same_node_at_the_same_time(name, workload, timing):
    workload, recorder = with_room_for_masters(workload, timing), Recorder()
    simulations.run(Heartbeats(workload, dataclasses.replace(profiles.build(name), observers=(recorder,))))
    assert recorder.placements == Plain(workload, name).run()
