"""When the daemons must read the exclude files."""

from pathlib import Path

import pytest

from boathouse_task.agent.host_files import HostFiles
from boathouse_task.agent.refreshing import DISTANCE_S, PATIENCE_S, RETRY_S, Refresher, Wanted
from boathouse_task.cluster_contract import Request
from tests.unit.task.agent.daemons import agent_spec


class World:
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
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def refreshed(world):
    world.update()
    world.carry_out()
    assert world.update()
    return world


def test_a_new_agent_requests_a_refresh_as_it_cannot_know_the_last(world):
    assert not world.update()
    assert world.requested() == 1
    world.carry_out()
    assert world.update()
    assert world.requested() == 1


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


def test_a_request_in_flight_is_not_repeated(world):
    for _ in range(5):
        assert not world.update()
    assert world.requested() == 1


def test_a_change_during_a_request_is_another_one_after_the_distance(world):
    world.update()
    assert not world.update(after_s=1, hosts="c3\n")
    assert world.requested() == 1
    assert not world.update(after_s=DISTANCE_S, hosts="c3\n")
    assert world.requested() == 2
    world.carry_out()
    assert world.update(hosts="c3\n")


def test_the_result_of_an_older_request_is_no_result(world):
    world.update()
    world.carry_out()
    world.update(after_s=0, hosts="c3\n")
    world.update(hosts="c3\n")
    assert world.requested() == 2
    assert not world.update(hosts="c3\n")


def test_a_request_that_fails_is_reported_and_repeated(world):
    world.update()
    world.carry_out(status=255)
    assert not world.update()
    assert "status 255" in world.refresher.error
    assert world.requested() == 1
    assert not world.update(after_s=RETRY_S)
    assert world.requested() == 2
    world.carry_out()
    assert world.update()
    assert world.refresher.error == ""


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


def test_a_container_that_does_not_respond_is_reported(world):
    world.update()
    world.update(after_s=PATIENCE_S + 1)
    assert "request 1 of hdfs" in world.refresher.error
    assert world.requested() == 1


def test_each_daemon_has_its_own_requests(world):
    wanted = {kind: Wanted(started_s=1, hosts="") for kind in Request}
    world.refresher.update(wanted)
    (world.folder / "yarn.done").write_text("1 0\n")
    assert not world.refresher.update(wanted)
    (world.folder / "hdfs.done").write_text("1 0\n")
    assert world.refresher.update(wanted)


def test_a_daemon_that_does_not_run_is_not_refreshed(world):
    assert world.refresher.update({})
    assert not (world.folder / "hdfs.want").exists()
