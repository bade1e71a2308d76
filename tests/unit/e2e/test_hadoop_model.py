"""Modelled clusters: what Boathouse depends on of Hadoop, and the agent's own code between model and operator."""

from __future__ import annotations

import pytest

from boathouse_e2e import hadoop_master
from boathouse_e2e.hadoop_master import DEAD_S, Hadoop, Master
from boathouse_e2e.hadoop_model import Yarn
from boathouse_task.cluster_contract import (
    AgentOrders,
    AgentSpec,
    DfsState,
    Leaving,
    Request,
    Version,
    YarnState,
)
from boathouse_task.rest import RestError

DOMAIN = "etl-nodes.demo.svc"
SPEC = AgentSpec(namespace="demo", cluster_uid="uid-1", progress_url="https://localhost:1", domain=DOMAIN)
CORE = {"c0", "c1", "c2"}


class ModelledCluster:
    """A modelled cluster with its master; the test is its operator."""

    def __init__(self, folder):
        self.folder = folder
        self.model = Hadoop(DOMAIN)
        self.up, self.now_s = set(CORE), 100.0
        self.orders, self.reports = AgentOrders(), []
        self.start()

    def start(self, *, may_format=True):
        """The master's pod starts."""
        accepted = self.model.start("CID-1", self.now_s, may_format=may_format)
        self.master = Master(self.model, SPEC, self.folder, self)
        return accepted

    def report(self, report):
        """What the operator does with a report."""
        self.reports.append(report)
        return self.orders

    def pass_time(self, seconds=10):
        """Let time pass; returns the last report."""
        for _ in range(seconds):
            self.now_s += 1.0
            self.model.step(self.up, self.now_s)
            self.master.step()
        return self.reports[-1]

    def order(self, revision, *leaving):
        self.orders = AgentOrders(version=Version(1, revision), leaving=list(leaving))

    def write(self, count):
        for _ in range(count):
            self.model.hdfs.write(self.up)

    def dfs(self, host):
        return {node.host: node.dfs for node in self.reports[-1].nodes}.get(host)

    def yarn(self, host):
        return {node.host: node.yarn for node in self.reports[-1].nodes}.get(host)


@pytest.fixture
def hadoop(tmp_path):
    hadoop = ModelledCluster(tmp_path)
    hadoop.pass_time()
    return hadoop


# The cluster


def test_a_cluster_reports_its_hdfs_and_its_nodes(hadoop):
    report = hadoop.reports[-1]
    assert (report.hdfs.cluster_id, report.hdfs.safe_mode, report.refreshed) == ("CID-1", False, True)
    assert [(node.host, node.dfs, node.yarn) for node in report.nodes] == [(host, "L", "R") for host in sorted(CORE)]


def test_a_core_node_is_drained_in_time_and_no_block_is_lost(hadoop):
    hadoop.write(100)
    hadoop.order(7, Leaving("c2", stores=True))
    hadoop.pass_time(3)
    assert (hadoop.dfs("c2"), hadoop.yarn("c2")) == ("P", "X")
    hadoop.pass_time(20)
    assert hadoop.dfs("c2") == DfsState.DECOMMISSIONED
    assert not hadoop.model.hdfs.missing({"c0", "c1"})


def test_a_drain_that_is_taken_back_leaves_the_node_in_service(hadoop):
    hadoop.order(7, Leaving("c2", stores=True))
    hadoop.pass_time(8)
    hadoop.order(8)
    hadoop.pass_time(8)
    assert (hadoop.dfs("c2"), hadoop.yarn("c2")) == ("L", "R")


def test_names_that_no_node_registered_are_ignored(hadoop):
    hadoop.model.refresh(Request.HDFS, f"c2.{DOMAIN}\n")
    assert hadoop.model.hdfs.excluded == frozenset()
    hadoop.model.refresh(Request.HDFS, f"c2.{DOMAIN}.cluster.local\n")
    assert hadoop.model.hdfs.excluded == {"c2"}


def test_the_name_node_notices_late_that_a_data_node_is_gone(hadoop):
    hadoop.up.discard("c1")
    hadoop.pass_time(int(DEAD_S) - 1)
    assert hadoop.dfs("c1") == "L"
    hadoop.pass_time(2)
    assert hadoop.dfs("c1") == "D"
    assert hadoop.yarn("c1") == "-"


def test_a_volume_is_formatted_once(tmp_path):
    hadoop = ModelledCluster(tmp_path)
    assert hadoop.start(may_format=True)
    assert hadoop.start(may_format=False)
    assert hadoop.model.formats == ["CID-1"]


def test_an_empty_volume_is_not_formatted_without_permission():
    hadoop = Hadoop(DOMAIN)
    assert not hadoop.start("CID-1", 1.0, may_format=False)
    with pytest.raises(RestError):
        hadoop.name_node()


def test_a_master_that_starts_again_keeps_its_data_and_orders(hadoop):
    hadoop.write(10)
    hadoop.order(7, Leaving("c2", stores=True))
    hadoop.pass_time(3)
    hadoop.model.stop()
    report = hadoop.pass_time()
    assert (report.hdfs, report.yarn, report.version) == (None, None, Version(1, 7))
    hadoop.start(may_format=False)
    report = hadoop.pass_time(20)
    assert (report.hdfs.missing, report.refreshed, hadoop.dfs("c2")) == (0, True, "X")


def test_safe_mode_lasts_while_blocks_are_missing(hadoop):
    hadoop.write(10)
    hadoop.up.clear()
    hadoop.model.stop()
    hadoop.pass_time(int(DEAD_S) + 1)
    hadoop.start(may_format=False)
    assert hadoop.pass_time().hdfs.safe_mode
    hadoop.up = set(CORE)
    assert not hadoop.pass_time(2).hdfs.safe_mode


# Applications


def test_an_application_is_found_by_its_tag_and_ends(hadoop):
    application = hadoop.model.yarn.submit("UID-1", [3.0] * 4, hadoop.now_s)
    hadoop.orders = AgentOrders(version=Version(1, 7), tags=["uid-1"])
    (found,) = hadoop.pass_time(2).tags["uid-1"]
    assert (found.id, found.state, found.maps) == (application, "RUNNING", (4, 0))
    (found,) = hadoop.pass_time(5).tags["uid-1"]
    assert (found.state, found.final, found.maps, found.progress) == ("FINISHED", "SUCCEEDED", (4, 4), 100)


def test_pending_containers_show_the_load(hadoop):
    hadoop.model.yarn.submit("a", [60.0] * 20, hadoop.now_s)
    figures = hadoop.pass_time(2).yarn
    assert (figures.running, figures.pending, figures.apps_running) == (12, 9, 1)
    hadoop.up.add("t0")
    assert hadoop.pass_time(2).yarn.running == 16


def test_an_application_is_killed_by_order(hadoop):
    application = hadoop.model.yarn.submit("a", [60.0], hadoop.now_s)
    hadoop.orders = AgentOrders(version=Version(1, 7), tags=["a"], kill=[application])
    (found,) = hadoop.pass_time(3).tags["a"]
    assert (found.state, hadoop.reports[-1].yarn.running) == ("KILLED", 0)


def test_what_ran_on_a_lost_node_is_repeated(hadoop):
    hadoop.up |= {"t0"}
    application = hadoop.model.yarn.applications[hadoop.model.yarn.submit("a", [5.0] * 13, hadoop.now_s)]
    hadoop.pass_time(2)
    hadoop.up.discard("t0")
    hadoop.pass_time(20)
    assert (application.state, application.done, application.lost) == ("FINISHED", 13, 3)


def test_an_application_survives_the_loss_of_its_master(hadoop):
    application = hadoop.model.yarn.applications[hadoop.model.yarn.submit("a", [5.0], hadoop.now_s)]
    hadoop.pass_time(2)
    hadoop.up.discard(application.master)
    hadoop.pass_time(10)
    assert application.state == "FINISHED"


def test_a_transient_node_is_drained_when_no_application_needs_it(hadoop):
    hadoop.up |= {"t0"}
    hadoop.model.yarn.submit("a", [6.0] * 15, hadoop.now_s)
    hadoop.pass_time(2)
    hadoop.order(7, Leaving("t0", timeout_s=300))
    hadoop.pass_time(3)
    assert hadoop.yarn("t0") == YarnState.DECOMMISSIONING
    hadoop.pass_time(20)
    assert hadoop.yarn("t0") == YarnState.DECOMMISSIONED
    assert not any(application.lost for application in hadoop.model.yarn.applications.values())


def test_a_drain_ends_at_its_timeout(hadoop):
    hadoop.up |= {"t0"}
    application = hadoop.model.yarn.applications[hadoop.model.yarn.submit("a", [100.0] * 15, hadoop.now_s)]
    hadoop.pass_time(2)
    hadoop.order(7, Leaving("t0", timeout_s=5))
    hadoop.pass_time(10)
    assert (hadoop.yarn("t0"), application.lost) == (YarnState.DECOMMISSIONED, 4)


def test_what_ended_before_the_timeout_of_a_drain_is_not_lost_however_late_the_model_looks():
    yarn = Yarn()
    application = yarn.applications[yarn.submit("a", [10.0, 5.0, 30.0], 0.0)]
    yarn.step({"c0", "t0"}, 0.0)
    assert [host for host, _, _ in application.running] == ["t0", "c0", "t0"]
    yarn.exclude({"t0": 20.0}, 0.0)
    yarn.step({"c0", "t0"}, 100.0)
    assert (application.done, application.lost) == (2, 1)


def test_two_applications_of_a_job_at_once_are_noticed():
    yarn = Yarn()
    first = yarn.submit("uid-1", [5.0], 0.0)
    yarn.submit("other-1", [5.0], 0.0)
    assert yarn.crowded_jobs() == set()
    yarn.submit("uid-2", [5.0], 0.0)
    assert yarn.crowded_jobs() == {"uid"}
    yarn.kill(first, 1.0)
    assert yarn.crowded_jobs() == set()


def test_application_masters_do_not_run_on_transient_nodes():
    yarn = Yarn()
    application = yarn.applications[yarn.submit("a", [5.0], 0.0)]
    yarn.step({"t0"}, 1.0)
    assert (application.master, application.state) == ("", "ACCEPTED")
    yarn.step({"t0", "c0"}, 2.0)
    assert (application.master, application.running[0][0]) == ("c0", "t0")


def test_a_resource_manager_that_starts_again_knows_its_applications_after_a_while(hadoop):
    hadoop.model.yarn.submit("a", [60.0], hadoop.now_s)
    hadoop.orders = AgentOrders(version=Version(1, 7), tags=["a"])
    assert hadoop.pass_time(3).tags["a"]
    hadoop.model.stop()
    hadoop.start(may_format=False)
    assert hadoop.pass_time(2).tags["a"] == []
    assert hadoop.pass_time(2).tags["a"]


def test_the_same_calls_have_the_same_results(tmp_path):
    def life(folder):
        folder.mkdir()
        hadoop = ModelledCluster(folder)
        hadoop.write(20)
        hadoop.model.yarn.submit("a", [3.0, 5.0, 7.0] * 5, hadoop.now_s)
        hadoop.order(7, Leaving("c1", stores=True))
        hadoop.pass_time(20)
        return hadoop.reports

    assert life(tmp_path / "first") == life(tmp_path / "second")


def test_a_request_is_carried_out_once(hadoop, monkeypatch):
    calls = []
    monkeypatch.setattr(hadoop_master.Hadoop, "refresh", lambda *arguments: calls.append(arguments) or True)
    hadoop.order(7, Leaving("t1"))
    hadoop.pass_time(20)
    assert len(calls) == 1


def test_later_tasks_are_requested_when_all_others_have_ended():
    yarn = Yarn(slots=4)
    application = yarn.applications[yarn.submit("uid-1", [5.0, 5.0], 0.0, later=[3.0])]
    yarn.step({"c0"}, 0.0)
    assert (len(application.running), application.waiting, application.later) == (2, [], [3.0])
    yarn.step({"c0"}, 5.0)
    assert ([seconds for _, seconds, _ in application.running], application.state) == ([3.0], "RUNNING")
    yarn.step({"c0"}, 8.0)
    assert (application.state, application.done) == ("FINISHED", 3)


def test_no_host_gets_more_containers_than_it_has_slots():
    yarn = Yarn(slots=2)
    yarn.submit("uid-1", [5.0] * 9, 0.0)
    yarn.step({"c0", "t0"}, 0.0)
    assert (yarn.containers("c0"), yarn.containers("t0")) == (2, 2)
