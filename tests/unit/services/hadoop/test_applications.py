"""Tags of jobs, and the applications with these tags that agents of clusters report."""

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop import Applications
from boathouse_task.cluster_contract import MOST_KILLS, MOST_TAGS
from tests.builders.mrclusters import application

LAKE, POND = ObjectUid("lake"), ObjectUid("pond")
JOB = ObjectUid("job-1")


class Tags:
    """Tags of jobs on two clusters, and a clock."""

    def __init__(self):
        self.now_s = 100.0
        self.marked = []
        self.applications = Applications(self.marked.append, lambda: self.now_s)

    def report(self, cluster=LAKE, began_s=None, rm_started_s=0.0, **found):
        began_s = self.now_s if began_s is None else began_s
        self.applications.answered(cluster, began_s=began_s, rm_started_s=rm_started_s, found=found)

    def found(self, tag="a"):
        view = self.applications.view(tag)
        return None if view is None else [application.id for application in view.applications]


@pytest.fixture
def tags():
    return Tags()


@pytest.fixture
def followed(tags):
    """Let a job follow tag `a`."""
    tags.applications.follow(LAKE, "a", JOB)
    return tags


def test_a_tag_has_no_view_until_the_agent_reports_it(followed):
    assert followed.applications.orders(LAKE) == (["a"], [])
    assert followed.found() is None
    followed.report(a=[])
    assert followed.found() == []


def test_a_view_has_the_times_of_its_report(followed):
    followed.now_s = 120.0
    followed.report(began_s=110.0, rm_started_s=60.0, a=[application()])
    view = followed.applications.view("a")
    assert (view.began_s, view.rm_started_s) == (110.0, 60.0)


def test_a_report_that_began_before_the_tag_was_followed_does_not_count(followed):
    followed.now_s = 120.0
    followed.report(began_s=99.0, a=[application()])
    assert followed.found() is None
    followed.report(began_s=100.0, a=[application()])
    assert followed.found() == ["application_1_1"]


def test_following_a_tag_again_keeps_its_view(followed):
    followed.report(a=[application()])
    followed.now_s = 500.0
    followed.applications.follow(LAKE, "a", JOB)
    assert followed.found() == ["application_1_1"]


def test_a_job_is_reconciled_when_its_applications_change(followed):
    for applications in ([], [], [application()], [application()], [application(state="FINISHED")]):
        followed.report(a=applications)
    assert followed.marked == [JOB] * 3


def test_a_cluster_cannot_report_the_tags_of_another(followed):
    followed.report(POND, a=[application()])
    followed.report(LAKE, b=[application()])
    assert followed.found() is None
    assert followed.marked == []


def test_an_absent_tag_keeps_its_view(followed):
    followed.report(a=[application()])
    followed.report()
    assert followed.found() == ["application_1_1"]


def test_a_dropped_tag_is_not_requested(followed):
    followed.applications.follow(LAKE, "b", JOB)
    followed.applications.drop("a")
    followed.applications.drop("unknown")
    followed.report(a=[application()])
    assert followed.applications.orders(LAKE) == (["b"], [])
    assert followed.found() is None


def test_a_tag_with_capitals_is_a_bug(tags):
    with pytest.raises(ValueError, match="'UID-1' is not in lower case"):
        tags.applications.follow(LAKE, "UID-1", JOB)


def test_a_kill_is_repeated_until_the_application_ends(followed):
    followed.report(a=[application(1), application(2)])
    followed.applications.request_kill(LAKE, "application_1_1")
    orders = [followed.applications.orders(LAKE)[1] for _ in range(2)]
    assert orders == [["application_1_1"]] * 2
    followed.report(a=[application(1, state="KILLED"), application(2)])
    assert followed.applications.orders(LAKE)[1] == []


@pytest.mark.parametrize("how", ["drop", "vanish"])
def test_a_kill_ends_with_the_tag_or_with_the_application(followed, how):
    followed.report(a=[application(1)])
    followed.applications.follow(LAKE, "b", JOB)
    followed.applications.request_kill(LAKE, "application_1_1")
    if how == "drop":
        followed.applications.drop("a")
    else:
        followed.report(a=[])
    assert followed.applications.orders(LAKE) == (["b"] if how == "drop" else ["a", "b"], [])


def test_a_deleted_cluster_has_no_tags_and_its_jobs_are_reconciled(followed):
    followed.applications.forget(LAKE)
    assert followed.applications.orders(LAKE) == ([], [])
    assert followed.found() is None
    assert followed.marked == [JOB]
    followed.applications.drop("a")
    followed.applications.request_kill(LAKE, "application_1_1")
    followed.applications.forget(LAKE)
    followed.applications.follow(POND, "a", JOB)
    assert followed.applications.orders(POND) == (["a"], [])


def test_a_tag_can_move_to_another_cluster(followed):
    followed.report(a=[application()])
    followed.applications.follow(POND, "a", JOB)
    assert followed.applications.orders(LAKE) == ([], [])
    assert followed.applications.orders(POND) == (["a"], [])
    assert followed.found() is None


@settings(max_examples=30)
@given(tags=st.integers(1, 100), kills=st.integers(0, 50))
def test_each_tag_and_kill_has_its_turn_within_the_limits_of_an_order(tags, kills):
    applications = Applications(lambda _: None, lambda: 0.0)
    for number in range(tags):
        applications.follow(LAKE, f"t-{number}", JOB)
    for number in range(kills):
        applications.request_kill(LAKE, f"application_1_{number}")
    rounds = max(-(-tags // MOST_TAGS), -(-kills // MOST_KILLS))
    orders = [applications.orders(LAKE) for _ in range(rounds)]
    assert all(len(requested) <= MOST_TAGS and len(killed) <= MOST_KILLS for requested, killed in orders)
    assert len({tag for requested, _ in orders for tag in requested}) == tags
    assert len({application_id for _, killed in orders for application_id in killed}) == kills
