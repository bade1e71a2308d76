"""A local search over orders of jobs, each judged in a cluster whose nodes are one pool."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import random
import statistics
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.board.demand import Demand, Phase
    from boathouse_sim.workload import Cluster

STEPS: Final = 400
LAUNCH_S: Final = 1.0
"""From a task's placement until it starts."""
_HOTTEST: Final = 0.01
"""First temperature of the annealing, as a share of the mean job time."""
_FAR: Final = 0.2
"""One over the mean distance that a job is moved."""


@dataclasses.dataclass(slots=True)
class _Course:
    """A job on its way: tasks of its phase that wait and that run."""

    demand: Demand
    phase: int = 0
    waiting: int = 0
    running: int = 0

    @property
    def now(self) -> Phase:
        """Its phase."""
        return self.demand.phases[self.phase]


class Pool:
    """A cluster whose nodes are one: tasks of the first job in an order that wait start where memory and CPUs suffice.

    Args:
        cluster: Its memory and CPUs.
        rank: Of jobs by name.
    """

    def __init__(self, cluster: Cluster, rank: dict[str, int]) -> None:
        self._mem_mb, self._cores = float(cluster.total_mem_mb), float(cluster.total_cores)
        self._least = cluster.min_mem_fraction
        self._rank = rank
        self._ends: list[tuple[float, int, _Course, int, float]] = []
        self._made = itertools.count()

    def job_times_s(self, demands: Sequence[Demand]) -> list[float]:
        """Return the times from submission to end, in the order of the jobs' ends."""
        coming = sorted(demands, key=lambda one: one.submit_s, reverse=True)
        active: list[_Course] = []
        found: list[float] = []
        while coming or self._ends:
            now_s = min(coming[-1].submit_s if coming else math.inf, self._ends[0][0] if self._ends else math.inf)
            while coming and coming[-1].submit_s <= now_s:
                one = coming.pop()
                active.append(_Course(one, waiting=one.phases[0].tasks))
                active.sort(key=lambda course: self._rank[course.demand.name])
            while self._ends and self._ends[0][0] <= now_s:
                course = self._end()
                if course.phase == len(course.demand.phases):
                    active.remove(course)
                    found.append(now_s - course.demand.submit_s)
            for course in active:
                self._place(course, now_s)
        return found

    def _end(self) -> _Course:
        _, _, course, tasks, mem_mb = heapq.heappop(self._ends)
        self._mem_mb += tasks * mem_mb
        self._cores += tasks * course.now.cores
        course.running -= tasks
        if not course.waiting and not course.running:
            course.phase += 1
            if course.phase < len(course.demand.phases):
                course.waiting = course.now.tasks
        return course

    def _place(self, course: _Course, now_s: float) -> None:
        if not course.waiting:
            return
        phase = course.now
        self._start(course, phase.mem_mb, phase.seconds, now_s)
        if course.waiting and phase.slowdown:
            self._start(course, self._least * phase.mem_mb, phase.seconds * phase.slowdown, now_s)

    def _start(self, course: _Course, mem_mb: float, seconds: float, now_s: float) -> None:
        phase = course.now
        tasks = min(course.waiting, int(self._mem_mb // mem_mb), int(self._cores // phase.cores))
        if not tasks or (phase.together and tasks < course.waiting):
            return
        self._mem_mb -= tasks * mem_mb
        self._cores -= tasks * phase.cores
        course.waiting -= tasks
        course.running += tasks
        heapq.heappush(self._ends, (now_s + seconds + LAUNCH_S, next(self._made), course, tasks, mem_mb))


def mean_s(demands: Sequence[Demand], cluster: Cluster, order: Sequence[str]) -> float:
    """Return the mean job time in the pool."""
    rank = {name: place for place, name in enumerate(order)}
    return statistics.fmean(Pool(cluster, rank).job_times_s(demands))


def best(demands: Sequence[Demand], cluster: Cluster, seed: int, *, steps: int = STEPS) -> list[str]:
    """Return the best order found: from least work first, jobs are moved (simulated annealing).

    Args:
        demands: The jobs.
        cluster: Its nodes become one.
        seed: Of what is drawn.
        steps: Orders that are tried.
    """
    draw = random.Random(seed)  # noqa: S311 - a search
    work = {one.name: sum(one.work(cluster).values()) for one in demands}
    found = now = sorted(work, key=lambda name: (work[name], name))
    found_s = now_s = mean_s(demands, cluster, now)
    for step in range(steps):
        other = list(now)
        at = draw.randrange(len(other))
        moved = other.pop(at)
        distance = draw.choice((-1, 1)) * int(draw.expovariate(_FAR) + 1)
        other.insert(min(len(other), max(0, at + distance)), moved)
        other_s = mean_s(demands, cluster, other)
        heat_s = max(1e-9, _HOTTEST * found_s * (1 - step / steps))
        if other_s < now_s or draw.random() < math.exp(-(other_s - now_s) / heat_s):
            now, now_s = other, other_s
        if other_s < found_s:
            found, found_s = other, other_s
    return found
