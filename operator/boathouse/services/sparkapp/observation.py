"""What the planner may know of an application: all of it values, so that a decision can be repeated."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from boathouse.resources.sparkapp.status import ExecutorCounts
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.sparkapp.model import App, AppState
from boathouse.services.sparkapp.rest import Report
from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a driver's pod failed, as the kubelet and the control plane say it, with the last lines that it wrote.

    `is_infrastructure`: the cluster is to blame, not the application.
    """

    reason: str
    message: str = ""
    is_infrastructure: bool = False
    exit_code: int | None = None
    log: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppPod:
    """A driver or an executor, as policies know it.

    Attributes:
        placed_s: When it got its node, from which its start is timed.
        ended_s: When it ended; None if it has not, or if that is not known.
        reason: Why it failed; empty if it did not.
    """

    suspension: ClassVar[None] = None
    is_suspended: ClassVar[bool] = False
    name: str
    uid: str
    stage: model.Stage
    state: PodLife
    node: str | None = None
    resources: model.Resources = dataclasses.field(default_factory=model.Resources)
    placed_s: float | None = None
    ended_s: float | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverPod(AppPod):
    """The driver's pod of an attempt.

    Attributes:
        deleting_since_s: When it was asked to go; it may linger on a node that does not answer.
        executor_bytes: The memory that was chosen for its executors; 0: that of the spec.
    """

    stage: model.Stage = model.Stage.DRIVER
    attempt: int
    namespace: str = ""
    address: str = ""
    started_s: float | None = None
    ending: Ending | None = None
    problem: Problem | None = None
    deleting_since_s: float | None = None
    node_gone: bool = False
    executor_bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on, with the pods of all attempts that exist.

    Attributes:
        is_lost: Whether the current attempt's pod was seen, and is neither there nor about to be created.
        is_in_flight: Whether a driver that was decided may still be created.
        refusal: Why no attempt can be submitted: something that it needs is missing.
        has_service: Whether Spark's UI has its Service; None if that is not known.
    """

    app: App
    state: AppState
    now_s: float
    drivers: Sequence[DriverPod] = ()
    executors: ExecutorCounts = dataclasses.field(default_factory=ExecutorCounts)
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
        orphaned: Drivers that count as ended, whose executors must end.
        submit: The attempt whose objects must exist, and whose driver must be scheduled if it has no pod; None: none.
        reserve: Executors for which room is reserved while the driver starts.
    """

    state: AppState
    delete: Sequence[DriverPod] = ()
    orphaned: Sequence[DriverPod] = ()
    submit: int | None = None
    reserve: int = 0
    requeue_s: float | None = None
