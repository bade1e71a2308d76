"""Drive the scheduler's core like the operator does: the only place in the benchmarks that names the core's parts.

Benchmarks that compare two checkouts run this file against the packages of both. Where the core's interface changes,
this file supports the old one and the new one.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from boathouse_policies import framework, model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

QUEUE = model.QueueName("default")


class Core:
    """A cluster of nodes, one queue, and a profile.

    Args:
        nodes: The nodes of the cluster.
        profile: The policies. What it learns from (its observers) is told of every event.
    """

    def __init__(self, nodes: Iterable[model.Node], profile: framework.Profile) -> None:
        self.profile = profile
        axis = model.Axis()
        self._ledger = framework.Ledger(axis)
        for node in nodes:
            self._ledger.set_node(node)
        self._room = framework.SchedulingQueue(axis, [model.Queue.of(QUEUE)])

    def __len__(self) -> int:
        """Return the number of pending tasks."""
        return len(self._room)

    def submit(
        self, job: model.Job, classes: Sequence[model.TaskClass], tasks: Sequence[model.Task], now_s: float = 0.0
    ) -> None:
        """Submit a job."""
        if self.profile.observers:
            counts = collections.Counter(task.task_class for task in tasks)
            self.tell(model.Submitted(now_s=now_s, job=job, classes=tuple(classes), tasks=counts))
        self._room.submit(job, classes, tasks)

    def tick(self, now_s: float) -> bool:
        """Return whether a cycle could place anything."""
        return self._room.tick(now_s)

    def plan(self, now_s: float) -> framework.Plan:
        """Run a cycle, and carry out nothing of it."""
        return framework.run_cycle(self._room, self.profile, self._ledger.snapshot(now_s))

    def cycle(self, now_s: float) -> list[model.Placement]:
        """Run a cycle, and carry out what it decides; return the placements."""
        plan = self.plan(now_s)
        placements = [one for one in plan.decisions if isinstance(one, model.Create | model.Bind)]
        for one in placements:
            self._ledger.assume(one)
            if self.profile.observers:
                self._tell_placed(one, now_s)
        self._room.apply(plan, now_s)
        return placements

    def end(self, task: model.TaskId) -> None:
        """Free what a task held."""
        freed = self._ledger.gone(task)
        if freed is not None:
            self._room.capacity_freed(freed, self._ledger.free(freed.node))

    def tell(self, event: model.Event) -> None:
        """Tell whatever learns."""
        for observer in self.profile.observers:
            observer.observe(event)

    def _tell_placed(self, one: model.Placement, now_s: float) -> None:
        task, task_class, job, node = one.task.id, one.task_class.id, one.job.id, one.node
        self.tell(
            model.Placed(
                now_s=now_s,
                task=task,
                task_class=task_class,
                job=job,
                node=node,
                resources=one.resources,
                distance=one.distance,
            )
        )
        self.tell(model.Started(now_s=now_s, task=task, task_class=task_class, job=job, node=node))
