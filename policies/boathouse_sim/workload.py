"""What is simulated: a cluster, jobs of plain phases, and applications with a course of their own.

With `Errors`, the truth strays from what policies are told (the YARN-ME paper's 6.2, "Sensitivity to mis-estimations").
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_sim.conditions import Conditions
from boathouse_sim.topology import Cluster
from boathouse_sim.work import App, JobSpec, Penalty, PenaltyModel, Phase

__all__ = ["Cluster", "Errors", "JobSpec", "Penalty", "PenaltyModel", "Phase", "Timing", "Workload", "WorkloadError"]
Span: TypeAlias = tuple[float, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors, drawn uniformly: the truth is the estimate times 1 + error."""

    duration: Span = (0.0, 0.0)  # for each task anew
    memory: Span = (0.0, 0.0)  # for each job: of its true ideal memory; a regular task may then spill too
    penalty: Span = (0.0, 0.0)  # for each job: of its true penalty factor, at least 1


class Truth:
    """How long tasks really run."""

    def __init__(self, errors: Errors, random: np.random.Generator) -> None:
        self._errors, self._random = errors, random
        self._is_exact = not any(errors.duration)

    def of_job(self, phases: tuple[Phase, ...], node_mem_mb: int) -> tuple[Phase, ...]:
        """Return the real phases: one draw for memory and one for the penalty."""
        memory, penalty = self._draw(self._errors.memory), self._draw(self._errors.penalty)
        if not memory and not penalty:
            return phases
        return tuple(
            dataclasses.replace(
                phase,
                mem_ideal_mb=min(node_mem_mb, max(1, round(phase.mem_ideal_mb * (1 + memory)))),
                penalty=Penalty(model=phase.penalty.model, factor=max(1.0, phase.penalty.factor * (1 + penalty))),
            )
            for phase in phases
        )

    def run_time_ms(self, phase: Phase, given_mb: int, index: int = 0) -> int:
        """Run time of one task of a phase, by its index: one draw for its duration."""
        run_ms = phase.task_ms(index)
        if given_mb < phase.mem_ideal_mb:
            run_ms = phase.penalty.run_time_ms(run_ms, given_mb, phase.mem_ideal_mb)
        if self._is_exact:
            return run_ms
        return max(0, round(run_ms * (1 + self._draw(self._errors.duration))))

    def _draw(self, span: Span) -> float:
        low, high = span
        return float(self._random.uniform(low, high)) if low != high else low


class WorkloadError(ValueError):
    """A workload cannot be read or simulated; the message names the place and what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Periods of the heartbeat protocol; see `boathouse_sim.simulation`."""

    node_heartbeat_ms: int = 1000
    am_heartbeat_ms: int = 1000
    am_container_mb: int = 0
    am_container_cores: int = 0
    allocs_per_node_heartbeat: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All that a simulation starts from."""

    name: str
    cluster: Cluster
    jobs: tuple[JobSpec, ...] = ()  # in the order in which ties are broken
    timing: Timing = Timing()  # used by the heartbeat protocol alone
    assumptions: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    """What the trace does not say and was taken from named defaults."""
    apps: tuple[App, ...] = ()  # with a course of their own (`live`): MapReduce jobs, Spark applications
    conditions: Conditions | None = None  # what holds beside fixed run times; None for nothing
    queues: tuple[model.Queue, ...] = ()  # one, `default`, where none is named

    @property
    def live(self) -> bool:
        """Whether run times depend on what happens, so that it takes `boathouse_sim.live` to simulate it."""
        return bool(self.apps) or self.conditions is not None

    @property
    def tasks(self) -> int:
        """Tasks of all jobs."""
        return sum(phase.tasks for job in self.jobs for phase in job.phases) + sum(app.tasks for app in self.apps)

    def on(self, nodes: int) -> "Workload":
        """Return the same jobs on another number of equal nodes; raise WorkloadError if that cannot be."""
        if nodes < 1:
            raise WorkloadError(f"a cluster has at least 1 node, not {nodes}")
        if self.cluster.machines:
            raise WorkloadError(f"{self.name} names its machines one by one: change them in the workload")
        return dataclasses.replace(self, cluster=dataclasses.replace(self.cluster, nodes=nodes))

    def check(self) -> None:
        """Raise WorkloadError for what would never end: a task larger than a node, jobs that wait for one another."""
        specs: tuple[JobSpec | App, ...] = (*self.jobs, *self.apps)
        if not specs:
            raise WorkloadError(f"{self.name}: holds no jobs")
        if len({spec.id for spec in specs}) < len(specs):
            raise WorkloadError(f"{self.name}: job ids are not unique")
        for job in self.jobs:
            for phase in job.containers:
                self._check_size(f"job {job.id}, phase {phase.kind}", phase.mem_ideal_mb, phase.cores)
        for app in self.apps:
            for kind, container in app.containers():
                self._check_size(f"job {app.id}, {kind}", container.mem_mb, container.cores)
        queues = {str(queue.name) for queue in self.queues} or {"default"}
        for spec in specs:
            if spec.queue not in queues:
                raise WorkloadError(
                    f"{self.name}: job {spec.id}: there is no queue {spec.queue!r}; name it in `queues`"
                )
        self._check_chain(specs)

    def _check_size(self, where: str, mem_mb: int, cores: float) -> None:
        cluster = self.cluster
        if not cluster.holds(mem_mb, cores):
            raise WorkloadError(
                f"{self.name}: {where}: a task asks for {mem_mb} MB and {cores} cores, a node has "
                f"{cluster.node_mem_mb} MB and {cluster.node_cores}: it never fits; make the nodes larger in the "
                "workload's cluster, or the tasks smaller"
            )

    def _check_chain(self, jobs: Sequence[JobSpec | App]) -> None:
        comes = {job.id for job in jobs if job.after is None}
        left = [job for job in jobs if job.after is not None]
        while left:
            found = [job for job in left if job.after in comes]
            if not found:
                names = ", ".join(f"{job.id} after {job.after}" for job in left[:3])
                raise WorkloadError(f"{self.name}: these jobs would never start: {names}; mend `after`")
            comes.update(job.id for job in found)
            left = [job for job in left if job.id not in comes]
