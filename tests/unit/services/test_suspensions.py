"""What a job's status says of reduces that are suspended, and suspension by its author."""

import pytest

from boathouse.resources.names import ANNOTATION_SUSPEND_UNTIL, ConditionType
from boathouse.scheduling.pods.suspension import SuspensionRecord
from boathouse.services import times
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.planning import suspensions
from boathouse.services.mrjob.state import job_state
from boathouse_policies import model

FULL, LENT = model.Resources(cpu_milli=500), model.Resources(cpu_milli=1)


@pytest.fixture
def now_s(build):
    return build.CREATED_S + 1000


@pytest.fixture
def record(now_s):
    def make(*, left_s=60.0, by="ikayak"):
        return SuspensionRecord(
            cpu_request_milli=500,
            cpu_limit_milli=900,
            since_s=now_s - 10,
            until_s=now_s + left_s,
            reason="WaitingForMaps",
            by=by,
            order="7-1",
        )

    return make


@pytest.fixture
def see(build):
    job = build.job(numReduceTasks=2, slowStartCompletedMapsPercent=0)

    def look(*reduces, state=None, job=job, **observed):
        known = state or build.mapping(job, splits=1)
        return build.look(job, build.pod("m-0"), *reduces, state=known, **observed).state

    return look


@pytest.fixture
def suspended(build, record):
    def make(task="r-0", **of_record):
        return build.pod(task, resources=LENT, suspension=record(**of_record), is_suspended=True)

    return make


def condition(state):
    found = state.condition(ConditionType.REDUCERS_SUSPENDED)
    return (found.status, found.reason) if found else None


def test_a_job_whose_reduces_run_has_no_such_condition(build, see):
    assert condition(see(build.pod("r-0", resources=FULL))) is None


def test_suspended_reduces_are_counted_and_named(see, suspended, now_s):
    state = see(suspended("r-0"), suspended("r-1"))
    message = state.condition(ConditionType.REDUCERS_SUSPENDED).message
    assert (condition(state), state.suspended_reduces) == (("True", "WaitingForMaps"), 2)
    assert message.startswith(f"2 reduces (r-00000, r-00001) suspended until {times.rfc3339(now_s + 60)}")
    status = job_state.to_status(state)
    assert (status["reduces"]["suspended"], status["maps"]["suspended"]) == (2, 0)


def test_the_author_is_told_that_the_annotation_suspends(see, suspended):
    assert condition(see(suspended(by="user"))) == ("True", "ByHand")


def test_a_reduce_that_is_suspended_beyond_its_deadline_could_not_be_resumed(see, suspended):
    assert condition(see(suspended("r-0"), suspended("r-1", left_s=-16))) == ("True", "ResumeRefused")


def test_a_reduce_that_continues_without_its_request_is_owed_the_request(build, see, record):
    continuing = build.pod("r-0", resources=LENT, suspension=record())
    state = see(continuing)
    assert (condition(state), state.suspended_reduces) == (("True", "RequestOwed"), 0)


def test_the_condition_ends_with_the_suspension(build, see, suspended, record):
    state = see(suspended())
    resumed = see(build.pod("r-0", resources=FULL, suspension=record()), state=state)
    assert (condition(resumed), resumed.suspended_reduces) == (("False", "Resumed"), 0)


def test_reduces_that_ended_are_not_suspended(build, see, suspended):
    state = see(suspended())
    ended = see(build.replace(suspended(), state=PodLife.FAILED, ending=build.failed("r-0").ending), state=state)
    assert condition(ended) == ("False", "Resumed")


def test_no_reduce_of_a_job_that_ended_is_suspended(build, see, suspended, now_s):
    job = build.job(activeDeadlineSeconds=1, numReduceTasks=2, slowStartCompletedMapsPercent=0)
    ended = build.look(job, suspended(), state=see(suspended(), job=job), now_s=now_s + 9)
    assert (ended.state.phase, condition(ended.state)) == ("Failed", ("False", "Resumed"))


# The annotation


def annotated(build, text):
    body = build.body()
    body["metadata"]["annotations"] = {ANNOTATION_SUSPEND_UNTIL: text}
    return build.of(body)


def test_the_author_suspends_until_a_time_within_an_hour(build, now_s):
    for ahead_s, wanted in ((60, now_s + 60), (3600, now_s + 3600), (3601, None), (0, None), (-60, None)):
        job = annotated(build, times.rfc3339(now_s + ahead_s))
        assert suspensions.until_s(job, now_s) == wanted
    assert suspensions.until_s(build.job(), now_s) is None


@pytest.mark.parametrize("text", ["soon", "2026-01-01T02:00:00Z", "99999-01-01T00:00:00Z"])
def test_an_annotation_without_effect_is_explained(build, see, text):
    state = see(job=annotated(build, text))
    assert condition(state) == ("False", "InvalidTime")
    assert "at most an hour ahead" in state.condition(ConditionType.REDUCERS_SUSPENDED).message


def test_an_annotation_that_the_chart_gives_no_effect_is_explained(build, see, now_s):
    job = annotated(build, times.rfc3339(now_s + 60))
    assert condition(see(job=job)) is None
    state = see(job=job, may_suspend=False)
    assert condition(state) == ("False", "SwitchedOff")
    assert "actuators.suspend" in state.condition(ConditionType.REDUCERS_SUSPENDED).message


def test_an_annotation_whose_time_is_over_is_no_mistake(build, see):
    assert condition(see(job=annotated(build, "2026-01-01T00:10:00Z"))) is None
