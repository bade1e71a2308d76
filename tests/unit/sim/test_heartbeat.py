"""YARN's heartbeats, as DSS plays them."""

import functools
import json
from pathlib import Path

import pytest

from boathouse_sim import neutral, simulation
from tests.builders import simulations

WORKLOADS = Path(__file__).resolve().parents[3] / "data" / "workloads"
DSS = json.loads((WORKLOADS / "dss-results.json").read_text())["workloads"]


def test_a_task_of_100_s_ends_its_job_after_107_s():
    workload = simulations.workload(simulations.job("0", simulations.phase(1, 100)))
    assert simulation.simulate(workload, "yarn", heartbeat_s=1.0).job_times_s == (107.0,)


def test_a_node_takes_one_container_at_a_heartbeat():
    alone, many = (simulations.workload(simulations.job("0", simulations.phase(tasks, 100, 100))) for tasks in (1, 11))
    (one_s,), (many_s,) = (simulation.simulate(w, "yarn", heartbeat_s=1.0).job_times_s for w in (alone, many))
    assert many_s == one_s + 10


def test_a_longer_period_takes_longer():
    assert simulation.simulate(simulations.workload(), "yarn", heartbeat_s=3.0).job_times_s[0] > 17.0
    with pytest.raises(ValueError, match=r"at least 0\.001 s"):
        simulation.shell(simulations.workload(), "yarn", heartbeat_s=0.0)


@functools.cache
def simulated_mean_s(workload, name):
    read = neutral.read_neutral(WORKLOADS / f"{workload}.json")
    return simulation.simulate(read, name, heartbeat_s=1.0).mean_job_time_s


@pytest.mark.parametrize("workload", DSS)
@pytest.mark.parametrize(
    ("profile", "theirs"),
    [("yarn", "YARN"), ("yarn-no-reservations", "YARN without reservations"), ("meganode", "Meganode")],
)
def test_the_mean_job_time_is_that_of_dss(workload, profile, theirs):
    assert simulated_mean_s(workload, profile) == pytest.approx(DSS[workload][theirs]["mean_job_time_s"], rel=0.05)


@pytest.mark.parametrize("workload", DSS)
def test_the_gain_of_memory_elasticity_is_that_of_dss(workload):
    theirs = 1 - DSS[workload]["YARN-ME"]["mean_job_time_s"] / DSS[workload]["YARN"]["mean_job_time_s"]
    ours = 1 - simulated_mean_s(workload, "yarn-me") / simulated_mean_s(workload, "yarn")
    assert ours == pytest.approx(theirs, abs=0.05)
