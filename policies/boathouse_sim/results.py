"""What a simulation says."""

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

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
    """One simulation. Utilisations are over the makespan and all of the cluster."""

    jobs: int  # jobs that ended: all
    tasks: int  # tasks that ran
    job_times_s: tuple[float, ...] = dataclasses.field(repr=False)  # submission to end, in the workload's order
    mean_job_time_s: float
    median_job_time_s: float
    p95_job_time_s: float  # a value that occurred
    makespan_s: float  # from the first submission to the last end
    memory_utilisation: float | None  # None where there is no memory (one fluid resource)
    cpu_utilisation: float
    elastic_tasks: int  # tasks that got less than their ideal memory
    events: int  # handled, cycles included
    probes: int = 0  # probing jobs; they count as neither jobs nor tasks, and as memory and CPU that was used
    probing_share: float = 0.0  # their part of the memory-seconds that were used
    cpu_s: float = 0.0  # of the simulation, measured by whoever ran it; not part of equal bytes
    node_local_share: float | None = None  # of tasks with input in blocks; None without such
    distances: tuple[int, ...] = ()  # tasks with input in blocks by its distance: node, server, rack, further
    suspensions: int = 0
    lost_tasks: int = 0  # attempts that were lost with their node, or gave way
    speculative_attempts: int = 0  # second attempts of slow tasks; they are no tasks, what they held counts
    busy_cpu_utilisation: float | None = None  # of what tasks computed, not what they held; None if they only last
    gang_wait_s: float | None = None  # from the submission of applications that start whole to their start, the mean
    kept_idle_share: float = 0.0  # CPU that was free on nodes kept for gangs, as a share of the cluster's

    def as_json(self) -> dict[str, Any]:
        """Return the values by name, without the single job times."""
        return {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "job_times_s"
        }


def summarise(job_times_ms: Sequence[int], *, makespan_ms: int, tally: Tally, cluster: Cluster, events: int) -> Outcome:
    """Turn sums into an outcome."""
    whole_ms, located = max(1, makespan_ms), sum(tally.distances)
    return Outcome(
        **_of_times(np.array(job_times_ms, np.float64) / 1000),
        tasks=tally.tasks,
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


def _of_times(times_s: FloatVector) -> dict[str, Any]:
    return {
        "jobs": len(times_s),
        "job_times_s": tuple(times_s.tolist()),
        "mean_job_time_s": float(times_s.mean()),
        "median_job_time_s": statistics.median(times_s.tolist()),  # not numpy's, which takes 40 ms to import
        "p95_job_time_s": float(np.percentile(times_s, PERCENTILE, method="higher")),
    }


def of_fluid(arrival_s: FloatVector, size_s: FloatVector, end_s: FloatVector, *, cpu_s: float) -> Outcome:
    """Return the outcome of one fluid resource: each job is one task, and the resource counts as CPU.

    Arrivals, sizes (the work of each job) and ends have the shape [J].
    """
    makespan_s = float(end_s.max() - arrival_s.min())
    return Outcome(
        **_of_times(end_s - arrival_s),
        tasks=len(size_s),
        makespan_s=makespan_s,
        memory_utilisation=None,
        cpu_utilisation=float(size_s.sum()) / makespan_s,
        elastic_tasks=0,
        events=2 * len(size_s),
        cpu_s=cpu_s,
    )
