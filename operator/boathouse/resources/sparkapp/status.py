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

    pod_name: str = Field(max_length=63, description="Name of its pod.")
    node: str | None = Field(default=None, max_length=253, description="Node of its pod.")
    service_name: str | None = Field(
        default=None, max_length=63, description="Name of the Service by which executors reach it."
    )
    ui_address: str | None = Field(default=None, max_length=512, description="Reachable in the cluster.")


class ExecutorCounts(Model):
    """The executors of the current attempt."""

    minimum: int = Field(default=0, description="How many have room reserved before the driver starts.")
    pending: int = Field(default=0, description="Executors whose pods do not run yet.")
    running: int = Field(default=0, description="Executors whose pods run.")
    failed: int = Field(default=0, description="Ended otherwise than by the driver's wish, over the attempt.")


class StageCounts(Model):
    """Stages of the running jobs, as the driver reports them."""

    active: int = Field(default=0, description="Stages that run.")
    completed: int = Field(default=0, description="Stages that succeeded.")
    failed: int = Field(default=0, description="Stages that failed.")


class TaskCounts(Model):
    """Tasks of the running jobs, as the driver reports them."""

    total: int = Field(default=0, description="All tasks.")
    active: int = Field(default=0, description="Tasks that run.")
    completed: int = Field(default=0, description="Tasks that succeeded.")
    failed: int = Field(default=0, description="Failed attempts of tasks.")


class Attempt(Model):
    """An attempt that ended."""

    number: int = Field(description="Number of the attempt, from 1.")
    application_id: str = Field(max_length=63, description="Its application ID of Spark.")
    node: str | None = Field(default=None, max_length=253, description="Node of its driver.")
    start_time: Time | None = Field(default=None, description="When its driver began to run.")
    end_time: Time | None = Field(default=None, description="When it ended.")
    cause: Cause | None = Field(default=None, description="Absent: it succeeded.")
    reason: str = Field(default="", max_length=64, description="A token for programs.")
    message: str = Field(default="", max_length=1200, description="What happened.")
    exit_code: int | None = Field(default=None, description="Of the driver, if it ended.")


class FailureCounts(Model):
    """Failed attempts since the last reset, by who is to blame, and when the next attempt may start."""

    application: int = Field(default=0, description="Failures of the application itself.")
    infrastructure: int = Field(default=0, description="Lost nodes, evictions, rejections and start timeouts.")
    retry_time: Time | None = Field(default=None, description="When the next attempt may start.")


class RoleRequests(Model):
    """What a pod of this role requests."""

    cpu: str = Field(max_length=32, description="CPU request.")
    memory: str = Field(max_length=32, description="Memory request.")


class Requests(Model):
    """Requests by role, as Spark computes them from the properties."""

    driver: RoleRequests | None = None
    executor: RoleRequests | None = None


class SparkAppStatus(Model):
    """What the operator observed."""

    observed_generation: int | None = Field(
        default=None, description="Value of metadata.generation that the status is about."
    )
    phase: Phase | None = Field(default=None, description="Where the application is; details are in the conditions.")
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        description="What holds, such as Admitted, Succeeded and Failed.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    queue: str | None = Field(default=None, max_length=63, description="The queue the application is in.")
    reason: str | None = Field(default=None, max_length=64, description="Why it is pending or failed.")
    start_time: Time | None = Field(
        default=None, description="When its first attempt began. Absent while it is suspended."
    )
    completion_time: Time | None = Field(default=None, description="When it succeeded or failed.")
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
