"""The timeline generator (3.2): when will a job have ended, if from now on all tasks are placed regularly?

The paper adds up task durations on each node and merges the nodes. Here the same is done by playing the future on a
heap of ends: tasks that run end, and their nodes take what the order gives them next, regularly and with node
reservations. Only numbers of outlook and view are copied, and no further is played than a question needs: whether an
elastic task would be its job's last is decided as soon as one of the job's tasks is known to end as late, which is
mostly soon. What was played stays, and is played on from there for the next question.
"""

import dataclasses
import heapq
import math
from collections.abc import Callable, Mapping

from boathouse_policies import model
from boathouse_policies.framework import ClusterView
from boathouse_policies.yarn_me.outlook import End, Outlook, duration_s


@dataclasses.dataclass(slots=True, eq=False)
class _Class:
    """Tasks of a class that are left to place in the future that is played."""

    id: model.ClassId
    left: int
    memory: int
    cpu: int
    seconds: float


@dataclasses.dataclass(slots=True, eq=False)
class _Job:
    id: model.JobId
    order: tuple[float, float]  # its key in the profile's order, and how equals are ordered that hold as much memory
    held: int
    last_end_s: float  # when the last of its tasks that have a node ends
    pending: list[_Class]  # its classes with tasks left, the first at the end of the list

    @property
    def entry(self) -> "tuple[float, int, float, model.JobId, _Job]":
        """What it is in the heap of jobs."""
        return self.order[0], self.held, self.order[1], self.id, self


class Timeline:
    """One future, played as far as somebody asked: jobs in the order of `job_key`, then of the memory they hold."""

    def __init__(
        self,
        outlook: Outlook,
        view: ClusterView,
        reserved: Mapping[model.NodeName, model.ClassId],
        job_key: Callable[[model.JobId], float] = lambda _: 0.0,
    ) -> None:
        self._now_s = view.now_s
        names, free = view.layout.names, view.layout.allocatable - view.requested
        self._memory: dict[model.NodeName, int] = dict(zip(names, free[model.MEMORY].tolist(), strict=True))
        self._cpu: dict[model.NodeName, int] = dict(zip(names, free[model.CPU].tolist(), strict=True))
        self._ends = outlook.ends()
        last_ends_s = {end[-1]: max(end[0], view.now_s) for end in self._ends}  # overdue: any moment now
        self._ends.reverse()  # the first is the last of the list, to be popped
        self._jobs = {
            job: _Job(
                job,
                (job_key(job), submitted.job.submitted_s),
                view.job_usage(job)[model.MEMORY],
                last_ends_s.get(job, -math.inf),
                _left(outlook, submitted),
            )
            for job, submitted in outlook.jobs.items()
        }
        self._new_ends: list[End] = []  # a heap: of tasks that are placed in the future
        self._made = 0
        self._order = [job.entry for job in self._jobs.values() if job.pending]
        heapq.heapify(self._order)
        self._moved: set[_Job] = set()  # their entries in the order are out of date
        self._reserved = {
            name: self._jobs[outlook.classes[owner].job]
            for name, owner in reserved.items()
            if outlook.left.get(owner, 0) > 0 and name in self._memory
        }
        self._unfilled = list(names)

    def reaches(self, job_id: model.JobId, time_s: float) -> bool:
        """Return whether the job will still run at a time: whether it ends then or later."""
        job = self._jobs.get(job_id)
        if job is None or job.last_end_s >= time_s:
            return job is not None
        for node in self._unfilled:
            self._fill(node)
        self._unfilled.clear()
        while job.last_end_s < time_s and job.pending:
            if not self._place_next(time_s - max([task_class.seconds for task_class in job.pending])):
                return True  # nothing that is placed after that ends before it
        return job.last_end_s >= time_s

    def _place_next(self, before_s: float) -> bool:
        """Play end after end until something is placed; return False if nothing is before that time."""
        known, new, reserved = self._ends, self._new_ends, self._reserved
        jobs, memory, cpu = self._jobs, self._memory, self._cpu
        while known or new:
            is_known = not new or (known and known[-1][0] <= new[0][0])  # of equals, what runs now goes first
            end_s, _, node, bytes_freed, cpu_freed, job_id = known[-1] if is_known else new[0]
            if end_s >= before_s:
                return False
            if is_known:
                known.pop()
            else:
                heapq.heappop(new)
            job = jobs.get(job_id)
            if job is None or node not in memory:
                continue
            self._now_s = max(self._now_s, end_s)
            memory[node] = free = memory[node] + bytes_freed
            cpu[node] += cpu_freed
            job.held -= bytes_freed
            if job.pending:
                self._moved.add(job)
            owner = reserved.get(node)
            if owner is None or not owner.pending or owner.pending[-1].memory <= free:
                made = self._made
                self._fill(node)
                if self._made > made:
                    return True
        return False

    def _fill(self, node: model.NodeName) -> None:
        """Place what the node takes now: its owner's tasks, else the first job's, which reserves it for the next."""
        while True:
            owner = self._reserved.get(node)
            job = owner if owner is not None and owner.pending else self._head()
            if job is None:
                self._reserved.pop(node, None)
                return
            task_class = job.pending[-1]
            if task_class.memory > self._memory[node] or task_class.cpu > self._cpu[node]:
                self._reserved[node] = job
                return
            self._reserved.pop(node, None)
            self._place(job, task_class, node)

    def _place(self, job: _Job, task_class: _Class, node: model.NodeName) -> None:
        self._memory[node] -= task_class.memory
        self._cpu[node] -= task_class.cpu
        job.held += task_class.memory
        end_s = self._now_s + task_class.seconds
        self._made += 1
        heapq.heappush(self._new_ends, (end_s, self._made, node, task_class.memory, task_class.cpu, job.id))
        job.last_end_s = max(job.last_end_s, end_s)
        task_class.left -= 1
        if not task_class.left:
            job.pending.pop()
        if job.pending:
            self._moved.add(job)

    def _head(self) -> _Job | None:
        """Return the first job in the order; entries of the heap that are out of date are dropped."""
        for job in self._moved:
            heapq.heappush(self._order, job.entry)
        self._moved.clear()
        while self._order:
            _, held, _, _, job = self._order[0]
            if job.pending and held == job.held:
                return job
            heapq.heappop(self._order)
        return None


def _left(outlook: Outlook, submitted: model.Submitted) -> list[_Class]:
    waiting = [(known, known.resources, outlook.left[known.id]) for known in reversed(submitted.classes)]
    return [
        _Class(known.id, left, size.memory_bytes, size.cpu_milli, duration_s(known, size))
        for known, size, left in waiting
        if left > 0
    ]
