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
PAPERS: Final = ("fspy", "ikayak", "ila", "yarn-me")


class Arrived(JobOrder, Hooks):
    """kube-scheduler's order: the pods that were created first; here of each job those of its first class that waits.

    Pods that do not fit let others pass.
    """

    def __init__(self) -> None:
        self._seen_s: dict[model.ClassId, float] = {}
        self._first_s: dict[model.JobId, float] = {}

    @override
    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Note when classes came."""
        first_s: dict[model.JobId, float] = {}
        waiting = {one.task_class.id: one.job.id for one in queue.sorted_classes().queued if one.pool.count}
        self._seen_s = {one: self._seen_s.get(one, state.view.now_s) for one in waiting}
        for one, job in waiting.items():
            first_s[job] = min(self._seen_s[one], first_s.get(job, math.inf))
        self._first_s = first_s

    @override
    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return when the job's first class that waits came."""
        return [self._first_s.get(job.id, job.submitted_s) for job in jobs]


def _kube_scheduler() -> Profile:
    order = Arrived()
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
