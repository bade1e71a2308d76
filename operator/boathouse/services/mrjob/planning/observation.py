"""Input and output of the planner. Both are plain values, so that a decision is reproducible."""

import dataclasses
from collections.abc import Mapping, Sequence

from boathouse.resources import names
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.settle import Attempt, Limits, Settlement
from boathouse_policies import fspy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeView:
    """What is known of a job's size with a profile that orders jobs by size."""

    prediction: fspy.Prediction | None
    wants_probe: bool = False
    may_probe: bool = True  # the chart lets jobs be probed
    probe: AttemptPod | None = None
    patience_s: float = 600.0  # how long a probe may be pending, and how long it may run


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobObservation:
    """What the planners of jobs with pods of their own and of jobs on Hadoop clusters get."""

    job: Job
    state: JobState
    now_s: float
    limits: Limits
    missing: Sequence[str] = ()  # messages about missing ConfigMaps of the job's files
    diagnosis: reasons.JobDiagnosis | None = None  # None if the scheduler has no pending tasks of the job

    @property
    def lacks_files(self) -> Problem:
        """Return the problem of a job whose ConfigMaps are missing."""
        message = f"{'; '.join(self.missing)}: create it in namespace {self.job.namespace}, or correct spec.files"
        return Problem(reason=names.Reason.CONFIG_MAP_NOT_FOUND, message=message)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation(JobObservation):
    """Input of the planner."""

    pods: Sequence[AttemptPod]
    stored: mrjob_status.PlanStatus | None = None  # in ConfigMaps, with the digest of the status or of setup's result
    posted: mrjob_status.PlanStatus | None = None  # by setup, if this process still has it
    failed_s: Mapping[str, float] = dataclasses.field(default_factory=dict)  # recent failures by task name
    seconds: Sequence[Attempt] = ()  # requested second attempts of running tasks, without pods
    namespace_terminating: bool = False
    size: SizeView | None = None  # None with a profile that does not predict sizes
    lends_cpu: bool = False  # policies suspend reduces that lack map output
    may_suspend: bool = True  # the chart lets reduces be suspended at all


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """Output of the planner. The fields are carried out in this order."""

    state: JobState
    write_plan: bool = False  # store the posted plan in ConfigMaps, then reconcile again
    delete: Sequence[AttemptPod] = ()
    waiting: Sequence[Attempt] = ()  # all that are pending, in place of those submitted before
    recheck_at_s: float | None = None
    cleaning: bool = False  # a clean-up is in progress, so the job must not be deleted
    settlement: Settlement = dataclasses.field(default_factory=Settlement)
