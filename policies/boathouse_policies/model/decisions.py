"""What a cycle decides: a closed union of frozen values, which shells `match`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from boathouse_policies.model.values import value
from boathouse_policies.model.work import Distance

if TYPE_CHECKING:
    from boathouse_policies.model.ids import JobId, NodeName, TaskId
    from boathouse_policies.model.resources import Resources
    from boathouse_policies.model.verdicts import Verdict
    from boathouse_policies.model.work import Job, Task, TaskClass


@value(frozen=True, slots=True, kw_only=True)
class Create:
    """Make the task's pod with these resources, on this node."""

    task: Task
    task_class: TaskClass
    job: Job
    node: NodeName
    resources: Resources
    distance: Distance = Distance.ANYWHERE


@value(frozen=True, slots=True, kw_only=True)
class Bind:
    """Bind the pod that exists (`task.pod_uid`), after a resize where `resources` are not the class' own."""

    task: Task
    task_class: TaskClass
    job: Job
    node: NodeName
    resources: Resources
    distance: Distance = Distance.ANYWHERE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Wait: for an expected task (with the node that is kept for it), or for a better node (until a time).

    Attributes:
        task_class: The class that waits.
        job: Its job.
        verdict: Why.
        node: The node that is kept for it.
        task: The expected task that the room is kept for.
        resources: How much is kept.
        until_s: When to look again without an event; None for at the next event.
    """

    task_class: TaskClass
    job: Job
    verdict: Verdict
    node: NodeName | None = None
    task: Task | None = None
    resources: Resources | None = None
    until_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Resize a running task's pod."""

    task: Task
    node: NodeName
    resources: Resources
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """Stop a running task and take its CPU, down to these resources."""

    task: Task
    node: NodeName
    resources: Resources
    until_s: float | None
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Give a suspended task its resources back and continue it."""

    task: Task
    node: NodeName
    resources: Resources
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Change the number of workers of a dynamic cluster.

    Attributes:
        job: The cluster.
        workers: All that it keeps from now on.
        reason: Why.
        stores: Whether workers that are new hold data (core nodes), rather than being transient.
    """

    job: JobId
    workers: int
    reason: str
    stores: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Speculate:
    """Start a second attempt of a running task: the first to end wins, and the other is ended.

    Attributes:
        task: The running task.
        attempt: Name of the second attempt.
        node: Where it runs.
        resources: What it gets.
        reason: Why the first is thought to be slow.
    """

    task: Task
    attempt: TaskId
    node: NodeName
    resources: Resources
    reason: str


Placement: TypeAlias = Create | Bind
Decision: TypeAlias = Create | Bind | Resize | Suspend | Resume | Hold | Scale | Speculate
