"""Second attempts of slow tasks, and the control of running tasks that the scheduler gets.

Which tasks get a second attempt is remembered until its pod exists, only in memory: policies decide again. The first
attempt to commit wins, and the planner ends the other one.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import submission
from boathouse.services.mrjob.attempt_pods import AttemptPod, Task
from boathouse.services.mrjob.job_state import MAX_ATTEMPT, JobState
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.settle import Attempt
from boathouse.services.mrjob.task_orders import TaskOrders
from boathouse_policies import model
from boathouse_task.contract import SuspendOrder, TaskType

PENDING_S: Final = 30.0
"""A second attempt that has no pod after this time is given up: its task may have ended by then."""
_REPEATABLE: Final = frozenset({TaskType.MAP, TaskType.REDUCE})


class _Request(NamedTuple):
    """When a second attempt was requested, and on which nodes it must not run."""

    at_s: float
    avoids: frozenset[model.NodeName] = frozenset()


_NO_REQUEST: Final = _Request(0.0)


@dataclasses.dataclass(slots=True)
class _Entry:
    """A job with the requests of its second attempts, until these have a node."""

    job: Job
    state: JobState
    requests: dict[Attempt, _Request] = dataclasses.field(default_factory=dict)


class SecondAttempts:
    """Second attempts of the running tasks of all jobs."""

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
        if entry is None or not entry.requests:
            return ()
        begun, now_s = {_key(pod, pod.attempt): pod for pod in self._pods.of(uid)}, self._clock()
        for attempt, request in list(entry.requests.items()):
            is_late = attempt not in begun and now_s - request.at_s >= PENDING_S
            if is_late or (attempt in begun and begun[attempt].state is not PodLife.UNPLACED):
                del entry.requests[attempt]
        return tuple(attempt for attempt in entry.requests if attempt not in begun)

    def avoided(self, uid: JobUid, waiting: Iterable[Attempt]) -> dict[Attempt, frozenset[model.NodeName]]:
        """Return the nodes on which second attempts must not run: that of the first, and those of their requests."""
        requests = self._jobs[uid].requests if uid in self._jobs else {}
        retried = [attempt for attempt in waiting if attempt.number > 1]
        used: collections.defaultdict[Task, set[model.NodeName]] = collections.defaultdict(set)
        for pod in self._pods.of(uid) if retried else ():
            if pod.state.is_live and pod.node is not None:
                used[pod.task].add(model.NodeName(pod.node))
        for attempt in retried:
            used[attempt.task] |= requests.get(dataclasses.replace(attempt, pod_uid=None), _NO_REQUEST).avoids
        return {attempt: frozenset(used[attempt.task]) for attempt in retried if used[attempt.task]}

    def request(self, uid: JobUid, task: model.TaskId, avoids: Iterable[model.NodeName] = ()) -> model.TaskId | None:
        """Request a second attempt of a task, not on these nodes nor on the first's. None if there may be none."""
        entry, pod = self._jobs.get(uid), self._pods.find(uid, task.rpartition("/")[2])
        if entry is None or pod is None or not self._may_repeat(entry, pod):
            return None
        stage = entry.state.stages[pod.task_type]
        second = _key(pod, max(stage.last[pod.index], stage.settled(pod.index), pod.attempt) + 1)
        if second.number >= MAX_ATTEMPT:
            return None
        if second not in self.pending(uid):
            entry.requests[second] = _Request(self._clock(), frozenset(avoids))
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
        others = [other for other in self._pods.of(job.uid) if other.task == pod.task and other.uid != pod.uid]
        return not any(other.attempt > pod.attempt or other.state.is_live for other in others)


def _key(pod: AttemptPod, number: int) -> Attempt:
    return Attempt(task_type=pod.task_type, index=pod.index, number=number, step=pod.step)


@dataclasses.dataclass(frozen=True, slots=True)
class Control:
    """Implements `TaskControl` for the tasks of one MRJob."""

    uid: JobUid
    orders: TaskOrders
    seconds: SecondAttempts

    async def suspend(self, task: model.TaskId, order: SuspendOrder) -> str:
        """Order a task to pause; return "" once it has paused, else the reason why it does not."""
        return await self.orders.suspend(self.uid, task.rpartition("/")[2], order)

    def speculate(self, task: model.TaskId, avoids: Sequence[model.NodeName]) -> model.TaskId | None:
        """Submit a second attempt of a task on none of these nodes; return it, or None if there may be none."""
        return self.seconds.request(self.uid, task, avoids)
