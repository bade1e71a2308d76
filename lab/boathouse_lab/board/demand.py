"""What the jobs of a workload ask for, as somebody knows it who knows all."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from boathouse_sim.live import MapReduce, Spark
from boathouse_sim.work import JobSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_sim.work import Submission
    from boathouse_sim.workload import Cluster, Workload


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks.

    Attributes:
        stage: As in the names of their classes.
        tasks: How many.
        seconds: How long one runs alone.
        mem_mb: Memory of one.
        cores: CPUs of one.
        slowdown: What it is slower by with the least memory; 0 where it must get all.
        together: Whether all start at once, or none.
    """

    stage: str
    tasks: int
    seconds: float
    mem_mb: int
    cores: float
    slowdown: float = 0.0
    together: bool = False

    @property
    def memory_mb_s(self) -> float:
        """Memory of all tasks times their run times."""
        return self.tasks * self.mem_mb * self.seconds

    @property
    def core_s(self) -> float:
        """CPUs of all tasks times their run times."""
        return self.tasks * self.cores * self.seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A job: its phases, one after the other."""

    name: str
    submit_s: float
    phases: tuple[Phase, ...]
    is_spark: bool

    @property
    def alone_s(self) -> float:
        """Its time with enough nodes for itself, where pods take no time to start."""
        return sum(phase.seconds for phase in self.phases)

    def work(self, cluster: Cluster) -> Mapping[str, float]:
        """Return by stage what is used of the resource of which it uses the larger part, as shares of it × s."""
        memory = sum(one.memory_mb_s for one in self.phases) / cluster.total_mem_mb
        cores = sum(one.core_s for one in self.phases) / cluster.total_cores
        if memory >= cores:
            return {one.stage: one.memory_mb_s / cluster.total_mem_mb for one in self.phases}
        return {one.stage: one.core_s / cluster.total_cores for one in self.phases}


def of(workload: Workload) -> tuple[Demand, ...]:
    """Return the demands of all jobs, in the order of the workload."""
    return tuple(
        Demand(
            name=spec.id,
            submit_s=(spec.submit_ms or 0) / 1000,
            phases=_phases(spec),
            is_spark=isinstance(spec, Spark),
        )
        for spec in (*workload.jobs, *workload.apps)
    )


def _phases(spec: Submission) -> tuple[Phase, ...]:
    match spec:
        case MapReduce():
            found = [(kind, spec.maps if kind == "map" else spec.reduces, one) for kind, one in spec.containers()]
            return tuple(
                Phase(
                    stage=kind,
                    tasks=tasks,
                    seconds=one.work_ms / 1000,
                    mem_mb=one.mem_mb,
                    cores=one.cores,
                    slowdown=one.penalty.factor,
                )
                for kind, tasks, one in found
            )
        case Spark():
            waves = (math.ceil(one.tasks / (spec.executors * spec.slots)) * one.work.work_ms for one in spec.stages)
            one = spec.executor
            seconds = sum(waves) / 1000
            executors = Phase(
                stage="executor",
                tasks=spec.executors,
                seconds=seconds,
                mem_mb=one.mem_mb,
                cores=one.cores,
                together=True,
            )
            return (executors,)
        case JobSpec():
            return tuple(
                Phase(
                    stage=one.kind,
                    tasks=one.tasks,
                    seconds=one.duration_ms / 1000,
                    mem_mb=one.mem_ideal_mb,
                    cores=one.cores,
                    slowdown=one.penalty.factor,
                )
                for one in spec.phases
            )
        case _:
            raise TypeError(f"job {spec.id}: what a {type(spec).__name__} asks for is not known to the board")
