"""What the planner may know of an application: all of it values, so that a decision can be repeated."""

import dataclasses
from collections.abc import Sequence

from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.sparkapp.model import App, AppState
from boathouse.services.sparkapp.rest import Report
from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a driver's pod failed, as the kubelet and the control plane say it.

    Attributes:
        is_infrastructure: Whether the cluster is to blame, not the application.
        log: The last lines that the driver wrote.
    """

    reason: str
    message: str = ""
    is_infrastructure: bool = False
    exit_code: int | None = None
    log: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverPod:
    """The driver's pod of an attempt.

    Attributes:
        address: Its IP address, as the kubelet says it; empty for none.
        placed_s: When it got its node, from which its start is timed.
        started_s: When its container began to run; None: it did not.
        ended_s: When its container ended.
        problem: Why its container does not start.
        deleting_since_s: When it was asked to go; it may linger on a node that does not answer.
        node_gone: Whether its node's object does not exist any more.
        resources: What it takes of its node.
        executor_bytes: The memory that was chosen for its executors; 0: that of the spec.
    """

    attempt: int
    name: str
    uid: str
    state: PodLife
    namespace: str = ""
    node: str | None = None
    address: str = ""
    placed_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    ending: Ending | None = None
    problem: Problem | None = None
    deleting_since_s: float | None = None
    node_gone: bool = False
    resources: model.Resources = dataclasses.field(default_factory=model.Resources)
    executor_bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """The executors of the current attempt.

    Attributes:
        pending: Without a node, or starting.
        failed: Ended otherwise than by the driver's wish.
    """

    pending: int = 0
    running: int = 0
    failed: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on.

    Attributes:
        drivers: The pods of all attempts that exist.
        is_lost: Whether the current attempt's pod was seen, and is neither there nor about to be created.
        is_in_flight: Whether a driver that was decided may still be created.
        obstacle: Why the objects of the attempt could not be created.
        diagnosis: Why the driver is pending.
        report: data that the current driver reports.
        refusal: Why no attempt can be submitted: something that it needs is missing.
        has_service: Whether Spark's UI has its Service; None if that is not known.
    """

    app: App
    state: AppState
    now_s: float
    drivers: Sequence[DriverPod] = ()
    executors: Executors = dataclasses.field(default_factory=Executors)
    is_lost: bool = False
    is_in_flight: bool = False
    obstacle: Problem | None = None
    diagnosis: Problem | None = None
    report: Report = dataclasses.field(default_factory=Report)
    refusal: Refusal | None = None
    has_service: bool | None = None

    def driver(self, attempt: int) -> DriverPod | None:
        """Return the pod of an attempt."""
        return next((pod for pod in self.drivers if pod.attempt == attempt), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do, in this order: write the state, delete pods, have the driver of an attempt scheduled.

    Attributes:
        delete: Pods of drivers that must end.
        orphaned: Drivers that count as ended, whose executors must end.
        submit: The attempt whose objects must exist, and whose driver must be scheduled if it has no pod; None: none.
        reserve: Executors for which room is reserved while the driver starts.
        requeue_s: When to reconcile again, if nothing happens before.
    """

    state: AppState
    delete: Sequence[DriverPod] = ()
    orphaned: Sequence[DriverPod] = ()
    submit: int | None = None
    reserve: int = 0
    requeue_s: float | None = None
