"""What the planner may know of a job, and what it answers: all of it values, so that a decision can be repeated."""

import dataclasses
from collections.abc import Mapping, Sequence

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.attempts.settle import Attempt, Limits
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.contract import TaskType


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on.

    Attributes:
        limits: of attempts; their number is that of each stage.
        stored: the plan in ConfigMaps, complete, and of the digest that the status or setup's result has.
        posted: the plan that setup posted, while this process remembers it.
        missing: ConfigMaps that the job's files need and that are not there, in words.
        diagnosis: why tasks wait; None when the scheduler knows of none.
        failed_s: when tasks failed lately, by name, as far as this process remembers.
        namespace_terminating: of a job that is being deleted: whether its namespace is, too.
    """

    job: Job
    state: JobState
    pods: Sequence[AttemptPod]
    now_s: float
    limits: Limits
    stored: mrjob_status.PlanStatus | None = None
    posted: mrjob_status.PlanStatus | None = None
    missing: Sequence[str] = ()
    diagnosis: reasons.JobDiagnosis | None = None
    failed_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    namespace_terminating: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """What is to be done, in this order.

    Attributes:
        write_plan: keep the posted plan as ConfigMaps, then look again.
        delete: pods that work for nothing.
        waiting: every attempt that needs a node; replaces what waited before.
        recheck_at_s: look again then, even if nothing happens.
        cleaning: a job that has ended or is being deleted must stay, because it is being cleaned up.
    """

    state: JobState
    write_plan: bool = False
    delete: Sequence[AttemptPod] = ()
    waiting: Sequence[Attempt] = ()
    recheck_at_s: float | None = None
    cleaning: bool = False
    results: Sequence[tuple[TaskType, contract.TaskResult]] = ()
    failures: Sequence[mrjob_status.TaskFailure] = ()
