"""The values of the pod table: rows, operations, and what a transition changed."""

import dataclasses
import time
from collections.abc import Sequence
from typing import TypeAlias

from boathouse.scheduling.pods.facts import PodFacts
from boathouse.scheduling.pods.states import ON_NODE, UNDECIDED, PendingReport, PodState
from boathouse.scheduling.volumes import book
from boathouse.suspension.stages import Suspension
from boathouse_policies import framework, model

PodKey: TypeAlias = tuple[str, str]  # the namespace and the UID of a pod


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """A decided write of a pod. It is void as soon as its row does not refer to it."""

    row: "PodRow"
    task: model.Task
    task_class: model.TaskClass
    placement: model.Placement | None  # the decision; None to create the pod without a node
    decided_s: float = dataclasses.field(default_factory=time.perf_counter)
    awaits: book.Revisions | None = None  # what was written for its volumes, while it awaits them
    until_s: float = 0.0  # when it stops awaiting its volumes, by the scheduler's clock
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
    """A pod, or a task that is to get one. The table is its only writer, but for the report."""

    id: model.TaskId  # `namespace/name`
    namespace: str
    state: PodState | None = None  # its state; None before it enters the table and after it left
    since_s: float = 0.0
    uid: model.PodUid | None = None
    facts: PodFacts | None = None
    task: model.Task | None = None  # what is to be scheduled; None for a pod that is not considered
    job: model.JobId | None = None
    is_submitted: bool = False  # whether the owner of the job submitted the task. Its name is used once
    has_ended: bool = False  # whether a pod of the submitted task ended: the task is not scheduled again
    is_excess: bool = False  # whether it is not considered, for its namespace has too many shapes
    arrived_s: float = 0.0
    failures: int = 0  # refused operations in a row
    operation: Operation | None = None
    promise: book.Promise | None = None  # what is promised of volumes to the operation
    mounted: tuple[model.NodeName, tuple[str, ...]] | None = None  # the node where it mounts claims, and these
    nominated: model.NodeName | None = None  # the node that a scheduler nominated it for, while it is pending
    reserved: model.Create | None = None  # where room is reserved: it is expected, or its gang is short of room
    reserved_s: float = 0.0
    suspension: Suspension | None = None
    parent: PodKey | None = None
    # the task that gets its name when it is gone, with its job: the pod is somebody else's
    successor: tuple[model.JobId, model.Task] | None = None
    report: PendingReport | None = None  # its conditions and events, while it is pending, by `pod_conditions`

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
    """A transition."""

    row: PodRow
    before: PodState | None
    job: model.JobId | None
    freed: Sequence[framework.Freed]
    has_unmounted: bool  # whether it mounted claims, and does not any more
    operation: Operation | None
    affects: model.JobId | None = None  # the job whose task has lost its name to the pod, or has got it
