"""The status of a SparkApp, the resource as a whole, and its CustomResourceDefinition."""

import dataclasses
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import ATOMIC, Model, optional
from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.sparkapp import names
from boathouse.resources.sparkapp.spec import SparkAppSpec
from boathouse.resources.statuses import ABSENT, Conditions, Count, Part, Status, Text, Time, about

Phase = Literal["Pending", "Suspended", "Starting", "Running", "Restarting", "Succeeded", "Failed"]
Cause = Literal["Application", "Infrastructure", "Suspended"]
MAX_ATTEMPTS_KEPT, MAX_LOG = 5, 2048


class DriverStatus(Model):
    """The driver of the current attempt."""

    pod_name: str = Field(max_length=63, description="Name of its pod.")
    node: str | None = optional("Node of its pod.", max_length=253)
    service_name: str | None = optional("Name of the Service by which executors reach it.", max_length=63)
    ui_address: str | None = optional("Reachable in the cluster.", max_length=512)


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(Part):
    """An attempt that ended."""

    number: Annotated[int, about("Number of the attempt, from 1.")]
    application_id: Annotated[str, about("Its application ID of Spark.", max_length=63)]
    node: Annotated[str | None, about("Node of its driver.", max_length=253)] = None
    start_s: Annotated[Time, about("When its driver began to run.")] = None
    end_s: Annotated[Time, about("When it ended.")] = None
    cause: Annotated[Cause | None, about("Absent: it succeeded.")] = None
    reason: Annotated[str, about("A token for programs.", max_length=64)] = ""
    message: Annotated[str, about("What happened.", max_length=1200)] = ""
    exit_code: Annotated[int | None, about("Of the driver, if it ended.")] = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FailureCounts(Part):
    """Failed attempts since the last reset, by who is to blame, and when the next attempt may start."""

    application: Annotated[Count, about("Failures of the application itself.")] = 0
    infrastructure: Annotated[Count, about("Lost nodes, evictions, rejections and start timeouts.")] = 0
    retry_s: Annotated[Time, about("When the next attempt may start.")] = None


class RoleRequests(Model):
    """What a pod of this role requests."""

    cpu: str = Field(max_length=32, description="CPU request.")
    memory: str = Field(max_length=32, description="Memory request.")


class Requests(Model):
    """Requests by role, as Spark computes them from the properties."""

    driver: RoleRequests | None = None
    executor: RoleRequests | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SparkAppStatus(Status):
    """What the operator observed."""

    phase: Annotated[Phase, about("Where the application is; details are in the conditions.")] = "Pending"
    conditions: Annotated[Conditions, about("What holds, such as Admitted, Succeeded and Failed.")] = ()
    queue: Annotated[Text, about("The queue the application is in.", max_length=63)] = ""
    reason: Annotated[Text, about("Why it is pending or failed.", max_length=64)] = ""
    start_s: Annotated[Time, about("When its first attempt began. Absent while it is suspended.")] = None
    completion_s: Annotated[Time, about("When it succeeded or failed.")] = None
    attempt: Annotated[Count, ABSENT, about("The number of the current attempt, from 1.")] = 0
    application_id: Annotated[Text, about("Of the current attempt.", max_length=63)] = ""
    attempt_start_s: Annotated[Time, about("When the driver of the attempt began to run.")] = None
    driver: DriverStatus | None = None
    executors: ExecutorCounts | None = None
    stages: StageCounts | None = None
    tasks: TaskCounts | None = None
    progress_percent: Annotated[
        int | None,
        about("Tasks done of the running jobs, as the driver reports them; 100 if it succeeded.", ge=0, le=100),
    ] = None
    failures: FailureCounts = FailureCounts()
    past_attempts: Annotated[
        tuple[Attempt, ...],
        ABSENT,
        about("The last attempts that ended, the latest last.", max_length=MAX_ATTEMPTS_KEPT, json_schema_extra=ATOMIC),
    ] = ()
    last_log: Annotated[Text, about("The last lines of the last driver that failed.", max_length=MAX_LOG)] = ""
    requests: Requests | None = None


class SparkApp(Model):
    """A Spark application: a driver pod that Boathouse builds, and the executors that it requests."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"]})
    api_version: str | None = None
    kind: str | None = None
    spec: SparkAppSpec
    status: SparkAppStatus | None = None


SPARKAPP = CustomResource(
    kind=names.SPARKAPP_KIND,
    plural=names.SPARKAPP_PLURAL,
    short_names=("sapp",),
    model=SparkApp,
    columns=(
        PrinterColumn("Phase", ".status.phase", "Where the application is."),
        PrinterColumn("Queue", ".status.queue", "The queue the application is in."),
        PrinterColumn("Attempt", ".status.attempt", "The current attempt, from 1.", type="integer"),
        PrinterColumn("Executors", ".status.executors.running", "Executors that run.", type="integer"),
        PrinterColumn("%", ".status.progressPercent", "Tasks done of the running jobs.", type="integer"),
        PrinterColumn("UI", ".status.driver.uiAddress", "The address of Spark's UI.", priority=1),
        PrinterColumn("Reason", ".status.reason", "Why the application is pending or failed.", priority=1),
        AGE,
    ),
)
