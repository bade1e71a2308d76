"""YARN's heartbeats, as DSS plays them."""

import json
from pathlib import Path

import pytest

from boathouse_sim import neutral, simulation
from tests.builders import simulations

WORKLOADS = Path(__file__).resolve().parents[3] / "data" / "workloads"
WORKLOAD = "table2-uniform-24"
"""Of those that DSS simulated; the study of YARN-ME compares all of them."""
DSS = json.loads((WORKLOADS / "dss-results.json").read_text())["workloads"][WORKLOAD]
NAMES = {
    "yarn": "YARN",
    "yarn-no-reservations": "YARN without reservations",
    "meganode": "Meganode",
    "yarn-me": "YARN-ME",
}


def test_a_task_of_100_s_ends_its_job_after_107_s():
    workload = simulations.workload(simulations.job("0", simulations.phase(1, 100)))
    assert simulations.job_times_s(workload, "yarn", heartbeat_s=1.0) == (107.0,)


def test_a_node_takes_one_container_at_a_heartbeat():
    alone, many = (simulations.workload(simulations.job("0", simulations.phase(tasks, 100, 100))) for tasks in (1, 11))
    (one_s,), (many_s,) = (simulations.job_times_s(w, "yarn", heartbeat_s=1.0) for w in (alone, many))
    assert many_s == one_s + 10


def test_a_longer_period_takes_longer():
    assert simulations.job_times_s(simulations.workload(), "yarn", heartbeat_s=3.0)[0] > 17.0
    with pytest.raises(ValueError, match=r"at least 0\.001 s"):
        simulation.shell(simulations.workload(), "yarn", heartbeat_s=0.0)


@pytest.fixture(scope="module")
def dss_workload_times_s():
    """Mean job times of a workload that DSS simulated too, by profile."""
    workload = neutral.read_neutral(WORKLOADS / f"{WORKLOAD}.json")
    return {name: simulations.results(workload, name, heartbeat_s=1.0).mean_job_time_s for name in NAMES}


@pytest.mark.parametrize("profile", ["yarn", "yarn-no-reservations", "meganode"])
def test_the_mean_job_time_is_that_of_dss(dss_workload_times_s, profile):
    assert dss_workload_times_s[profile] == pytest.approx(DSS[NAMES[profile]]["mean_job_time_s"], rel=0.05)


def test_the_gain_of_memory_elasticity_is_that_of_dss(dss_workload_times_s):
    theirs = 1 - DSS["YARN-ME"]["mean_job_time_s"] / DSS["YARN"]["mean_job_time_s"]
    ours = 1 - dss_workload_times_s["yarn-me"] / dss_workload_times_s["yarn"]
    assert ours == pytest.approx(theirs, abs=0.05)
