"""Plan what is said of suspended reduces, and until when the job's author suspends them. Pure.

The pods say which reduces are suspended and why (`boathouse.scheduling.pods.suspension`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources import statuses
from boathouse.resources.names import ANNOTATION_SUSPEND_UNTIL, ConditionType, Reason
from boathouse.services.frame import status_codec
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse.services.mrjob.state import conditions
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.contract import TaskType

LATE_S: Final = 15.0
"""A reduce that is suspended for this long after its deadline could not be resumed."""
BY_USER: Final = "user"
_NAMED: Final = 5


def until_s(job: Job, now_s: float) -> float | None:
    """Return until when the job's author suspends its reduces; None if not, or if the time is over or invalid."""
    wanted_s = _asked_s(job)
    return wanted_s if wanted_s is not None and now_s < wanted_s <= now_s + contract.MOST_SUSPENDED_S else None


def _asked_s(job: Job) -> float | None:
    return status_codec.value(lambda: statuses.epoch(job.suspend_reducers_until), None)


def described(state: JobState, observation: Observation, pods: Sequence[AttemptPod]) -> JobState:
    """Return the state with the number of suspended reduces, and with the condition `ReducersSuspended`."""
    now_s = observation.now_s
    reduces = [pod for pod in pods if pod.task_type is TaskType.REDUCE and pod.state.is_live and not state.finished]
    paused, owed = [pod for pod in reduces if pod.is_suspended], [pod for pod in reduces if pod.is_owed_cpu]
    known = conditions.table(state, now_s)
    if paused or owed:
        known.set(ConditionType.REDUCERS_SUSPENDED, True, *_reason(paused, owed, now_s))
    elif (problem := _problem(observation)) is not None and not state.finished:
        known.set(ConditionType.REDUCERS_SUSPENDED, False, *problem)
    elif state.condition(ConditionType.REDUCERS_SUSPENDED) is not None:
        known.set(ConditionType.REDUCERS_SUSPENDED, False, Reason.RESUMED, "")
    return dataclasses.replace(state, suspended_reduces=len(paused), conditions=known.conditions)


def _reason(paused: Sequence[AttemptPod], owed: Sequence[AttemptPod], now_s: float) -> tuple[str, str]:
    """Return reason and message: of reduces that could not be resumed, else of those that are suspended."""
    records = [pod.suspension for pod in paused if pod.suspension is not None]
    late = [pod for pod in paused if pod.suspension is None or pod.suspension.until_s + LATE_S < now_s]
    if late:
        return Reason.RESUME_REFUSED, f"{_named(late)} could not be resumed in time: see the events of the pods"
    if not records:
        return Reason.REQUEST_OWED, f"{_named(owed)} runs without its CPU request, until its node or its quota has room"
    end = statuses.rfc3339(max(each.until_s for each in records))
    if any(each.by == BY_USER for each in records):
        return Reason.BY_HAND, f"{_named(paused)} suspended until {end}, by the annotation {ANNOTATION_SUSPEND_UNTIL}"
    return Reason.WAITING_FOR_MAPS, f"{_named(paused)} suspended until {end} at the latest: map output is missing"


def _named(pods: Sequence[AttemptPod]) -> str:
    names = ", ".join(sorted(pod.task_name for pod in pods)[:_NAMED])
    return f"{len(pods)} reduce{'s' * (len(pods) != 1)} ({names}{', …' if len(pods) > _NAMED else ''})"


def _problem(observation: Observation) -> tuple[str, str] | None:
    """Return reason and message if the author's annotation has no effect; None if it has one, or is absent or over."""
    job, now_s = observation.job, observation.now_s
    asked_s, ignored = _asked_s(job), f"the annotation {ANNOTATION_SUSPEND_UNTIL} has no effect"
    if job.suspend_reducers_until is not None and (asked_s is None or asked_s > now_s + contract.MOST_SUSPENDED_S):
        example = statuses.rfc3339(now_s + contract.MOST_SUSPENDED_S / 2)
        return Reason.INVALID_TIME, f"{ignored}: its value must be a time such as {example}, at most an hour ahead"
    if until_s(job, now_s) is not None and not observation.may_suspend:
        return Reason.SWITCHED_OFF, f"{ignored}: an administrator must set the chart value actuators.suspend"
    return None
