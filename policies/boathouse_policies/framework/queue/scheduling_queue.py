"""The scheduling queue: pending tasks by class, and which classes the next cycle considers.

A class is active, or unschedulable until something wakes it. A task backs off after a failed request.

Classes of expected tasks that hold room are always active, and those of the gang for which room is kept: every cycle
considers them, but they are no reason to run a cycle.

    submit ──> active ──apply: tasks are left pending──> unschedulable ──something that may help──> active
      task: pending ──apply: placed──> out ──back_off──> backing off ──tick: the time is up──> pending

What wakes a class depends on why it is unschedulable (`unschedulable`). One that depends on where other pods are is
also woken when those come or go. As a safety net, a class is unschedulable for a minute at most. All times come in as
arguments.
"""

import collections
import heapq
import itertools
import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from boathouse_policies import model
from boathouse_policies.framework.ledger import Freed
from boathouse_policies.framework.queue.queued_class import LeastSizes, QueuedClass, TaskPool
from boathouse_policies.framework.queue.reservations import KeptPart, KeptRoom, Reservations
from boathouse_policies.framework.queue.sorted_classes import SortedClasses
from boathouse_policies.framework.queue.unschedulable import UnschedulableClasses, Wake
from boathouse_policies.framework.shapes import Shapes


class LeftPending(Protocol):
    """A class that a cycle left with pending tasks."""

    @property
    def least(self) -> model.IntVector:
        """The smallest size that would have been placed, shape [R]."""

    @property
    def verdict(self) -> model.Verdict:
        """Why it is pending."""


class CycleResult(Protocol):
    """What a cycle decided: a plan."""

    @property
    def decisions(self) -> Sequence[model.Decision]:
        """What the shell carries out."""

    @property
    def released(self) -> Sequence[model.NodeName]:
        """Nodes that are no longer reserved."""

    @property
    def newly_left(self) -> Mapping[model.ClassId, LeftPending]:
        """The classes that had a turn, or are unschedulable for the first time."""

    @property
    def kept(self) -> Sequence[KeptPart]:
        """The room that is kept for a gang until more comes free."""


class SchedulingQueue:
    """The pending tasks of all jobs. One writer: the shell; `run_cycle` only reads it. The ledger shares its axis."""

    def __init__(self, axis: model.Axis, queues: Iterable[model.Queue] = ()) -> None:
        self._axis = axis
        self._jobs: dict[model.JobId, dict[model.ClassId, QueuedClass]] = {}
        self._classes: dict[model.ClassId, QueuedClass] = {}
        self._shapes = Shapes()
        self._sorted: SortedClasses | None = None
        self._unschedulable, self._backoffs = UnschedulableClasses(axis), Backoffs()
        self.queues: Mapping[model.QueueName, model.Queue] = {}
        # Called with each class that leaves the queue, so that what is kept of it goes with it.
        self.on_removed: list[Callable[[model.ClassId], None]] = []
        # The class that each reserved node is for: the profile's reservations, over cycles.
        self.reserved = Reservations(self._classes, self._jobs)
        # The room that is kept for gangs until the next cycle.
        self.kept_room = KeptRoom(self.reserved, self.starts_whole)
        self._kept: Collection[model.ClassId] = ()
        self.set_queues(queues)

    # Jobs

    def submit(
        self,
        job: model.Job,
        classes: Sequence[model.TaskClass],
        tasks: Iterable[model.Task],
        *,
        placed: Container[model.TaskId] = (),
    ) -> None:
        """Replace all that is pending of a job (level-triggered); what is `placed` is not, but may come back."""
        tasks_of: dict[model.ClassId, list[model.Task]] = {task_class.id: [] for task_class in classes}
        for task in tasks:
            if task.task_class not in tasks_of:
                raise ValueError(f"{task.id} is of class {task.task_class!r}, which was not submitted with {job.id}")
            tasks_of[task.task_class].append(task)
        before, backing_off = self._jobs.get(job.id, {}), self._backoffs.until_s
        for class_id in before.keys() - tasks_of.keys():
            self._remove(class_id)
        self._jobs[job.id] = {}
        for order, task_class in enumerate(classes):
            own = tasks_of[task_class.id]
            pool = TaskPool(own, {task.id for task in own if task.id in placed or task.id in backing_off})
            rank = (job.submitted_s, job.id, order)
            self._jobs[job.id][task_class.id] = self._renew(QueuedClass(job, task_class, pool, rank, self._shapes))
        self._activate([queued for name, queued in self._jobs[job.id].items() if queued is not before.get(name)])

    def update(self, task: model.Task, *, placed: bool) -> bool:
        """Replace one task, as `submit` would with all others unchanged; returns False where that takes `submit`."""
        queued, pending = self._classes.get(task.task_class), not placed and task.id not in self._backoffs.until_s
        changed = queued.pool.replace(task, pending=pending) if queued is not None else None
        if queued is not None and changed:
            self._sorted = None
            self._unschedulable.always_active[queued.row] = False
            self._activate((queued,))
        return changed is not None

    def withdraw(self, job: model.JobId) -> None:
        """Remove a job. Jobs that it held back may be scheduled."""
        for class_id in self._jobs.pop(job, {}):
            self._remove(class_id)
        self._wake(Wake.JOBS)

    def _renew(self, queued: QueuedClass) -> QueuedClass:
        """Return the class as it was before, if nothing has changed: then it stays unschedulable if it was."""
        self._axis.vector(queued.task_class.resources)  # extended resources are known before the next snapshot
        self._sorted = None
        if (known := self._classes.get(queued.task_class.id)) is not None:
            if (known.job, known.task_class) == (queued.job, queued.task_class) and known.pool.same(queued.pool):
                known.rank = queued.rank
                return known
            self._unschedulable.remove(known)
        self._classes[queued.task_class.id] = queued
        self._unschedulable.add(queued)
        return queued

    def _remove(self, class_id: model.ClassId) -> None:
        queued = self._classes.pop(class_id)
        if self._sorted is not None and class_id in self._sorted.places:
            self._sorted = None
        self._unschedulable.remove(queued)
        self._release(class_id)
        self._backoffs.remove(queued.pool.order)
        for removed in self.on_removed:
            removed(class_id)

    def _activate(self, classes: Iterable[QueuedClass]) -> None:
        """Let the next cycle consider classes, and with one of a gang all of the gang."""
        for queued in classes:
            self._unschedulable.activate(queued)
            for member in self.classes_of(queued.job.id) if queued.task_class.gang_min else ():
                if member.task_class.gang_min:
                    self._unschedulable.activate(member)

    # Reading

    @property
    def freed(self) -> Collection[model.NodeName]:
        """Nodes where room came free since the last cycle: the only ones for classes in `SortedClasses.matched`."""
        return self._unschedulable.freed

    def sorted_classes(self) -> SortedClasses:
        """Return all classes that have pending tasks, in order, and which of them the next cycle considers."""
        self._match_freed()
        if self._sorted is None:
            pending = [queued for queued in self._classes.values() if queued.pool.count or queued.task_class.gang_min]
            self._sorted = SortedClasses(pending, self.queues)
        self._sorted.consider(self._unschedulable)
        return self._sorted

    def least(self, sizer: LeastSizes) -> Sequence[float]:
        """Return the least that any pending class needs, by row: another list once other classes are pending."""
        return (self._sorted or self.sorted_classes()).shapes(sizer, self._axis)[0].least_listed

    def get(self, class_id: model.ClassId) -> QueuedClass | None:
        """Return a class; None for one that is not in the queue."""
        return self._classes.get(class_id)

    def classes_of(self, job: model.JobId) -> Sequence[QueuedClass]:
        """Return all classes of a job, in its order."""
        return tuple(self._jobs.get(job, {}).values())

    def starts_whole(self, task_class: model.ClassId) -> bool:
        """Return whether a class is of a gang."""
        return (queued := self._classes.get(task_class)) is not None and queued.task_class.gang_min > 0

    def __len__(self) -> int:
        """Return the number of pending tasks, without those that back off."""
        return sum(queued.pool.count for queued in self._classes.values())

    def unschedulable(self) -> Mapping[model.ClassId, model.Verdict]:
        """Return why each unschedulable class is unschedulable."""
        self._match_freed()
        return self._unschedulable.verdicts()

    def next_wake_s(self) -> float:
        """Return when `tick` has something to do; infinity if never."""
        return min(self._backoffs.next_s(), self._unschedulable.earliest_s)

    def frozen(self) -> "SchedulingQueue":
        """Return a queue with the same pending tasks, all of them active, and without reservations."""
        found = SchedulingQueue(self._axis, self.queues.values())
        for members in map(tuple, (classes.values() for classes in self._jobs.values())):
            if members:
                tasks = itertools.chain.from_iterable(queued.pool.pending() for queued in members)
                found.submit(members[0].job, [queued.task_class for queued in members], tasks)
        return found

    # After a cycle

    def apply(self, plan: CycleResult, now_s: float, *, park: bool = True) -> None:
        """Remove the tasks that the plan placed, and make the classes unschedulable that it left pending.

        A shell that offers nodes one by one does not park classes: the next node may take their tasks.
        """
        left = plan.newly_left if park else {}  # worked out before anything is taken out
        self.kept_room.parts, released = plan.kept, False
        for decision in plan.decisions:
            if isinstance(decision, _PLACEMENTS):
                self._placed(decision)
                if self.reserved.get(decision.node) == decision.task_class.id:
                    del self.reserved[decision.node]
                    released = True
            elif isinstance(decision, model.Reservation):
                self._reserve(decision, now_s)
        for node in plan.released:
            if node in self.reserved:
                del self.reserved[node]
                released = True
        if park:
            waits = [decision for decision in plan.decisions if isinstance(decision, _WAITS)]
            self._keep_active({part.task_class for part in plan.kept})
            self._park(left, {wait.task_class.id: wait for wait in waits}, now_s)
            if released:
                self._wake(Wake.NODES)  # whoever is ahead may want a reservation of the node, fitting or not

    def _placed(self, decision: model.Placement) -> None:
        if (queued := self._classes.get(decision.task_class.id)) is not None:
            queued.pool.set_pending(decision.task.id, pending=False)
            if not queued.pool.count:
                self._sorted = None
                self._unschedulable.activate(queued)
                self._release(decision.task_class.id)

    def _reserve(self, reservation: model.Reservation, now_s: float) -> None:
        queued = self._classes.get(reservation.task_class.id)
        if reservation.task is None and queued is not None and queued.pool.count:
            self.reserved.reserve(reservation.node, reservation.task_class.id, now_s)

    def _release(self, class_id: model.ClassId) -> None:
        nodes = [node for node, owner in self.reserved.items() if owner == class_id]
        for node in nodes:
            del self.reserved[node]
        if nodes:
            self._wake(Wake.NODES)

    def _keep_active(self, kept: Collection[model.ClassId]) -> None:
        for class_id in {*self._kept, *kept}:
            if class_id in self._classes:
                self._unschedulable.always_active[self._classes[class_id].row] = class_id in kept
        self._kept = kept

    def _park(
        self,
        left: Mapping[model.ClassId, LeftPending],
        waits: Mapping[model.ClassId, model.Reservation | model.Wait],
        now_s: float,
    ) -> None:
        for class_id, wait in waits.items():
            if isinstance(wait, model.Reservation) and wait.task is not None and class_id in self._classes:
                row = self._classes[class_id].row
                self._unschedulable.active[row] = False
                self._unschedulable.always_active[row] = True
        for class_id, pending in left.items():
            if (queued := self._classes.get(class_id)) is not None and queued.pool.count:
                until_s = waits[class_id].until_s if class_id in waits else None
                self._unschedulable.enter(queued, pending.least, pending.verdict, now_s, until_s)
        self._unschedulable.cycle_ended(now_s)

    def back_off(
        self, task: model.TaskId, task_class: model.ClassId, now_s: float, *, at_least_s: float = 0.0
    ) -> float:
        """Make a task whose request failed pending again after 1, 2, 4, 8, 10, 10 ... seconds; return the delay.

        It is longer where a server's Retry-After, or a quota, requires that, and 0 for a task that is not submitted.
        """
        if (queued := self._classes.get(task_class)) is None or not queued.pool.knows(task):
            return 0.0
        queued.pool.set_pending(task, pending=False)
        return self._backoffs.failed(task, task_class, now_s, at_least_s)

    def put_back(self, task: model.TaskId, task_class: model.ClassId) -> None:
        """Make a placed task pending again at once: its node vanished, or its decision was never carried out."""
        queued = self._classes.get(task_class)
        if queued is not None and queued.pool.set_pending(task, pending=True):
            if self._sorted is not None and task_class not in self._sorted.places:
                self._sorted = None
            self._activate((queued,))

    def succeeded(self, task: model.TaskId) -> None:
        """Reset the backoff of a task whose request succeeded."""
        self._backoffs.succeeded(task)

    # What may help

    def capacity_freed(self, freed: Freed | None, free: Sequence[int] | None) -> None:
        """Wake the classes that freed room may help, where so much is free by row; None if the node is gone."""
        if freed is None:
            return
        self._activate(self._unschedulable.woken_by_usage(freed.queue))
        if free is not None:
            self._unschedulable.unmatched[freed.node] = free
        if self.reserved:
            owner = self._classes.get(self.reserved[freed.node]) if freed.node in self.reserved else None
            was_considered = owner is not None and self._unschedulable.considers(owner)
            self._match_freed()
            if owner is None or (self._unschedulable.considers(owner) and not was_considered):
                self._wake(Wake.NODES)  # the reservation ends: whoever is ahead may want the node, fitting or not

    def wake(self, classes: Iterable[model.ClassId]) -> None:
        """Wake classes that waited for pods to come or go (`Tallies.take_woken`)."""
        known = [self._classes[class_id] for class_id in classes if class_id in self._classes]
        self._activate(filter(self._unschedulable.is_unschedulable, known))

    def nodes_changed(self) -> None:
        """Wake the classes that an added or changed node may help."""
        self._wake(Wake.NODES)

    def set_queues(self, queues: Iterable[model.Queue]) -> None:
        """Replace the queues."""
        self.queues = {queue.name: queue for queue in queues}
        self._sorted = None
        for name in itertools.chain.from_iterable(dict(queue.limits) for queue in self.queues.values()):
            self._axis.row(name)
        self._wake(Wake.QUEUES)

    def tick(self, now_s: float) -> bool:
        """Wake classes and tasks whose time is up; return whether there is a reason to run a cycle."""
        for task, class_id in self._backoffs.over(now_s):
            self.put_back(task, class_id)
        self._activate(self._unschedulable.woken_by_time(now_s))
        self._match_freed()
        return self._unschedulable.any_active()

    def _wake(self, what: Wake) -> None:
        self._activate(self._unschedulable.woken_by(what))

    def _match_freed(self) -> None:
        if self._unschedulable.unmatched:
            self._activate(self._unschedulable.match_freed())


class Backoffs:
    """Tasks whose request failed, and until when: the newest entry of a task counts."""

    def __init__(self) -> None:
        self._failures: collections.Counter[model.TaskId] = collections.Counter()
        self.until_s: dict[model.TaskId, float] = {}
        self._heap: list[tuple[float, model.TaskId, model.ClassId]] = []

    def failed(self, task: model.TaskId, task_class: model.ClassId, now_s: float, at_least_s: float) -> float:
        """Back off for the next delay, or longer if required; returns the delay in seconds."""
        delay_s = max(at_least_s, DELAYS_S[min(self._failures[task], len(DELAYS_S) - 1)])
        self._failures[task] += 1
        self.until_s[task] = now_s + delay_s
        heapq.heappush(self._heap, (now_s + delay_s, task, task_class))
        return delay_s

    def succeeded(self, task: model.TaskId) -> None:
        """Count the next failure of a task as its first."""
        self._failures.pop(task, None)

    def remove(self, tasks: Iterable[model.Task]) -> None:
        """Forget tasks that do not exist any more."""
        for task in tasks if self.until_s or self._failures else ():
            self.succeeded(task.id)
            self.until_s.pop(task.id, None)

    def over(self, now_s: float) -> Iterator[tuple[model.TaskId, model.ClassId]]:
        """Yield the tasks whose time is up."""
        while self._heap and self._heap[0][0] <= now_s:
            due_s, task, task_class = heapq.heappop(self._heap)
            if self.until_s.get(task) == due_s:
                del self.until_s[task]
                yield task, task_class

    def next_s(self) -> float:
        """Return when `over` may yield a task; infinity if never."""
        return self._heap[0][0] if self._heap else math.inf


DELAYS_S = (1.0, 2.0, 4.0, 8.0, 10.0)  # kube-scheduler's podInitialBackoff and podMaxBackoff
_PLACEMENTS, _WAITS = (model.Create, model.Bind), (model.Reservation, model.Wait)  # tuples: unions are slow
