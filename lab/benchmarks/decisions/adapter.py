"""Adapt the framework for recordings: pending tasks after a cycle, and a scheduler's core driven like the operator's.

A rewrite of the framework changes this module alone.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from boathouse_policies import framework, model, profiles
from boathouse_sim import base_world

from .journal import Pending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from boathouse_sim.results import Outcome

    Watch = Callable[[object, float, framework.Plan], None]
    """Is given what identifies the simulation, the time, and the plan before anything of it is carried out."""


def pending(plan: framework.Plan) -> list[Pending]:
    """Return what a cycle left pending. Ask before the plan is settled."""
    return [Pending(str(name), str(one.verdict.code), one.left) for name, one in plan.left.items()]


def diagnoses(plan: framework.Plan) -> Sequence[model.Diagnosis]:
    """Return why each class is pending, as users read it. Ask before the plan is settled."""
    return plan.diagnoses()


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Show every plan that `framework.run_cycle` makes until the block ends, whichever shell asks for it."""
    whole = framework.run_cycle

    def run_cycle(
        queue: framework.SchedulingQueue, profile: framework.Profile, view: framework.ClusterView
    ) -> framework.Plan:
        plan = whole(queue, profile, view)
        watch(queue, view.now_s, plan)
        return plan

    framework.run_cycle = run_cycle
    try:
        yield
    finally:
        framework.run_cycle = whole


@contextlib.contextmanager
def outcomes(take: Callable[[object, Outcome], None]) -> Iterator[None]:
    """Show every simulation's outcome until the block ends, with what identifies the simulation in `watched`."""
    whole = base_world.BaseWorld.finished

    def finished(world: base_world.AnyWorld) -> Outcome:
        outcome = whole(world)
        take(world.room, outcome)
        return outcome

    base_world.BaseWorld.finished = finished  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        base_world.BaseWorld.finished = whole  # type: ignore[method-assign]


def learnt(profile: framework.Profile) -> str:
    """Return what a profile's observers would save, as text."""
    return json.dumps([one.dump() for one in profile.observers], sort_keys=True, default=str)


class Core:
    """A ledger and a scheduling queue as the operator drives them.

    Args:
        profile: Name of a profile.
        placement: Name of a placement.
        nodes: The nodes at the beginning.
        queues: The queues at the beginning.
    """

    def __init__(
        self, profile: str, placement: str, nodes: Iterable[model.Node], queues: Sequence[model.Queue]
    ) -> None:
        self.profile = profiles.build(profile, placement=placement)
        self._axis = model.Axis()
        self._ledger = framework.Ledger(self._axis)
        self._room = framework.SchedulingQueue(self._axis, queues)
        for node in nodes:
            self._ledger.set_node(node)

    def saved(self) -> list[Any]:
        """Return what observers save, as it comes back from JSON."""
        return [json.loads(json.dumps(one.dump())) for one in self.profile.observers]

    def load(self, states: Sequence[Any]) -> None:
        """Let observers continue from what they saved."""
        for observer, state in zip(self.profile.observers, states, strict=True):
            observer.load(state)

    def tell(self, event: model.Event) -> None:
        """Tell whatever learns."""
        for observer in self.profile.observers:
            observer.observe(event)

    def periods_s(self) -> tuple[float, float]:
        """Return how often observers want reports of tasks and of nodes; infinity for never."""
        observers = self.profile.observers
        report_s = min((one.report_every_s for one in observers if one.report_every_s), default=float("inf"))
        measure_s = min((one.measure_every_s for one in observers if one.measure_every_s), default=float("inf"))
        return report_s, measure_s

    # Jobs

    def submit(self, job: model.Job, classes: Sequence[model.TaskClass], tasks: Sequence[model.Task]) -> None:
        """Say all that a job still has to do; what the ledger knows is not pending."""
        self._room.submit(job, classes, tasks, placed=self._ledger)

    def update(self, task: model.Task) -> bool:
        """Say one task anew; False where that takes a whole submission."""
        return self._room.update(task, placed=task.id in self._ledger)

    def withdraw(self, job: model.JobId) -> None:
        """Nothing of a job is pending any more."""
        self._room.withdraw(job)

    def set_queues(self, queues: Sequence[model.Queue]) -> None:
        """Replace the queues."""
        self._room.set_queues(queues)

    def put_back(self, task: model.TaskId, task_class: model.ClassId) -> None:
        """Make a placed task pending again at once."""
        self._room.put_back(task, task_class)

    def back_off(self, task: model.TaskId, task_class: model.ClassId, now_s: float, at_least_s: float) -> None:
        """Make a task whose write failed pending again after its backoff."""
        self._room.back_off(task, task_class, now_s, at_least_s=at_least_s)

    def written(self, task: model.TaskId) -> None:
        """Report that the write of a placed task succeeded."""
        self._room.succeeded(task)

    # Nodes

    def set_node(self, node: model.Node) -> None:
        """Add or change a node."""
        if self._ledger.set_node(node):
            self._room.nodes_changed()

    def remove_node(self, name: model.NodeName) -> Sequence[model.TaskId]:
        """Remove a node; return the tasks that were assumed there."""
        queues = sorted(self._ledger.queues_on(name))
        lost = self._ledger.remove_node(name)
        for queue in queues:  # what pods hold of a node that does not exist is not charged
            self._freed(framework.Freed(name, queue))
        self._room.nodes_changed()
        return lost

    # Pods

    def __contains__(self, task: model.TaskId) -> bool:
        """Return whether a task holds resources."""
        return task in self._ledger

    def assume(self, placement: model.Placement) -> None:
        """Count a placement before it is written."""
        self._ledger.assume(placement)

    def forget(self, task: model.TaskId) -> None:
        """Report that the write of a placement failed."""
        self._freed(self._ledger.forget(task))

    def observe(self, pod: framework.Account) -> None:
        """Take over what a watch shows of a pod."""
        self._freed(self._ledger.observe(pod))

    def gone(self, task: model.TaskId) -> None:
        """Report that a pod ended."""
        self._freed(self._ledger.gone(task))

    def resizing(self, task: model.TaskId, resources: model.Resources) -> None:
        """Report that a resize was requested."""
        self._ledger.assume_resize(task, resources)

    def not_resized(self, task: model.TaskId) -> None:
        """Report that the resize failed."""
        self._freed(self._ledger.forget_resize(task))

    def _freed(self, freed: framework.Freed | None) -> None:
        if freed is not None:
            self._room.capacity_freed(freed, self._ledger.free(freed.node))

    # Cycles

    def tick(self, now_s: float) -> bool:
        """Let time pass; return whether a cycle is worth it."""
        return self._room.tick(now_s)

    def next_wake_s(self) -> float:
        """Return when time alone may make a cycle worth it."""
        return self._room.next_wake_s()

    @property
    def waits(self) -> bool:
        """Whether any task is pending."""
        return len(self._room) > 0

    def cycle(
        self,
        now_s: float,
        *,
        offered: Sequence[model.NodeName] | None = None,
        max_per_node: int | None = None,
        park: bool = True,
    ) -> Sequence[model.Decision]:
        """Run a cycle and settle it; the decisions are for the caller to carry out."""
        view = self._ledger.snapshot(now_s, offered=offered, max_per_node=max_per_node)
        plan = framework.run_cycle(self._room, self.profile, view)
        self._room.apply(plan, now_s, park=park)
        return plan.decisions


def account(
    placement: model.Placement, uid: model.PodUid | None, resources: model.Resources | None = None
) -> framework.Account:
    """Return what a watch shows of a placed task's pod."""
    job, one = placement.job, placement.task_class
    return framework.Account(
        id=placement.task.id,
        node=placement.node,
        resources=resources or placement.resources,
        uid=uid,
        job=job.id,
        queue=job.queue,
        namespace=job.namespace,
        task_class=one.id,
        host_ports=one.constraints.host_ports,
    )


def stranger(name: str, node: model.NodeName, resources: model.Resources) -> framework.Account:
    """Return a pod of another scheduler."""
    return framework.Account(id=model.TaskId(f"kube-system/{name}"), node=node, resources=resources)
