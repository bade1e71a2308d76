"""Processes are known by their cluster's mark: ours are found and ended, no other ever is."""

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from boathouse_e2e.local import processes
from boathouse_e2e.local.processes import Component, Process


@pytest.fixture
def cluster_id() -> Iterator[str]:
    mark = uuid.uuid4().hex
    yield mark
    processes.end_all(mark)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def start(cluster_id, folder, name="sleeper", **fields):
    """Start a component; return its process once it is found."""
    log = str(folder / "logs" / f"{name}.log")
    component = Component(**{"name": name, "command": ("sleep", "60"), "log": log, **fields})
    processes.start(component, cluster_id=cluster_id, folder=folder)
    while (process := processes.find_component(cluster_id, name)) is None:
        time.sleep(0.001)
    return process


def test_a_started_component_is_found_by_its_mark(cluster_id, tmp_path):
    found = start(cluster_id, tmp_path)
    assert found in processes.find(cluster_id)
    assert found not in processes.find("another")


def test_a_component_outlives_nobodys_session_and_is_nobodys_child(cluster_id, tmp_path):
    found = start(cluster_id, tmp_path)
    assert os.getsid(found.pid) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(found.pid, os.WNOHANG)


def test_what_only_leads_to_the_program_or_was_started_by_it_is_not_the_component(cluster_id, tmp_path):
    script = "sleep 60 & exec tail -f /dev/null"
    process = start(cluster_id, tmp_path, "follower", command=("sh", "-c", script), program="tail")
    assert process.program == "tail"


def test_all_of_a_cluster_are_ended_and_no_other_process(cluster_id, tmp_path, stranger):
    start(cluster_id, tmp_path, "one")
    start(cluster_id, tmp_path, "two")
    processes.end_all(cluster_id)
    assert processes.find(cluster_id) == []
    assert stranger.poll() is None


def test_a_pid_that_now_is_another_process_gets_no_signal(cluster_id, stranger):
    remembered = Process(pid=stranger.pid, component="kubelet-node-0", program="kubelet", main=True)
    assert not processes.send(remembered, cluster_id, signal.SIGKILL)
    assert stranger.poll() is None


def test_a_signal_to_an_ended_process_is_no_error(cluster_id, tmp_path):
    found = start(cluster_id, tmp_path)
    processes.end_all(cluster_id)
    assert not processes.send(found, cluster_id, signal.SIGTERM)


def test_secrets_of_the_starters_environment_do_not_reach_the_component(cluster_id, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    found = start(cluster_id, tmp_path)
    with contextlib.closing(open(f"/proc/{found.pid}/environ", "rb")) as environment:  # noqa: PTH123
        assert b"SOME_TOKEN" not in environment.read()


def test_a_component_can_be_started_again_as_it_was(cluster_id, tmp_path):
    start(cluster_id, tmp_path)
    (kept,) = processes.known(tmp_path)
    assert kept == Component(name="sleeper", command=("sleep", "60"), log=str(tmp_path / "logs" / "sleeper.log"))
