"""What happens, as observers learn it: a closed union. Times are the shell's seconds.

A decision is not a fact. A shell sends an event once it carried the decision out (`Placed`, `Resized`, `Suspended`,
`Resumed`), or `Refused` once it is clear that it will not.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias, TypedDict

from boathouse_policies.model.decisions import Decision
from boathouse_policies.model.node import Node
from boathouse_policies.model.values import ClassId, JobId, NodeName, Resources, TaskId, value
from boathouse_policies.model.work import Distance, Job, TaskClass


class About(TypedDict):
    """What every event of a task says."""

    now_s: float
    task: TaskId
    task_class: ClassId
    job: JobId
    node: NodeName


@value(frozen=True, slots=True, kw_only=True)
class _Event:
    now_s: float


@value(frozen=True, slots=True, kw_only=True)
class _OfTask(_Event):
    task: TaskId
    task_class: ClassId
    job: JobId
    node: NodeName


@value(frozen=True, slots=True, kw_only=True)
class Submitted(_Event):
    """A job came, or its classes changed."""

    job: Job
    classes: tuple[TaskClass, ...]  # all its classes, in order, those that cannot start yet included
    tasks: Mapping[ClassId, int]  # how many tasks of each class are not placed
    # How many tasks each class has, those that have ended included; empty if the shell does not say.
    totals: Mapping[ClassId, int] = dataclasses.field(default_factory=dict)


@value(frozen=True, slots=True, kw_only=True)
class Placed(_OfTask):
    """A task, or a second attempt of one, was given a node and a size; its pod is on the way."""

    resources: Resources
    distance: Distance
    second_of: TaskId | None = None


@value(frozen=True, slots=True, kw_only=True)
class Started(_OfTask):
    """A task's container runs."""


@value(frozen=True, slots=True, kw_only=True)
class Refused(_Event):
    """A decision was not carried out, and will not be: the books stay as they are."""

    # What was decided. A placement of which `Placed` was sent is never refused: its task fails.
    decision: Decision
    reason: str  # why: a word, as in conditions


@value(frozen=True, slots=True, kw_only=True)
class Resized(_OfTask):
    """A task that was placed holds other resources from now on."""

    resources: Resources


@value(frozen=True, slots=True, kw_only=True)
class Suspended(_OfTask):
    """A running task was stopped."""

    # What it keeps meanwhile. The rest comes free as soon as the node shows that.
    resources: Resources
    until_s: float | None  # when the shell resumes it by itself; None for not at all


@value(frozen=True, slots=True, kw_only=True)
class Resumed(_OfTask):
    """A suspended task was given its resources back. It goes on as soon as its node has the room."""

    resources: Resources


@value(frozen=True, slots=True, kw_only=True)
class Progress(_OfTask):
    """A running task reported: a hint, never proof."""

    fraction: float
    phase: str
    counters: Mapping[str, float]


@value(frozen=True, slots=True, kw_only=True)
class Finished(_OfTask):
    """A task succeeded."""

    duration_s: float
    counters: Mapping[str, float]


@value(frozen=True, slots=True, kw_only=True)
class Failed(_OfTask):
    """A task failed, or its pod was lost."""

    reason: str


@value(frozen=True, slots=True, kw_only=True)
class Ended(_Event):
    """A job is over: all its tasks succeeded, or it failed, was cancelled or deleted."""

    job: JobId
    succeeded: bool


@value(frozen=True, slots=True, kw_only=True)
class NodeChanged(_Event):
    """A node came, changed, or went (`node` is None)."""

    name: NodeName
    node: Node | None


@value(frozen=True, slots=True, kw_only=True)
class Measured(_Event):
    """What a node's own instruments show: `cpu_cores`, `disk_bytes_per_s`, `network_bytes_per_s`, if measured."""

    name: NodeName
    usage: Mapping[str, float]


@value(frozen=True, slots=True, kw_only=True)
class Tick(_Event):
    """Time passed."""


_EventOfTask: TypeAlias = Placed | Started | Resized | Suspended | Resumed | Progress | Finished | Failed
Event: TypeAlias = Submitted | _EventOfTask | Refused | Ended | NodeChanged | Measured | Tick
