"""Reports of agents as the leader keeps them."""

import pytest
from msgspec.structs import replace

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.agent.reports import Reports
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse_task.cluster_contract import AgentReport, ApplicationFigures, NodeFigures, YarnFigures

UID = ObjectUid("u-1")
REPORT = AgentReport(yarn=YarnFigures(started_s=1, up_s=10), nodes=[NodeFigures("c0")])


class World:
    """Reports, and two clocks."""

    def __init__(self):
        self.now_s, self.up_s = 1_000.0, 0.0
        self.marked = []
        self.reports = Reports(self.marked.append, lambda: self.up_s, lambda: self.now_s)

    def take(self, report=REPORT, follows=0, arrival=None):
        """Take a report; returns when its round began, and the number of its response."""
        self.up_s += 5
        self.now_s += 5
        arrival = self.reports.arrive() if arrival is None else arrival
        began_s = self.reports.take(UID, replace(report, follows=follows), arrival)
        return began_s, self.reports.number(UID)


@pytest.fixture
def world():
    return World()


def test_the_last_report_has_an_age(world):
    assert (world.reports.last(UID), world.reports.age_s(UID)) == (None, None)
    world.take()
    world.up_s += 7
    assert (world.reports.last(UID), world.reports.age_s(UID)) == (REPORT, 7.0)
    world.reports.forget(UID)
    world.reports.forget(UID)
    assert (world.reports.last(UID), world.reports.age_s(UID)) == (None, None)


def test_a_report_whose_body_arrives_after_a_later_one_is_refused(world):
    slow = world.reports.arrive()
    world.take()
    with pytest.raises(Rejected) as refusal:
        world.take(replace(REPORT, canary=True), arrival=slow)
    assert refusal.value.reason is Reason.OUT_OF_ORDER
    assert world.reports.last(UID) == REPORT


def test_a_round_began_after_the_response_that_it_follows(world):
    began_s, first = world.take()
    assert began_s is None
    assert world.take(follows=first)[0] == 1_005.0


def test_if_a_response_is_lost_the_next_round_follows_the_one_before(world):
    _, first = world.take()
    _, lost = world.take(follows=first)
    began_s, second = world.take(follows=first)
    assert (began_s, world.take(follows=second)[0]) == (1_005.0, 1_015.0)
    assert len({first, lost, second}) == 3


def test_it_is_unknown_when_a_round_began_that_follows_the_response_of_another_leader(world):
    world.take()
    assert world.take(follows=17)[0] is None


def test_an_agent_that_was_restarted_is_believed_again_after_a_response(world):
    _, first = world.take()
    world.take(follows=first)
    began_s, number = world.take(follows=0)
    assert (began_s, world.take(follows=number)[0]) == (None, 1_015.0)


@pytest.mark.parametrize(
    ("changes", "is_news"),
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
def test_a_cluster_is_reconciled_if_its_report_has_news(world, changes, is_news):
    world.take()
    world.take(replace(REPORT, **changes))
    assert world.marked == [UID] * (2 if is_news else 1)
