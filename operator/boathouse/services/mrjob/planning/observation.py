"""What the planner may know of a job: all of it values, so that a decision can be repeated."""

import dataclasses
from collections.abc import Mapping, Sequence

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.state.job_state import JobState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long pods may take to start, and a missing ConfigMap to appear."""

    start_s: float
    image_pull_s: float
    missing_object_s: float = 120.0
    max_infrastructure_failures: int = 50


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on.

    Attributes:
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
    timeouts: Timeouts
    stored: mrjob_status.PlanStatus | None = None
    posted: mrjob_status.PlanStatus | None = None
    missing: Sequence[str] = ()
    diagnosis: reasons.JobDiagnosis | None = None
    failed_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    namespace_terminating: bool = False
