"""Input and output of the planner of jobs on Hadoop clusters. Both are plain values."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.hadoop.directory import ClusterFacts
from boathouse.services.mrjob.attempts.settle import Limits
from boathouse.services.mrjob.hadoop.client import ClientPod
from boathouse.services.mrjob.hadoop.tags import Views
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.state.job_state import JobState


class Submission(enum.Enum):
    """Whether the client of the current attempt was submitted, as far as this process knows."""

    NONE = "none"
    """This process began the attempt and has submitted no client."""
    MADE = "made"
    """This process saw its pod, or learned that its pod has ended."""
    UNKNOWN = "unknown"
    """A client may have been submitted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopObservation:
    """Input of the planner.

    Attributes:
        cluster: The job's cluster; None if this process does not know it.
        unknown: The first cluster that the job names and that this process does not know, with the UID that the API
            server has; None if it does not exist. A new leader has not reconciled all clusters yet.
        missing: Messages about missing ConfigMaps of the job's files.
        pods: Clients of all attempts.
        views: What the ResourceManager says of the tags of the last attempts, by tag.
        submission: What this process knows of the current attempt's client.
        may_create: Whether the scheduler may still create the pod of a client.
        clientless_s: Since when no client can submit an application; None: one can.
        all_ended_s: Since when all known applications of the attempt have ended; None: not all have, or there is none.
        diagnosis: Why the client is pending.
    """

    job: Job
    state: JobState
    now_s: float
    limits: Limits
    cluster: ClusterFacts | None = None
    unknown: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    missing: Sequence[str] = ()
    pods: Sequence[ClientPod] = ()
    views: Views = dataclasses.field(default_factory=dict)
    submission: Submission = Submission.UNKNOWN
    may_create: bool = False
    clientless_s: float | None = None
    all_ended_s: float | None = None
    diagnosis: reasons.JobDiagnosis | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """Output of the planner. The fields are carried out in this order.

    Attributes:
        delete: Clients that are not needed.
        kill: IDs of applications that must end.
        submits: Whether the current attempt's client is to be scheduled.
        recheck_at_s: Time of the next reconcile without an event.
        is_ending: Whether an attempt of a job that is over may still run, so that the job must not be deleted.
        failures: What failed since the last observation.
    """

    state: JobState
    delete: Sequence[ClientPod] = ()
    kill: Sequence[str] = ()
    submits: bool = False
    recheck_at_s: float | None = None
    is_ending: bool = False
    failures: Sequence[mrjob_status.TaskFailure] = ()
