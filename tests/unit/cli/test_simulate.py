"""`boathouse simulate`, as a user calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import CommandError, ExitCode

TRACE = "job0\t0\t0\t1000000\t0\t10\njob1\t10\t10\t600000000\t2000000\t30\n"
WORKLOAD = {
    "format": "neutral-cluster-workload/1",
    "cluster": {"nodes": 2, "node_mem_mb": 1000, "node_cores": 4},
    "jobs": [
        {"id": 0, "submit_ms": 0, "phases": [{"kind": "map", "tasks": 4, "duration_ms": 5000, "mem_ideal_mb": 1000}]}
    ],
}
FIELDS = {
    "jobs",
    "tasks",
    "mean_job_time_s",
    "median_job_time_s",
    "p95_job_time_s",
    "makespan_s",
    "memory_utilisation",
    "cpu_utilisation",
    "elastic_tasks",
    "events",
    "cpu_s",
}


@pytest.fixture
def workloads(tmp_path):
    (tmp_path / "work.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "trace.tsv").write_text(TRACE)
    return tmp_path


def simulate(file: Path, *words: str):
    return CliRunner().invoke(commands.app, ["simulate", str(file), *words])


def figures(file: Path, *words: str):
    return json.loads(simulate(file, *words, "--json").stdout)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--profile", "fifo", "--profile", "yarn-me"], id="repeated"),
        pytest.param(["--profile", "fifo", "yarn-me"], id="one after the other"),
        pytest.param(["--profile", "fifo,yarn-me"], id="with a comma"),
    ],
)
def test_each_profile_has_its_figures(workloads, words):
    found = figures(workloads / "work.json", *words)
    assert (found["workload"], list(found["profiles"])) == ("work", ["fifo", "yarn-me"])
    assert all(one.keys() >= FIELDS for one in found["profiles"].values())
    assert found["profiles"]["fifo"]["mean_job_time_s"] == 10.0


def test_more_nodes_end_the_job_sooner(workloads):
    assert figures(workloads / "work.json", "--nodes", "4")["profiles"]["fair"]["makespan_s"] == 5.0


def test_heartbeats_cost_time(workloads):
    found = figures(workloads / "work.json", "--profile", "fifo", "--heartbeat", "1")
    assert found["profiles"]["fifo"]["mean_job_time_s"] > 15.0


def test_a_trace_is_simulated_by_named_assumptions(workloads):
    found = figures(workloads / "trace.tsv", "--profile", "fair")
    assert (found["profiles"]["fair"]["jobs"], found["profiles"]["fair"]["tasks"]) == (2, 5)
    assert found["assumptions"]["split_mb"] == 256


def test_a_fluid_resource_needs_no_tasks(workloads):
    found = figures(workloads / "trace.tsv", "--fluid", "--profile", "ps,srpt", "--load", "0.5")
    assert list(found["profiles"]) == ["ps", "srpt"]
    assert found["profiles"]["ps"]["jobs"] == 2


def test_the_table_names_the_assumptions(workloads):
    printed = simulate(workloads / "trace.tsv").stdout
    assert "trace: 2 jobs, 5 tasks" in printed
    assert "split_mb 256" in printed


@pytest.mark.parametrize(
    ("file", "words", "message", "code"),
    [
        ("none.json", [], "cannot be read: No such file", ExitCode.USAGE),
        ("work.json", ["--profile", "best"], '"best" is not a known profile: choose from boathouse, ', ExitCode.USAGE),
        ("work.json", ["--nodes", "0"], "at least 1 node, not 0", ExitCode.USAGE),
        ("work.json", ["--heartbeat", "0"], "heartbeat must be at least", ExitCode.USAGE),
        ("work.json", ["--fluid"], "takes a SWIM trace", ExitCode.USAGE),
        ("work.json", ["--load", "0.5"], "--load requires --fluid", ExitCode.USAGE),
        ("trace.tsv", ["--fluid", "--nodes", "3"], "omit them", ExitCode.USAGE),
        (
            "trace.tsv",
            ["--fluid", "--profile", "fair"],
            '"fair" is not a known order of --fluid: choose from fifo',
            ExitCode.USAGE,
        ),
        ("trace.tsv", ["--fluid", "--load", "-1"], "load must be above 0", ExitCode.USAGE),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(workloads, file, words, message, code):
    error = simulate(workloads / file, *words).exception
    assert isinstance(error, CommandError)
    assert message in str(error)
    assert error.code == code
