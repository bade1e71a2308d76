"""Jobs, their classes of equal tasks, the tasks, and the queues that jobs wait in."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Protocol, Self

from boathouse_policies.model import values
from boathouse_policies.model.node import UNCONSTRAINED, Constraints

_NO_NAMESPACE = values.NamespaceName("")


class Stage(enum.StrEnum):
    """The kind of work. A profile may score nodes differently for each."""

    SETUP = "setup"
    MAP = "map"
    REDUCE = "reduce"
    COMMIT = "commit"
    CLEANUP = "cleanup"
    UBER = "uber"
    PROBE = "probe"
    DRIVER = "driver"
    EXECUTOR = "executor"
    NODE = "node"  # a pod of a dynamic cluster, which runs tasks of its own
    OTHER = "other"


class Distance(enum.IntEnum):
    """How far a task's data is from a node: less is closer. ANYWHERE also stands for tasks without locations."""

    NODE = 0
    SERVER = 1
    RACK = 2
    ANYWHERE = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a user submitted."""

    id: values.JobId  # UID of the job's object
    queue: values.QueueName
    submitted_s: float  # when it was submitted; ties between jobs are broken by it, then by id
    name: str = ""  # `namespace/name`, for messages
    # Namespace of the job's object; empty where a workload has one tenant. A queue is shared by namespace.
    namespace: values.NamespaceName = _NO_NAMESPACE
    # PriorityClass value: within a namespace's share of a queue the higher goes first, before the profile's order.
    priority: int = 0
    priority_class: str = ""  # name of the PriorityClass; empty for none
    weight: float = 1.0  # share within the queue, relative to other jobs, where the profile's order knows weights
    # The program that it runs: jobs of one kind treat their input alike, and what was learnt of one is used for the
    # next. Empty for nothing in common with any other.
    kind: str = ""
    # The job whose features this one measures on a sample of its input; None for a job of its own.
    probe_of: values.JobId | None = None


class Estimates(Protocol):
    """Predictions for the tasks of one class; None where nothing is known."""

    def duration_s(self, resources: values.Resources) -> float | None:
        """Run time of one task with these resources."""

    def deviation_s(self) -> float | None:
        """Return the standard deviation of the run times from that; None also where it is exact."""

    def input_bytes(self) -> int | None:
        """Return bytes that one task reads."""

    def spilled_bytes(self, resources: values.Resources) -> int | None:
        """Return bytes that one task writes to disk and reads again for want of memory."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Estimates that do not depend on what a task is given; None for what is not known."""

    seconds: float | None = None
    read_bytes: int | None = None
    sigma_s: float | None = None

    def duration_s(self, resources: values.Resources) -> float | None:  # noqa: ARG002  the protocol's argument
        """Run time of one task."""
        return self.seconds

    def deviation_s(self) -> float | None:
        """Return the standard deviation of a run time."""
        return self.sigma_s

    def input_bytes(self) -> int | None:
        """Return bytes that one task reads."""
        return self.read_bytes

    def spilled_bytes(self, resources: values.Resources) -> int | None:  # noqa: ARG002  the protocol's argument
        """Return None: it is not known."""
        return None


UNKNOWN = Fixed()  # nothing is known: the neutral estimates


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskClass:
    """Tasks that are alike for scheduling: same job, step, stage, ideal resources and constraints."""

    id: values.ClassId  # unique over all jobs
    job: values.JobId
    resources: values.Resources  # the ideal size of one task; a Sizer may decide less
    stage: Stage = Stage.OTHER
    step: int = 0
    constraints: Constraints = UNCONSTRAINED
    # Tasks that must be placed together with the minimum of the job's other gang classes, all or nothing, running ones
    # counted; 0 for no gang.
    gang_min: int = 0
    # Whether its tasks are those that a gang lacks which has begun: they go before all others, one by one, at their
    # full size, and to nodes that are reserved too.
    is_short: bool = False
    # If it is short, the nodes where an earlier leader had reserved room, one for each task.
    former_places: tuple[values.NodeName, ...] = ()
    estimates: Estimates = UNKNOWN
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)  # labels of its pods, as far as they share them
    cpu_limit_milli: int = 0  # the most CPU that one task can use; 0 for not known


@values.value(frozen=True, slots=True, kw_only=True)
class Task:
    """One pod's worth of work that waits."""

    id: values.TaskId  # `namespace/pod-name`
    task_class: values.ClassId
    index: int = 0  # order within the class; ties are broken by it, then by id
    locations: tuple[values.NodeName, ...] = ()  # nodes that hold its input
    # The pod that exists already (pending ahead, or made by somebody else): it gets a Bind. None: it gets a Create.
    pod_uid: values.PodUid | None = None
    # No pod exists and none may be made yet (a driver will ask for it): it gets a Reservation, which keeps its room for
    # the length of the cycle.
    expected: bool = False
    labels: Mapping[str, str] | None = None  # labels of its pod; None for those of its class


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A named share of the cluster."""

    name: values.QueueName
    weight: float = 1.0  # its share relative to the other queues
    # (resource by Kubernetes' name, most that its jobs may hold together) in base units, sorted. Use `Queue.of` to pass
    # a mapping. A resource that is not named is not limited.
    limits: tuple[tuple[str, int], ...] = ()
    namespaces: frozenset[str] = frozenset()  # Namespaces whose jobs it accepts; empty for all
    # PriorityClasses that it accepts; empty for all. A job without one is always accepted.
    priority_classes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise a ValueError unless the weight is positive."""
        if not self.weight > 0:
            raise ValueError(f"queue {self.name!r}: the weight must be above 0, not {self.weight}")

    def accepts(self, namespace: str, priority_class: str = "") -> bool:
        """Return whether jobs of a namespace and of a PriorityClass (empty for none) may use the queue."""
        in_namespace = not self.namespaces or namespace in self.namespaces
        return in_namespace and (
            not self.priority_classes or not priority_class or priority_class in self.priority_classes
        )

    @classmethod
    def of(cls, name: values.QueueName, *, weight: float = 1.0, limits: Mapping[str, int] | None = None) -> Self:
        """Build from a mapping of limits, for example `{"cpu": 4000, "memory": 8 << 30, "pods": 10}`."""
        return cls(name=name, weight=weight, limits=tuple(sorted((limits or {}).items())))
