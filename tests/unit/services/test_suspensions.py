"""Suspended reduces in the status of their job, and suspension by the job's author."""

import dataclasses

import pytest

from boathouse.resources import statuses
from boathouse.resources.names import ANNOTATION_SUSPEND_UNTIL, ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import conditions, job_state
from boathouse.suspension.stages import SuspensionRecord
from boathouse_policies import model
from tests.builders import mrjobs
from tests.builders.frame import condition_of

NOW_S = mrjobs.CREATED_S + 1000
JOB = mrjobs.job(numReduceTasks=2, slowStartCompletedMapsPercent=0)
SUSPENDED = ConditionType.REDUCERS_SUSPENDED
FULL, LENT = model.Resources(cpu_milli=500), model.Resources(cpu_milli=1)


def suspension_record(*, left_s=60.0, by="ikayak"):
    return SuspensionRecord(
        cpu_request_milli=500,
        cpu_limit_milli=900,
        since_s=NOW_S - 10,
        until_s=NOW_S + left_s,
        reason="WaitingForMaps",
        by=by,
        order="7-1",
    )


def suspended_pod(task="r-0", **record):
    return mrjobs.attempt_pod(task, resources=LENT, suspension=suspension_record(**record), is_suspended=True)


def next_state(*reduces, state=None, job=JOB, **observed):
    """Return the state of a job with a map that runs and these reduces."""
    before = state or mrjobs.mapping(job, splits=1)
    return mrjobs.desired(job, mrjobs.attempt_pod("m-0"), *reduces, state=before, **observed).state


def test_a_job_whose_reduces_run_has_no_such_condition():
    assert condition_of(next_state(mrjobs.attempt_pod("r-0", resources=FULL)), SUSPENDED) is None


def test_suspended_reduces_are_counted_and_named():
    state = next_state(suspended_pod("r-0"), suspended_pod("r-1"))
    message = state.condition(SUSPENDED).message
    assert (condition_of(state, SUSPENDED), state.suspended_reduces) == (("True", "WaitingForMaps"), 2)
    assert message.startswith(f"2 reduces (r-00000, r-00001) suspended until {statuses.rfc3339(NOW_S + 60)}")
    status = job_state.to_status(state)
    assert (status["reduces"]["suspended"], status["maps"]["suspended"]) == (2, 0)


def test_the_author_sees_that_the_annotation_suspends():
    assert condition_of(next_state(suspended_pod(by="user")), SUSPENDED) == ("True", "ByHand")


def test_a_reduce_that_is_suspended_beyond_its_deadline_could_not_be_resumed():
    assert condition_of(next_state(suspended_pod("r-0"), suspended_pod("r-1", left_s=-16)), SUSPENDED) == (
        "True",
        "ResumeRefused",
    )


def test_a_reduce_that_continues_without_its_request_is_owed_the_request():
    continuing = mrjobs.attempt_pod("r-0", resources=LENT, suspension=suspension_record())
    state = next_state(continuing)
    assert (condition_of(state, SUSPENDED), state.suspended_reduces) == (("True", "RequestOwed"), 0)


def test_the_condition_ends_with_the_suspension():
    state = next_state(suspended_pod())
    resumed = next_state(mrjobs.attempt_pod("r-0", resources=FULL, suspension=suspension_record()), state=state)
    assert (condition_of(resumed, SUSPENDED), resumed.suspended_reduces) == (("False", "Resumed"), 0)


def test_reduces_that_ended_are_not_suspended():
    state = next_state(suspended_pod())
    ended = next_state(
        dataclasses.replace(suspended_pod(), state=PodLife.FAILED, ending=mrjobs.failed_pod("r-0").ending), state=state
    )
    assert condition_of(ended, SUSPENDED) == ("False", "Resumed")


def test_no_reduce_of_a_job_that_ended_is_suspended():
    job = mrjobs.job(activeDeadlineSeconds=1, numReduceTasks=2, slowStartCompletedMapsPercent=0)
    ended = mrjobs.desired(job, suspended_pod(), state=next_state(suspended_pod(), job=job), now_s=NOW_S + 9)
    assert (ended.state.phase, condition_of(ended.state, SUSPENDED)) == ("Failed", ("False", "Resumed"))


# The annotation


def annotated_job(text):
    return mrjobs.job(metadata={"annotations": {ANNOTATION_SUSPEND_UNTIL: text}})


def test_the_author_suspends_until_a_time_within_an_hour():
    for ahead_s, wanted in ((60, NOW_S + 60), (3600, NOW_S + 3600), (3601, None), (0, None), (-60, None)):
        job = annotated_job(statuses.rfc3339(NOW_S + ahead_s))
        assert conditions.suspended_until_s(job, NOW_S) == wanted
    assert conditions.suspended_until_s(mrjobs.job(), NOW_S) is None


@pytest.mark.parametrize("text", ["soon", "2026-01-01T02:00:00Z", "99999-01-01T00:00:00Z"])
def test_an_annotation_without_effect_is_explained(text):
    state = next_state(job=annotated_job(text))
    assert condition_of(state, SUSPENDED) == ("False", "InvalidTime")
    assert "at most an hour ahead" in state.condition(SUSPENDED).message


def test_an_annotation_that_the_chart_gives_no_effect_is_explained():
    job = annotated_job(statuses.rfc3339(NOW_S + 60))
    assert condition_of(next_state(job=job), SUSPENDED) is None
    state = next_state(job=job, may_suspend=False)
    assert condition_of(state, SUSPENDED) == ("False", "SwitchedOff")
    assert "actuators.suspend" in state.condition(SUSPENDED).message


def test_an_annotation_whose_time_is_over_is_no_mistake():
    assert condition_of(next_state(job=annotated_job("2026-01-01T00:10:00Z")), SUSPENDED) is None
