"""Tags of jobs, and what the agents of clusters say of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop.applications import Applications
from boathouse_task.cluster_contract import MOST_KILLS, MOST_TAGS, ApplicationFigures

LAKE, POND = ObjectUid("lake"), ObjectUid("pond")
JOB = ObjectUid("job-1")


class World:
    """Two clusters, their jobs, and a clock."""

    def __init__(self):
        self.now_s = 100.0
        self.marked = []
        self.applications = Applications(self.marked.append, lambda: self.now_s)

    def answer(self, cluster=LAKE, began_s=None, rm_started_s=0.0, **found):
        began_s = self.now_s if began_s is None else began_s
        self.applications.answered(cluster, at_s=self.now_s, began_s=began_s, rm_started_s=rm_started_s, found=found)

    def found(self, tag="a"):
        view = self.applications.view(tag)
        return None if view is None else [application.id for application in view.applications]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def following(world):
    """A world whose job follows tag `a`."""
    world.applications.follow(LAKE, "a", JOB)
    return world


def application(number=1, state="RUNNING"):
    return ApplicationFigures(id=f"application_1_{number}", state=state)


def test_a_tag_has_no_view_until_the_agent_answers(following):
    assert following.applications.orders(LAKE) == (["a"], [])
    assert following.found() is None
    following.answer(a=[])
    assert following.found() == []


def test_a_view_has_the_times_of_its_answer(following):
    following.now_s = 120.0
    following.answer(began_s=110.0, rm_started_s=60.0, a=[application()])
    view = following.applications.view("a")
    assert (view.answered_s, view.began_s, view.rm_started_s) == (120.0, 110.0, 60.0)


def test_an_answer_that_was_begun_before_the_question_does_not_count(following):
    following.now_s = 120.0
    following.answer(began_s=99.0, a=[application()])
    assert following.found() is None
    following.answer(began_s=100.0, a=[application()])
    assert following.found() == ["application_1_1"]


def test_following_a_tag_again_keeps_its_view(following):
    following.answer(a=[application()])
    following.now_s = 500.0
    following.applications.follow(LAKE, "a", JOB)
    assert following.found() == ["application_1_1"]


def test_a_job_is_reconciled_when_its_applications_change(following):
    for applications in ([], [], [application()], [application()], [application(state="FINISHED")]):
        following.answer(a=applications)
    assert following.marked == [JOB] * 3


def test_a_cluster_cannot_answer_for_the_tags_of_another(following):
    following.answer(POND, a=[application()])
    following.answer(LAKE, b=[application()])
    assert following.found() is None
    assert following.marked == []


def test_an_absent_tag_keeps_its_view(following):
    following.answer(a=[application()])
    following.answer()
    assert following.found() == ["application_1_1"]


def test_a_dropped_tag_is_not_asked_for(following):
    following.applications.follow(LAKE, "b", JOB)
    following.applications.drop("a")
    following.applications.drop("unknown")
    following.answer(a=[application()])
    assert following.applications.orders(LAKE) == (["b"], [])
    assert following.found() is None


def test_a_tag_with_capitals_is_a_bug(world):
    with pytest.raises(ValueError, match="'UID-1' is not in lower case"):
        world.applications.follow(LAKE, "UID-1", JOB)


def test_a_kill_is_repeated_until_the_application_ends(following):
    following.answer(a=[application(1), application(2)])
    following.applications.wish_kill(LAKE, "application_1_1")
    orders = [following.applications.orders(LAKE)[1] for _ in range(2)]
    assert orders == [["application_1_1"]] * 2
    following.answer(a=[application(1, state="KILLED"), application(2)])
    assert following.applications.orders(LAKE)[1] == []


@pytest.mark.parametrize("how", ["drop", "vanish"])
def test_a_kill_ends_with_the_tag_or_with_the_application(following, how):
    following.answer(a=[application(1)])
    following.applications.follow(LAKE, "b", JOB)
    following.applications.wish_kill(LAKE, "application_1_1")
    if how == "drop":
        following.applications.drop("a")
    else:
        following.answer(a=[])
    assert following.applications.orders(LAKE) == (["b"] if how == "drop" else ["a", "b"], [])


def test_a_deleted_cluster_has_no_tags_and_its_jobs_are_reconciled(following):
    following.applications.forget(LAKE)
    assert following.applications.orders(LAKE) == ((), ())
    assert following.found() is None
    assert following.marked == [JOB]
    following.applications.drop("a")
    following.applications.wish_kill(LAKE, "application_1_1")
    following.applications.forget(LAKE)
    following.applications.follow(POND, "a", JOB)
    assert following.applications.orders(POND) == (["a"], [])


def test_a_tag_can_move_to_another_cluster(following):
    following.answer(a=[application()])
    following.applications.follow(POND, "a", JOB)
    assert following.applications.orders(LAKE) == ((), ())
    assert following.applications.orders(POND) == (["a"], [])
    assert following.found() is None


@settings(deadline=None)
@given(tags=st.integers(1, 100), kills=st.integers(0, 50))
def test_each_tag_and_kill_has_its_turn_within_the_limits_of_an_order(tags, kills):
    applications = Applications(lambda _: None, lambda: 0.0)
    for number in range(tags):
        applications.follow(LAKE, f"t-{number}", JOB)
    for number in range(kills):
        applications.wish_kill(LAKE, f"application_1_{number}")
    rounds = max(-(-tags // MOST_TAGS), -(-kills // MOST_KILLS))
    orders = [applications.orders(LAKE) for _ in range(rounds)]
    assert all(len(asked) <= MOST_TAGS and len(killed) <= MOST_KILLS for asked, killed in orders)
    assert len({tag for asked, _ in orders for tag in asked}) == tags
    assert len({each for _, killed in orders for each in killed}) == kills
