"""Why something waits. "No" is a value with a reason; exceptions are bugs or I/O."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boathouse_policies.model.ids import ClassId, JobId


class Code(enum.StrEnum):
    """Reasons, as conditions show them. Only UNSCHEDULABLE says that more nodes would help."""

    UNSCHEDULABLE = "Unschedulable"
    """No node has room or may be used now."""
    NEVER_FITS = "NeverFits"
    """No node, even an empty one, could hold it: out of the line, so that it blocks nobody."""
    QUEUE_LIMIT = "QueueLimit"
    UNKNOWN_QUEUE = "UnknownQueue"
    QUEUE_NOT_ALLOWED = "QueueNotAllowed"
    """The queue does not accept the job's namespace or PriorityClass."""
    JOB_ORDER = "JobOrder"
    """A job ahead keeps the nodes that would fit."""
    PATIENCE = "Patience"
    """It waits for a better node, for a bounded time."""
    GANG = "Gang"
    """The minimum that must start together does not fit, or is not there yet."""
    SIZING = "Sizing"
    """The sizer refused every node that would fit."""
    NOT_OFFERED = "NotOffered"
    """It would fit on a node that this cycle did not offer, or that took its share of this cycle."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A refusal: the reason and, where the reason alone does not say it, a sentence."""

    code: Code
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Nodes that failed for one reason, in the words of kube-scheduler: `Insufficient memory`."""

    reason: str
    nodes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds what is scarce. `job` is None for pods that belong to no job of ours."""

    job: JobId | None
    amount: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why the tasks of a class wait.

    Attributes:
        task_class: The class.
        job: Its job.
        count: Its tasks left waiting.
        code: The reason.
        message: One line: `0/5 nodes are available: 3 Insufficient memory, 2 node(s) were unschedulable.`
        refusals: Nodes by reason, most first; a node counts for each resource that it lacks.
        scarce: The resource that most nodes lack, by Kubernetes' name; None where it is not a matter of resources.
        asked: How much of `scarce` one task asks for, in base units.
        largest: The most of `scarce` that a node has when it is empty.
        holders: The largest holders of `scarce`, largest first, at most three.
    """

    task_class: ClassId
    job: JobId
    count: int
    code: Code
    message: str
    refusals: tuple[Refusal, ...] = ()
    scarce: str | None = None
    asked: int = 0
    largest: int = 0
    holders: tuple[Holder, ...] = ()
