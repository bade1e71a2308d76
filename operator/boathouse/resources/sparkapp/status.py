"""The status of a SparkApp, and the resource as a whole."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import Condition, Model
from boathouse.resources.sparkapp.spec import SparkAppSpec

Phase = Literal["Pending", "Suspended", "Starting", "Running", "Restarting", "Succeeded", "Failed"]
Cause = Literal["Application", "Infrastructure", "Suspended"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
MAX_ATTEMPTS_KEPT = 5
MAX_LOG = 2048


class DriverStatus(Model):
    """The driver of the current attempt."""

    pod_name: str = Field(max_length=63)
    node: str | None = Field(default=None, max_length=253)
    service_name: str | None = Field(default=None, max_length=63)
    ui_address: str | None = Field(default=None, max_length=512, description="Reachable in the cluster.")


class ExecutorCounts(Model):
    """The executors of the current attempt."""

    minimum: int = Field(default=0, description="How many have room reserved before the driver starts.")
    pending: int = 0
    running: int = 0
    failed: int = Field(default=0, description="Ended otherwise than by the driver's wish, over the attempt.")


class StageCounts(Model):
    """Stages of the running jobs, as the driver reports them."""

    active: int = 0
    completed: int = 0
    failed: int = 0


class TaskCounts(Model):
    """Tasks of the running jobs, as the driver reports them."""

    total: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0


class Attempt(Model):
    """An attempt that ended."""

    number: int
    application_id: str = Field(max_length=63)
    node: str | None = Field(default=None, max_length=253)
    start_time: Time | None = None
    end_time: Time | None = None
    cause: Cause | None = Field(default=None, description="Absent: it succeeded.")
    reason: str = Field(default="", max_length=64)
    message: str = Field(default="", max_length=1200)
    exit_code: int | None = None


class FailureCounts(Model):
    """Failed attempts since the last reset, by who is to blame, and when the next attempt may start."""

    application: int = 0
    infrastructure: int = 0
    retry_time: Time | None = None


class RoleRequests(Model):
    """What a pod of this role requests."""

    cpu: str = Field(max_length=32)
    memory: str = Field(max_length=32)


class Requests(Model):
    """Requests by role, as Spark computes them from the properties."""

    driver: RoleRequests | None = None
    executor: RoleRequests | None = None


class SparkAppStatus(Model):
    """What the operator observed."""

    observed_generation: int | None = None
    phase: Phase | None = None
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    queue: str | None = Field(default=None, max_length=63, description="The queue the application is in.")
    reason: str | None = Field(default=None, max_length=64, description="Why it is pending or failed.")
    start_time: Time | None = None
    completion_time: Time | None = None
    attempt: int | None = Field(default=None, description="The number of the current attempt, from 1.")
    application_id: str | None = Field(default=None, max_length=63, description="Of the current attempt.")
    attempt_start_time: Time | None = Field(default=None, description="When the driver of the attempt began to run.")
    driver: DriverStatus | None = None
    executors: ExecutorCounts | None = None
    stages: StageCounts | None = None
    tasks: TaskCounts | None = None
    progress_percent: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Tasks done of the running jobs, as the driver reports them; 100 if it succeeded.",
    )
    failures: FailureCounts | None = None
    past_attempts: list[Attempt] | None = Field(
        default=None,
        max_length=MAX_ATTEMPTS_KEPT,
        description="The last attempts that ended, the latest last.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    last_log: str | None = Field(
        default=None, max_length=MAX_LOG, description="The last lines of the last driver that failed."
    )
    requests: Requests | None = None


class SparkApp(Model):
    """A Spark application: a driver pod that Boathouse builds, and the executors that it requests."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"]})
    api_version: str | None = None
    kind: str | None = None
    spec: SparkAppSpec
    status: SparkAppStatus | None = None
