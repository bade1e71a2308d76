"""Settle the attempts of one stage: count each result once and determine the tasks that need another attempt.

An attempt succeeds, fails with a user or an infrastructure error, or is ended by the operator (`StageControl`). Of
each task, attempts 1..settled have ended without success and are counted. Of later attempts one is live, or two if the
task is slow: the second one is settled once the first has ended. `last` is the highest number observed. The next
attempt has a higher one, because a lost pod may still run.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from boathouse.resources import names, statuses
from boathouse.resources.config import TaskDefaults
from boathouse.resources.mrjob.status import TaskFailure
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.frame.status_codec import printable
from boathouse.services.mrjob import results
from boathouse.services.mrjob.attempt_pods import AttemptPod, Ending, Task
from boathouse.services.mrjob.job_state import StageState
from boathouse_task import contract

MAX_BACKOFF_S = 60.0
LOST_AFTER_S = 60.0
"""The node of a pod that still exists this long after its deletion is unreachable. The task is then retried."""

MAX_LOST_AT_ONCE = 100  # lost attempts of one task beyond this number are counted without a failure entry for each


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Start timeouts of attempts, and maximum failures of a task."""

    start_timeout_s: float
    image_pull_timeout_s: float
    max_attempts: int = 4
    failures_max_percent: int = 0  # tasks that may fail; the next attempt of such a task commits an empty result
    max_infrastructure: int = 50
    missing_object_timeout_s: float = 120.0

    @classmethod
    def of(cls, task: TaskDefaults) -> "Limits":
        """Return the limits by the operator's configuration."""
        return cls(
            start_timeout_s=task.start_timeout_seconds,
            image_pull_timeout_s=task.image_pull_timeout_seconds,
            missing_object_timeout_s=task.missing_object_timeout_seconds,
            max_infrastructure=task.max_infrastructure_failures,
        )

    def timeout_s(self, reason: str) -> float:
        """Return the start timeout of a pod with this problem, in seconds."""
        timeouts_s: dict[str, float] = {
            names.Reason.IMAGE_PULL_FAILED: self.image_pull_timeout_s,
            names.Reason.SECRET_NOT_FOUND: self.missing_object_timeout_s,
            names.Reason.CONFIG_MAP_NOT_FOUND: self.missing_object_timeout_s,
        }
        return timeouts_s.get(reason, self.start_timeout_s)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageControl:
    """Ends running attempts of all or some tasks of a stage, which count as killed, not as failed: without backoff."""

    indices: frozenset[int] | None = None
    restart: bool = False  # these tasks, and others without an attempt, get a new attempt now

    def concerns(self, index: int) -> bool:
        """Return whether attempts of this task are ended."""
        return self.indices is None or index in self.indices


RUN = StageControl(indices=frozenset(), restart=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A pending attempt, whose pod may exist. One that `is_given_up` commits an empty result: its task fails often."""

    task_type: contract.TaskType
    index: int
    number: int
    pod_uid: str | None = None
    step: int = 0
    is_given_up: bool = False

    @property
    def task(self) -> Task:
        """The task of the attempt."""
        return self.step, self.task_type, self.index


@dataclasses.dataclass(slots=True, kw_only=True)
class Settlement:
    """Result of settling the attempts of one stage, or of concurrent ones; empty if nothing was settled."""

    counters: contract.Counters = dataclasses.field(default_factory=dict)
    stages: dict[contract.TaskType, StageState] = dataclasses.field(default_factory=dict)
    active: dict[contract.TaskType, tuple[int, int]] = dataclasses.field(default_factory=dict)  # that start, that run
    failures: list[TaskFailure] = dataclasses.field(default_factory=list)
    waiting: list[Attempt] = dataclasses.field(default_factory=list)
    seconds: list[Attempt] = dataclasses.field(default_factory=list)
    obsolete: list[AttemptPod] = dataclasses.field(default_factory=list)
    problems: list[AttemptPod] = dataclasses.field(default_factory=list)
    results: list[tuple[contract.TaskType, contract.TaskResult]] = dataclasses.field(default_factory=list)
    verdict: Problem | None = None  # why the job fails
    recheck_at_s: float = math.inf
    used_byte_s: float = 0.0  # run times of the maps and reduces that won, each times its memory request


def failure(task: str, attempt: int, node: str | None, ending: Ending, now_s: float | None = None) -> TaskFailure:
    """Return the entry of a failed attempt in the status."""
    return TaskFailure(
        task=task,
        attempt=attempt,
        node=node,
        reason=str(ending.reason)[:64],
        message=printable(ending.message, results.MAX_MESSAGE),
        exit_code=ending.exit_code,
        user_error=ending.user_error,
        time=statuses.rfc3339(ending.time_s if ending.time_s is not None else now_s),
    )


def backoff_s(failures: int) -> float:
    """Return the backoff after so many failures: 1, 2, 4 ... 60 seconds."""
    return min(MAX_BACKOFF_S, 2.0 ** min(failures - 1, 16)) if failures else 0.0


@dataclasses.dataclass(slots=True, kw_only=True)
class Settler:
    """Settles the tasks of a stage one by one; writes to `outcome` and `stage`."""

    type: contract.TaskType
    step: int = 0
    outcome: Settlement
    stage: StageState
    limits: Limits
    now_s: float
    stop: StageControl
    failed_s: dict[str, float] = dataclasses.field(default_factory=dict)  # the last, of tasks whose pods were deleted
    requested: Mapping[int, Attempt] = dataclasses.field(default_factory=dict)  # second attempts without pods
    _waiting: list[Attempt] = dataclasses.field(default_factory=list)
    _starting: int = 0
    _running: int = 0

    def settle(self, pods: Iterable[AttemptPod]) -> Settlement:
        """Settle the attempts of the stage's pods."""
        stage, by_index = self.stage, dict[int, list[AttemptPod]]()
        for pod in pods:
            over = pod.index >= stage.total or (stage.winner[pod.index] and not pod.state.is_live)
            if not over:  # most pods of a large job belong to tasks that are done and counted
                by_index.setdefault(pod.index, []).append(pod)
        for index, attempts in sorted(by_index.items()):
            self._task(index, sorted(attempts, key=lambda pod: pod.attempt))
        for index, (winner, last) in enumerate(zip(stage.winner, stage.last, strict=True)):
            if winner or index in by_index:
                continue
            if last or not self.stop.restart:
                self._task(index, ())
            else:  # it has no attempt yet, like most tasks of a large job that has just started
                self._waiting.append(Attempt(task_type=self.type, index=index, number=1, step=self.step))
        self.outcome.stages[self.type] = stage
        self.outcome.active[self.type] = self._starting, self._running
        self.outcome.waiting += sorted(self._waiting, key=lambda attempt: attempt.index)
        return self.outcome

    def _task(self, index: int, pods: Sequence[AttemptPod]) -> None:
        for pod in pods:
            if pod.state is PodLife.SUCCEEDED and not self.stage.winner[index]:
                self._won(index, pod, max(other.attempt for other in pods))
        if self.stage.winner[index]:
            self.outcome.obsolete += [pod for pod in pods if pod.is_active]
            return
        live = None
        for pod in pods:
            self.stage.last[index] = max(self.stage.last[index], pod.attempt)
            live = live or self._settle_pod(index, pod)
        if live is None:
            self._settle_vanished(index, self.stage.last[index])
            self._next(index, pods)
        elif live.state is PodLife.UNPLACED and self.stop.restart:
            self._waiting.append(self._attempt(index, live.attempt, live.uid))
        elif self.stop.restart and pods[-1] is live and index in self.requested:
            self.outcome.seconds.append(self.requested[index])
        elif self.stop.restart and pods[-1] is not live and pods[-1].state is PodLife.UNPLACED:
            number, uid = pods[-1].attempt, pods[-1].uid
            second = Attempt(task_type=self.type, index=index, number=number, pod_uid=uid, step=self.step)
            self.outcome.seconds.append(second)

    def _won(self, index: int, pod: AttemptPod, highest: int) -> None:
        result = pod.result
        assert result is not None
        exists = 1 <= result.winner_attempt <= max(highest, self.stage.last[index])
        self.stage.winner[index] = result.winner_attempt if exists else pod.attempt
        self.stage.last[index] = max(self.stage.last[index], pod.attempt)
        self._count(result)
        self.outcome.results.append((self.type, result))
        if self.type in (contract.TaskType.MAP, contract.TaskType.REDUCE):
            self.outcome.used_byte_s += results.worked_s(result) * pod.resources.memory_bytes

    def _count(self, result: contract.TaskResult) -> None:
        if self.type in (contract.TaskType.SETUP, contract.TaskType.CLEANUP):  # setup may run again if its plan is lost
            return
        if self.type is contract.TaskType.COMMIT:
            # Its counters are the sums over the winners, which replace those counted so far.
            if not result.counters or results.DROPPED in result.counters.get(results.GROUP, {}):
                return
            self.outcome.counters.clear()
        results.add_counters(self.outcome.counters, result.counters)

    def _settle_pod(self, index: int, pod: AttemptPod) -> AttemptPod | None:
        """Settle the pod's attempt if it has ended; return the pod if its attempt is live."""
        if pod.attempt <= self.stage.settled(index):
            if pod.is_active:
                self.outcome.obsolete.append(pod)
            return None
        self._settle_vanished(index, pod.attempt - 1)
        ending = self._ending(pod)
        if ending is not None:
            self._settle(index, pod.attempt, ending, pod)
        elif self.stop.concerns(index):
            self.stage.killed[index] += 1
        else:
            self._running += pod.state is PodLife.RUNNING
            self._starting += pod.state is PodLife.STARTING
            if pod.problem is not None:
                self.outcome.problems.append(pod)
            return pod
        if pod.is_active:
            self.outcome.obsolete.append(pod)
        return None

    def _ending(self, pod: AttemptPod) -> Ending | None:
        """Return how the attempt ended, including timeouts that the pod's status does not show."""
        if pod.ending is not None:
            return pod.ending
        if pod.deleting_since_s is not None:
            deadline_s, is_user_error = pod.deleting_since_s + LOST_AFTER_S, False
            reason, message = str(names.Reason.POD_LOST), "deleted, but its node is unreachable"
        elif pod.state is PodLife.STARTING:
            problem, is_user_error = pod.problem or _NO_REASON, pod.problem is not None
            timeout_s = self.limits.timeout_s(problem.reason)
            deadline_s = pod.placed_s + timeout_s
            reason, message = problem.reason, f"not started after {timeout_s:.0f} s: {problem.message}"
        else:
            return None
        if self.now_s >= deadline_s:
            return Ending(reason=reason, message=message, user_error=is_user_error, time_s=self.now_s)
        self.outcome.recheck_at_s = min(self.outcome.recheck_at_s, deadline_s)
        return None

    def _settle_vanished(self, index: int, until: int) -> None:
        """Settle attempts whose pods were deleted: killed if the operator ends them, else infrastructure failures."""
        if self.stop.concerns(index):
            self.stage.killed[index] += max(0, until - self.stage.settled(index))
        gone = Ending(reason=names.Reason.POD_LOST, message="the pod was deleted", user_error=False, time_s=self.now_s)
        unseen = until - self.stage.settled(index) - MAX_LOST_AT_ONCE
        if unseen > 0:  # a tenant's pod with a label far beyond the last attempt: count them without entries
            self.stage.infrastructure_failures[index] += unseen
        while self.stage.settled(index) < until:
            self._settle(index, self.stage.settled(index) + 1, gone, None)

    def _settle(self, index: int, attempt: int, ending: Ending, pod: AttemptPod | None) -> None:
        counts = self.stage.user_failures if ending.user_error else self.stage.infrastructure_failures
        counts[index] += 1
        node, task = pod.node if pod else None, contract.task_name(self.type, index)
        if pod is None:
            self.failed_s[task] = self.now_s
        self.outcome.failures.append(failure(task, attempt, node, ending))
        if self.outcome.verdict is None:
            self.outcome.verdict = self._judge(index, task, attempt, ending, node)

    def _judge(self, index: int, task: str, attempt: int, ending: Ending, node: str | None) -> Problem | None:
        named = f"{self.type} task" if task == self.type else f"{self.type} task {task}"
        where = f"{named}, attempt {attempt}" + (f" on node {node}" if node else "")
        message, is_user_error = ending.message, ending.user_error
        if is_user_error and self._may_give_up(index):
            return None
        if not (is_user_error and (self.type is contract.TaskType.SETUP or ending.reason in _FATAL_REASONS)):
            failures = (self.stage.user_failures if is_user_error else self.stage.infrastructure_failures)[index]
            if failures < (self.limits.max_attempts if is_user_error else self.limits.max_infrastructure):
                return None
            often = "once" if failures == 1 else f"{failures} times"
            kind = "" if is_user_error else " with infrastructure errors"
            message = f"failed {often}{kind}; last error: {message}"
        return Problem(reason=ending.reason, message=printable(f"{where}: {message}", results.MAX_MESSAGE))

    def _may_give_up(self, index: int) -> bool:
        """Return whether the job goes on after a user error of this task, because few tasks of the stage may fail."""
        failures, limits = self.stage.user_failures, self.limits
        given_up = sum(task_failures >= limits.max_attempts for task_failures in failures)
        allowed = limits.failures_max_percent * self.stage.total
        return allowed > 0 and given_up * 100 <= allowed and failures[index] <= limits.max_attempts

    def _attempt(self, index: int, number: int, pod_uid: str | None = None) -> Attempt:
        return Attempt(
            task_type=self.type,
            index=index,
            number=number,
            pod_uid=pod_uid,
            step=self.step,
            is_given_up=self.stage.user_failures[index] >= self.limits.max_attempts,
        )

    def _next(self, index: int, pods: Sequence[AttemptPod]) -> None:
        """Add the task's next attempt to the pending ones once its backoff has passed."""
        if not self.stop.restart:
            return
        ended_s = max((pod.ending.time_s or 0.0 for pod in pods if pod.ending), default=0.0)
        ended_s = max(ended_s, self.failed_s.get(contract.task_name(self.type, index), 0.0))
        ready_s = ended_s + backoff_s(self.stage.failures(index))
        if ready_s > self.now_s:
            self.outcome.recheck_at_s = min(self.outcome.recheck_at_s, ready_s)
            return
        number = max(self.stage.last[index], self.stage.settled(index)) + 1
        self._waiting.append(self._attempt(index, number))


_NO_REASON = Problem(reason=names.Reason.POD_START_TIMEOUT, message="check the pod's events for FailedMount")
_FATAL_REASONS = frozenset(
    {
        contract.Reason.COMMAND_NOT_FOUND,
        contract.Reason.FILE_NOT_FOUND,
        contract.Reason.INVALID_ARCHIVE,
        contract.Reason.INVALID_URL,
        contract.Reason.CORRUPT_INPUT,
        contract.Reason.RECORD_TOO_LONG,
        contract.Reason.OUTPUT_EXISTS,
        contract.Reason.STORE_NOT_EXCLUSIVE,
        contract.Reason.PLAN_TOO_LARGE,
        names.Reason.RUNTIME_NOT_FOUND,
        names.Reason.IMAGE_PULL_FAILED,
        names.Reason.SECRET_NOT_FOUND,
        names.Reason.CONFIG_MAP_NOT_FOUND,
        names.Reason.INVALID_POD,
    }
)
"""Another attempt would end the same way. What setup finds wrong with the input, the output or the rights does, too."""
