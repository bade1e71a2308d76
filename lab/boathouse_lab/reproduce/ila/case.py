"""One simulation of the study, as a value that a process can be handed, and what is measured in it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce.ila import schedulers, setting, training
from boathouse_lab.reproduce.ila.programs import PAPER, Assumed, kind_of
from boathouse_policies import model
from boathouse_sim.live import Live

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.model import FloatVector
    from boathouse_sim.live import LiveRun, TaskRecord
    from boathouse_sim.workload import Workload


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation.

    Attributes:
        load: What is run.
        scheduler: By whom, as in `schedulers`.
        seed: Of arrivals, blocks and luck: the same for all schedulers.
        assumed: What the paper does not state.
        part: Of the maps of jobs of more than 20.
        trained: Whether ILA begins with offline training; if not, with what stands for it.
    """

    load: setting.Load
    scheduler: str
    seed: int
    assumed: Assumed = PAPER
    part: float = 1.0
    trained: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is measured.

    Attributes:
        job_times_s: By kind of job.
        makespan_s: From the first submission to the last end.
        maps: How many ran.
        slowdowns: Of each map: its run time over what it is alone with its input at hand, ascending.
        local: Of the maps of a kind of job, the share on a node, or a virtual machine of the host, that has the input.
        held_slots: Mean number of map slots that were held, until the last map had ended.
        seconds: Second attempts.
    """

    job_times_s: Mapping[str, tuple[float, ...]]
    makespan_s: float
    maps: int
    slowdowns: tuple[float, ...]
    local: Mapping[str, float]
    held_slots: float
    seconds: int

    @property
    def throughput(self) -> float:
        """Maps a second."""
        return self.maps / self.makespan_s

    def job_time_s(self, kind: str) -> float:
        """Return the mean time of a kind of job."""
        return float(np.mean(self.job_times_s[kind]))

    def at_most(self, slowdown: float) -> float:
        """Return the share of maps that are slower by this factor at most."""
        return float(np.searchsorted(self.slowdowns, slowdown, side="right")) / len(self.slowdowns)


def simulate(case: Case) -> Seen:
    """Run one."""
    queues = case.scheduler == schedulers.CAPACITY
    workload = setting.workload(case.load, case.seed, assumed=case.assumed, part=case.part, queues=queues)
    profile = schedulers.build(case.scheduler, case.assumed)
    if case.trained:
        training.train(profile, case.assumed)
    driver = Live(workload, profile, seed=case.seed)
    while driver.advance():
        pass
    outcome = driver.world.finished()
    maps = [one for one in driver.world.records if one.kind == "map" and not one.lost]
    ran_ms = np.array([one.ended_ms - one.started_ms for one in maps], np.float64)
    slowdowns: FloatVector = np.sort(ran_ms / np.array([one.alone_ms for one in maps]))
    return Seen(
        job_times_s=_by_kind(workload, [run.ended_ms - run.submitted_ms for run in _in_order(driver, workload)]),
        makespan_s=outcome.makespan_s,
        maps=len(maps),
        slowdowns=tuple(slowdowns.astype(np.float32).tolist()),
        local=_local(maps),
        held_slots=float(ran_ms.sum()) / (max(one.ended_ms for one in maps) - min(one.started_ms for one in maps)),
        seconds=outcome.speculative_attempts,
    )


def _in_order(driver: Live, workload: Workload) -> Sequence[LiveRun]:
    runs = {run.spec.id: run for run in driver.world.runs.values()}
    return [runs[app.id] for app in workload.apps]


def _by_kind(workload: Workload, times_ms: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
    found: dict[str, list[float]] = {}
    for app, time_ms in zip(workload.apps, times_ms, strict=True):
        found.setdefault(kind_of(app.id), []).append(time_ms / 1000)
    return {kind: tuple(times) for kind, times in found.items()}


def _local(maps: Sequence[TaskRecord]) -> Mapping[str, float]:
    near: dict[str, list[bool]] = {}
    for one in maps:
        if one.distance is not None:
            near.setdefault(kind_of(one.job), []).append(one.distance <= model.Distance.SERVER)
    return {kind: float(np.mean(flags)) for kind, flags in near.items()}


def dearest(case: Case) -> float:
    """Return roughly what a case costs."""
    maps = {setting.Load.STREAM: 2690, setting.Load.ISOLATED: 1650, setting.Load.CALM: 1350}.get(case.load, 1650)
    return maps * case.part
