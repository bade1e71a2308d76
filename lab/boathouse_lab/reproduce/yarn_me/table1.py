"""The applications of Table 1 on the paper's 50 nodes (5.1), with the task durations that it does not print."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_policies.yarn_me.penalty import BUFFER_SHARE
from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

MB_PER_GB: Final = 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """One job of an application, a part of a row of Table 1.

    Attributes:
        maps: Map tasks.
        reduces: Reduce tasks.
        map_penalty: Factor of an under-sized map.
        reduce_penalty: Factor of an under-sized reducer.
        map_mb: Ideal memory of a map.
        reduce_mb: Ideal memory of a reducer.
    """

    maps: int
    reduces: int
    map_penalty: float
    reduce_penalty: float
    map_mb: int
    reduce_mb: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A row of Table 1.

    Attributes:
        letter: First letter of its jobs' names here.
        input_gb: Read by each of its jobs.
        apart_s: Time between the starts of runs (IA).
        jobs: One after the other.
    """

    letter: str
    input_gb: int
    apart_s: int
    jobs: tuple[HadoopJob, ...]

    @property
    def tasks(self) -> int:
        """Tasks of a run."""
        return sum(job.maps + job.reduces for job in self.jobs)


def _job(counts: tuple[int, int], penalties: tuple[float, float], memory_gb: tuple[float, float]) -> HadoopJob:
    return HadoopJob(
        maps=counts[0],
        reduces=counts[1],
        map_penalty=penalties[0],
        reduce_penalty=penalties[1],
        map_mb=round(memory_gb[0] * 1000),
        reduce_mb=round(memory_gb[1] * 1000),
    )


PAGERANK: Final = "Pagerank"
WORDCOUNT: Final = "WordCount"
RECOMMENDER: Final = "Recommender"
TABLE1: Final[Mapping[str, Application]] = {
    PAGERANK: Application(
        letter="p",
        input_gb=550,
        apart_s=120,
        jobs=(_job((1381, 275), (1.3, 1.22), (1.7, 3.7)), _job((1925, 275), (1.25, 1.75), (1.5, 6.8))),
    ),
    WORDCOUNT: Application(letter="w", input_gb=540, apart_s=30, jobs=(_job((2130, 75), (1.35, 1.9), (1.7, 5.4)),)),
    RECOMMENDER: Application(
        letter="r",
        input_gb=250,
        apart_s=120,
        jobs=(_job((505, 100), (1.3, 2.6), (2.4, 2.8)), _job((505, 100), (1.3, 3.3), (2.4, 3.8))),
    ),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the paper does not print: a task takes its input over these rates.

    Attributes:
        map_mb_per_s: A map's input is the job's over its maps.
        reduce_mb_per_s: A reducer's input is what fills its ideal memory's buffer: 70 % of it.
    """

    map_mb_per_s: float = 10.0
    reduce_mb_per_s: float = 10.0


TAKEN_RATES: Final = Rates()
NODES: Final = 50


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs of applications, each begun at its time.

    Attributes:
        starts: Application and second of each run, in the order in which ties are broken.
        rates: Of its tasks.
        part: A part of the nodes with the same part of each phase's tasks: as many waves, sooner simulated.
    """

    starts: tuple[tuple[str, int], ...]
    rates: Rates = TAKEN_RATES
    part: float = 1.0

    @property
    def tasks_about(self) -> float:
        """But for rounding."""
        return self.part * sum(TABLE1[name].tasks for name, _ in self.starts)

    def draw(self, seed: int) -> Workload:  # noqa: ARG002  nothing here is drawn: seeds move the tasks' durations
        """Return the workload; runs are named by letter and number, their jobs by one letter more."""
        jobs: list[JobSpec] = []
        for number, (name, start_s) in enumerate(self.starts):
            jobs += self._jobs(TABLE1[name], f"{TABLE1[name].letter}{number:02}", start_s)
        cluster = Cluster(nodes=round(NODES * self.part), node_mem_mb=10_000, node_cores=14)
        return Workload(name="table1", cluster=cluster, jobs=tuple(jobs))

    def _jobs(self, app: Application, run: str, start_s: int) -> list[JobSpec]:
        ids = [f"{run}{'ab'[i]}" for i in range(len(app.jobs))]
        return [
            JobSpec(
                id=ids[i],
                submit_ms=start_s * 1000 if i == 0 else None,
                after=ids[i - 1] if i else None,
                phases=self._phases(app, job),
            )
            for i, job in enumerate(app.jobs)
        ]

    def _phases(self, app: Application, job: HadoopJob) -> tuple[Phase, Phase]:
        map_s = app.input_gb * MB_PER_GB / job.maps / self.rates.map_mb_per_s
        reduce_s = job.reduce_mb * BUFFER_SHARE / self.rates.reduce_mb_per_s
        return (
            Phase(
                kind="map",
                tasks=round(job.maps * self.part),
                duration_ms=round(map_s * 1000),
                mem_ideal_mb=job.map_mb,
                penalty=Penalty(model=PenaltyModel.STEP, factor=job.map_penalty),
            ),
            Phase(
                kind="reduce",
                tasks=round(job.reduces * self.part),
                duration_ms=round(reduce_s * 1000),
                mem_ideal_mb=job.reduce_mb,
                penalty=Penalty(model=PenaltyModel.SAWTOOTH, factor=job.reduce_penalty),
            ),
        )


def alike(name: str, count: int, part: float = 1.0) -> Runs:
    """Return so many runs of one application, apart by its inter-arrival time."""
    return Runs(starts=tuple((name, i * TABLE1[name].apart_s) for i in range(count)), part=part)


EVERY_S: Final = 300
"""The mix submits a run every five minutes."""


def mixed(part: float = 1.0) -> Runs:
    """Return five runs at once, then one every five minutes: 3 Pagerank, 3 Recommender and 8 WordCount in all (5.2)."""
    first = [(PAGERANK, 0), (RECOMMENDER, 0), (WORDCOUNT, 0), (WORDCOUNT, 0), (WORDCOUNT, 0)]
    # The order of the nine that follow is not stated: the three applications take turns as long as each has runs left.
    later = [PAGERANK, RECOMMENDER, WORDCOUNT] * 2 + [WORDCOUNT] * 3
    starts = (*first, *((name, EVERY_S * (i + 1)) for i, name in enumerate(later)))
    return Runs(starts=starts, part=part)
