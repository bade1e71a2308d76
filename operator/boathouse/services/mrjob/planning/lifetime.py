"""Plan suspension, the deadline, and reduces that start before the last map. Pure.

Reduces that start early use resources while they wait for maps. When maps of the same job are pending for some time, as
many of these reduces are preempted (Hadoop: mapreduce.job.reducer.preempt.delay.sec). That takes longer for maps that
lack CPU if policies suspend reduces, which frees their CPU.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources import names, statuses
from boathouse.resources.names import ConditionType
from boathouse.services.mrjob.attempts import settle
from boathouse.services.mrjob.attempts.settle import Attempt, StageControl, Verdict
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_policies import model as policy
from boathouse_task.contract import TaskType

HALT: Final = StageControl()
"""All attempts end, and no attempt starts."""
PREEMPTION_DELAY_S: Final = 10.0
"""How long a map is pending before a reduce of its job is preempted."""
PREEMPTION_DELAY_WITH_LENDING_S: Final = 60.0
"""The same for a map that lacks CPU, if policies suspend reduces."""
_FIRST_CHECK_S: Final = 2.0


def early_reduces(observation: Observation, state: JobState, waiting: Sequence[Attempt]) -> StageControl:
    """Return which reduces run or are preempted while maps are not done.

    Args:
        observation: The observation.
        state: The job's state with settled maps.
        waiting: Pending maps.
    """
    if observation.job.spec.suspend:
        return HALT
    maps = state.stages[TaskType.MAP]
    if maps.succeeded * 100 < maps.total * observation.job.spec.slow_start_completed_maps_percent and not maps.done:
        return StageControl(indices=frozenset())
    if not waiting or not _needs_preemption(observation, state):
        return settle.RUN
    running = [pod for pod in observation.pods if pod.task_type is TaskType.REDUCE and pod.state.is_live]
    leaving = sum(pod.deleting_since_s is not None for pod in running)
    stay = sorted({pod.index for pod in running if pod.deleting_since_s is None and pod.node is not None})
    want = max(0, len(waiting) - leaving)
    return StageControl(indices=frozenset(stay[len(stay) - min(want, len(stay)) :]))


def _needs_preemption(observation: Observation, state: JobState) -> bool:
    """Return whether tasks have been pending for long although they fit on some node."""
    scheduled = state.condition(ConditionType.SCHEDULED)
    if observation.diagnosis is None or scheduled is None or scheduled.status != "False":
        return False
    since_s = statuses.epoch(scheduled.last_transition_time)
    may_borrow = observation.lends_cpu and observation.diagnosis.scarce == "cpu"
    return (
        observation.diagnosis.reason != policy.Code.NEVER_FITS
        and since_s is not None
        and observation.now_s >= since_s + (PREEMPTION_DELAY_WITH_LENDING_S if may_borrow else PREEMPTION_DELAY_S)
    )


def overdue(job: Job, state: JobState, now_s: float) -> Verdict | None:
    """Return the verdict for a job that exceeds its deadline, else None."""
    end_s = deadline_s(job, state)
    if end_s is None or now_s < end_s:
        return None
    limit_s = job.spec.active_deadline_seconds
    message = f"the job was active for longer than spec.activeDeadlineSeconds ({limit_s} s)"
    return Verdict(reason=names.Reason.DEADLINE_EXCEEDED, message=message)


def next_reconcile_s(observation: Observation, state: JobState, known_s: float | None) -> float | None:
    """Return the time of the next reconcile without an event, or None."""
    moments = [each for each in (known_s, deadline_s(observation.job, state)) if each is not None]
    if any(pod.task_type is TaskType.REDUCE for pod in observation.pods) and not state.stages[TaskType.MAP].done:
        moments.append(observation.now_s + _FIRST_CHECK_S)
    return min(moments, default=None)


def deadline_s(job: Job, state: JobState) -> float | None:
    """Return when the job exceeds its deadline; None if it has none, or does not run."""
    limit_s = job.spec.active_deadline_seconds
    if limit_s is None or state.start_s is None or job.spec.suspend:
        return None
    return state.start_s + limit_s


def with_leftovers(verdict: Verdict, observation: Observation, state: JobState) -> Verdict:
    """Return the verdict with the URL of the work folder in its message, if no task will remove the folder."""
    if state.plan is None or observation.job.spec.clean_up != "Never":
        return verdict
    message = f"{verdict.message} (its work folder remains: remove {observation.job.work_url})"
    return dataclasses.replace(verdict, message=message)
