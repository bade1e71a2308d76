"""A class in the scheduling queue, and what a sizer says of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from boathouse_policies import model
from boathouse_policies.framework.affinity.judges import Rules, rules_of
from boathouse_policies.framework.affinity.tallies import Resident, Tallies
from boathouse_policies.framework.queue.tasks import Closeness, Pick, Picker, TaskPool
from boathouse_policies.framework.shapes import Shape, Shapes, Sized

if TYPE_CHECKING:
    from boathouse_policies.framework.layout import Layout


class LeastSizes(Protocol):
    """Says how small tasks may be made: a sizer."""

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the smallest size that may be decided."""
        ...


@dataclasses.dataclass(slots=True, eq=False)
class QueuedClass:
    """A class in the scheduling queue: read by the cycle, changed by the queue alone.

    Attributes:
        job: Its job.
        task_class: The class.
        pool: Its tasks.
        rank: Sorting key: order of submission of the job, then of the class within it.
        shapes: The shapes of all classes of its scheduling queue.
        row: Its row in the columns of the scheduling queue.
        verdict: Why it is, or was, unschedulable.
        least: The smallest size that was refused then.
    """

    job: model.Job
    task_class: model.TaskClass
    pool: TaskPool
    rank: tuple[float, model.JobId, int]
    shapes: Shapes = dataclasses.field(default_factory=Shapes)
    row: int = -1
    verdict: model.Verdict | None = None
    least: model.IntVector | None = None
    _sizing: Sizing | None = None
    _rules: Rules | None = None
    _closeness: Closeness | None = None

    def placement(
        self,
        pick: Pick,
        node: model.NodeName,
        resources: model.Resources,
        figures: tuple[tuple[str, float], ...] = (),
    ) -> model.Placement:
        """Return the decision to start a task of it."""
        kind = model.Create if pick.task.pod_uid is None else model.Bind
        return kind(
            task=pick.task,
            task_class=self.task_class,
            job=self.job,
            node=node,
            resources=resources,
            distance=pick.distance,
            figures=figures,
        )

    @property
    def is_plain(self) -> bool:
        """Whether room alone decides which of the nodes that it may use fit: no gang, host ports or features."""
        own, constraints = self.task_class, self.task_class.constraints
        return not (own.gang_min or own.is_short or constraints.host_ports or constraints.features)

    def rules(self, tallies: Tallies) -> Rules:
        """Return what decides where it may go beside other pods: a memo."""
        namespace = self.job.namespace
        known = self._rules
        if known is None or known.version != tallies.version(namespace):
            own = self.task_class
            pod = Resident(namespace=namespace, labels=own.labels, anti_affinity=own.constraints.pod_anti_affinity)
            known = self._rules = rules_of(pod, own.constraints, tallies)
        return known

    def picker(self, layout: Layout, *, sees_hosts: bool) -> Picker:
        """Return what takes its tasks in one cycle."""
        return Picker(self.pool, layout.topology if sees_hosts else layout.hostless)

    def closeness(self, layout: Layout, *, sees_hosts: bool) -> Closeness:
        """Return how close the nodes are to pending input: a memo, as long as it is right."""
        known = self._closeness
        if known is None or not known.is_of(self.pool, layout):
            known = self._closeness = Closeness(self.pool, layout, by_host=sees_hosts)
        return known

    def sizing(self, sizer: LeastSizes, axis: model.Axis) -> Sizing:
        """Return the class' size and the least that a sizer may decide: a memo, for every cycle needs it."""
        known = self._sizing
        if known is None or known.sizer is not sizer or len(known.shape.sizes) != axis.width:
            ideal = self.task_class.resources
            least = ideal if self.task_class.is_short else sizer.least(self.task_class)
            shape = self.shapes.of(axis.vector(least), self.task_class.constraints)
            known = self._sizing = Sizing(sizer, shape, Sized(ideal), least is ideal)
        return known


@dataclasses.dataclass(frozen=True, slots=True)
class Sizing:
    """What a sizer says of a class whatever the node."""

    sizer: LeastSizes
    shape: Shape
    ideal: Sized
    is_rigid: bool
