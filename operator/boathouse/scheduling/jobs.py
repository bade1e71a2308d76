"""Jobs whose tasks are to be scheduled: those that services submit, and the owners of foreign pods.

The pod table has the rows of their tasks. The scheduling queue drops a task once it is placed; `sync` passes changes
since the last cycle to it.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from boathouse.cluster import catalogue, wire
from boathouse.resources.config import TenantLimits
from boathouse.scheduling import admitted, gangs, refusals
from boathouse.scheduling.limits import RECOUNT_S, Variety
from boathouse.scheduling.pods import facts, indexes, ownership, rows, table
from boathouse.scheduling.pods.states import WITH_OPERATION, PendingReason, PodState
from boathouse_policies import framework, model
from boathouse_task import contract


class TaskControl(Protocol):
    """Controls the running tasks of a job."""

    async def suspend(self, task: model.TaskId, order: contract.SuspendOrder) -> str:
        """Order a task to pause; return "" once it has paused, else the reason why it does not."""
        ...

    def speculate(self, task: model.TaskId, avoids: Sequence[model.NodeName]) -> model.TaskId | None:
        """Submit a second attempt of a task on a node that it does not avoid; return it, or None if there is none."""
        ...


class PodFactory(Protocol):
    """Builds the pods of a job's tasks."""

    @property
    def resource(self) -> catalogue.Resource[wire.Manifest]:
        """Kind of the job."""

    @property
    def control(self) -> TaskControl | None:
        """Controls the job's running tasks; None if they take no orders."""

    def build(
        self,
        task: model.TaskId,
        resources: model.Resources,
        node: model.NodeName | None,
        expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return a pod's manifest without the epoch. `expected` is the size chosen for the pods that it creates."""
        ...


@runtime_checkable
class ExpectingFactory(PodFactory, Protocol):
    """Builds the pod of a driver, which creates the expected tasks of its job."""

    def build_expected(self, expected: model.Resources | None) -> dict[str, Any]:
        """Return the manifest of an expected pod of a size (None: its class's), to try what admission makes of it."""
        ...


@dataclasses.dataclass(slots=True, kw_only=True)
class Entry:
    """A job with its classes."""

    job: model.Job
    namespace: str = ""  # namespace of its pods; empty until it has tasks
    classes: tuple[model.TaskClass, ...] = ()
    factory: PodFactory | None = None  # builds its pods; None for foreign pods
    times_aside: int = 0  # how often it was set aside with the same classes
    api_refusal: PendingReason | None = None  # last refusal of the API server; None after an accepted write
    excess: str = ""  # why some classes are not considered, because its namespace exceeds its limits; empty if all are
    gang: framework.gang_minimum.Gang | None = None  # its driver and the expected executors; None if it has no gang
    pending_reason: PendingReason | None = None  # why the gang is not in the queue; None if it is
    lacks_nodes: bool = False  # whether that is only because no present nodes could hold it
    hidden: str = ""  # why a gang that waits for nodes does not show itself to a cluster autoscaler; empty if it does
    has_begun: bool = False  # whether the driver of the gang has a node
    first: Sequence[rows.PodRow] = ()  # tasks of a begun gang that lacks part of its minimum: they go before all others
    suspend_until_s: float | None = None  # until when its author suspends its reducers that lack map output
    planned: tuple[model.TaskClass, ...] = ()  # its classes as its owner submitted them, without what admission adds
    # what admission adds to the pods of a class, once a pod of it was admitted; None for nothing
    admission: dict[model.ClassId, admitted.Changes | None] = dataclasses.field(default_factory=dict)
    limits: framework.gang_minimum.Limits | None = (
        None  # limits of the driver's pod and of an expected one, once computed
    )
    # classes whose pods are created without a node, because a webhook refuses dry runs
    unpredictable: set[model.ClassId] = dataclasses.field(default_factory=set)

    @property
    def of_children(self) -> tuple[model.TaskClass, ...]:
        """Its classes that its owner did not submit: those of pods that its pods created."""
        return self.classes[len(self.planned) :]

    @property
    def precedence(self) -> tuple[int, float, model.JobId]:
        """Its place among gangs: the highest priority first, then the one that waits the longest."""
        return -self.job.priority, self.job.submitted_s, self.job.id

    def class_of(self, task_class: model.ClassId) -> model.TaskClass | None:
        """Return a class; None if the job does not list it any more."""
        return next((candidate for candidate in self.classes if candidate.id == task_class), None)

    def as_admitted(self, task_class: model.TaskClass) -> model.TaskClass:
        """Return a class with what admission adds to its pods."""
        changes = self.admission.get(task_class.id)
        return task_class if changes is None else changes.applied(task_class)

    def of_manifest(self, task_class: model.ClassId, resources: model.Resources) -> model.Resources:
        """Return the size in the manifest of a pod that is to have this size once it is admitted."""
        changes = self.admission.get(task_class)
        return resources if changes is None else changes.own(resources)


_NEVER_TRIED = (-math.inf, model.TaskId(""))
_RETRIED_AT_ONCE = 16  # jobs per second that are checked again in a namespace that exceeds its limits of shapes
ASIDE_S, MOST_ASIDE_S = 60.0, 3600.0  # for how long a job is set aside: at first, and after it failed often
PROBE_PATIENCE_S = 5.0  # if a probe gets no node within this time, a task of another job is tried


class Jobs:
    """Holds all jobs."""

    def __init__(
        self,
        queue: framework.SchedulingQueue,
        *,
        pods: table.PodTable,
        clock: Callable[[], float],
        queue_of: ownership.QueueOf,
        limits: TenantLimits = TenantLimits(),  # noqa: B008 - frozen
    ) -> None:
        self.refused = refusals.Refusals(clock)
        self._queue, self._pods, self._clock, self._queue_of = queue, pods, clock, queue_of
        self._entries: dict[model.JobId, Entry] = {}
        self._in_namespace: dict[str, dict[model.JobId, None]] = {}
        self._changed_rows: dict[rows.PodRow, None] = {}
        self._variety = Variety(limits, waiting=self._shapes_that_wait, nodes=lambda: len(pods.nodes), clock=clock)
        self._has_excess_pods, self._retry_s = False, -math.inf
        self._excess_jobs: dict[str, dict[model.JobId, None]] = {}
        self.gangs: set[model.JobId] = set()
        self.by_hand: set[model.JobId] = set()  # jobs of which the author suspends reducers
        self.touched: dict[model.JobId, None] = {}  # jobs with a gang of which a task changed
        self.changed: set[model.JobId] = set()  # jobs of all of whose tasks the queue is told before the next cycle
        self.changing = admitted.Namespaces()  # namespaces whose admission changes pods
        self.aside: dict[model.JobId, float] = {}  # jobs that are set aside, and until when

    # Submitted jobs

    def submit(
        self,
        job: model.Job,
        classes: Sequence[model.TaskClass],
        tasks: Sequence[model.Task],
        factory: PodFactory,
        suspend_until_s: float | None = None,
    ) -> list[model.TaskId]:
        """Replace the pending tasks of a job. Returns those whose pod has ended."""
        entry = self._entries.setdefault(job.id, Entry(job=job))
        of_children = entry.of_children
        if entry.planned != tuple(classes):
            self.aside.pop(job.id, None)
            entry.times_aside = 0
        entry.planned, entry.limits = tuple(classes), None
        listed = {task_class.id for task_class in classes}
        entry.admission = {class_id: changes for class_id, changes in entry.admission.items() if class_id in listed}
        classes = [entry.as_admitted(task_class) for task_class in classes]
        entry.job, entry.classes, entry.factory = job, (*classes, *of_children), factory
        entry.suspend_until_s, entry.gang = suspend_until_s, framework.gang_minimum.Gang.of(classes, tasks)
        (self.by_hand.discard if suspend_until_s is None else self.by_hand.add)(job.id)
        ended = self._pods.submit(job.id, tasks)
        if not entry.namespace and tasks:
            entry.namespace = tasks[0].id.partition("/")[0]
            self._in_namespace.setdefault(entry.namespace, {})[job.id] = None
        if entry.gang is not None:
            self.gangs.add(job.id)
        self.mark(job.id)
        return ended

    def learn(self, entry: Entry, task_class: model.ClassId, changes: admitted.Changes | None) -> bool:
        """Note what admission adds to the pods of a class; return whether that is news, and the class has changed."""
        former = entry.admission.get(task_class)
        if changes is not None:
            self.changing.add(entry.namespace)
        if not any(planned.id == task_class for planned in entry.planned):
            return False
        entry.admission[task_class] = former if changes is None else changes
        if changes is None or changes == former:
            return False
        classes = tuple(entry.as_admitted(planned) for planned in entry.planned)
        entry.classes = (*classes, *entry.of_children)
        if entry.gang is not None:
            entry.gang = entry.gang.with_classes(classes)
        self.mark(entry.job.id)
        return True

    def withdraw(self, job: model.JobId) -> None:
        """Remove a job. Its owner deletes its pods."""
        if (entry := self._entries.pop(job, None)) is None:
            return
        self.touch(job)
        self.aside.pop(job, None)
        for jobs in (self.changed, self.by_hand, self.gangs):
            jobs.discard(job)
        self.refused.forget(entry.namespace, job, [task_class.id for task_class in entry.classes])
        for index in (self._excess_jobs, self._in_namespace):
            indexes.discard(index, entry.namespace, job)
        self._pods.withdraw(job)
        self._queue.withdraw(job)

    def set_aside(self, entry: Entry) -> None:
        """Set a job aside that makes scheduling fail: none of its tasks is pending, each time for twice as long."""
        self.aside[entry.job.id] = self._clock() + min(ASIDE_S * 2**entry.times_aside, MOST_ASIDE_S)
        entry.times_aside += 1
        self.changed.discard(entry.job.id)
        self._queue.withdraw(entry.job.id)

    def _resume_aside(self) -> None:
        """Let jobs be scheduled whose time aside is over: what made scheduling fail may be over, too."""
        for job in [job for job, until_s in self.aside.items() if until_s <= self._clock()]:
            del self.aside[job]
            self._entries[job].api_refusal = None
            self.mark(job)

    # Foreign pods

    def add_foreign(self, row: rows.PodRow, pod: facts.PodFacts) -> str | None:
        """Add a foreign pod as a task; return why it cannot be scheduled, or None."""
        if (driver := self._pods.children.driver(row.parent)) is not None:
            return self._add_child(row, pod, ownership.job_of(driver))
        job_id, task_class = ownership.job_of(pod), self._class_of(pod)
        if (why := self._excess(row, task_class)) is not None:
            return why
        if row.job is not None and row.job != job_id and not row.is_submitted:
            self.dismiss(row)  # its queue label was changed
        if (entry := self._entries.get(job_id)) is None:
            entry = self._entries[job_id] = Entry(job=self._foreign_job(pod))
        elif entry.job.queue != (queue := self._queue_of(pod)):  # its namespace has another default queue
            entry.job = dataclasses.replace(entry.job, queue=queue)
            self.changed.add(job_id)
        if self._add_task(row, pod, entry, task_class):
            entry.namespace = row.namespace
            self._in_namespace.setdefault(row.namespace, {})[job_id] = None
        return None

    def _add_task(self, row: rows.PodRow, pod: facts.PodFacts, entry: Entry, task_class: model.TaskClass) -> bool:
        """Add a pod as a task of a class that its job's owner did not submit; return whether it was none before."""
        if task_class not in entry.of_children:
            entry.classes += (task_class,)
        task = model.Task(id=row.id, task_class=task_class.id, pod_uid=row.uid, labels=pod.labels)
        if is_new := self._pods.admit(row, entry.job.id, task):
            self.mark(entry.job.id)
        return is_new

    def _excess(self, row: rows.PodRow, task_class: model.TaskClass) -> str | None:
        """Dismiss a pod whose class exceeds the limits of its namespace, and return why; None if it does not."""
        if (why := self._variety.refusal(row.namespace, task_class)) is not None:
            self.dismiss(row, is_excess=True)
            self._has_excess_pods = True
        return why

    def reclassify(self, mentioned: Collection[framework.Mention]) -> bool:
        """Sort pending foreign pods into other classes by what of their labels a selector depends on now.

        `mentioned` has labels and their values, after the namespace of the pods that a selector may select by them;
        None for all. Returns whether any pod has such a label.
        """
        is_reclassified, wanted = False, dict[str | None, set[model.LabelMention]]()
        for namespace, mention in mentioned:
            wanted.setdefault(namespace, set()).add(mention)
        for row in list(self._pods.waiting()) if mentioned else ():
            if (pod := row.facts) is None or pod.task_of is not None or row.task is None:
                continue
            own = {(key, label_value) for key, value in pod.labels.items() for label_value in (None, value)}
            if not all(own.isdisjoint(wanted.get(namespace, ())) for namespace in (None, row.namespace)):
                self.add_foreign(row, pod)
                is_reclassified = True
        return is_reclassified

    def _class_of(self, pod: facts.PodFacts, job: model.JobId | None = None) -> model.TaskClass:
        """Return the class of a foreign pod, with the labels that selectors of pods depend on."""
        shown = functools.partial(self._pods.ledger.tallies.shown, pod.metadata.namespace)
        return ownership.foreign_class(pod, job, shown)

    def _add_child(self, row: rows.PodRow, pod: facts.PodFacts, job: model.JobId) -> str | None:
        """Schedule a pod that a driver made as a task of its job; return why that is not possible, or None."""
        entry, task_class = self._entries[job], self._class_of(pod, job)
        executor = None if entry.gang is None else entry.gang.executor
        if executor is not None and executor.id in entry.unpredictable and executor.id not in entry.admission:
            # what admission added to the first executor, which the API server could not tell before
            planned = next(candidate for candidate in entry.planned if candidate.id == executor.id)
            self.learn(entry, executor.id, admitted.changes_of_class(planned, task_class))
        is_expected = entry.gang is not None and framework.gang_minimum.replaces(
            gangs.executor(row), entry.gang.executor
        )
        if not is_expected and (why := self._excess(row, task_class)) is not None:
            return why
        self._add_task(row, pod, entry, task_class)
        return None

    def has_driver(self, pod: facts.PodFacts) -> bool:
        """Say whether the pod that controls a pod may have it: it is what its job submitted last, and is not over."""
        if (driver := self._pods.parent(pod)) is None or driver.state is PodState.GONE:
            return False
        if driver.facts is not None and driver.facts.task_of is None:
            return True  # it is somebody else's
        entry, shown = self.entry_of(driver), driver.facts
        if shown is not None and (shown.metadata.deletion_timestamp is not None or shown.task_of != driver.job):
            return False
        return entry is not None and driver.is_submitted

    def _foreign_job(self, pod: facts.PodFacts) -> model.Job:
        created = pod.metadata.creation_timestamp
        return model.Job(
            id=ownership.job_of(pod),
            queue=self._queue_of(pod),
            submitted_s=created.timestamp() if created is not None else 0.0,
            name=ownership.holder_of(pod),
            namespace=model.NamespaceName(pod.metadata.namespace),
            priority=pod.priority,
            priority_class=pod.priority_class,
        )

    # Tasks

    def dismiss(self, row: rows.PodRow, *, is_excess: bool = False) -> None:
        """Remove the task of a foreign pod that must not be scheduled, or not now."""
        job = row.job
        self._pods.dismiss(row, is_excess=is_excess)
        if job is not None:
            self.changed.add(job)

    def mark(self, job: model.JobId) -> None:
        """Note that the tasks of a job changed."""
        self.changed.add(job)
        self.touch(job)

    def touch(self, job: model.JobId | None) -> None:
        """Note that the tasks of a job changed, if it has a gang."""
        if job is not None and job in self.gangs:
            self.touched[job] = None

    def is_known(self, row: rows.PodRow) -> bool:
        """Say whether the owner of a task's pod submitted its job since this process leads."""
        return row.facts is None or row.facts.task_of is None or row.facts.task_of in self._entries

    def all_gangs(self) -> list[tuple[Entry, framework.gang_minimum.Gang]]:
        """Return the jobs that have a gang."""
        return self._with_gangs(self.gangs)

    def gangs_in(self, namespace: str) -> list[tuple[Entry, framework.gang_minimum.Gang]]:
        """Return the jobs of a namespace that have a gang."""
        return self._with_gangs(job for job in self._in_namespace.get(namespace, ()) if job in self.gangs)

    def _with_gangs(self, jobs: Iterable[model.JobId]) -> list[tuple[Entry, framework.gang_minimum.Gang]]:
        entries = (self._entries[job] for job in jobs)
        return [(entry, entry.gang) for entry in entries if entry.gang is not None]

    def mark_changed(self, row: rows.PodRow) -> None:
        """Update the scheduling queue with this task before the next cycle."""
        if row.job is not None:
            self._changed_rows[row] = None

    def mark_ended(self, job: model.JobId, *, was_pending: bool) -> None:
        """Mark a task whose pod ended. The scheduling queue needs no update if the task was placed."""
        if was_pending or not self._pods.of_job(job):
            self.changed.add(job)

    def sync(self) -> list[tuple[Entry, Exception]]:
        """Update the scheduling queue with changed jobs or tasks; return the jobs that it rejected, with the error."""
        failures = []
        self._resume_aside()
        self._retry_excess()
        for row in self._changed_rows:
            entry = self.entry_of(row)
            if entry is not None and entry.job.id not in self.changed and not self._update(entry, row):
                self.changed.add(entry.job.id)
        self._changed_rows.clear()
        for job_id in sorted(self.changed):
            entry = self._entries.get(job_id)
            if entry is not None and entry.factory is None and not self._pods.of_job(job_id):
                self.withdraw(job_id)
            elif entry is not None and job_id not in self.aside and (error := self._submit(entry)) is not None:
                failures.append((entry, error))
        self.changed.clear()
        return failures

    def _submit(self, entry: Entry) -> Exception | None:
        classes = self._considered(entry)
        ids = {task_class.id for task_class in classes}
        is_held, tasks, placed = self.backoff_of_job(entry.job.id) is not None, [], set()
        for row in self.rows(entry) if entry.gang is None else self._offered(entry, entry.gang):
            task = _task_of(row)
            if row.may_be_placed and (not entry.excess or task.task_class in ids):
                tasks.append(task)
                if not row.is_undecided or (is_held and self.backoff_of(row) is not None):
                    placed.add(row.id)
        former = gangs.former_places(entry.gang, self._pods) if entry.gang is not None and entry.first else ()
        classes = framework.gang_minimum.together(
            classes, tasks, entry.gang, is_short=bool(entry.first), former_places=former
        )
        try:
            self._queue.submit(entry.job, classes, tasks, placed=placed)
        except Exception as error:  # noqa: BLE001 - one job must not keep the others from being scheduled
            return error
        return None

    def _offered(self, entry: Entry, gang: framework.gang_minimum.Gang) -> Iterable[rows.PodRow]:
        """Return the tasks of a job with a gang that wait in line: the gang, what it is short of, or elastic executors.

        Those go one after another: a job that is short of its minimum gets nothing else.
        """
        members = gangs.members(gang, self._pods)
        if not members.has_begun:
            is_out = entry.pending_reason is not None or entry.excess
            if is_out or members.driver is None or self.backoff_of(members.driver) is not None:
                return ()
            return members.driver, *members.expected[: framework.gang_minimum.short_of(gang, members.executors)]
        return entry.first or [row for row in self.rows(entry) if not row.is_submitted]

    def _update(self, entry: Entry, row: rows.PodRow) -> bool:
        if entry.gang is not None and (row.is_submitted or not entry.has_begun or row in entry.first):
            return False
        return (
            row.may_be_placed
            and entry.job.id not in self.aside
            and self._queue.update(_task_of(row), placed=not row.is_undecided or self.backoff_of(row) is not None)
        )

    # Limits of shapes

    def next_s(self) -> float:
        """Return when `sync` is due without an event; infinity for never."""
        excess_s = [self._retry_s] if self._has_excess_pods or self._excess_jobs else []
        return min([self._next_probe_s(), *excess_s, *self.aside.values()])

    def _considered(self, entry: Entry) -> Sequence[model.TaskClass]:
        """Return the classes of a job within its namespace's limits of shapes. Foreign pods are checked one by one."""
        own, of_children = entry.classes[: len(entry.planned)], entry.of_children
        if of_children:
            used = {_task_of(row).task_class for row in self.rows(entry)}
            entry.classes = (*own, *(task_class for task_class in of_children if task_class.id in used))
        refused = {task_class.id: self._variety.refusal(entry.namespace, task_class) for task_class in own}
        entry.excess = next((why for why in refused.values() if why is not None), "")
        if entry.excess:
            self._excess_jobs.setdefault(entry.namespace, {})[entry.job.id] = None
            return [task_class for task_class in entry.classes if refused.get(task_class.id) is None]
        indexes.discard(self._excess_jobs, entry.namespace, entry.job.id)
        return entry.classes

    def _retry_excess(self) -> None:
        self._variety.sweep()
        now_s = self._clock()
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + RECOUNT_S
        excess = [row for row in self._pods.waiting() if row.is_excess] if self._has_excess_pods else []
        self._has_excess_pods, full = False, set()
        for row in excess:
            if row.namespace in full or (row.facts is not None and self.add_foreign(row, row.facts) is not None):
                full.add(row.namespace)
                self._has_excess_pods = True
        for jobs in self._excess_jobs.values():
            self.changed.update(itertools.islice(jobs, _RETRIED_AT_ONCE))

    def _shapes_that_wait(self, namespace: str) -> Iterator[model.TaskClass]:
        for entry in self._covered(refusals.Scope(refusals.Verb.CREATE, namespace)):
            waiting = {_task_of(row).task_class for row in self.rows(entry) if row.is_undecided}
            yield from (task_class for task_class in entry.classes if task_class.id in waiting)

    # Holds

    def backoff_of(self, row: rows.PodRow) -> refusals.Backoff | None:
        """Return the backoff of a task; None without a backoff, if the task is the current probe, or if it is expected.

        Nothing is written for expected tasks: they are held with their driver, and probed with it.
        """
        if not self.refused or row.task is None or row.task.expected:
            return None
        backoff = self.refused.of(row.namespace, row.task.task_class, _verb(row))
        return None if backoff is None or backoff.probe == row.id else backoff

    def backoff_of_job(self, job: model.JobId) -> refusals.Backoff | None:
        """Return the backoff of a job's tasks, or None."""
        if (entry := self._entries.get(job)) is None:
            return None
        pairs = itertools.product(entry.classes, refusals.Verb) if self.refused else ()
        held = (self.refused.of(entry.namespace, task_class.id, verb) for task_class, verb in pairs)
        return next(filter(None, held), None)

    def _covered(self, scope: refusals.Scope) -> list[Entry]:
        entries = (self._entries[job] for job in self._in_namespace.get(scope.namespace, ()))
        wanted = scope.task_class
        entries = (entry for entry in entries if entry.job.id not in self.aside)
        return [entry for entry in entries if wanted is None or entry.class_of(wanted) is not None]

    def probe(self) -> None:
        """End backoffs and select probes. Call it before the reservations: a probe may take a reserved place."""
        for backoff in self.refused.due():
            if not self.refused.may_grant:
                break
            if self._next_held(backoff) is None:
                self.refused.lift(backoff.scope)  # no task is left that could be refused
            else:
                self.refused.grant(backoff)
        for backoff in filter(self._awaits_probe, self.refused.probing()):
            self._select_probe(backoff)
        for scope in self.refused.changed():
            for entry in self._covered(scope):
                if scope not in self.refused:
                    entry.api_refusal = None  # it is not known any more that this is why its tasks are pending
                self.mark(entry.job.id)

    def _select_probe(self, backoff: refusals.Backoff) -> None:
        if (row := self._next_held(backoff)) is None:
            self.refused.lift(backoff.scope)
            return
        backoff.probe, backoff.probed_s = row.id, self._clock()
        backoff.tried[_task_of(row).task_class] = (backoff.probed_s, row.id)
        self._mark_probe(row)

    def _awaits_probe(self, backoff: refusals.Backoff) -> bool:
        """Return whether a backoff has no probe whose write is in flight or may still find a node."""
        row = self._pods.get(backoff.probe) if backoff.probe is not None else None
        if row is None or row.job is None or row.has_ended:
            return True
        if not row.is_undecided:
            return row.state not in WITH_OPERATION  # else its answer is awaited
        if self._clock() - backoff.probed_s < PROBE_PATIENCE_S:
            return False
        backoff.probe = None  # it fits on no node
        self._mark_probe(row)
        return True

    def _mark_probe(self, row: rows.PodRow) -> None:
        self.mark_changed(row)
        self.touch(row.job)

    def _next_probe_s(self) -> float:
        due_s = self.refused.next_s()
        for backoff in self.refused.probing():
            row = None if backoff.probe is None else self._pods.get(backoff.probe)
            if row is not None and row.is_undecided:
                due_s = min(due_s, backoff.probed_s + PROBE_PATIENCE_S)
        return due_s

    def _next_held(self, backoff: refusals.Backoff) -> rows.PodRow | None:
        """Return the next probe: of the least recently tried class, the task after its last probe.

        A class with a backoff of its own is probed for that. Otherwise a class that is refused for itself would be
        probed again at once.
        """
        scope = backoff.scope
        pairs = ((task_class, entry) for entry in self._covered(scope) for task_class in entry.classes)
        if scope.task_class is None:
            own = functools.partial(refusals.Scope, scope.verb, scope.namespace)
            classes = [(task_class, entry) for task_class, entry in pairs if own(task_class.id) not in self.refused]
        else:
            classes = [(task_class, entry) for task_class, entry in pairs if task_class.id == scope.task_class]
        for task_class, entry in sorted(classes, key=lambda pair: backoff.tried.get(pair[0].id, _NEVER_TRIED)[0]):
            if (row := self._row_after(backoff, entry, task_class.id)) is not None:
                return row
        return None

    def _row_after(self, backoff: refusals.Backoff, entry: Entry, task_class: model.ClassId) -> rows.PodRow | None:
        """Return the held task of a class after the one that was tried last, in round-robin order."""
        _, last = backoff.tried.get(task_class, _NEVER_TRIED)
        first: rows.PodRow | None = None
        passed = last not in self._pods.of_job(entry.job.id)
        for row in self.rows(entry):
            may_be_probed = row.is_undecided and row.may_be_placed and _verb(row) is backoff.scope.verb
            if may_be_probed and _task_of(row).task_class == task_class and not _task_of(row).expected:
                if passed:
                    return row
                first = first or row
            passed = passed or row.id == last
        return first

    # Queries

    def entry(self, job: model.JobId) -> Entry | None:
        """Return the entry of a job."""
        return self._entries.get(job)

    def entry_of(self, row: rows.PodRow) -> Entry | None:
        """Return the entry of a task's job; None for a pod that this scheduler does not schedule."""
        return None if row.job is None or row.has_ended else self._entries.get(row.job)

    def owner_of(self, row: rows.PodRow) -> Entry | None:
        """Return the entry of the job that a pod is a task of; its owner submits a task only until it runs."""
        task_of = None if row.facts is None else row.facts.task_of
        return None if task_of is None else self._entries.get(model.JobId(task_of))

    def entries(self) -> Iterable[Entry]:
        """Return all jobs."""
        return self._entries.values()

    def rows(self, entry: Entry) -> Iterable[rows.PodRow]:
        """Return the tasks of a job whose pod has not ended."""
        return self._pods.of_job(entry.job.id).values()


def _verb(row: rows.PodRow) -> refusals.Verb:
    return refusals.Verb.CREATE if row.pending_uid is None else refusals.Verb.BIND


def _task_of(row: rows.PodRow) -> model.Task:
    """Return the policies' task of a row, with its pod if that needs a bind."""
    task = row.task
    assert task is not None
    is_current = task.pod_uid == row.pending_uid or not row.is_undecided
    return task if is_current else dataclasses.replace(task, pod_uid=row.pending_uid)
