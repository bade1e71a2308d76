"""Workloads drawn from Table 2 of the YARN-ME paper: jobs of one phase, for sweeps and scaling."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

import numpy as np

from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Workload

if TYPE_CHECKING:
    import numpy.typing as npt


class Law(enum.StrEnum):
    """How parameters are drawn."""

    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table2:
    """One row of the table, at one value of each swept maximum; the defaults are the middle of the uniform row.

    Attributes:
        law: `uniform` draws between the bounds. `exponential` draws exponentially and stretches each parameter's draws
            so that the largest is the maximum, as DSS's generator does.
        tasks: Least and most tasks of a job.
        memory_gb: Least and most ideal memory of a task.
        duration_s: Least and most run time.
        penalty_factor: Of the sawtooth: 1.5 and 3 in the paper.
        arrival_s: Jobs come uniformly until then.
    """

    law: Law = Law.UNIFORM
    tasks: tuple[int, int] = (1, 300)
    memory_gb: tuple[float, float] = (1.0, 6.0)
    duration_s: tuple[int, int] = (1, 350)
    penalty_factor: float = 1.5
    arrival_s: int = 1000

    def draw(self, jobs: int, nodes: int, random: np.random.Generator) -> Workload:
        """Return a workload on the paper's nodes: 16 cores, 10 GB, sizes in steps of 100 MB."""
        tasks = self._whole(self.tasks, jobs, random)
        hundreds = self._whole((round(self.memory_gb[0] * 10), round(self.memory_gb[1] * 10)), jobs, random)
        seconds = self._whole(self.duration_s, jobs, random)
        arrivals = random.integers(0, self.arrival_s, jobs, endpoint=True)
        penalty = Penalty(model=PenaltyModel.SAWTOOTH, factor=self.penalty_factor)
        return Workload(
            name=f"table2-{self.law.value}-{jobs}x{nodes}",
            cluster=Cluster(nodes=nodes),
            jobs=tuple(
                JobSpec(
                    id=str(i),
                    submit_ms=int(arrivals[i]) * 1000,
                    phases=(
                        Phase(
                            kind="reduce",
                            tasks=int(tasks[i]),
                            duration_ms=int(seconds[i]) * 1000,
                            mem_ideal_mb=int(hundreds[i]) * 100,
                            penalty=penalty,
                        ),
                    ),
                )
                for i in range(jobs)
            ),
        )

    def _whole(self, bounds: tuple[int, int], count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
        least, most = bounds
        if self.law is Law.UNIFORM:
            return random.integers(least, most, count, endpoint=True)
        drawn = random.exponential(size=count)
        whole: npt.NDArray[np.int64] = (drawn * (most / drawn.max())).astype(np.int64)
        return np.maximum(whole, least)
