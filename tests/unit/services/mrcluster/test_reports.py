"""Reports of agents as the leader keeps them."""

import pytest
from msgspec.structs import replace

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.agent import Reports
from boathouse.services.progress.limits import Reason, Rejected
from boathouse_task.cluster_contract import AgentReport, ApplicationFigures, HdfsFigures, NodeFigures, YarnFigures

UID = ObjectUid("u-1")
REPORT = AgentReport(yarn=YarnFigures(started_s=1, up_s=10), nodes=[NodeFigures("c0")])


class AgentReports:
    """Reports, and two clocks."""

    def __init__(self):
        self.now_s, self.up_s = 1_000.0, 0.0
        self.marked = []
        self.reports = Reports(self.marked.append, lambda: self.up_s, lambda: self.now_s)

    def take(self, report=REPORT, follows=0, arrival=None):
        """Take a report; return when its round began, and the number of its response."""
        self.up_s += 5
        self.now_s += 5
        arrival = self.reports.monotonic() if arrival is None else arrival
        began_s = self.reports.take(UID, replace(report, follows=follows), arrival)
        return began_s, self.reports.number(UID)


@pytest.fixture
def reported():
    return AgentReports()


def test_the_last_report_has_an_age(reported):
    assert (reported.reports.last(UID), reported.reports.age_s(UID)) == (None, None)
    reported.take()
    reported.up_s += 7
    assert (reported.reports.last(UID), reported.reports.age_s(UID)) == (REPORT, 7.0)
    reported.reports.forget(UID)
    reported.reports.forget(UID)
    assert (reported.reports.last(UID), reported.reports.age_s(UID)) == (None, None)


def test_a_report_whose_body_arrives_after_a_later_one_is_refused(reported):
    slow = reported.reports.monotonic()
    reported.take()
    with pytest.raises(Rejected) as refusal:
        reported.take(replace(REPORT, canary=True), arrival=slow)
    assert refusal.value.reason is Reason.OUT_OF_ORDER
    assert reported.reports.last(UID) == REPORT


def test_a_round_began_after_the_response_that_it_follows(reported):
    began_s, first = reported.take()
    assert began_s is None
    assert reported.take(follows=first)[0] == 1_005.0


def test_if_a_response_is_lost_the_next_round_follows_the_one_before(reported):
    _, first = reported.take()
    _, lost = reported.take(follows=first)
    began_s, second = reported.take(follows=first)
    assert (began_s, reported.take(follows=second)[0]) == (1_005.0, 1_015.0)
    assert len({first, lost, second}) == 3


def test_it_is_unknown_when_a_round_began_that_follows_the_response_of_another_leader(reported):
    reported.take()
    assert reported.take(follows=17)[0] is None


def test_the_rounds_of_a_restarted_agent_count_again_after_a_response(reported):
    _, first = reported.take()
    reported.take(follows=first)
    began_s, number = reported.take(follows=0)
    assert (began_s, reported.take(follows=number)[0]) == (None, 1_015.0)


@pytest.mark.parametrize(
    ("changes", "is_change"),
    [
        pytest.param({"took_ms": 7}, False, id="duration"),
        pytest.param({"yarn": YarnFigures(started_s=1, up_s=15)}, False, id="time since the start"),
        pytest.param({"tags": {"a": [ApplicationFigures(id="application_1_1", state="RUNNING")]}}, False, id="tags"),
        pytest.param({"yarn": YarnFigures(started_s=1, pending=1)}, True, id="load"),
        pytest.param({"yarn": None}, True, id="no YARN"),
        pytest.param({"error": "it failed"}, True, id="error"),
        pytest.param({"nodes": []}, True, id="nodes"),
    ],
)
def test_a_cluster_is_reconciled_if_its_report_has_changed(reported, changes, is_change):
    reported.take()
    reported.take(replace(REPORT, **changes))
    assert reported.marked == [UID] * (2 if is_change else 1)


@pytest.mark.parametrize("step_s", [-86_400, -3_600, 0, 3_600, 86_400])
def test_a_name_node_started_between_the_last_report_of_the_one_before_and_its_own_first(step_s):
    reported = AgentReports()
    reported.now_s = 1_000_000.0
    reported.take(name_node(500_000 + step_s))
    reported.take(name_node(1_000_007 + step_s))
    reported.now_s += 60
    reported.take(name_node(1_000_007 + step_s))
    started_s = reported.reports.last(UID).hdfs.started_s
    assert 1_000_005 <= started_s <= 1_000_010
    assert step_s or started_s == 1_000_007


@pytest.mark.parametrize("ahead_s", [3_600, 86_400])
def test_a_name_node_that_started_in_the_future_started_at_its_first_report(reported, ahead_s):
    reported.take(name_node(1_000 + ahead_s))
    reported.take(replace(REPORT, hdfs=None))
    reported.take(name_node(1_000 + ahead_s))
    assert reported.reports.last(UID).hdfs.started_s == 1_005


def name_node(started_s):
    """Return a report of a NameNode that started at this time by its node's clock."""
    return replace(REPORT, hdfs=HdfsFigures(cluster_id="CID-1", started_s=started_s, safe_mode=False))
