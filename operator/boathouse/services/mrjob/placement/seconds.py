"""Remember which slow tasks get a second attempt, until its pod exists. Only in memory: policies decide again.

The first attempt to commit wins, and the planner ends the other one.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts import pod_reader
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.job.model import Job, JobUid
from boathouse.services.mrjob.placement import submission
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_policies import model
from boathouse_task.contract import TaskType

PENDING_S: Final = 30.0
"""A second attempt that has no pod after this time is given up: its task may have ended by then."""
_REPEATABLE: Final = frozenset({TaskType.MAP, TaskType.REDUCE})


@dataclasses.dataclass(slots=True)
class _Entry:
    """A job with its second attempts that are pending, and when they were requested."""

    job: Job
    state: JobState
    pending: dict[Attempt, float] = dataclasses.field(default_factory=dict)


class SecondAttempts:
    """Second attempts of the running tasks of all jobs.

    Args:
        pods: Pods of all jobs.
        mark: Called with a job that has to be reconciled.
        clock: Returns monotonic seconds.
    """

    def __init__(self, pods: PodIndex[AttemptPod], mark: Callable[[JobUid], None], clock: Callable[[], float]) -> None:
        self._pods, self._mark, self._clock = pods, mark, clock
        self._jobs: dict[JobUid, _Entry] = {}

    def update(self, job: Job, state: JobState) -> None:
        """Take requests for an unfinished job."""
        entry = self._jobs.setdefault(job.uid, _Entry(job, state))
        entry.job, entry.state = job, state

    def forget(self, uid: JobUid) -> None:
        """Drop a job that has ended."""
        self._jobs.pop(uid, None)

    def pending(self, uid: JobUid) -> Sequence[Attempt]:
        """Return the second attempts of a job that have no pod."""
        entry = self._jobs.get(uid)
        if entry is None or not entry.pending:
            return ()
        begun, now_s = {_key(pod, pod.attempt) for pod in self._pods.of(uid)}, self._clock()
        entry.pending = {
            each: at_s for each, at_s in entry.pending.items() if each not in begun and now_s - at_s < PENDING_S
        }
        return tuple(entry.pending)

    def request(self, uid: JobUid, task: model.TaskId) -> model.TaskId | None:
        """Request a second attempt of a running task; return it, or None if there may be none."""
        entry, pod = self._jobs.get(uid), self._pods.find(uid, task.rpartition("/")[2])
        if entry is None or pod is None or not self._may_repeat(entry, pod):
            return None
        stage = entry.state.stages[pod.task_type]
        number = max(stage.last[pod.index], stage.settled(pod.index), pod.attempt) + 1
        second = _key(pod, number)
        if number >= pod_reader.MAX_ATTEMPT:
            return None
        if second not in self.pending(uid):
            entry.pending[second] = self._clock()
            self._mark(uid)
        return submission.task_id(entry.job, second)

    def _may_repeat(self, entry: _Entry, pod: AttemptPod) -> bool:
        job, state = entry.job, entry.state
        is_running = pod.is_active and pod.state is PodLife.RUNNING and pod.step == state.step
        if not is_running or pod.task_type not in _REPEATABLE or job.spec.suspend or state.finished:
            return False
        stage = state.stages.get(pod.task_type)
        if stage is None or pod.index >= stage.total or stage.winner[pod.index]:
            return False
        if stage.user_failures[pod.index] + 2 > job.stage(pod.task_type, pod.step).max_attempts:
            return False  # if both failed, the job would fail sooner than without the second attempt
        here = (pod.step, pod.task_type, pod.index)
        return not any(
            (each.step, each.task_type, each.index) == here and (each.attempt > pod.attempt or each.state.is_live)
            for each in self._pods.of(job.uid)
            if each.uid != pod.uid
        )


def _key(pod: AttemptPod, number: int) -> Attempt:
    return Attempt(task_type=pod.task_type, index=pod.index, number=number, step=pod.step)
