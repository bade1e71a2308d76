"""Pods made ahead: a few of a job that waits for want of nodes, so that autoscalers and people see what is missing."""

from collections.abc import Callable, Iterator

from boathouse.scheduling import cycle, jobs
from boathouse.scheduling.pods import rows, table
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

    def note(self, result: cycle.CycleResult) -> None:
        """Take in what a cycle placed and left pending."""
        for class_id in result.placed:
            self._since_s.pop(class_id, None)
        for class_id, code in result.left.items():
            if code is model.Code.UNSCHEDULABLE:
                self._since_s.setdefault(class_id, self._clock())
            else:
                self._since_s.pop(class_id, None)

    def next_s(self) -> float:
        """Return when a class may come to qualify; infinity if none may."""
        now_s = self._clock()
        due = (since_s + self._delay_s for since_s in self._since_s.values())
        return min((due_s for due_s in due if due_s > now_s), default=float("inf"))

    def decide(
        self, queue: framework.SchedulingQueue, known_jobs: jobs.Jobs, pods: table.PodTable
    ) -> Iterator[rows.Operation]:
        """Yield the operations that create pods without a node now.

        Args:
            queue: Pending tasks.
            known_jobs: The jobs whose factories make the pods.
            pods: The pod table.
        """
        if not self._count or not self._since_s:
            return
        limit_s = self._clock() - self._delay_s
        for entry in list(known_jobs.entries()):
            for queued in queue.classes_of(entry.job.id) if entry.factory is not None else ():
                since_s = self._since_s.get(queued.task_class.id)
                if since_s is None or since_s > limit_s:
                    continue
                for task in queued.pool.pending()[: self._count]:
                    row = pods.get(task.id)
                    if row is None or task.expected or known_jobs.hold_of(row) is not None:
                        continue  # a pod made ahead would be refused as any other
                    if (operation := pods.decide_ahead(task, queued.task_class)) is not None:
                        yield operation
