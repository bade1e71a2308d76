"""Rounds of an agent whose cluster and operator are objects of the test."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from boathouse_task.agent.agent import FOLDERS, QUERY_BUDGET_S, Agent
from boathouse_task.agent.daemons import DataNode, NodeManager
from boathouse_task.cluster_contract import (
    AgentOrders,
    AgentReport,
    ApplicationFigures,
    DfsState,
    HdfsFigures,
    Leaving,
    NodeFigures,
    Version,
    YarnFigures,
    YarnState,
)
from boathouse_task.progress import Unavailable
from boathouse_task.rest import RestError
from tests.builders.agents import DOMAIN, agent_spec

APPLICATION = ApplicationFigures(id="application_1_0001", state="RUNNING")


class AgentRun:
    """An agent that may be restarted, its cluster, its operator, and the container `refresh`."""

    def __init__(self, folder: Path, *, has_compute: bool = True) -> None:
        self.spec = agent_spec(folder, has_compute=has_compute)
        self.folder = folder
        self.now_s = 0.0
        self.hdfs: HdfsFigures | None = HdfsFigures(cluster_id="CID-1", started_s=1, safe_mode=False)
        self.yarn: YarnFigures | None = YarnFigures(started_s=1)
        self.data_nodes: dict[str, DataNode] = {}
        self.managers: dict[str, NodeManager] = {}
        self.leaving: dict[str, str] = {}
        self.folders_made = 0
        self.folders_error = ""
        self.killed: list[str] = []
        self.addresses: dict[str, list[str]] = {}
        self.orders: AgentOrders | None = AgentOrders()
        self.reports: list[AgentReport] = []
        self.restart()

    def restart(self) -> None:
        """Start another agent."""
        self.agent = Agent(
            self.spec,
            NameNode(self),
            ResourceManager(self) if self.spec.has_compute else None,
            self,
            resolve=lambda name: self.addresses.get(name, []),
            canary=lambda: True,
            monotonic=lambda: self.now_s,
        )

    def report(self, report: AgentReport) -> AgentOrders:
        """Take a report, as the operator does."""
        self.reports.append(report)
        if self.orders is None:
            raise Unavailable(503, "away")
        return self.orders

    def step(self, after_s: float = 5.0) -> AgentReport:
        """One round; returns its report."""
        self.now_s += after_s
        self.next_s = self.agent.step()
        return self.reports[-1]

    def order(self, epoch: int, revision: int, *leaving: Leaving, **fields: object) -> AgentReport:
        """Give orders in one round; returns the report of the next."""
        self.orders = AgentOrders(version=Version(epoch, revision), leaving=list(leaving), **fields)
        self.step()
        return self.step()

    def carry_out(self) -> None:
        """Carry out all requests."""
        for request in (self.folder / "refresh").glob("*.want"):
            request.with_suffix(".done").write_text(f"{request.read_text().strip()} 0\n")

    def requested(self, kind: str) -> int:
        """The number of the last request."""
        path = self.folder / "refresh" / f"{kind}.want"
        return int(path.read_text()) if path.exists() else 0

    def excluded(self) -> str:
        """The list that HDFS reads."""
        return (self.folder / "agent" / "dfs.exclude").read_text()


class NameNode:
    """The client of the NameNode, without a network."""

    def __init__(self, run: AgentRun) -> None:
        self.run = run

    def state(self):
        if self.run.hdfs is None:
            raise RestError("NameNode: ConnectionRefusedError")
        return self.run.hdfs, self.run.data_nodes

    def make_folders(self, folders):
        assert folders == FOLDERS
        if self.run.folders_error:
            raise RestError(self.run.folders_error)
        self.run.folders_made += 1


class ResourceManager:
    """The client of the ResourceManager, without a network. A request for a tag takes a second."""

    def __init__(self, run: AgentRun) -> None:
        self.run = run

    def state(self, leaving):
        self.run.leaving = dict(leaving)
        if self.run.yarn is None:
            raise RestError("ResourceManager: ConnectionRefusedError")
        return self.run.yarn, self.run.managers

    def applications(self, tag: str, has_time: Callable[[], bool]) -> Sequence[ApplicationFigures]:
        assert has_time()
        self.run.now_s += 1
        if tag == "broken":
            raise RestError("ResourceManager: unexpected response")
        return [replace(APPLICATION, name=tag)]

    def kill(self, application_id: str) -> None:
        if application_id == "application_1_0404":
            raise RestError("ResourceManager: status 404", 404)
        self.run.killed.append(application_id)


@pytest.fixture
def run(tmp_path):
    return AgentRun(tmp_path)


@pytest.fixture
def ready(run):
    """A run whose daemons have read the empty lists."""
    run.step()
    run.carry_out()
    assert run.step().refreshed
    return run


def test_a_report_has_what_hdfs_and_yarn_know_of_each_host(run):
    run.data_nodes = {"c1": DataNode(state=DfsState.LIVE, free_bytes=9, used_bytes=4), "c0": DataNode(state="D")}
    run.managers = {
        "c1": NodeManager(state=YarnState.RUNNING, containers=2, memory_mb=512),
        "t3": NodeManager(state="U"),
    }
    report = run.step()
    assert report.nodes == [
        NodeFigures("c0", DfsState.DEAD),
        NodeFigures("c1", DfsState.LIVE, YarnState.RUNNING, 2, 512, 0, 9, 4),
        NodeFigures("t3", DfsState.NONE, YarnState.UNHEALTHY),
    ]
    assert (report.hdfs, report.yarn, report.canary, report.version) == (run.hdfs, run.yarn, True, Version(0, 0))


def test_a_daemon_that_does_not_respond_has_no_figures(ready):
    ready.yarn = None
    report = ready.step()
    assert (report.hdfs, report.yarn, report.refreshed) == (ready.hdfs, None, False)
    assert report.error == "ResourceManager: ConnectionRefusedError"
    ready.hdfs = None
    assert ready.step().error == "NameNode: ConnectionRefusedError; ResourceManager: ConnectionRefusedError"


def test_a_cluster_without_compute_has_no_yarn(tmp_path):
    run = AgentRun(tmp_path, has_compute=False)
    run.step()
    run.carry_out()
    report = run.step()
    assert (report.yarn, report.error, report.refreshed) == (None, "", True)
    assert run.requested("yarn") == 0


def test_orders_are_stored_and_refreshed_and_then_reported(ready):
    ready.orders = AgentOrders(version=Version(1, 7), leaving=[Leaving("c3", stores=True), Leaving("t1", 300)])
    ready.step()
    assert ready.excluded() == f"c3.{DOMAIN}\n"
    assert (ready.requested("hdfs"), ready.requested("yarn")) == (2, 2)
    report = ready.step()
    assert (report.version, report.refreshed) == (Version(1, 7), False)
    ready.carry_out()
    assert ready.step().refreshed
    assert list(ready.leaving) == ["c3", "t1"]


def test_nodes_leave_under_the_names_that_they_registered(ready):
    name = f"c3.{DOMAIN}.cluster.local"
    ready.data_nodes = {"c3": DataNode(state=DfsState.LIVE, name=name)}
    ready.order(1, 7, Leaving("c3", stores=True), Leaving("t1", 300))
    assert ready.excluded() == f"{name}\n"
    ready.managers = {"t1": NodeManager(state=YarnState.DECOMMISSIONING, name=f"t1.{DOMAIN}.cluster.local")}
    ready.step()
    assert f"<name>t1.{DOMAIN}.cluster.local</name>" in (ready.folder / "agent" / "yarn.exclude.xml").read_text()
    assert (ready.requested("hdfs"), ready.requested("yarn")) == (2, 3)


def test_names_are_kept_when_nodes_and_the_agent_are_gone(ready):
    name = f"t1.{DOMAIN}.cluster.local"
    ready.managers = {"t1": NodeManager(state=YarnState.RUNNING, name=name)}
    ready.order(1, 7, Leaving("t1", 300))
    ready.managers = {}
    ready.restart()
    ready.step()
    assert ready.leaving == {"t1": name}


def test_a_transient_node_that_leaves_does_not_concern_hdfs(ready):
    ready.order(1, 7, Leaving("t1", 300))
    assert (ready.requested("hdfs"), ready.requested("yarn")) == (1, 2)


@pytest.mark.parametrize(
    "version", [Version(2, 6), Version(1, 900), None], ids=["older status", "older leader", "leader that knows nothing"]
)
def test_orders_that_are_not_newer_change_nothing(ready, version):
    ready.order(2, 7, Leaving("c3", stores=True), tags=["uid-1"])
    ready.orders = AgentOrders(version=version, tags=["uid-9"], kill=["application_1_0001"])
    ready.step()
    report = ready.step()
    assert (report.version, list(report.tags)) == (Version(2, 7), ["uid-1"])
    assert ready.excluded() == f"c3.{DOMAIN}\n"
    assert ready.killed == []


def test_a_newer_leader_may_have_a_smaller_revision(ready):
    assert ready.order(2, 7, Leaving("c3", stores=True)).version == Version(2, 7)
    assert ready.order(3, 1).version == Version(3, 1)
    assert ready.excluded() == ""


def test_the_last_of_two_orders_of_one_version_counts(ready):
    ready.order(2, 7, Leaving("c3", stores=True))
    ready.order(2, 7)
    assert ready.excluded() == ""


def test_orders_of_the_same_version_may_have_other_tags(ready):
    ready.order(2, 7, tags=["uid-1"])
    assert list(ready.order(2, 7, tags=["uid-2"]).tags) == ["uid-2"]


@pytest.mark.parametrize(
    ("change", "hdfs", "yarn"),
    [
        pytest.param({"hdfs": HdfsFigures(cluster_id="CID-1", started_s=2, safe_mode=True)}, 3, 2, id="NameNode"),
        pytest.param({"yarn": YarnFigures(started_s=2)}, 2, 3, id="ResourceManager"),
        pytest.param({"addresses": {f"c3.{DOMAIN}": ["10.0.0.8"]}}, 3, 2, id="address of a leaving DataNode"),
        pytest.param({"addresses": {f"t1.{DOMAIN}": ["10.0.0.8"]}}, 2, 2, id="address of another node"),
        pytest.param({"addresses": {}}, 2, 2, id="address that is gone"),
    ],
)
def test_orders_are_replayed_when_a_daemon_may_have_lost_them(ready, change, hdfs, yarn):
    ready.addresses = {f"c3.{DOMAIN}": ["10.0.0.7"]}
    ready.order(1, 7, Leaving("c3", stores=True), Leaving("t1", 300))
    ready.carry_out()
    assert ready.step().refreshed
    for name, value in change.items():
        setattr(ready, name, value)
    ready.step()
    assert (ready.requested("hdfs"), ready.requested("yarn")) == (hdfs, yarn)


def test_orders_are_replayed_after_a_restart_of_the_agent(ready):
    ready.order(1, 7, Leaving("c3", stores=True))
    ready.carry_out()
    (ready.folder / "agent" / "dfs.exclude").write_text("")  # as after a crash between two writes
    ready.restart()
    assert ready.excluded() == f"c3.{DOMAIN}\n"
    report = ready.step()
    assert (report.version, report.refreshed) == (Version(1, 7), False)
    assert ready.requested("hdfs") == 3


def test_orders_that_cannot_be_stored_are_reported_and_retried(ready):
    folder = ready.folder / "agent"
    ready.order(1, 7)
    folder.rename(ready.folder / "away")
    report = ready.order(1, 8, Leaving("c3", stores=True))
    assert (report.version, "No such file" in report.error) == (Version(1, 7), True)
    (ready.folder / "away").rename(folder)
    ready.step()
    assert ready.step().version == Version(1, 8)


def test_replays_need_no_operator(ready):
    ready.orders = None
    ready.hdfs = replace(ready.hdfs, started_s=2)
    ready.step()
    assert ready.requested("hdfs") == 2


def test_applications_are_reported_by_their_tags(ready):
    report = ready.order(1, 7, tags=["uid-1", "uid-2"])
    assert report.tags["uid-1"] == [replace(APPLICATION, name="uid-1")]
    assert report.took_ms == 2000


def test_a_tag_is_missing_in_the_report_if_its_request_failed(ready):
    report = ready.order(1, 7, tags=["broken", "uid-2"])
    assert list(report.tags) == ["uid-2"]
    assert report.error == "ResourceManager: unexpected response"
    ready.yarn = None
    assert ready.step().tags == {}


def test_all_tags_are_reported_in_turn_if_there_is_no_time_for_them_in_a_round(ready):
    tags = [f"uid-{number}" for number in range(32)]
    seen = [list(ready.order(1, number, tags=tags).tags) for number in range(7, 23)]
    assert {len(found) for found in seen} == {int(QUERY_BUDGET_S) + 1}
    assert set().union(*seen) == set(tags)


def test_applications_are_killed_and_what_cannot_be_killed_is_reported(ready):
    report = ready.order(1, 7, kill=["application_1_0404", "application_1_0001"])
    assert ready.killed[0] == "application_1_0001"
    assert report.error == "ResourceManager: status 404"


def test_folders_that_cannot_be_made_are_an_error_of_each_report_until_they_are(run):
    run.folders_error = "NameNode: status 403"
    for _ in range(3):
        assert run.step().error == "NameNode: status 403"
    run.folders_error = ""
    assert (run.step().error, run.folders_made) == ("", 1)


def test_folders_are_made_once_after_each_start_of_the_name_node(ready):
    assert ready.folders_made == 1
    ready.hdfs = replace(ready.hdfs, started_s=2, safe_mode=True)
    ready.step()
    assert ready.folders_made == 1
    ready.hdfs = replace(ready.hdfs, safe_mode=False)
    ready.step()
    ready.step()
    assert ready.folders_made == 2


@pytest.mark.parametrize(("requested_s", "next_s"), [(7.5, 7.5), (0.0, 2.0), (-1.0, 2.0), (86_400.0, 60.0)])
def test_the_operator_says_when_the_next_report_is_due_within_limits(run, requested_s, next_s):
    run.orders = AgentOrders(next_s=requested_s)
    run.step()
    assert run.next_s == next_s


def test_without_the_operator_rounds_become_rarer(run):
    run.orders = None
    distances = [(run.step(), run.next_s)[1] for _ in range(8)]
    assert distances[0] <= 1.0
    assert 7.5 <= distances[-1] <= 15.0


def test_an_error_is_at_most_as_long_as_the_wire_allows(run):
    run.hdfs = None
    run.yarn = None
    run.agent._errors = ["x" * 1000]
    assert len(run.step().error) == 300


def test_a_report_names_the_response_that_its_round_follows(ready):
    assert ready.step().follows == 0
    ready.orders = AgentOrders(number=17)
    ready.step()
    ready.orders = None
    assert [ready.step().follows, ready.step().follows] == [17, 17]
