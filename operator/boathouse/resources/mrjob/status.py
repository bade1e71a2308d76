"""Status of an MRJob, the resource of spec and status, and its CustomResourceDefinition."""

import dataclasses
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources import statuses
from boathouse.resources.base import ATOMIC, Model, optional
from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.mrjob import names
from boathouse.resources.mrjob.spec import MRJobSpec

Phase = Literal["Pending", "Suspended", "Setup", "Map", "Reduce", "Commit", "Succeeded", "Failed"]
_time = {"format": "date-time"}


class TaskCounts(Model):
    """Tasks of one stage by state."""

    total: int = Field(default=0, description="All tasks.")
    pending: int = Field(default=0, description="Tasks that are queued or whose pod is starting.")
    running: int = Field(default=0, description="Running tasks.")
    suspended: int = Field(default=0, description="Running reduces without CPU, because they lack map output.")
    succeeded: int = Field(default=0, description="Succeeded tasks.")
    failed_attempts: int = Field(default=0, description="Failed attempts.")
    killed_attempts: int = Field(
        default=0,
        description="Attempts that Boathouse ended (job suspended, reduce preempted for a map). Not failures.",
    )


class FailureCounts(Model):
    """Failed attempts of the whole job by cause."""

    user: int = Field(default=0, description="Errors of the command or the input, which count against maxAttempts.")
    infrastructure: int = Field(
        default=0, description="Lost nodes, evictions, restarts, which are retried with backoff."
    )


class TaskFailure(Model):
    """One failed attempt."""

    task: str = Field(max_length=32, description="Task, such as m-00042.")
    step: int | None = optional("Step of the task, from 0, if the job has several.")
    attempt: int = Field(description="Number of the attempt, from 1.")
    node: str | None = optional("Node of its pod.", max_length=253)
    reason: str = Field(max_length=64, description="A token for programs.")
    message: str = Field(default="", max_length=1200, description="What happened.")
    exit_code: int | None = optional("Of the command, if it ended.")
    user_error: bool = Field(default=False, description="Whether it counts against maxAttempts.")
    time: Annotated[str, Field(json_schema_extra=_time)] | None = optional("When it failed.")


class PlanStatus(Model):
    """The accepted split plan, stored in ConfigMaps that the job owns."""

    splits: int = Field(description="Splits of the input; each is a map.")
    digest: str = Field(max_length=128, description="Digest of the plan.")
    bytes: int = Field(description="Size of the stored plan.")
    shards: int = Field(description="ConfigMaps with the plan.")


class StageResources(Model):
    """Resources of this stage's pods. They are Burstable, because a resize cannot change a pod's QoS class."""

    cpu_request: str = Field(max_length=32, description="CPU request.")
    cpu_limit: str = Field(max_length=32, description="CPU limit.")
    memory_request: str = Field(max_length=32, description="Memory request.")
    memory_limit: str = Field(max_length=32, description="Memory limit.")


class DecidedResources(Model):
    """Resources by stage."""

    map: StageResources | None = None
    reduce: StageResources | None = None


_Packed = Annotated[str, Field(max_length=65536)]


class AttemptArrays(Model):
    """A number per task of a stage, as base64(zlib(little-endian uint16)). Absent: all tasks have the default."""

    last: _Packed | None = optional("Highest attempt number; default 0.")
    user_failures: _Packed | None = optional("Attempts with user errors; default 0.")
    infrastructure_failures: _Packed | None = optional("Attempts with infrastructure errors; default 0.")
    killed: _Packed | None = optional("Attempts that Boathouse ended for another task or for the job; default 0.")
    winners: _Packed | None = optional("Attempt whose commit won, if not attempt 1; default 0.")


class Attempts(Model):
    """Attempts of the current step by stage, so that no attempt number is reused and each failure counts once."""

    setup: AttemptArrays | None = None
    map: AttemptArrays | None = None
    reduce: AttemptArrays | None = None
    uber: AttemptArrays | None = None
    commit: AttemptArrays | None = None
    cleanup: AttemptArrays | None = None


class RunningSums(Model):
    """Sums of the running tasks' reports. Finished tasks are in the counters."""

    tasks: int = Field(description="Running tasks that have reported.")
    records_in: int = Field(default=0, description="Records read.")
    records_out: int = Field(default=0, description="Records written.")
    bytes_in: int = Field(default=0, description="Bytes read.")
    bytes_out: int = Field(default=0, description="Bytes written.")
    spilled_records: int = Field(default=0, description="Records spilled to disk.")


ProbePhase = Literal["Pending", "Running", "Succeeded", "Failed", "Withdrawn"]
"""Where the probe of a job is; the first two are under way."""


class Prediction(Model):
    """Predicted size of the job, with profiles that order jobs by size."""

    probe: ProbePhase | None = optional(
        "Where the probe is, which runs the job's commands once more on a sample of its input. Absent: "
        "the job has none."
    )
    reason: str | None = optional("Why the probe failed.", max_length=64)
    sampled_fraction: float | None = optional("Part of the input that the probe read.")
    source: Literal["Stated", "Probe", "Program", "History"] | None = optional(
        "Probe: predicted from the job's probe. Program: from a probe of an earlier job of the program. "
        "History: from earlier run times. Stated: run times are known."
    )
    map_seconds: float | None = optional("Predicted run time of a map.")
    reduce_seconds: float | None = optional("Predicted run time of a reduce.")
    memory_seconds: float | None = optional(
        "Predicted size: memory requests of maps and reduces times their run times, in GiB·s."
    )
    used_memory_seconds: float | None = optional("Size so far, of the maps and reduces that succeeded, in GiB·s.")
    error: float | None = optional("At the end: memorySeconds over usedMemorySeconds, minus 1; 0.1 is 10 % too much.")


class HadoopApplication(Model):
    """An application of YARN that an attempt submitted."""

    id: str = Field(max_length=40, description="Application ID of YARN.")
    name: str = Field(default="", max_length=80, description="Its name.")
    state: str = Field(default="", max_length=24, description="YARN's state, such as RUNNING.")
    final_status: str = Field(default="", max_length=24, description="YARN's final status, such as SUCCEEDED.")
    progress_percent: int = Field(default=0, ge=0, le=100, description="Progress that it reports.")
    diagnostics: str = Field(default="", max_length=500, description="YARN's diagnostics.")


MAX_APPLICATIONS = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopStatus(statuses.PartWithoutDefaults):
    """The current attempt of a job with clusterRef."""

    attempt: Annotated[int, statuses.about("From 1.")]
    tag: Annotated[str, statuses.about("Tag of the attempt's applications: UID-ATTEMPT.", max_length=64)]
    cluster: Annotated[
        statuses.Text,
        statuses.about(
            "UID of the MRCluster. The attempt ends with the cluster, even if another one has its name.",
            alias="clusterUID",
            max_length=64,
        ),
    ] = ""
    since_s: Annotated[statuses.TimeOrZero, statuses.about("When the attempt began.", alias="since")]
    is_stopping: Annotated[
        bool, statuses.about("Whether Boathouse kills the attempt's applications.", alias="stopping")
    ] = False
    ended_s: Annotated[
        statuses.Time,
        statuses.about(
            "When its client and all its applications had ended. Absent: they may still run.", alias="ended"
        ),
    ] = None
    applications: Annotated[
        tuple[HadoopApplication, ...],
        statuses.ABSENT,
        statuses.about("Applications of the attempt.", max_length=MAX_APPLICATIONS, json_schema_extra=ATOMIC),
    ] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobFields(statuses.Status):
    """Fields of a job's status that the planner has as they are."""

    phase: Annotated[Phase, statuses.about("Where the job is; details are in the conditions.")] = "Pending"
    conditions: Annotated[
        statuses.Conditions, statuses.about("What holds, such as Admitted, Succeeded and Failed.")
    ] = ()
    queue: Annotated[statuses.Text, statuses.about("Queue of the job.", max_length=63)] = ""
    reason: Annotated[
        statuses.Text, statuses.about("Why the job is pending or failed; details are in the conditions.", max_length=64)
    ] = ""
    start_s: Annotated[statuses.Time, statuses.about("When it was admitted. Absent while it is suspended.")] = None
    completion_s: Annotated[statuses.Time, statuses.about("When it succeeded or failed.")] = None
    percent: Annotated[
        int | None,
        statuses.about(
            "Progress, from finished tasks and reports of running tasks. 100: the output is complete.",
            alias="progressPercent",
            ge=0,
            le=100,
        ),
    ] = None
    running: RunningSums | None = None
    counters: Annotated[
        dict[str, Annotated[dict[str, int], Field(max_length=256)]],
        statuses.ABSENT,
        statuses.about("Sums over the attempts that won, by group and name.", max_length=256),
    ] = dataclasses.field(default_factory=dict)
    last_failures: Annotated[
        tuple[TaskFailure, ...],
        statuses.ABSENT,
        statuses.about("The last failed attempts.", max_length=5, json_schema_extra=ATOMIC),
    ] = ()
    plan: PlanStatus | None = None
    resources: DecidedResources | None = None
    prediction: Prediction | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRJobStatus(JobFields):
    """Observed state of the job."""

    progress: Annotated[
        str | None, statuses.about('Succeeded tasks, such as "maps 12/40, reduces 0/2".', max_length=128)
    ] = None
    current_step: Annotated[
        statuses.Count | None,
        statuses.about(
            "Current step of a job with several steps, from 0. plan, maps and reduces are those of this step."
        ),
    ] = None
    steps: Annotated[int | None, statuses.about("Number of steps, if more than one.")] = None
    maps: TaskCounts | None = None
    reduces: TaskCounts | None = None
    failures: FailureCounts | None = None
    succeeded_maps: Annotated[
        str | None, statuses.about("A bit per map, base64, least significant bit first.", max_length=65536)
    ] = None
    succeeded_reduces: Annotated[
        str | None, statuses.about("A bit per reduce, base64, least significant bit first.", max_length=65536)
    ] = None
    attempts: Attempts | None = None
    hadoop: Annotated[HadoopStatus | None, statuses.about("Of a job with clusterRef.")] = None


class MRJob(Model):
    """A MapReduce job with Hadoop Streaming's contract: any command that reads lines and writes key<TAB>value lines."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"]})
    api_version: str | None = None
    kind: str | None = None
    spec: MRJobSpec
    status: MRJobStatus | None = None


MRJOB = CustomResource(
    kind=names.KIND,
    plural=names.PLURAL,
    short_names=("mrj",),
    model=MRJob,
    columns=(
        PrinterColumn("Phase", ".status.phase", "Phase of the job."),
        PrinterColumn("Queue", ".status.queue", "Queue of the job."),
        PrinterColumn("%", ".status.progressPercent", "Progress of the job in percent.", type="integer"),
        PrinterColumn("Progress", ".status.progress", "Succeeded tasks, of all tasks."),
        PrinterColumn("Reason", ".status.reason", "Why the job is pending or failed.", priority=1),
        PrinterColumn(
            "Failures", ".status.failures.user", "Failed attempts (user errors).", type="integer", priority=1
        ),
        AGE,
    ),
)
