"""The columns of the board: profiles, and kube-scheduler's order."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from boathouse_lab.board import draws, knowing, parts
from boathouse_lab.board.draws import Style
from boathouse_policies import profiles
from boathouse_policies.baselines import LEAST_LOADED
from boathouse_policies.framework import Hooks, JobOrder, Profile
from boathouse_sim.conditions import RunTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework import CycleState, SchedulingQueue
    from boathouse_sim.workload import Workload

FAIR: Final = "fair"
BOATHOUSE: Final = "boathouse"
KUBE_SCHEDULER: Final = "kube-scheduler"
NEAR_OPTIMAL: Final = "near-optimal"
"""The best of the schedulers that know all, for each seed and world."""
MOST_BACKOFF_S: Final = 10.0
"""kube-scheduler's `podMaxBackoffSeconds`."""
PAPERS: Final = ("fspy", "ikayak", "ila", "yarn-me")


class Retried(JobOrder, Hooks):
    """kube-scheduler's order: pods that do not fit are retried in the order in which their back-offs end.

    The back-off of a pod grows with each attempt, from 1 s to `MOST_BACKOFF_S`. So pods that have been pending for less
    than this go first, the newest before the others; after them the others, in the order of their creation. Pods that
    do not fit let others pass. A job stands where the first of its classes that are pending stands.
    """

    def __init__(self) -> None:
        self._seen_s: dict[model.ClassId, float] = {}
        self._keys: dict[model.JobId, float] = {}

    @override
    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Note when classes came."""
        now_s = state.view.now_s
        pending = {
            queued.task_class.id: queued.task_class.job for queued in queue.sorted_classes().queued if queued.pool.count
        }
        self._seen_s = {task_class: self._seen_s.get(task_class, now_s) for task_class in pending}
        self._keys = {}
        for task_class, job in pending.items():
            seen_s = self._seen_s[task_class]
            key = -seen_s if now_s - seen_s < MOST_BACKOFF_S else seen_s
            self._keys[job] = min(key, self._keys.get(job, math.inf))

    @override
    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return a new job's time of creation below zero, so that the newest is first, and an old one's above."""
        return [self._keys.get(job.id, -state.view.now_s) for job in jobs]


def _kube_scheduler() -> Profile:
    order = Retried()
    return Profile(name=KUBE_SCHEDULER, order=order, score=LEAST_LOADED, hooks=(order,))


_USUAL: Final = Style()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the board.

    Attributes:
        name: On the command line and in pictures.
        build: Makes its profile for a workload and a seed, each call one with a state of its own.
        style: How its jobs are submitted.
        knows_all: Whether it is one of the schedulers with full knowledge.
        quick: Whether it is in the quick form.
    """

    name: str
    build: Callable[[Workload, int], Profile]
    style: Style = _USUAL
    knows_all: bool = False
    quick: bool = False


def _named(name: str, *, quick: bool = False) -> Column:
    return Column(name=name, build=lambda _workload, _seed: profiles.build(name), quick=quick)


def _without(part: str, *, quick: bool = False) -> Column:
    return Column(name=f"without {part}", build=lambda _workload, _seed: parts.build(part), quick=quick)


_KNOWN: Final = Style(conditions=dataclasses.replace(draws.CONDITIONS, run_times=RunTimes.EXACT))

COLUMNS: Final = (
    _named(FAIR, quick=True),
    Column(
        name=KUBE_SCHEDULER,
        build=lambda _workload, _seed: _kube_scheduler(),
        style=Style(gangs=False, slow_start=1.0),
        quick=True,
    ),
    *(_named(name) for name in PAPERS),
    _named(BOATHOUSE, quick=True),
    *(_without(part, quick=part == "suspend") for part in parts.PARTS),
    *(
        Column(name=name, build=functools.partial(knowing.build, name), style=_KNOWN, knows_all=True)
        for name in knowing.SCHEDULERS
    ),
)

BY_NAME: Final = {column.name: column for column in COLUMNS}
