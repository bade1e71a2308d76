"""The waiting room: jobs, their classes and tasks, and who is worth looking at in the next cycle.

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
| JobOrder, Patience, Gang | either, and a job withdrawn, and the time of a Hold |

Whatever is parked longer than a minute is woken as a safety net. All times come in as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from boathouse_policies import model
from boathouse_policies.framework import classes as _classes
from boathouse_policies.framework.backoff import Backoffs
from boathouse_policies.framework.kept import Kept
from boathouse_policies.framework.lineup import Lineup
from boathouse_policies.framework.parking import Parking, Wake
from boathouse_policies.framework.pool import TaskPool
from boathouse_policies.framework.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence

    from boathouse_policies.framework.accounts import Freed
    from boathouse_policies.framework.classes import Waiting


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

    decisions: Sequence[model.Decision]
    released: Sequence[model.NodeName]

    @property
    def news(self) -> Mapping[model.ClassId, LeftPending]:
        """Who had a turn, or is parked for the first time."""
        ...


class WaitingRoom:
    """What waits. One writer: the shell; `run_cycle` only reads it.

    Args:
        axis: Shared with the ledger.
        queues: The queues that exist.
    """

    def __init__(self, axis: model.Axis, queues: Iterable[model.Queue] = ()) -> None:
        self._axis = axis
        self._queues: dict[model.QueueName, model.Queue] = {}
        self._jobs: dict[model.JobId, dict[model.ClassId, Waiting]] = {}
        self._classes: dict[model.ClassId, Waiting] = {}
        self._kept = Kept()
        self._shapes = Shapes()
        self._in_line: Lineup | None = None
        self._parking = Parking(axis)
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
        for class_id, waiting in self._jobs[job.id].items():
            if waiting is not known[class_id]:
                self._activate(waiting)

    def update(self, task: model.Task, *, placed: bool) -> bool:
        """Say one task anew, as `submit` would with all others unchanged; False where that takes `submit` itself.

        Args:
            task: A task that was submitted.
            placed: Whether it runs or is assumed.
        """
        waiting = self._classes.get(task.task_class)
        changed = waiting.pool.replace(task, waits=not placed and task.id not in self._backoffs) if waiting else None
        if waiting is None or changed is None:
            return False
        if changed:
            self._in_line = None
            self._parking.look(waiting.row, standing=False)
            self._activate(waiting)
        return True

    def withdraw(self, job: model.JobId) -> None:
        """Nothing of the job waits any more. What it held back may go."""
        for class_id in self._jobs.pop(job, {}):
            self._remove(class_id)
        self._wake(Wake.JOBS)

    def _renew(self, job: model.Job, task_class: model.TaskClass, order: int, pool: TaskPool) -> Waiting:
        self._axis.vector(task_class.resources)  # extended resources are known before the next snapshot
        known = self._classes.get(task_class.id)
        fresh = _classes.Waiting(job, task_class, pool, (job.submitted_s, job.id, order), shapes=self._shapes)
        for task in pool.order if self._backoffs else ():
            if task.id in self._backoffs:
                pool.remove(task.id)
        if known is not None and (known.job, known.task_class) == (job, task_class):
            fresh.hold = known.hold
            if known.pool.same(pool):
                known.rank = fresh.rank
                self._in_line = None
                return known  # nothing new: what is parked stays so
        self._classes[task_class.id] = fresh
        self._in_line = None
        self._parking.admit(fresh, known)
        self._parking.look(fresh.row, standing=False)
        return fresh

    def _remove(self, class_id: model.ClassId) -> None:
        waiting = self._classes.pop(class_id)
        if self._in_line is not None and class_id in self._in_line.places:
            self._in_line = None
        self._parking.remove(waiting.row)
        self._let_go(class_id)
        for task in waiting.pool.order:
            self._backoffs.remove(task.id)

    def _activate(self, waiting: Waiting) -> None:
        gang = waiting.task_class.gang_min
        for one in self.classes_of(waiting.job.id) if gang else (waiting,):
            if one is waiting or one.task_class.gang_min:
                self._parking.leave(one.row)
                self._parking.look(one.row, active=len(one.pool) > 0)

    # Reading

    @property
    def queues(self) -> Mapping[model.QueueName, model.Queue]:
        """The queues by name."""
        return self._queues

    @property
    def kept(self) -> Mapping[model.NodeName, model.ClassId]:
        """Which class a node is kept for: the profile's reservations, over cycles."""
        return self._kept.by_name

    @property
    def keeping(self) -> Kept:
        """The same for cycles, which ask by place."""
        return self._kept

    @property
    def freed(self) -> Collection[model.NodeName]:
        """Nodes where room came free since the last cycle: where those can go that `Lineup.narrow` says."""
        return self._parking.freed

    @property
    def looks_at_freed(self) -> bool:
        """Whether only `freed` matters to the next cycle, but for those who look at all nodes (`Lineup.open`)."""
        self._stir()
        return not self._kept.by_name and self._parking.none_stands()

    def lineup(self) -> Lineup:
        """All classes of which something waits, in order, and which of them the next cycle looks at."""
        self._stir()
        if self._in_line is None:
            some = [one for one in self._classes.values() if len(one.pool) or one.task_class.gang_min]
            self._in_line = Lineup(some, self._queues)
        self._in_line.look(self._parking)
        return self._in_line

    def active(self) -> list[Waiting]:
        """The classes that the next cycle looks at, in order of submission.

        With a class of a gang come the others of the gang, also those of which nothing waits: the gang's minimum is
        judged from all of them.
        """
        lineup = self.lineup()
        looked_at = [lineup.waiting[i] for i in lineup.open.nonzero()[0].tolist()]
        return sorted([*looked_at, *lineup.orphans], key=_classes.rank)

    def classes_of(self, job: model.JobId) -> Sequence[Waiting]:
        """All classes of a job, in its order."""
        return tuple(self._jobs.get(job, {}).values())

    def __len__(self) -> int:
        """Waiting tasks, without those that back off."""
        return sum(len(waiting.pool) for waiting in self._classes.values())

    def __contains__(self, task: model.TaskId) -> bool:
        return task in self._backoffs or any(task in waiting.pool for waiting in self._classes.values())

    def parked(self) -> Mapping[model.ClassId, model.Verdict]:
        """Why each parked class is parked."""
        self._stir()
        return self._parking.verdicts()

    def next_wake_s(self) -> float:
        """When `tick` has something to do; infinity if never."""
        return min(self._backoffs.next_s(), self._parking.next_s())

    # After a cycle

    def settle(self, plan: Outcome, now_s: float, *, park: bool = True) -> None:
        """Take out what the plan placed and park what it left waiting.

        Args:
            plan: What the cycle decided.
            now_s: The shell's time.
            park: Whether to park. A shell that offers nodes one by one parks nobody: the next node may take them.
        """
        news = plan.news if park else {}  # worked out before anything is taken out
        released, holds = self._carried_out(plan)
        if not park:
            return
        for class_id, hold in holds.items():
            if hold.task is not None and (waiting := self._classes.get(class_id)) is not None:
                self._parking.look(waiting.row, active=False, standing=True)
        for class_id, one in news.items():
            known = self._classes.get(class_id)
            if known is None or not len(known.pool):
                continue
            known.hold = holds.get(class_id)
            until_s = known.hold.until_s if known.hold is not None else None
            self._parking.enter(known, one.least, one.verdict, now_s, until_s)
        self._parking.settled(now_s)
        if released:
            self._wake(Wake.NODES)  # a node is kept for nobody: whoever is ahead may want it kept, fitting or not

    def _carried_out(self, plan: Outcome) -> tuple[bool, Mapping[model.ClassId, model.Hold]]:
        """Take out what was placed and remember what is kept.

        Returns:
            Whether a node is kept for nobody any more; and who waits for what.
        """
        released, kept, holds = False, self._kept.by_name, {}
        for decision in plan.decisions:
            if isinstance(decision, _PLACEMENTS):
                self._placed(decision)
                if kept and kept.get(decision.node) == decision.task_class.id:
                    self._kept.let_go(decision.node)
                    released = True
            elif isinstance(decision, model.Hold):
                holds[decision.task_class.id] = decision
                if decision.node is not None and decision.task is None:
                    self._keep(decision.node, decision.task_class.id)
        for node in plan.released:
            if node in kept:
                self._kept.let_go(node)
                released = True
        return released, holds

    def _placed(self, decision: model.Placement) -> None:
        waiting = self._classes.get(decision.task_class.id)
        if waiting is not None:
            waiting.hold, pool = None, waiting.pool
            pool.remove(decision.task.id)
            if not pool.count:
                self._in_line = None
                self._parking.leave(waiting.row)
                self._parking.look(waiting.row, active=False)
                self._let_go(decision.task_class.id)

    def _keep(self, node: model.NodeName, class_id: model.ClassId) -> None:
        waiting = self._classes.get(class_id)
        if waiting is not None and len(waiting.pool):
            self._kept.keep(node, class_id)

    def _let_go(self, class_id: model.ClassId) -> None:
        """Nothing of the class waits: what was kept for it is free for all."""
        kept = [node for node, one in self.kept.items() if one == class_id]
        for node in kept:
            self._kept.let_go(node)
        if kept:
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
        waiting = self._classes.get(task_class)
        if waiting is None or not waiting.pool.knows(task):
            return 0.0
        waiting.pool.remove(task)
        return self._backoffs.failed(task, task_class, now_s, at_least_s)

    def put_back(self, task: model.TaskId, task_class: model.ClassId) -> None:
        """A placed task waits again at once: its node vanished, or its decision was never carried out."""
        waiting = self._classes.get(task_class)
        if waiting is not None and waiting.pool.put_back(task):
            if self._in_line is not None and task_class not in self._in_line.places:
                self._in_line = None
            self._activate(waiting)

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
        parking, kept = self._parking, self._kept.by_name
        for waiting in parking.held_by_limit(freed.queue):
            self._activate(waiting)
        if not kept:
            if free is not None:
                parking.room_on(freed.node, free)
            return
        owner = self._classes.get(kept[freed.node]) if freed.node in kept else None
        looked = owner is not None and parking.looks(owner.row)
        if free is not None:
            parking.room_on(freed.node, free)
        self._stir()
        if owner is None or (parking.looks(owner.row) and not looked):
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
        if now_s >= self._parking.next_s() or now_s >= self._backoffs.next_s():
            for task, class_id in self._backoffs.over(now_s):
                self.put_back(task, class_id)
            for waiting in self._parking.woken_by_time(now_s):
                self._activate(waiting)
        self._stir()
        return self._parking.looking()

    def _wake(self, what: Wake) -> None:
        for waiting in self._parking.woken_by(what):
            self._activate(waiting)

    def _stir(self) -> None:
        if self._parking.unseen:
            for waiting in self._parking.stir():
                self._activate(waiting)


_PLACEMENTS = (model.Create, model.Bind)  # a tuple: to make a union anew for each decision is slow
