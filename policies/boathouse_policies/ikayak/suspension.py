"""Dependency-aware resource adjustment (3.2): reducers that wait for maps give their CPU to them for a while.

λ = R_Spark/(R_Spark + R_MR) by allocated CPU, 0 if neither runs. T_suspend = max(0, λ^v - θ)·T. A reducer that still
lacks map output is suspended once in T, and runs for the rest of it.

The controller decides `Suspend(resources=..., until_s=...)` with 1 millicore left, for Kubernetes knows no 0; memory
stays. The shell stops the task, frees the CPU once that shows, and resumes by itself at `until_s`.

Beyond the paper (ours):

* Nobody is suspended where no map could use the CPU: none waits, or the node has not the memory for the smallest that
  does, or it is kept for an executor. Maps of the same job go first, then those of others (`lending`).
* A reducer is suspended once the shell says so (`Suspended`). One that it refused is not asked for again within T.
* `Resume` before the time is up once all maps of its job have ended, no map waits any more, or its node is kept for an
  executor.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from boathouse_policies.framework import ClusterView, SchedulingQueue
    from boathouse_policies.ikayak.book import Book, Running
    from boathouse_policies.ikayak.config import Config
    from boathouse_policies.ikayak.lending import Lending

REASON = "it waits for map output; its CPU goes to its job's maps"
READY = "its map output is there"
NO_USE = "no map waits for its CPU"
KEPT = "its node is kept for an executor, where no map may go"


def delay_factor(spark_cpu: int, map_reduce_cpu: int) -> float:
    """λ."""
    total = spark_cpu + map_reduce_cpu
    return spark_cpu / total if total else 0.0


def length_s(factor: float, config: Config) -> float:
    """T_suspend."""
    share: float = factor**config.weight - config.overhead
    return max(0.0, share) * config.interval_s


class Suspension:
    """The controller.

    Args:
        config: The constants.
        book: What runs.
        lending: Told who is suspended.
    """

    def __init__(self, config: Config, book: Book, lending: Lending) -> None:
        self._config = config
        self._book = book
        self._lending = lending

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Whom to suspend and whom to resume."""
        away, due = self._away(view.now_s), self._due(view.now_s)
        if not due and not away:
            self._lending.lent({}, frozenset())
            return ()
        waiting = _waiting_maps(queue)
        back = self._back(away, waiting, queue.reserved)
        paused, until_s = self._pausing(due, waiting, queue, view)
        lenders = {one: one.until_s for one in away if one not in back} | dict.fromkeys(paused, until_s)
        self._lending.lent(lenders, frozenset(waiting))
        return [
            *(_resume(one, reason) for one, reason in back.items()),
            *(self._suspend(one, until_s) for one in paused),
        ]

    def _away(self, now_s: float) -> list[Running]:
        """Who is suspended, in the order in which they were placed."""
        return sorted((one for one in self._book.away.values() if one.until_s > now_s), key=_NUMBER)

    def _due(self, now_s: float) -> list[Running]:
        """Who may be suspended."""
        return [one for one in self._book.lacking() if self._is_due(one, now_s)] if self._config.suspension else []

    @staticmethod
    def _back(
        away: list[Running], waiting: Mapping[model.JobId, int], reserved: Container[model.NodeName]
    ) -> Mapping[Running, str]:
        """Whom to resume, and why."""
        reasons = {
            one: READY if not one.job.lacks_maps else NO_USE if not waiting else KEPT if one.node in reserved else ""
            for one in away
        }
        return {one: reason for one, reason in reasons.items() if reason}

    def _pausing(
        self, due: list[Running], waiting: Mapping[model.JobId, int], queue: SchedulingQueue, view: ClusterView
    ) -> tuple[list[Running], float]:
        """Whom to suspend, and until when."""
        for_s = length_s(self.delay_factor(view), self._config) if due and waiting else 0.0
        if for_s <= 0:
            return [], view.now_s
        free, least, index = view.free()[model.MEMORY], min(waiting.values()), view.layout.index
        some = [one for one in due if one.node in index and one.node not in queue.reserved]
        return [one for one in some if free[index[one.node]] >= least], view.now_s + for_s

    def _is_due(self, one: Running, now_s: float) -> bool:
        """Whether it runs, lacks map output as far as it told, and was not suspended within T."""
        runs = one.history is not None and one.suspended_s is None and not one.past_shuffle
        return runs and now_s - one.last_s >= self._config.interval_s

    def _suspend(self, one: Running, until_s: float) -> model.Suspend:
        size = model.Resources(
            cpu_milli=min(self._config.shrunk_milli, one.resources.cpu_milli),
            memory_bytes=one.resources.memory_bytes,
            ephemeral_storage_bytes=one.resources.ephemeral_storage_bytes,
            extended=one.resources.extended,
        )
        return model.Suspend(task=_task(one), node=one.node, resources=size, until_s=until_s, reason=REASON)

    def delay_factor(self, view: ClusterView) -> float:
        """λ of what jobs hold now."""
        sums = {True: 0, False: 0}
        for job, usage in view.by_job.items():
            known = self._book.jobs.get(job)
            if known is not None:
                sums[known.is_spark] += int(usage[model.CPU])
        return delay_factor(sums[True], sums[False])


def _waiting_maps(queue: SchedulingQueue) -> Mapping[model.JobId, int]:
    """Memory of the smallest map that waits of each job of which any does."""
    found: dict[model.JobId, int] = {}
    for one in queue.sorted_classes().queued:
        if one.task_class.stage is model.Stage.MAP and len(one.pool):
            size = one.task_class.resources.memory_bytes
            found[one.job.id] = min(size, found.get(one.job.id, size))
    return found


def _resume(one: Running, reason: str) -> model.Resume:
    return model.Resume(task=_task(one), node=one.node, resources=one.resources, reason=reason)


def _task(one: Running) -> model.Task:
    return model.Task(id=one.task, task_class=one.task_class.id)


_NUMBER = operator.attrgetter("number")
