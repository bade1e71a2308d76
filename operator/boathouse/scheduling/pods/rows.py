"""The values of the pod table: rows, operations, and what a transition changed."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, TypeAlias

from boathouse.scheduling.pods.states import ON_NODE, UNDECIDED, PodState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse.scheduling.pods.facts import PodFacts
    from boathouse.scheduling.pods.states import PendingReport
    from boathouse.scheduling.volumes import book
    from boathouse.suspension.stages import Suspension
    from boathouse_policies import framework, model


PodKey: TypeAlias = tuple[str, str]
"""The namespace and the UID of a pod."""


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """A decided write of a pod. It is void as soon as its row does not refer to it.

    Attributes:
        placement: The decision; None to create the pod without a node.
        awaits: What was written for its volumes, while it awaits them.
        until_s: When it stops awaiting its volumes, by the scheduler's clock.
    """

    row: PodRow
    task: model.Task
    task_class: model.TaskClass
    placement: model.Placement | None
    decided_s: float = dataclasses.field(default_factory=time.perf_counter)
    awaits: book.Revisions | None = None
    until_s: float = 0.0
    has_begun: bool = False

    @property
    def is_current(self) -> bool:
        """Whether it is still what was decided last for its pod."""
        return self.row.operation is self

    @property
    def resources(self) -> model.Resources:
        """Return the size that was decided."""
        return self.task_class.resources if self.placement is None else self.placement.resources

    @property
    def node(self) -> model.NodeName | None:
        """Return the node that was decided."""
        return None if self.placement is None else self.placement.node


@dataclasses.dataclass(slots=True, eq=False)
class PodRow:
    """A pod, or a task that is to get one. The table is its only writer, but for the report.

    Attributes:
        id: `namespace/name`.
        state: Its state; None before it enters the table and after it left.
        task: What is to be scheduled; None for a pod that is not considered.
        is_submitted: Whether the owner of the job submitted the task. Its name is used once.
        has_ended: Whether a pod of the submitted task ended: the task is not scheduled again.
        is_excess: Whether it is not considered, for its namespace has too many shapes.
        failures: Refused operations in a row.
        promise: What is promised of volumes to the operation.
        mounted: The node where it mounts claims, and these.
        nominated: The node that a scheduler nominated it for, while it is pending.
        reserved: Where room is reserved for it: it is expected, or its job starts whole and is short of room.
        successor: The task that gets its name when it is gone, with its job: the pod is somebody else's.
        report: What its conditions and events say, while it is pending; its only writer is `pod_conditions`.
    """

    id: model.TaskId
    namespace: str
    state: PodState | None = None
    since_s: float = 0.0
    uid: model.PodUid | None = None
    facts: PodFacts | None = None
    task: model.Task | None = None
    job: model.JobId | None = None
    is_submitted: bool = False
    has_ended: bool = False
    is_excess: bool = False
    arrived_s: float = 0.0
    failures: int = 0
    operation: Operation | None = None
    promise: book.Promise | None = None
    mounted: tuple[model.NodeName, tuple[str, ...]] | None = None
    nominated: model.NodeName | None = None
    reserved: model.Create | None = None
    reserved_s: float = 0.0
    suspension: Suspension | None = None
    parent: PodKey | None = None
    successor: tuple[model.JobId, model.Task] | None = None
    report: PendingReport | None = None

    @property
    def key(self) -> PodKey | None:
        """Return its namespace and UID, once that is known."""
        return None if self.uid is None else (self.namespace, self.uid)

    @property
    def name(self) -> str:
        """Return its name."""
        return self.id.partition("/")[2]

    @property
    def is_undecided(self) -> bool:
        """Whether it has no node, and none was decided."""
        return self.state in UNDECIDED or (self.operation is not None and self.operation.placement is None)

    @property
    def is_on_node(self) -> bool:
        """Whether a watch shows it on its node."""
        return self.state in ON_NODE

    @property
    def may_be_placed(self) -> bool:
        """Whether the API server would accept a node for it."""
        return self.facts is None or self.facts.is_bindable

    @property
    def pending_uid(self) -> model.PodUid | None:
        """Return its UID if it exists without a node: it needs a bind."""
        return self.uid if self.facts is not None and not self.facts.node_name else None


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A transition.

    Attributes:
        has_unmounted: Whether it mounted claims, and does not any more.
        affects: The job whose task has lost its name to the pod, or has got it.
    """

    row: PodRow
    before: PodState | None
    job: model.JobId | None
    freed: Sequence[framework.Freed]
    has_unmounted: bool
    operation: Operation | None
    affects: model.JobId | None = None
