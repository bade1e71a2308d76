"""What this process remembers of a job and its status does not store. It can be derived again."""

import dataclasses
from collections.abc import Iterable, Sequence

from boathouse.resources.mrjob.status import TaskFailure
from boathouse.services.frame import status_writer
from boathouse.services.frame.kind import RESUBMIT_S
from boathouse.services.mrjob.attempt_pods import AttemptPod, Task
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.settle import MAX_BACKOFF_S, Attempt
from boathouse_policies import model

RUNNING_REQUEUE_S = 10.0  # the interval at which the progress of running tasks is written to the status


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The last submission of a job to the scheduler, with the UIDs of its `unplaced` pods."""

    job: Job
    classes: tuple[model.TaskClass, ...]
    waiting: frozenset[Attempt]
    unplaced: frozenset[str]
    at_s: float

    def covers(self, now: "Submitted", pods: Sequence[AttemptPod]) -> bool:
        """Return whether a new submission changes nothing: attempts that are no longer pending were placed since."""
        if (self.job, self.classes, self.unplaced) != (now.job, now.classes, now.unplaced):
            return False
        age_s = now.at_s - self.at_s
        if (now.unplaced and age_s >= RUNNING_REQUEUE_S) or (now.waiting and age_s >= RESUBMIT_S):
            return False
        gone, placed = self.waiting - now.waiting, attempts(pod for pod in pods if pod.node is not None)
        return now.waiting <= self.waiting and all((attempt.task, attempt.number) in placed for attempt in gone)


def attempts(pods: Iterable[AttemptPod]) -> set[tuple[Task, int]]:
    """Return the tasks of pods with the numbers of their attempts."""
    return {(pod.task, pod.attempt) for pod in pods}


@dataclasses.dataclass(slots=True)
class ProbeMemory:
    """Data about a job's probe."""

    submitted: str | None = ""  # UID of the pod with which it was submitted; None for no pod, "" if it was not
    is_published: bool = False


@dataclasses.dataclass(slots=True)
class HadoopMemory:
    """Data about a job's attempt on a Hadoop cluster, with the times of its `HadoopObservation`."""

    begun: int = 0  # the attempt that this process began and has not submitted
    observed: int = 0  # the last attempt whose client's pod this process saw, or knows to have ended
    clientless_s: float | None = None
    all_ended_s: float | None = None


@dataclasses.dataclass(slots=True)
class JobMemory(status_writer.Memory[JobState]):
    """Data about a job, with the pending retries that were granted a token of the namespace's bucket."""

    submitted: Submitted | None = None
    granted: frozenset[Attempt] = frozenset()
    failed_s: dict[str, float] = dataclasses.field(default_factory=dict)
    probe: ProbeMemory = dataclasses.field(default_factory=ProbeMemory)
    hadoop: HadoopMemory = dataclasses.field(default_factory=HadoopMemory)

    def note_failures(self, failures: Sequence[TaskFailure], now_s: float) -> None:
        """Remember when tasks failed, because the time of a pod's end is lost when the pod is deleted."""
        self.failed_s = {task: at_s for task, at_s in self.failed_s.items() if now_s - at_s < MAX_BACKOFF_S}
        self.failed_s |= {failure.task: now_s for failure in failures}
