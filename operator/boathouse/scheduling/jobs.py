"""What is to be placed: jobs that services submit, and other people's pods that name our scheduler.

The scheduling queue forgets a task once it is placed; this book keeps what was said last of each job, so that a
placement that fails can wait again, whatever was submitted in between.
"""

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

from boathouse.cluster import wire
from boathouse.scheduling.pods import ownership, translate
from boathouse.scheduling.tenants import refusals, variety
from boathouse_policies import framework, model


class PodFactory(Protocol):
    """Makes the pods of a job's tasks."""

    def build(self, task: model.TaskId, resources: model.Resources, node: model.NodeName | None) -> dict[str, Any]:
        """Return a pod's manifest, without the epoch; with `node` as `spec.nodeName`, or none to be bound later."""
        ...


@dataclasses.dataclass(slots=True, kw_only=True)
class Entry:
    """One job.

    Attributes:
        job: The job.
        classes: Its classes, in order.
        tasks: All its tasks that are not known to be over.
        factory: Makes its pods; None for pods that somebody else makes.
        arrived_s: When each task came, by the scheduler's clock.
        over: Tasks whose pod was seen to end or go, and their class: a name is used once, so they never wait again.
        is_aside: Scheduling failed because of it: nothing of it waits until other classes are submitted.
        excess: Why some of its classes are not considered, because its namespace has too many; empty if all are.
    """

    job: model.Job
    namespace: str = ""
    classes: tuple[model.TaskClass, ...] = ()
    tasks: dict[model.TaskId, model.Task] = dataclasses.field(default_factory=dict)
    factory: PodFactory | None = None
    arrived_s: dict[model.TaskId, float] = dataclasses.field(default_factory=dict)
    ended: dict[model.TaskId, model.ClassId] = dataclasses.field(default_factory=dict)
    is_aside: bool = False
    excess: str = ""


_NEVER_TRIED = (-math.inf, model.TaskId(""))
_RETRIED_AT_ONCE = 16
"""Jobs of a namespace that are considered again in a second where it has too many shapes."""
PROBE_PATIENCE_S = 5.0
"""After so long without a node for the task that is let through, another job's turn comes."""


class Jobs:
    """The book of all jobs.

    Args:
        queue: Where tasks wait.
        placed: Tasks that are on a node or on their way (the ledger).
        pods: Pods without a node, by task.
        clock: The scheduler's seconds.
        queue_of: The queue of somebody else's pod.
        on_failure: Called with a job that the scheduling queue could not take in, and why; None to raise.
        refused: What is held because the API server refused pods.
        limits: How many shapes of pods a namespace may have considered at a time.
        nodes: Returns the number of nodes.
    """

    def __init__(
        self,
        queue: framework.SchedulingQueue,
        *,
        placed: Container[model.TaskId],
        pods: dict[model.TaskId, wire.PodView],
        clock: Callable[[], float],
        queue_of: ownership.QueueOf,
        on_failure: Callable[[Entry, Exception], None] | None = None,
        refused: refusals.Refusals | None = None,
        limits: variety.Limits = variety.Limits(),  # noqa: B008 - frozen
        nodes: Callable[[], int] = lambda: 0,
    ) -> None:
        self.refused = refusals.Refusals(clock) if refused is None else refused
        self._queue = queue
        self._placed = placed
        self._pods = pods
        self._clock = clock
        self._queue_of = queue_of
        self._on_failure = on_failure
        self._entries: dict[model.JobId, Entry] = {}
        self._job_of: dict[model.TaskId, model.JobId] = {}
        self._in_namespace: dict[str, dict[model.JobId, None]] = {}
        self._changed: set[model.JobId] = set()
        self._changed_tasks: dict[model.JobId, set[model.TaskId]] = {}
        self._variety = variety.Variety(limits, waiting=self._shapes_that_wait, nodes=nodes, clock=clock)
        self._excess_pods: dict[str, dict[model.TaskId, None]] = {}
        self._excess_jobs: dict[str, dict[model.JobId, None]] = {}
        self._retry_s = -math.inf

    # Jobs of ours

    def submit(
        self,
        job: model.Job,
        classes: Sequence[model.TaskClass],
        tasks: Sequence[model.Task],
        factory: PodFactory,
    ) -> list[model.TaskId]:
        """Say all that a job still has to do; replaces what was said before. Returns those that are over."""
        entry = self._entries.setdefault(job.id, Entry(job=job))
        entry.is_aside = entry.is_aside and entry.classes == tuple(classes)
        entry.job, entry.classes, entry.factory = job, tuple(classes), factory
        self._set_tasks(entry, tasks)
        return [task.id for task in tasks if task.id in entry.ended]

    def withdraw(self, job: model.JobId) -> None:
        """Forget a job. Nothing of it waits any more; its pods are its owner's to delete."""
        entry = self._entries.pop(job, None)
        if entry is None:
            return
        self._changed.discard(job)
        self._changed_tasks.pop(job, None)
        self._leave_namespace(entry)
        for task in entry.tasks:
            self._job_of.pop(task, None)
        self._queue.withdraw(job)

    def set_aside(self, job: model.JobId) -> None:
        """Let nothing of a job wait: scheduling fails because of it."""
        self._entries[job].is_aside = True
        self._changed.discard(job)
        self._queue.withdraw(job)

    def _set_tasks(self, entry: Entry, tasks: Iterable[model.Task]) -> None:
        now_s = self._clock()
        fresh = {task.id: task for task in tasks if task.id not in entry.ended}
        for gone in entry.tasks.keys() - fresh.keys():
            self._job_of.pop(gone, None)
        entry.arrived_s = {task: entry.arrived_s.get(task, now_s) for task in fresh}
        entry.tasks = fresh
        self._job_of.update(dict.fromkeys(fresh, entry.job.id))
        self._enter_namespace(entry)
        self._changed.add(entry.job.id)

    def _enter_namespace(self, entry: Entry) -> None:
        if not entry.namespace and entry.tasks:
            entry.namespace = namespace_of(next(iter(entry.tasks)))
            self._in_namespace.setdefault(entry.namespace, {})[entry.job.id] = None

    def _leave_namespace(self, entry: Entry) -> None:
        self._excess_jobs.get(entry.namespace, {}).pop(entry.job.id, None)
        self.refused.forget(entry.namespace, entry.job.id, (one.id for one in entry.classes))
        jobs = self._in_namespace.get(entry.namespace, {})
        jobs.pop(entry.job.id, None)
        if not jobs:
            self._in_namespace.pop(entry.namespace, None)

    # Pods of others

    def add_foreign(self, pod: wire.PodView) -> str | None:
        """Let somebody else's pod wait, as a task of its owner's; return why it is not considered, None if it is."""
        job_id, task_id, task_class = ownership.job_of(pod), ownership.task_id(pod), foreign_class(pod)
        why = self._variety.refusal(pod.metadata.namespace, task_class)
        if why is not None:
            self.end(task_id, waited=True)
            self._excess_pods.setdefault(pod.metadata.namespace, {})[task_id] = None
            return why
        self._forget_excess(task_id)
        former = self.entry_of(task_id)
        if former is not None and former.factory is None and former.job.id != job_id:
            self.end(task_id, waited=True)  # its queue's label was changed
        entry = self._entries.get(job_id)
        if entry is None:
            entry = self._entries[job_id] = Entry(job=self._foreign_job(pod))
        elif entry.job.queue != (queue := self._queue_of(pod)):  # its namespace has another default queue
            entry.job = dataclasses.replace(entry.job, queue=queue)
            self._changed.add(job_id)
        if task_class not in entry.classes:
            entry.classes += (task_class,)
        task = model.Task(id=task_id, task_class=task_class.id, pod_uid=model.PodUid(pod.metadata.uid))
        if entry.tasks.get(task_id) == task:
            return None
        entry.ended.pop(task_id, None)  # other people may use a name again
        entry.tasks[task_id] = task
        entry.arrived_s.setdefault(task_id, self._clock())
        self._job_of[task_id] = job_id
        self._enter_namespace(entry)
        self._changed.add(job_id)
        return None

    def _foreign_job(self, pod: wire.PodView) -> model.Job:
        created = pod.metadata.creation_timestamp
        return model.Job(
            id=ownership.job_of(pod),
            queue=self._queue_of(pod),
            submitted_s=created.timestamp() if created is not None else 0.0,
            name=ownership.holder_of(pod),
            namespace=model.NamespaceName(pod.metadata.namespace),
            priority=pod.spec.priority,
            priority_class=pod.spec.priority_class_name,
        )

    # Tasks

    def end(self, task: model.TaskId, *, waited: bool) -> None:
        """A task's pod ended, went, or was never to be: it does not wait again.

        Args:
            task: Its id.
            waited: Whether the scheduling queue may still hold it.
        """
        self._forget_excess(task)
        entry = self.entry_of(task)
        if entry is None:
            return
        task_class = entry.tasks.pop(task).task_class
        entry.arrived_s.pop(task, None)
        del self._job_of[task]
        if entry.factory is not None:
            entry.ended[task] = task_class
        if waited or not entry.tasks:
            self._changed.add(entry.job.id)

    def mark_changed(self, task: model.TaskId) -> None:
        """Something about a task's pod changed: say it anew before the next cycle."""
        job = self._job_of.get(task)
        if job is not None:
            self._changed_tasks.setdefault(job, set()).add(task)

    def sync(self) -> None:
        """Tell the scheduling queue what changed: single tasks where that will do, for a job may have thousands."""
        self._retry_excess()
        self._grant_probes()
        for scope in self.refused.changed():
            self._changed.update(entry.job.id for entry in self._covered(scope))
        for job_id in self._changed_tasks.keys() - self._changed:
            job = self._entries[job_id]
            if not all(self._update(job, task) for task in sorted(self._changed_tasks[job_id])):
                self._changed.add(job_id)
        self._changed_tasks.clear()
        for job_id in sorted(self._changed):
            entry = self._entries.get(job_id)
            if entry is None:
                continue
            if entry.factory is None and not entry.tasks:
                self.withdraw(job_id)
                continue
            if not entry.is_aside:
                self._submit(entry)
        self._changed.clear()
        self._let_probes_through()

    def _submit(self, entry: Entry) -> None:
        try:
            classes = self._considered(entry, self._classes_in_use(entry))
            ids = {one.id for one in classes} if entry.excess else None
            tasks = [
                self._as_it_is(task)
                for task in entry.tasks.values()
                if self._may_be_placed(task) and (ids is None or task.task_class in ids)
            ]
            out = _Out(self, entry) if self._is_held(entry) else self._placed
            self._queue.submit(entry.job, classes, tasks, placed=out)
        except Exception as error:  # one job must not keep the others from being scheduled
            if self._on_failure is None:
                raise
            self._on_failure(entry, error)

    @property
    def has_changes(self) -> bool:
        """Whether `sync` has something to do."""
        return bool(self._changed or self._changed_tasks)

    def _update(self, entry: Entry, task_id: model.TaskId) -> bool:
        task = entry.tasks.get(task_id)
        if task is None or entry.is_aside or not self._may_be_placed(task):
            return False
        return self._queue.update(self._as_it_is(task), placed=self._is_out(entry, task_id))

    def _may_be_placed(self, task: model.Task) -> bool:
        pod = self._pods.get(task.id)
        return pod is None or may_be_bound(pod)

    def _as_it_is(self, task: model.Task) -> model.Task:
        pod = self._pods.get(task.id)
        uid = model.PodUid(pod.metadata.uid) if pod is not None else None
        return task if task.pod_uid == uid else dataclasses.replace(task, pod_uid=uid)

    @staticmethod
    def _classes_in_use(entry: Entry) -> Sequence[model.TaskClass]:
        if entry.factory is not None:
            return entry.classes
        used = {task.task_class for task in entry.tasks.values()}
        entry.classes = tuple(one for one in entry.classes if one.id in used)
        return entry.classes

    # What is too much

    def next_s(self) -> float:
        """Return when `sync` may have something to do though nothing happened; infinity for never."""
        excess = any(self._excess_pods.values()) or any(self._excess_jobs.values())
        return min(self.refused.next_s(), self._retry_s if excess else math.inf)

    def _considered(self, entry: Entry, classes: Sequence[model.TaskClass]) -> Sequence[model.TaskClass]:
        """The classes of a job of ours that its namespace may have considered now; pods of others come one by one."""
        if entry.factory is None:
            return classes
        refused = {one.id: self._variety.refusal(entry.namespace, one) for one in classes}
        entry.excess = next((why for why in refused.values() if why is not None), "")
        if entry.excess:
            self._excess_jobs.setdefault(entry.namespace, {})[entry.job.id] = None
            return [one for one in classes if refused[one.id] is None]
        self._excess_jobs.get(entry.namespace, {}).pop(entry.job.id, None)
        return classes

    def _retry_excess(self) -> None:
        """Consider what was too much, once a second: as many as there is room for now."""
        self._variety.sweep()
        now_s = self._clock()
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + variety.RECOUNT_S
        for pods in list(self._excess_pods.values()):
            for task in list(pods):
                pod = self._pods.get(task)
                if pod is not None and self.add_foreign(pod) is not None:
                    break
                pods.pop(task, None)
        for jobs in self._excess_jobs.values():
            self._changed.update(itertools.islice(jobs, _RETRIED_AT_ONCE))

    def _forget_excess(self, task: model.TaskId) -> None:
        if self._excess_pods:
            self._excess_pods.get(namespace_of(task), {}).pop(task, None)

    def _shapes_that_wait(self, namespace: str) -> Iterator[model.TaskClass]:
        for entry in self._covered(refusals.Scope(refusals.Verb.CREATE, namespace)):
            waiting = {task.task_class for task in entry.tasks.values() if task.id not in self._placed}
            yield from (one for one in entry.classes if one.id in waiting)

    # What is held

    def hold_of(self, task: model.TaskId) -> refusals.Hold | None:
        """Return what holds a task back; None if nothing does, or if it is the one that is let through."""
        entry = self.entry_of(task)
        return None if entry is None or not self.refused else self._hold_of(entry, task)

    def hold_of_job(self, job: model.JobId) -> refusals.Hold | None:
        """Return what holds back tasks of a job; None if nothing does."""
        entry = self._entries.get(job)
        if entry is None:
            return None
        pairs = itertools.product(entry.classes, refusals.Verb) if self.refused else ()
        held = (self.refused.of(entry.namespace, one.id, verb) for one, verb in pairs)
        return next((hold for hold in held if hold is not None), None)

    def waits(self, job: model.JobId) -> bool:
        """Say whether any task of a job is not placed."""
        return any(task not in self._placed for task in self._entries[job].tasks)

    def verb(self, task: model.TaskId) -> refusals.Verb:
        """Return what a placement of a task would be."""
        return refusals.Verb.BIND if task in self._pods else refusals.Verb.CREATE

    def _hold_of(self, entry: Entry, task: model.TaskId) -> refusals.Hold | None:
        waiting = entry.tasks.get(task)
        if waiting is None:
            return None
        hold = self.refused.of(entry.namespace, waiting.task_class, self.verb(task))
        return None if hold is None or hold.probe == task else hold

    def _is_held(self, entry: Entry) -> bool:
        return self.hold_of_job(entry.job.id) is not None

    def _is_out(self, entry: Entry, task: model.TaskId) -> bool:
        return task in self._placed or self._hold_of(entry, task) is not None

    def _covered(self, scope: refusals.Scope) -> list[Entry]:
        jobs = (self._entries[job] for job in self._in_namespace.get(scope.namespace, ()))
        all_of_them, wanted = scope.task_class is None, scope.task_class
        return [e for e in jobs if not e.is_aside and (all_of_them or any(one.id == wanted for one in e.classes))]

    def _grant_probes(self) -> None:
        for hold in self.refused.due():
            if not self.refused.may_grant:
                break
            if self._next_held(hold) is None:
                self.refused.lift(hold.scope)  # nothing is left that could be refused
            else:
                self.refused.grant(hold)

    def _let_probes_through(self) -> None:
        """Let one task wait for room for each hold that is being probed."""
        for hold in self.refused.probing():
            if not self._awaits_probe(hold):
                continue
            task = self._next_held(hold)
            if task is None:
                self.refused.lift(hold.scope)
                continue
            hold.probe, hold.probed_s = task.id, self._clock()
            hold.tried[task.task_class] = (hold.probed_s, task.id)
            self._queue.put_back(task.id, task.task_class)

    def _awaits_probe(self, hold: refusals.Hold) -> bool:
        entry = self.entry_of(hold.probe) if hold.probe is not None else None
        if hold.probe is None or entry is None:
            return True
        if hold.probe in self._placed or self._clock() - hold.probed_s < PROBE_PATIENCE_S:
            return False
        former, hold.probe = hold.probe, None  # no node has room for it
        self._update(entry, former)
        return True

    def _next_held(self, hold: refusals.Hold) -> model.Task | None:
        """The next task to let through: of the class that was not tried for longest, the one after its last."""
        scope = hold.scope
        entries = self._covered(scope)
        classes = [(one, entry) for entry in entries for one in entry.classes if scope.task_class in {None, one.id}]
        for one, entry in sorted(classes, key=lambda pair: hold.tried.get(pair[0].id, _NEVER_TRIED)[0]):
            if (task := self._task_after(hold, entry, one.id)) is not None:
                return task
        return None

    def _task_after(self, hold: refusals.Hold, entry: Entry, task_class: model.ClassId) -> model.Task | None:
        """The held task of a class that comes after the one that was tried last, in turn."""
        _, last = hold.tried.get(task_class, _NEVER_TRIED)
        first: model.Task | None = None
        passed = last not in entry.tasks
        for task in entry.tasks.values():
            if task.task_class == task_class and self._may_be_probed(task, hold.scope.verb):
                if passed:
                    return task
                first = first or task
            passed = passed or task.id == last
        return first

    def _may_be_probed(self, task: model.Task, verb: refusals.Verb) -> bool:
        held = task.id not in self._placed and self.verb(task.id) is verb
        return held and not task.expected and self._may_be_placed(task)

    # Reading

    def entry(self, job: model.JobId) -> Entry | None:
        """Return a job's entry."""
        return self._entries.get(job)

    def entry_of(self, task: model.TaskId) -> Entry | None:
        """Return the entry of a task's job."""
        job = self._job_of.get(task)
        return None if job is None else self._entries[job]

    def entries(self) -> Iterable[Entry]:
        """Return all jobs."""
        return self._entries.values()

    def class_of(self, job: model.JobId, task: model.TaskId) -> model.ClassId | None:
        """Return the class of a task, also of one that is over."""
        entry = self._entries.get(job)
        if entry is None:
            return None
        return entry.tasks[task].task_class if task in entry.tasks else entry.ended.get(task)

    def waited_s(self, task: model.TaskId) -> float | None:
        """Return how long ago a task came."""
        entry = self.entry_of(task)
        arrived_s = None if entry is None else entry.arrived_s.get(task)
        return None if arrived_s is None else self._clock() - arrived_s

    def lowest_priority(self) -> int:
        """Return the lowest priority among the jobs; 0 when there are none."""
        return min((entry.job.priority for entry in self._entries.values()), default=0)


class _Out:
    """The tasks of a job that do not wait: placed, or held back."""

    def __init__(self, book: Jobs, entry: Entry) -> None:
        self._book, self._entry = book, entry

    def __contains__(self, task: object) -> bool:
        return self._book._is_out(self._entry, cast("model.TaskId", task))  # noqa: SLF001 - one class in two parts


def namespace_of(task: model.TaskId) -> str:
    """Return a task's namespace."""
    return task.partition("/")[0]


def may_be_bound(pod: wire.PodView) -> bool:
    """Say whether the API server would take a binding of a pod."""
    blocked = pod.is_terminal or pod.spec.node_name or pod.metadata.deletion_timestamp or pod.spec.scheduling_gates
    return not blocked


def foreign_class(pod: wire.PodView) -> model.TaskClass:
    """Return the class of somebody else's pod: pods of one owner with equal demands are one class."""
    job = ownership.job_of(pod)
    resources, constraints = translate.pod_resources(pod), translate.constraints(pod)
    return model.TaskClass(
        id=model.ClassId(f"{job}/{_digest(resources, constraints)}"),
        job=job,
        resources=resources,
        constraints=constraints,
    )


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
