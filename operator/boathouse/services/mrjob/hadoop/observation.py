"""Input and output of the planner of jobs on Hadoop clusters, with the pods of clients. All are plain values."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.cluster import wire
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.names import CONTAINER, Reason
from boathouse.scheduling.pods import facts
from boathouse.services.frame import pod_life
from boathouse.services.frame.status_codec import printable
from boathouse.services.hadoop import ClusterFacts
from boathouse.services.mrjob import results
from boathouse.services.mrjob.attempt_pods import Ending, JobPod, common, number
from boathouse.services.mrjob.hadoop.mirror import Views
from boathouse.services.mrjob.job_state import MAX_ATTEMPT, JobState
from boathouse.services.mrjob.planning.observation import JobObservation
from boathouse_task import contract
from boathouse_task.cluster_contract import ApplicationFigures

TASK_TYPE: Final = "client"  # value of the label `boathouse.dev/task-type`
RUNTIME: Final = "runtime"
"""The container beside the one that submits. It prepares the job: it has the files and the keys of the storage."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClientPod(JobPod):
    """The client of an attempt, which has ended when the container that submits has."""

    settings: str = ""  # name of the ConfigMap with the cluster's settings that it mounts


def read_client(pod: facts.PodFacts) -> ClientPod | None:
    """Return the client of a pod; None for a pod of another type."""
    labels = pod.metadata.labels
    attempt = number(labels.get(mrjob_names.LABEL_ATTEMPT, ""), MAX_ATTEMPT)
    if labels.get(mrjob_names.LABEL_TASK_TYPE) != TASK_TYPE or not attempt:
        return None
    status, runtime = pod_life.container(pod, CONTAINER), pod_life.container(pod, RUNTIME)
    state = pod_life.life(pod, status)
    problem = ending = None
    if state is pod_life.PodLife.STARTING:  # the container that submits starts after the runtime
        problem = pod_life.problem(runtime, "task.image of the chart")
        problem = problem or pod_life.problem(status, "spec.image of the MRCluster")
    elif state is pod_life.PodLife.FAILED:
        ended = status.state.terminated if status else None
        reason, message, user_error = _cause(pod, ended)
        ending = Ending(
            reason=reason,
            message=printable(message, results.MAX_MESSAGE),
            user_error=user_error,
            exit_code=ended.exit_code if ended else None,
            time_s=pod_life.ended_s(pod, status),
        )
    settings = pod.metadata.annotations.get(mrjob_names.ANNOTATION_SETTINGS, "")
    return ClientPod(**common(pod), attempt=attempt, state=state, settings=settings, problem=problem, ending=ending)


def _cause(pod: facts.PodFacts, ended: wire.StateTerminated | None) -> tuple[str, str, bool]:
    if pod_life.is_over_its_limit(pod):
        return contract.Reason.OUT_OF_DISK, pod.status.message, True
    if ended is not None and ended.reason == pod_life.OOM_KILLED:
        return Reason.OOM_KILLED, "the client ran out of memory: let tasks do what the program does before", True
    if ended is None or pod_life.was_killed(ended):
        disruption = pod_life.disruption(pod) or pod_life.Problem(
            reason=Reason.POD_LOST, message="the client was killed"
        )
        return disruption.reason, disruption.message, False
    if pod_life.has_not_started(ended):
        return Reason.RUNTIME_NOT_FOUND, f"{ended.message} (the cluster's image must have sh)", True
    prepared = results.read(ended.message)
    if prepared is not None:
        return prepared.reason or Reason.TASK_FAILED, prepared.message, prepared.user_error
    log = ended.message.strip()[-results.MAX_MESSAGE // 2 :] or "see its log (kubectl boathouse logs)"
    return Reason.TASK_FAILED, f"the client ended with exit code {ended.exit_code}: {log}", True


class Submission(enum.Enum):
    """Whether the client of the current attempt was submitted, as far as this process knows."""

    NONE = "none"  # this process began the attempt and has submitted no client
    MADE = "made"  # this process saw its pod, or learned that its pod has ended
    UNKNOWN = "unknown"  # a client may have been submitted


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopObservation(JobObservation):
    """Input of the planner.

    `unknown` has the first cluster that the job names and that this process does not know, with the UID that the API
    server has; None if it does not exist. A new leader has not reconciled all clusters yet.
    """

    cluster: ClusterFacts | None = None
    unknown: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    pods: Sequence[ClientPod] = ()
    views: Views = dataclasses.field(default_factory=dict)  # of the tags of the last attempts
    submission: Submission = Submission.UNKNOWN
    may_create: bool = False
    clientless_s: float | None = None  # since when no client can submit an application; None: one can
    all_ended_s: float | None = None  # since when all known applications of the attempt have ended; None: not all have

    @property
    def can_submit(self) -> bool:
        """Return whether a client exists that has not ended, or the scheduler may create one."""
        return self.may_create or any(pod.state.is_live for pod in self.pods)

    @property
    def applications(self) -> Sequence[ApplicationFigures]:
        """Return what is reported of the current attempt's applications."""
        view = self.views.get(self.state.hadoop.tag) if self.state.hadoop is not None else None
        return view.applications if view is not None else ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """Output of the planner. The fields are carried out in this order."""

    state: JobState
    delete: Sequence[ClientPod] = ()
    kill: Sequence[str] = ()
    submits: bool = False
    recheck_at_s: float | None = None
    is_ending: bool = False  # an attempt of a job that is over may still run, so the job must not be deleted
