"""The scheduling queue: jobs, their classes and tasks, and who is worth looking at in the next cycle.

Each class is active, or parked with what may wake it; single tasks back off after a failure.

Classes whose expected tasks hold room stand: every cycle looks at them, but they are no reason to run one.

    submit ──> active ──settle: left waiting──> parked ──wake: something came that may help──> active
      task: waiting ──settle: placed──> out ──back_off──> backing off ──tick: time is up──> waiting

| parked because of | woken by |
|---|---|
| Unschedulable, Sizing, NotOffered | room freed on a node that the size fits, a node added or changed |
| NeverFits | a node added or changed |
| QueueLimit | usage of that queue fell, queues changed |
| UnknownQueue, QueueNotAllowed | queues changed |
| JobOrder, Patience, Gang | either, and a job withdrawn, and the time of a Reservation or a Wait |

Whatever is parked longer than a minute is woken as a safety net. All times come in as arguments.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Protocol

from boathouse_policies import model
from boathouse_policies.framework.queue import queued_class as _classes
from boathouse_policies.framework.queue.sorted_classes import SortedClasses
from boathouse_policies.framework.queue.tasks import TaskPool
from boathouse_policies.framework.queue.unschedulable import UnschedulableClasses, Wake
from boathouse_policies.framework.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

    from boathouse_policies.framework.accounts import Freed
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.queue.queued_class import QueuedClass


class LeftPending(Protocol):
    """A class of which tasks are left pending."""

    @property
    def least(self) -> model.IntVector:
        """The smallest size that would have been placed, shape [R]."""
        ...

    @property
    def verdict(self) -> model.Verdict:
        """Why it is pending."""
        ...


class Outcome(Protocol):
    """What a cycle decided: a plan."""

    @property
    def decisions(self) -> Sequence[model.Decision]:
        """What the shell carries out."""
        ...

    @property
    def released(self) -> Sequence[model.NodeName]:
        """Nodes that are kept for nobody any more."""
        ...

    @property
    def news(self) -> Mapping[model.ClassId, LeftPending]:
        """Who had a turn, or is parked for the first time."""
        ...


class SchedulingQueue:
    """What waits. One writer: the shell; `run_cycle` only reads it.

    Args:
        axis: Shared with the ledger.
        queues: The queues that exist.
    """

    def __init__(self, axis: model.Axis, queues: Iterable[model.Queue] = ()) -> None:
        self._axis = axis
        self._queues: dict[model.QueueName, model.Queue] = {}
        self._jobs: dict[model.JobId, dict[model.ClassId, QueuedClass]] = {}
        self._classes: dict[model.ClassId, QueuedClass] = {}
        self._reserved = Reservations()
        self._shapes = Shapes()
        self._in_line: SortedClasses | None = None
        self._unschedulable = UnschedulableClasses(axis)
        self._backoffs = Backoffs()
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
        """Say all that waits of a job: replaces what was said before (level-triggered).

        Args:
            job: The job.
            classes: Its classes, in the order in which they are served.
            tasks: Its tasks that are not done.
            placed: Tasks that run or are assumed (the ledger): they do not wait, but may come back.

        Raises:
            ValueError: A task's class is not among the classes.
        """
        sorted_out: dict[model.ClassId, list[model.Task]] = {task_class.id: [] for task_class in classes}
        for task in tasks:
            if task.task_class not in sorted_out:
                raise ValueError(f"{task.id} is of class {task.task_class!r}, which was not submitted with {job.id}")
            sorted_out[task.task_class].append(task)
        before = self._jobs.get(job.id, {})
        for gone in before.keys() - sorted_out.keys():
            self._remove(gone)
        known = {c: self._classes.get(c) for c in sorted_out}
        self._jobs[job.id] = {
            task_class.id: self._renew(job, task_class, i, TaskPool(sorted_out[task_class.id], placed))
            for i, task_class in enumerate(classes)
        }
        for class_id, queued in self._jobs[job.id].items():
            if queued is not known[class_id]:
                self._activate(queued)

    def update(self, task: model.Task, *, placed: bool) -> bool:
        """Say one task anew, as `submit` would with all others unchanged; False where that takes `submit` itself.

        Args:
            task: A task that was submitted.
            placed: Whether it runs or is assumed.
        """
        queued = self._classes.get(task.task_class)
        changed = queued.pool.replace(task, waits=not placed and task.id not in self._backoffs) if queued else None
        if queued is None or changed is None:
            return False
        if changed:
            self._in_line = None
            self._unschedulable.look(queued.row, always_active=False)
            self._activate(queued)
        return True

    def withdraw(self, job: model.JobId) -> None:
        """Nothing of the job waits any more. What it held back may go."""
        for class_id in self._jobs.pop(job, {}):
            self._remove(class_id)
        self._wake(Wake.JOBS)

    def _renew(self, job: model.Job, task_class: model.TaskClass, order: int, pool: TaskPool) -> QueuedClass:
        self._axis.vector(task_class.resources)  # extended resources are known before the next snapshot
        known = self._classes.get(task_class.id)
        fresh = _classes.QueuedClass(job, task_class, pool, (job.submitted_s, job.id, order), shapes=self._shapes)
        for task in pool.order if self._backoffs else ():
            if task.id in self._backoffs:
                pool.remove(task.id)
        if known is not None and (known.job, known.task_class) == (job, task_class) and known.pool.same(pool):
            known.rank = fresh.rank
            self._in_line = None
            return known  # nothing new: what is parked stays so
        self._classes[task_class.id] = fresh
        self._in_line = None
        self._unschedulable.admit(fresh, known)
        self._unschedulable.look(fresh.row, always_active=False)
        return fresh

    def _remove(self, class_id: model.ClassId) -> None:
        queued = self._classes.pop(class_id)
        if self._in_line is not None and class_id in self._in_line.places:
            self._in_line = None
        self._unschedulable.remove(queued.row)
        self._let_go(class_id)
        for task in queued.pool.order:
            self._backoffs.remove(task.id)

    def _activate(self, queued: QueuedClass) -> None:
        gang = queued.task_class.gang_min
        for one in self.classes_of(queued.job.id) if gang else (queued,):
            if one is queued or one.task_class.gang_min:
                self._unschedulable.leave(one.row)
                self._unschedulable.look(one.row, active=len(one.pool) > 0)

    # Reading

    @property
    def queues(self) -> Mapping[model.QueueName, model.Queue]:
        """The queues by name."""
        return self._queues

    @property
    def reserved(self) -> Mapping[model.NodeName, model.ClassId]:
        """Which class a node is kept for: the profile's reservations, over cycles."""
        return self._reserved.by_name

    @property
    def reservations(self) -> Reservations:
        """The same for cycles, which ask by place."""
        return self._reserved

    @property
    def freed(self) -> Collection[model.NodeName]:
        """Nodes where room came free since the last cycle: where those can go that `SortedClasses.narrow` says."""
        return self._unschedulable.freed

    @property
    def looks_at_freed(self) -> bool:
        """Whether only `freed` matters to the next cycle, except for `SortedClasses.open`."""
        self._match_freed()
        return not self._reserved.by_name and self._unschedulable.none_stands()

    def sorted_classes(self) -> SortedClasses:
        """All classes of which something waits, in order, and which of them the next cycle looks at."""
        self._match_freed()
        if self._in_line is None:
            some = [one for one in self._classes.values() if len(one.pool) or one.task_class.gang_min]
            self._in_line = SortedClasses(some, self._queues)
        self._in_line.look(self._unschedulable)
        return self._in_line

    def active(self) -> list[QueuedClass]:
        """The classes that the next cycle looks at, in order of submission.

        With a class of a gang come the others of the gang, also those of which nothing waits: the gang's minimum is
        judged from all of them.
        """
        sorted_classes = self.sorted_classes()
        looked_at = [sorted_classes.queued[i] for i in sorted_classes.open.nonzero()[0].tolist()]
        return sorted([*looked_at, *sorted_classes.orphans], key=_classes.rank)

    def classes_of(self, job: model.JobId) -> Sequence[QueuedClass]:
        """All classes of a job, in its order."""
        return tuple(self._jobs.get(job, {}).values())

    def __len__(self) -> int:
        """Waiting tasks, without those that back off."""
        return sum(len(queued.pool) for queued in self._classes.values())

    def __contains__(self, task: model.TaskId) -> bool:
        return task in self._backoffs or any(task in queued.pool for queued in self._classes.values())

    def unschedulable(self) -> Mapping[model.ClassId, model.Verdict]:
        """Why each parked class is parked."""
        self._match_freed()
        return self._unschedulable.verdicts()

    def next_wake_s(self) -> float:
        """When `tick` has something to do; infinity if never."""
        return min(self._backoffs.next_s(), self._unschedulable.next_s())

    # After a cycle

    def apply(self, plan: Outcome, now_s: float, *, park: bool = True) -> None:
        """Take out what the plan placed and park what it left waiting.

        Args:
            plan: What the cycle decided.
            now_s: The shell's time.
            park: Whether to park. A shell that offers nodes one by one parks nobody: the next node may take them.
        """
        news = plan.news if park else {}  # worked out before anything is taken out
        released, waits = self._carried_out(plan)
        if not park:
            return
        for class_id, answer in waits.items():
            if isinstance(answer, model.Reservation) and answer.task is not None and class_id in self._classes:
                self._unschedulable.look(self._classes[class_id].row, active=False, always_active=True)
        for class_id, one in news.items():
            known = self._classes.get(class_id)
            if known is None or not len(known.pool):
                continue
            until_s = waits[class_id].until_s if class_id in waits else None
            self._unschedulable.enter(known, one.least, one.verdict, now_s, until_s)
        self._unschedulable.settled(now_s)
        if released:
            self._wake(Wake.NODES)  # a node is kept for nobody: whoever is ahead may want it kept, fitting or not

    def _carried_out(self, plan: Outcome) -> tuple[bool, Mapping[model.ClassId, model.Reservation | model.Wait]]:
        """Take out what was placed and remember what is kept.

        Returns:
            Whether a node is kept for nobody any more; and what each class waits for.
        """
        released, reserved = False, self._reserved.by_name
        waits: dict[model.ClassId, model.Reservation | model.Wait] = {}
        for decision in plan.decisions:
            if isinstance(decision, _PLACEMENTS):
                self._placed(decision)
                if reserved and reserved.get(decision.node) == decision.task_class.id:
                    self._reserved.released(decision.node)
                    released = True
            elif isinstance(decision, model.Reservation | model.Wait):
                waits[decision.task_class.id] = decision
                if isinstance(decision, model.Reservation) and decision.task is None:
                    self._reserve(decision.node, decision.task_class.id)
        for node in plan.released:
            if node in reserved:
                self._reserved.released(node)
                released = True
        return released, waits

    def _placed(self, decision: model.Placement) -> None:
        queued = self._classes.get(decision.task_class.id)
        if queued is not None:
            pool = queued.pool
            pool.remove(decision.task.id)
            if not pool.count:
                self._in_line = None
                self._unschedulable.leave(queued.row)
                self._unschedulable.look(queued.row, active=False)
                self._let_go(decision.task_class.id)

    def _reserve(self, node: model.NodeName, class_id: model.ClassId) -> None:
        queued = self._classes.get(class_id)
        if queued is not None and len(queued.pool):
            self._reserved.reserve(node, class_id)

    def _let_go(self, class_id: model.ClassId) -> None:
        """Nothing of the class waits: what was kept for it is free for all."""
        reserved = [node for node, one in self.reserved.items() if one == class_id]
        for node in reserved:
            self._reserved.released(node)
        if reserved:
            self._wake(Wake.NODES)

    def back_off(
        self, task: model.TaskId, task_class: model.ClassId, now_s: float, *, at_least_s: float = 0.0
    ) -> float:
        """A request for a placed task failed: it waits again after 1, 2, 4, 8, 10, 10 ... seconds.

        Args:
            task: The task.
            task_class: Its class.
            now_s: The shell's time.
            at_least_s: The least delay: what a server's Retry-After, or a quota, asks for.

        Returns:
            The delay in seconds; 0 if nothing of it waits any more.
        """
        queued = self._classes.get(task_class)
        if queued is None or not queued.pool.knows(task):
            return 0.0
        queued.pool.remove(task)
        return self._backoffs.failed(task, task_class, now_s, at_least_s)

    def put_back(self, task: model.TaskId, task_class: model.ClassId) -> None:
        """A placed task waits again at once: its node vanished, or its decision was never carried out."""
        queued = self._classes.get(task_class)
        if queued is not None and queued.pool.put_back(task):
            if self._in_line is not None and task_class not in self._in_line.places:
                self._in_line = None
            self._activate(queued)

    def succeeded(self, task: model.TaskId) -> None:
        """A request for a placed task went through: its next failure is its first again."""
        self._backoffs.succeeded(task)

    # What may help

    def capacity_freed(self, freed: Freed | None, free: Sequence[int] | None) -> None:
        """Room came free.

        Args:
            freed: As the ledger said it; None changes nothing.
            free: What is free on that node now, by row; None if the node is gone.
        """
        if freed is None:
            return
        unschedulable, reserved = self._unschedulable, self._reserved.by_name
        for queued in unschedulable.held_by_limit(freed.queue):
            self._activate(queued)
        if not reserved:
            if free is not None:
                unschedulable.room_on(freed.node, free)
            return
        owner = self._classes.get(reserved[freed.node]) if freed.node in reserved else None
        looked = owner is not None and unschedulable.looks(owner.row)
        if free is not None:
            unschedulable.room_on(freed.node, free)
        self._match_freed()
        if owner is None or (unschedulable.looks(owner.row) and not looked):
            # The node will be kept for nobody: whoever is ahead may want it, fitting or not.
            self._wake(Wake.NODES)

    def nodes_changed(self) -> None:
        """A node was added or changed."""
        self._wake(Wake.NODES)

    def set_queues(self, queues: Iterable[model.Queue]) -> None:
        """Replace the queues."""
        self._queues = {queue.name: queue for queue in queues}
        self._in_line = None
        for queue in self._queues.values():
            for name, _ in queue.limits:
                self._axis.row(name)
        self._wake(Wake.QUEUES)

    def tick(self, now_s: float) -> bool:
        """Let time do its work: backoffs and holds that end, the flush of the long parked.

        Returns:
            Whether anything waits for the next cycle.
        """
        if now_s >= self._unschedulable.next_s() or now_s >= self._backoffs.next_s():
            for task, class_id in self._backoffs.over(now_s):
                self.put_back(task, class_id)
            for queued in self._unschedulable.woken_by_time(now_s):
                self._activate(queued)
        self._match_freed()
        return self._unschedulable.looking()

    def _wake(self, what: Wake) -> None:
        for queued in self._unschedulable.woken_by(what):
            self._activate(queued)

    def _match_freed(self) -> None:
        if self._unschedulable.unmatched:
            for queued in self._unschedulable.match_freed():
                self._activate(queued)


class Reservations:
    """Which class each node is kept for.

    Attributes:
        by_name: The class by the node's name; not to be changed but by the methods.
    """

    def __init__(self) -> None:
        self.by_name: dict[model.NodeName, model.ClassId] = {}
        self._layout: Layout | None = None
        self._places: dict[int, model.ClassId] = {}

    def reserve(self, node: model.NodeName, task_class: model.ClassId) -> None:
        """Keep a node for a class."""
        self.by_name[node] = task_class
        if self._layout is not None and node in self._layout.index:
            self._places[self._layout.index[node]] = task_class

    def released(self, node: model.NodeName) -> None:
        """Keep a node that was kept for nobody any more."""
        del self.by_name[node]
        if self._layout is not None and node in self._layout.index:
            del self._places[self._layout.index[node]]

    def places(self, layout: Layout) -> dict[int, model.ClassId]:
        """The same by place, without nodes that are gone: a new dictionary, but cheap, for cycles are many."""
        if self._layout is not layout:
            index = layout.index
            self._layout, self._places = (
                layout,
                {index[name]: one for name, one in self.by_name.items() if name in index},
            )
        return self._places.copy()


class Backoffs:
    """A heap of who waits again when; the newest entry of a task is the one that counts."""

    def __init__(self) -> None:
        self._failures: dict[model.TaskId, int] = {}
        self._until: dict[model.TaskId, tuple[float, model.ClassId]] = {}
        self._due: list[tuple[float, model.TaskId]] = []

    def __contains__(self, task: object) -> bool:
        return task in self._until

    def __bool__(self) -> bool:
        return bool(self._until)

    def failed(self, task: model.TaskId, task_class: model.ClassId, now_s: float, at_least_s: float) -> float:
        """Back off for 1, 2, 4, 8, 10, 10 ... seconds, or longer if asked; returns the delay in seconds."""
        self._failures[task] = failures = self._failures.get(task, 0) + 1
        delay_s: float = max(at_least_s, min(FIRST_S * 2.0 ** (failures - 1), MOST_S))
        self._until[task] = (now_s + delay_s, task_class)
        heapq.heappush(self._due, (now_s + delay_s, task))
        return delay_s

    def succeeded(self, task: model.TaskId) -> None:
        """The next failure is the first again."""
        self._failures.pop(task, None)

    def remove(self, task: model.TaskId) -> None:
        """The task does not wait any more."""
        self._until.pop(task, None)
        self._failures.pop(task, None)

    def over(self, now_s: float) -> Iterator[tuple[model.TaskId, model.ClassId]]:
        """The tasks whose time is up."""
        while self._due and self._due[0][0] <= now_s:
            due_s, task = heapq.heappop(self._due)
            entry = self._until.get(task)
            if entry is not None and entry[0] == due_s:
                del self._until[task]
                yield task, entry[1]

    def next_s(self) -> float:
        """When `over` may have somebody; infinity if never."""
        return self._due[0][0] if self._due else math.inf


FIRST_S = 1.0
MOST_S = 10.0  # kube-scheduler's podInitialBackoff and podMaxBackoff
_PLACEMENTS = (model.Create, model.Bind)  # a tuple: to make a union anew for each decision is slow
