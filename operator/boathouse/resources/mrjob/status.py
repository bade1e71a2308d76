"""The status of an MRJob, and the resource as a whole."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import Condition, Model
from boathouse.resources.mrjob.spec import MRJobSpec

Phase = Literal["Pending", "Suspended", "Setup", "Map", "Reduce", "Commit", "Succeeded", "Failed"]
_time = {"format": "date-time"}


class TaskCounts(Model):
    """Tasks of one stage by state."""

    total: int = 0
    pending: int = Field(default=0, description="Not yet running: waiting in the queue, or their pod is starting.")
    running: int = 0
    succeeded: int = 0
    failed_attempts: int = 0
    killed_attempts: int = Field(
        default=0, description="Ended by Boathouse (the job was suspended, a reduce made way for a map): not failures."
    )


class FailureCounts(Model):
    """Failed attempts of the whole job by who is to blame."""

    user: int = Field(default=0, description="The command's or the input's fault; counted against maxAttempts.")
    infrastructure: int = Field(
        default=0, description="Lost nodes, evictions, restarts; retried without limit, with backoff."
    )


class TaskFailure(Model):
    """One failed attempt."""

    task: str = Field(max_length=32, description="Such as m-00042.")
    step: int | None = Field(default=None, description="Of a job of several steps: the task's, from 0.")
    attempt: int
    node: str | None = Field(default=None, max_length=253)
    reason: str = Field(max_length=64)
    message: str = Field(default="", max_length=1200)
    exit_code: int | None = None
    user_error: bool = False
    time: Annotated[str, Field(json_schema_extra=_time)] | None = None


class PlanStatus(Model):
    """The accepted split plan, kept in ConfigMaps that the job owns."""

    splits: int
    digest: str = Field(max_length=128)
    bytes: int
    shards: int


class StageResources(Model):
    """What a pod of this stage really gets: Burstable for life, because a pod's QoS class cannot change in a resize."""

    cpu_request: str = Field(max_length=32)
    cpu_limit: str = Field(max_length=32)
    memory_request: str = Field(max_length=32)
    memory_limit: str = Field(max_length=32)


class DecidedResources(Model):
    """Resources by stage."""

    map: StageResources | None = None
    reduce: StageResources | None = None


class AttemptArrays(Model):
    """One number a task of a stage, as base64(zlib(little-endian uint16)); absent when every task has the default."""

    last: str | None = Field(default=None, max_length=65536, description="The highest attempt number used; default 0.")
    user_failures: str | None = Field(
        default=None, max_length=65536, description="Attempts that failed by the user's fault; default 0."
    )
    infrastructure_failures: str | None = Field(
        default=None, max_length=65536, description="Attempts that failed by the infrastructure's fault; default 0."
    )
    killed: str | None = Field(
        default=None,
        max_length=65536,
        description="Attempts that Boathouse ended for another task's or the job's sake.",
    )
    winners: str | None = Field(
        default=None, max_length=65536, description="The attempt whose commit won, where it is not 1; default 0."
    )


class Attempts(Model):
    """Attempts of the step at hand by stage, so that numbers are never used twice and failures are counted once."""

    setup: AttemptArrays | None = None
    map: AttemptArrays | None = None
    reduce: AttemptArrays | None = None
    uber: AttemptArrays | None = None
    commit: AttemptArrays | None = None
    cleanup: AttemptArrays | None = None


class RunningSums(Model):
    """What the tasks that run now have reported, summed; those of finished tasks are in the counters."""

    tasks: int = Field(description="How many of them have reported.")
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    spilled_records: int = 0


class MRJobStatus(Model):
    """What the operator observed."""

    observed_generation: int | None = None
    phase: Phase | None = None
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    queue: str | None = Field(default=None, max_length=63, description="The queue the job is in.")
    reason: str | None = Field(
        default=None,
        max_length=64,
        description="Why the job is pending or failed, in one token; the conditions say more.",
    )
    start_time: Annotated[str, Field(json_schema_extra=_time)] | None = None
    completion_time: Annotated[str, Field(json_schema_extra=_time)] | None = None
    progress: str | None = Field(default=None, max_length=128, description='Such as "maps 12/40, reduces 0/2".')
    current_step: int | None = Field(
        default=None, description="Current step of a multi-step job, from 0; plan, maps and reduces belong to it."
    )
    steps: int | None = Field(default=None, description="How many steps a job of several has.")
    progress_percent: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="By tasks done and what running ones report; 100: the output is complete.",
    )
    running: RunningSums | None = None
    maps: TaskCounts | None = None
    reduces: TaskCounts | None = None
    failures: FailureCounts | None = None
    succeeded_maps: str | None = Field(
        default=None, max_length=65536, description="A bit a map, base64; the least significant bit first."
    )
    succeeded_reduces: str | None = Field(
        default=None, max_length=65536, description="A bit a reduce, base64; the least significant bit first."
    )
    attempts: Attempts | None = None
    counters: dict[str, Annotated[dict[str, int], Field(max_length=256)]] | None = Field(
        default=None, max_length=256, description="Group, name, sum over the attempts that won."
    )
    last_failures: list[TaskFailure] | None = Field(
        default=None, max_length=5, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    plan: PlanStatus | None = None
    resources: DecidedResources | None = None


class MRJob(Model):
    """A MapReduce job with Hadoop Streaming's contract: any command that reads lines and writes key<TAB>value lines."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"]})
    api_version: str | None = None
    kind: str | None = None
    spec: MRJobSpec
    status: MRJobStatus | None = None
