"""Pods made ahead: a few of a job that waits for want of nodes, so that autoscalers and people see what is missing."""

from collections.abc import Callable, Container, Iterable, Iterator

from boathouse.scheduling import carrier, jobs
from boathouse_policies import framework, model


class PendingPods:
    """Decides whose pods are made without a node.

    A class qualifies when it has waited for want of nodes for a while without any of its tasks being placed: in a busy
    cluster, where tasks follow one another, no pod is made twice as dear for show.

    Args:
        count: How many pods of a class may wait at once; 0 for none.
        delay_s: How long a class must have waited.
        clock: The scheduler's seconds.
    """

    def __init__(self, *, count: int, delay_s: float, clock: Callable[[], float]) -> None:
        self._count = count
        self._delay_s = delay_s
        self._clock = clock
        self._since_s: dict[model.ClassId, float] = {}

    def note(self, plan: framework.Plan) -> None:
        """Take in what a cycle placed and left waiting."""
        for decision in plan.decisions:
            if isinstance(decision, model.Create | model.Bind):
                self._since_s.pop(decision.task_class.id, None)
        for class_id, left in plan.left.items():
            if left.verdict.code is model.Code.UNSCHEDULABLE:
                self._since_s.setdefault(class_id, self._clock())
            else:
                self._since_s.pop(class_id, None)

    def next_s(self) -> float:
        """Return when a class may come to qualify; infinity if none may."""
        now_s = self._clock()
        due = (since_s + self._delay_s for since_s in self._since_s.values())
        return min((due_s for due_s in due if due_s > now_s), default=float("inf"))

    def due(
        self, room: framework.SchedulingQueue, book: jobs.Jobs, existing: Container[model.TaskId]
    ) -> Iterator[carrier.Ahead]:
        """Yield the pods to make now.

        Args:
            room: What waits.
            book: Whose factories make the pods.
            existing: Tasks that have a pod, or soon will.
        """
        if not self._count or not self._since_s:
            return
        limit_s = self._clock() - self._delay_s
        for entry in list(book.entries()):
            if entry.factory is None:
                continue
            for waiting in room.classes_of(entry.job.id):
                since_s = self._since_s.get(waiting.task_class.id)
                if since_s is not None and since_s <= limit_s:
                    yield from _missing(waiting.task_class, self._first(waiting, book), existing)

    def _first(self, waiting: framework.QueuedClass, book: jobs.Jobs) -> Iterable[model.Task]:
        """The first tasks that are not held back: a pod made ahead would be refused as any other."""
        first = (task for task in waiting.pool.pending()[: self._count] if not task.expected)
        return (task for task in first if book.hold_of(task.id) is None)


def _missing(
    task_class: model.TaskClass, tasks: Iterable[model.Task], existing: Container[model.TaskId]
) -> Iterator[carrier.Ahead]:
    for task in tasks:
        if task.pod_uid is None and task.id not in existing:
            yield carrier.Ahead(task=task, task_class=task_class)
