"""When the daemons must read the exclude files."""

from pathlib import Path

import pytest

from boathouse_task.agent.host_files import DISTANCE_S, PATIENCE_S, RETRY_S, HostFiles, Refresher, Wanted
from boathouse_task.cluster_contract import Request
from tests.builders.agents import agent_spec


class RefreshRun:
    """A refresher, its clock, and the container that carries out its requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "refresh"
        self.now_s = 0.0
        self.refresher = Refresher(HostFiles(agent_spec(folder)), lambda: self.now_s)

    def update(self, after_s: float = DISTANCE_S, **fields: object) -> bool:
        """Update HDFS alone, some time later."""
        self.now_s += after_s
        return self.refresher.update({Request.HDFS: Wanted(**{"started_s": 1, "hosts": "", **fields})})

    def requested(self) -> int:
        """The number of the last request."""
        return int((self.folder / "hdfs.want").read_text())

    def carry_out(self, status: int = 0) -> None:
        """Carry out the last request."""
        (self.folder / "hdfs.done").write_text(f"{self.requested()} {status}\n")


@pytest.fixture
def run(tmp_path):
    return RefreshRun(tmp_path)


@pytest.fixture
def refreshed(run):
    run.update()
    run.carry_out()
    assert run.update()
    return run


def test_a_new_agent_requests_a_refresh_as_it_cannot_know_the_last(run):
    assert not run.update()
    assert run.requested() == 1
    run.carry_out()
    assert run.update()
    assert run.requested() == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"hosts": "c3\n"}, id="list"),
        pytest.param({"started_s": 2}, id="daemon started again"),
        pytest.param({"addresses": ("10.0.0.7",)}, id="address"),
    ],
)
def test_a_change_that_the_daemon_could_have_missed_is_a_request(refreshed, change):
    assert not refreshed.update(**change)
    assert refreshed.requested() == 2
    refreshed.carry_out()
    assert refreshed.update(**change)


def test_a_request_in_flight_is_not_repeated(run):
    for _ in range(5):
        assert not run.update()
    assert run.requested() == 1


def test_a_change_during_a_request_is_another_one_after_the_distance(run):
    run.update()
    assert not run.update(after_s=1, hosts="c3\n")
    assert run.requested() == 1
    assert not run.update(after_s=DISTANCE_S, hosts="c3\n")
    assert run.requested() == 2
    run.carry_out()
    assert run.update(hosts="c3\n")


def test_the_result_of_an_older_request_is_no_result(run):
    run.update()
    run.carry_out()
    run.update(after_s=0, hosts="c3\n")
    run.update(hosts="c3\n")
    assert run.requested() == 2
    assert not run.update(hosts="c3\n")


def test_a_request_that_fails_is_reported_and_repeated(run):
    run.update()
    run.carry_out(status=255)
    assert not run.update()
    assert "status 255" in run.refresher.error
    assert run.requested() == 1
    assert not run.update(after_s=RETRY_S)
    assert run.requested() == 2
    run.carry_out()
    assert run.update()
    assert run.refresher.error == ""


def test_a_failure_after_a_success_is_no_success(refreshed):
    refreshed.update(hosts="c3\n")
    refreshed.carry_out(status=1)
    assert not refreshed.update()


def test_a_change_that_is_undone_during_its_request_needs_another_request(refreshed):
    assert not refreshed.update(hosts="c3\n")
    assert not refreshed.update()
    assert refreshed.requested() == 3
    refreshed.carry_out()
    assert refreshed.update()


def test_a_container_that_does_not_respond_is_reported(run):
    run.update()
    run.update(after_s=PATIENCE_S + 1)
    assert "request 1 of hdfs" in run.refresher.error
    assert run.requested() == 1


def test_each_daemon_has_its_own_requests(run):
    wanted = {kind: Wanted(started_s=1, hosts="") for kind in Request}
    run.refresher.update(wanted)
    (run.folder / "yarn.done").write_text("1 0\n")
    assert not run.refresher.update(wanted)
    (run.folder / "hdfs.done").write_text("1 0\n")
    assert run.refresher.update(wanted)


def test_a_daemon_that_does_not_run_is_not_refreshed(run):
    assert run.refresher.update({})
    assert not (run.folder / "hdfs.want").exists()
