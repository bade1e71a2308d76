"""What a cycle decides: a closed union of frozen values, which shells `match`. And why it leaves tasks pending."""

import enum
from typing import TypeAlias

from boathouse_policies.model.values import ClassId, JobId, NodeName, Resources, TaskId, value
from boathouse_policies.model.work import Distance, Job, Task, TaskClass


class Code(enum.StrEnum):
    """Reasons, as the conditions of objects show them. UNSCHEDULABLE says that more nodes would help, as they are."""

    UNSCHEDULABLE = "Unschedulable"  # no node has room or may be used now
    NEVER_FITS = "NeverFits"  # no node, even an empty one, could hold it: out of the line, so that it blocks nobody
    QUEUE_LIMIT = "QueueLimit"
    UNKNOWN_QUEUE = "UnknownQueue"
    QUEUE_NOT_ALLOWED = "QueueNotAllowed"  # the queue does not accept the job's namespace or PriorityClass
    JOB_ORDER = "JobOrder"  # a job ahead keeps the nodes that would fit
    PATIENCE = "Patience"  # it waits for a better node, for a bounded time
    GANG = "Gang"  # the minimum that must start together does not fit, or is not there yet
    SIZING = "Sizing"  # the sizer refused every node that would fit
    NOT_OFFERED = "NotOffered"
    """It would fit on a node that this cycle did not offer, or that took its share of this cycle."""


@value(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A refusal: the reason and, where the reason alone does not say it, a sentence."""

    code: Code
    message: str = ""


@value(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Nodes that failed for one reason, in the words of kube-scheduler: `Insufficient memory`."""

    reason: str
    nodes: int


@value(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why the tasks of a class wait."""

    task_class: ClassId
    job: JobId
    count: int
    code: Code
    message: str  # one line: `0/5 nodes are available: 3 Insufficient memory, 2 node(s) were unschedulable.`
    refusals: tuple[Refusal, ...] = ()  # nodes by reason, most first; a node counts for each resource that it lacks
    # The resource that most nodes lack, by Kubernetes' name; None where it is not a matter of resources.
    scarce: str | None = None
    asked: int = 0  # how much of `scarce` one task asks for, in base units
    least: int = 0  # the least of it with which a task may start
    largest: int = 0  # the most of `scarce` that a node has when it is empty
    figures: tuple[tuple[str, float], ...] = ()  # what the policies computed of it, by name


@value(frozen=True, slots=True, kw_only=True)
class _Start:
    """What is decided of a task that starts, with the figures that policies computed to decide this, by name."""

    task: Task
    task_class: TaskClass
    job: Job
    node: NodeName
    resources: Resources
    distance: Distance = Distance.ANYWHERE
    figures: tuple[tuple[str, float], ...] = ()


@value(frozen=True, slots=True, kw_only=True)
class Create(_Start):
    """Make the task's pod with these resources, on this node."""


@value(frozen=True, slots=True, kw_only=True)
class Bind(_Start):
    """Bind the pod that exists (`task.pod_uid`), after a resize where `resources` are not the class' own."""


@value(frozen=True, slots=True, kw_only=True)
class _Pending:
    """What is decided of a class that stays pending, until an event or a time."""

    task_class: TaskClass
    job: Job
    verdict: Verdict
    until_s: float | None = None


@value(frozen=True, slots=True, kw_only=True)
class Wait(_Pending):
    """A class waits for a better node: no node is reserved for it."""


@value(frozen=True, slots=True, kw_only=True)
class Reservation(_Pending):
    """Reserve a node for a class, or so much room on it for an expected task."""

    node: NodeName
    task: Task | None = None
    resources: Resources | None = None


@value(frozen=True, slots=True, kw_only=True)
class _OfRunning:
    """What is decided of a running task; the node of a second attempt is where that one runs."""

    task: Task
    node: NodeName
    resources: Resources
    reason: str


@value(frozen=True, slots=True, kw_only=True)
class Resize(_OfRunning):
    """Resize a running task's pod."""


@value(frozen=True, slots=True, kw_only=True)
class Suspend(_OfRunning):
    """Stop a running task and take its CPU, down to these resources."""

    until_s: float | None


@value(frozen=True, slots=True, kw_only=True)
class Resume(_OfRunning):
    """Give a suspended task its resources back and continue it."""


@value(frozen=True, slots=True, kw_only=True)
class Scale:
    """Change the number of workers of a dynamic cluster."""

    job: JobId
    workers: int  # all that it keeps from now on
    reason: str
    stores: bool = False  # whether workers that are new hold data (core nodes), rather than being transient


@value(frozen=True, slots=True, kw_only=True)
class Speculate(_OfRunning):
    """Start a second attempt of a running task that is slow, on other nodes than it avoids: the first to end wins."""

    attempt: TaskId
    avoids: tuple[NodeName, ...] = ()


Placement: TypeAlias = Create | Bind
Decision: TypeAlias = Create | Bind | Resize | Suspend | Resume | Reservation | Wait | Scale | Speculate
