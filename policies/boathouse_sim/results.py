"""What a simulation says."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.fluid import FloatVector
    from boathouse_sim.topology import Cluster

PERCENTILE = 95


@dataclasses.dataclass(slots=True)
class Tally:
    """Sums in the making."""

    tasks: int = 0
    elastic: int = 0
    mb_ms: int = 0
    core_ms: float = 0
    busy_core_ms: float = 0.0
    distances: list[int] = dataclasses.field(default_factory=lambda: [0, 0, 0, 0])
    suspensions: int = 0
    resizes: int = 0
    lost: int = 0
    speculative: int = 0
    probes: int = 0
    probe_mb_ms: int = 0
    located: int = 0
    gang_waits_ms: list[int] = dataclasses.field(default_factory=list)
    kept_idle_core_ms: int = 0

    def at(self, distance: int) -> None:
        """Count a placed task with input in blocks at this distance."""
        self.distances[distance] += 1
        self.located += 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One simulation.

    Attributes:
        jobs: Jobs that ended: all.
        tasks: Tasks that ran.
        job_times_s: From submission to end, in the order of the workload, shape [J].
        mean_job_time_s: Their mean.
        median_job_time_s: Their median.
        p95_job_time_s: Their 95th percentile, a value that occurred.
        makespan_s: From the first submission to the last end.
        memory_utilisation: Sum of a task's memory times its run time, over makespan times the cluster's memory; None
            where there is no memory (one fluid resource).
        cpu_utilisation: The same of cores.
        elastic_tasks: Tasks that got less than their ideal memory.
        node_local_share: Of the tasks with input in blocks, those placed on a node that has it; None without such.
        distances: Tasks with input in blocks by its distance: node, server, rack, further.
        suspensions: Times that a task was suspended.
        lost_tasks: Attempts that were lost with their node, or gave way.
        speculative_attempts: Second attempts of slow tasks; they do not count as tasks, what they held does.
        busy_cpu_utilisation: As `cpu_utilisation`, but of what tasks computed, not of what they held; None where tasks
            only last.
        gang_wait_s: From the submission of applications that start whole to their start, the mean; None without such.
        kept_idle_share: CPU that was free on nodes kept for gangs, as a share of the cluster's.
        events: Events handled, cycles included.
        probes: Probing jobs that ran; they count as neither jobs nor tasks, and as memory and CPU that was used.
        probing_share: Their part of the memory-seconds that were used.
        cpu_s: CPU time of the simulation, measured by whoever ran it; not part of equal bytes.
    """

    jobs: int
    tasks: int
    job_times_s: tuple[float, ...] = dataclasses.field(repr=False)
    mean_job_time_s: float
    median_job_time_s: float
    p95_job_time_s: float
    makespan_s: float
    memory_utilisation: float | None
    cpu_utilisation: float
    elastic_tasks: int
    events: int
    probes: int = 0
    probing_share: float = 0.0
    cpu_s: float = 0.0
    node_local_share: float | None = None
    distances: tuple[int, ...] = ()
    suspensions: int = 0
    lost_tasks: int = 0
    speculative_attempts: int = 0
    busy_cpu_utilisation: float | None = None
    gang_wait_s: float | None = None
    kept_idle_share: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the values by name, without the single job times."""
        return {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "job_times_s"
        }


def summarise(job_times_ms: Sequence[int], *, makespan_ms: int, tally: Tally, cluster: Cluster, events: int) -> Outcome:
    """Turn sums into an outcome."""
    times = np.array(job_times_ms, np.float64) / 1000
    whole_ms = max(1, makespan_ms)
    located = sum(tally.distances)
    return Outcome(
        jobs=len(times),
        tasks=tally.tasks,
        job_times_s=tuple(times.tolist()),
        mean_job_time_s=float(times.mean()),
        median_job_time_s=statistics.median(times.tolist()),  # not numpy's, which takes 40 ms to import
        p95_job_time_s=float(np.percentile(times, PERCENTILE, method="higher")),
        makespan_s=makespan_ms / 1000,
        memory_utilisation=tally.mb_ms / (whole_ms * cluster.total_mem_mb),
        cpu_utilisation=tally.core_ms / (whole_ms * cluster.total_cores),
        elastic_tasks=tally.elastic,
        events=events,
        probes=tally.probes,
        probing_share=tally.probe_mb_ms / max(1, tally.mb_ms),
        node_local_share=tally.distances[0] / located if located else None,
        distances=tuple(tally.distances) if located else (),
        suspensions=tally.suspensions,
        lost_tasks=tally.lost,
        speculative_attempts=tally.speculative,
        busy_cpu_utilisation=tally.busy_core_ms / (whole_ms * cluster.total_cores) if tally.busy_core_ms else None,
        gang_wait_s=statistics.fmean(tally.gang_waits_ms) / 1000 if tally.gang_waits_ms else None,
        kept_idle_share=tally.kept_idle_core_ms / (whole_ms * cluster.total_cores),
    )


def of_fluid(arrival_s: FloatVector, size_s: FloatVector, end_s: FloatVector, *, cpu_s: float) -> Outcome:
    """Return the outcome of one fluid resource: each job is one task, and the resource counts as CPU.

    Args:
        arrival_s: Shape [J].
        size_s: Work of each job, shape [J].
        end_s: Shape [J].
        cpu_s: CPU time of working it out.
    """
    times = end_s - arrival_s
    makespan_s = float(end_s.max() - arrival_s.min())
    return Outcome(
        jobs=len(times),
        tasks=len(times),
        job_times_s=tuple(times.tolist()),
        mean_job_time_s=float(times.mean()),
        median_job_time_s=statistics.median(times.tolist()),  # not numpy's, which takes 40 ms to import
        p95_job_time_s=float(np.percentile(times, PERCENTILE, method="higher")),
        makespan_s=makespan_s,
        memory_utilisation=None,
        cpu_utilisation=float(size_s.sum()) / makespan_s,
        elastic_tasks=0,
        events=2 * len(times),
        cpu_s=cpu_s,
    )
