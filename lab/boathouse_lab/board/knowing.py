"""Schedulers with full knowledge: what the best of them takes is a yardstick, not a bound.

| scheduler | order of jobs | memory of tasks |
|---|---|---|
| `srpt` | least remaining work first, as a share of the resource of which the job uses most | the ideal |
| `srpt-elastic` | the same | less wherever the ideal does not fit |
| `search` | found by a local search over orders in a pooled cluster (`search`) | the ideal |
| `search-elastic` | the same | less wherever the ideal does not fit |

`least_mean_s` bounds the mean from below, whatever decides.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from boathouse_lab.board import demand, search
from boathouse_policies import model, yarn_me
from boathouse_policies.baselines import LEAST_LOADED
from boathouse_policies.framework import PREDICATES, JobOrder, Observer, Profile, RunningTasks
from boathouse_sim import fluid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework import CycleState
    from boathouse_sim.workload import Workload

SCHEDULERS: Final = ("srpt", "srpt-elastic", "search", "search-elastic")


class Remaining(JobOrder, Observer):
    """The job with the least remaining work first: what has ended is done.

    Args:
        demands: Of all jobs.
        work: Of each job by stage, as shares of the cluster × s.
    """

    def __init__(self, demands: Sequence[demand.Demand], work: Mapping[str, Mapping[str, float]]) -> None:
        self._each = {
            (one.name, phase.stage): work[one.name][phase.stage] / phase.tasks
            for one in demands
            for phase in one.phases
        }
        self._left = {name: sum(stages.values()) for name, stages in work.items()}
        self._names: dict[model.JobId, str] = {}

    @override
    def observe(self, event: model.Event) -> None:
        """Count what has ended."""
        if isinstance(event, model.Submitted):
            self._names[event.job.id] = event.job.name
        elif isinstance(event, model.Finished):
            name, stage = self._names[event.job], event.task_class.rsplit("/", 1)[1]
            self._left[name] -= self._each.get((name, stage), 0.0)

    @override
    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return the remaining work."""
        return [self._left[one.name] for one in jobs]


class Given(JobOrder, Observer):
    """A fixed order.

    Args:
        ranks: Of jobs by name.
    """

    constant = keyed_by_usage = True

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks

    @override
    def key(self, job: model.Job, usage: Sequence[int], layout: object) -> float:
        """Return the rank."""
        return float(self._ranks[job.name])


def build(scheduler: str, workload: Workload, seed: int) -> Profile:
    """Return a scheduler that knows a workload.

    Args:
        scheduler: One of `SCHEDULERS`.
        workload: What it knows.
        seed: Of the search.
    """
    demands = demand.of(workload)
    order: Remaining | Given
    if scheduler.startswith("search"):
        ranks = {name: rank for rank, name in enumerate(search.best(demands, workload.cluster, seed))}
        order = Given(ranks)
    else:
        order = Remaining(demands, {one.name: one.work(workload.cluster) for one in demands})
    if scheduler.endswith("elastic"):
        return _elastic(scheduler, order)
    return Profile(name=scheduler, order=order, score=LEAST_LOADED, observers=(order,))


class Eager(yarn_me.Elasticity):
    """Less memory wherever the ideal does not fit, whenever the job ends."""

    @override
    def ends_in_time(self, job: model.JobId, seconds: float, state: CycleState) -> bool:
        """Return True."""
        return True


def _elastic(name: str, order: Remaining | Given) -> Profile:
    running = RunningTasks()
    elastic = Eager(yarn_me.Config(), LEAST_LOADED, yarn_me.Outlook(running), yarn_me.Timeline)
    return Profile(
        name=name,
        order=order,
        filters=(*PREDICATES, elastic),
        score=elastic,
        sizer=elastic,
        controllers=(elastic,),
        observers=(running, elastic.outlook, elastic.disks, order),
        running=running,
        hooks=(elastic,),
    )


def least_mean_s(workload: Workload) -> float:
    """Return a bound of the mean job time from below.

    The larger of the mean time alone, and of the mean with shortest remaining processing time first on all CPUs as one
    fluid resource, which no schedule beats (Schrage, 1968). Memory gives no bound: tasks may take less.
    """
    demands, cores = demand.of(workload), workload.cluster.total_cores
    arrival_s = np.array([one.submit_s for one in demands])
    size_s = np.array([sum(phase.core_s for phase in one.phases) / cores for one in demands])
    by_time = np.argsort(arrival_s, kind="stable")
    arrival_s, size_s = arrival_s[by_time], size_s[by_time]
    fluid_s = float((fluid.finish_s(fluid.Order.SRPT, arrival_s, size_s) - arrival_s).mean())
    return max(fluid_s, statistics.fmean(one.alone_s for one in demands))
