"""Workloads of the simulator that are drawn by seed: the mix, an hour of FB-2009, and Table 2 of YARN-ME."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.board import mix
from boathouse_lab.table2 import Law, Table2
from boathouse_sim import conditions, swim, topology, work
from boathouse_sim.conditions import Conditions, RunTimes
from boathouse_sim.live import MapReduce, Spark, SparkStage
from boathouse_sim.topology import Cluster
from boathouse_sim.workload import Workload

if TYPE_CHECKING:
    from boathouse_sim.work import App

LEAST_MEMORY = 0.25
"""Least share of its memory that a task may start with."""
_DRIVER = work.Container(mem_mb=896, cores=1)
_TASKS = 8  # of an executor, one after the other
_HOUR_S = 3600.0
_HOURS = 24

CONDITIONS = Conditions(
    contention=conditions.Saturation(),
    jitter=0.1,
    launch_ms=1000,
    suspend_ms=500,
    resume_ms=500,
    tick_ms=1000,
    run_times=RunTimes.LEARNED,
    spills_load_disks=True,
    reads_load_sources=True,
)
"""A cluster as it is: pods that take a second to start, run times learned as tasks end."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a column's jobs are submitted.

    Attributes:
        gangs: Whether an application's driver and executors start together or not at all.
        slow_start: Share of the maps after which reducers are offered; None for the row's.
        conditions: Of the simulation.
    """

    gangs: bool = True
    slow_start: float | None = None
    conditions: Conditions = CONDITIONS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A mix on its cluster.

    Attributes:
        shape: What is drawn.
        slow_start: Share of the maps after which reducers are offered.
        on_disks: Whether the input is in blocks on the nodes' disks, in 3 replicas, rather than in an object store.
        disk_mb_per_s: Of a node.
        host_cores: Of a host that two nodes share; 0 where each node is its own host.
        tenants: Namespaces that share the queue.
        run_times: What policies know of run times.
        misjudged: As in `Conditions`.
    """

    shape: mix.Shape
    slow_start: float = 0.2
    on_disks: bool = False
    disk_mb_per_s: float = topology.DISK_MB_PER_S
    host_cores: float = 0.0
    tenants: int = 1
    run_times: RunTimes = RunTimes.LEARNED
    misjudged: float = 1.0

    def workload(self, seed: int, style: Style) -> Workload:
        """Return the workload of a seed."""
        found = mix.draw(seed, self.shape)
        jobs = [self._job(place, one, style) for place, one in enumerate(found.jobs)]
        apps = [self._application(place, one, style) for place, one in enumerate(found.applications)]
        return Workload(
            name="mix",
            cluster=self._cluster(),
            apps=tuple(sorted((*jobs, *apps), key=lambda one: one.submit_ms or 0)),
            conditions=with_run_times(style.conditions, self.run_times, self.misjudged),
        )

    def _cluster(self) -> Cluster:
        shape = self.shape
        if self.host_cores:
            nodes, hosts = topology.virtual(
                shape.nodes // 2,
                machines_per_host=2,
                cores=shape.cores,
                mem_mb=shape.mem_mb,
                host_cores=self.host_cores,
                disk_mb_per_s=2 * self.disk_mb_per_s,
                network_mb_per_s=2 * topology.GIGABIT_MB_PER_S,
            )
            cluster = Cluster.of(nodes, hosts)
        else:
            cluster = Cluster.of(
                topology.machines(shape.nodes, cores=shape.cores, mem_mb=shape.mem_mb, disk_mb_per_s=self.disk_mb_per_s)
            )
        return dataclasses.replace(cluster, min_mem_fraction=LEAST_MEMORY)

    def _namespace(self, place: int) -> str:
        return f"tenant-{place % self.tenants}" if self.tenants > 1 else ""

    def _job(self, place: int, job: mix.Job, style: Style) -> MapReduce:
        return MapReduce(
            id=job.name,
            submit_ms=round(job.submit_s * 1000),
            program=job.program,
            namespace=self._namespace(place),
            maps=job.maps,
            map=_reading_blocks(job.map) if self.on_disks else job.map,
            reduces=job.reduces,
            reduce=job.reduce,
            slow_start=self.slow_start if style.slow_start is None else style.slow_start,
            replicas=3 if self.on_disks else 0,
        )

    def _application(self, place: int, one: mix.Application, style: Style) -> Spark:
        tasks = one.executors * _TASKS
        return Spark(
            id=one.name,
            submit_ms=round(one.submit_s * 1000),
            namespace=self._namespace(place),
            executors=one.executors,
            executor=work.Container(mem_mb=one.memory_mib, cores=1),
            driver=_DRIVER,
            stages=(SparkStage(tasks=tasks, work=work.segment("task", cpu_s=one.seconds / tasks)),),
            min_executors=one.executors if style.gangs else 0,
            startup_ms=500,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """All jobs of an hour of FB-2009, at their own times and with their own run times; the seed is the hour.

    Attributes:
        shape: A node, and the memory of tasks.
        load: Share of the nodes' memory that the hour uses.
        least_nodes: However little happens.
    """

    shape: mix.Shape
    load: float = 0.9
    least_nodes: int = 4

    def workload(self, seed: int, style: Style) -> Workload:
        """Return the workload of a seed."""
        model, hour = mix.model_of(self.shape), seed % _HOURS
        lines = [one for one in mix.trace() if one.submit_s // _HOUR_S == hour]
        specs = swim.workload("hour", lines, model).jobs
        jobs = [
            mix.job_of(spec, line, line.submit_s - hour * _HOUR_S, self.shape)
            for spec, line in zip(specs, lines, strict=True)
        ]
        used_mb_s = sum(mix.memory_mb_s(one) for one in jobs)
        nodes = max(self.least_nodes, math.ceil(used_mb_s / _HOUR_S / self.shape.mem_mb / self.load))
        row = Mixed(shape=dataclasses.replace(self.shape, nodes=nodes, jobs=len(jobs), applications=0))
        apps: list[App] = [row._job(place, one, style) for place, one in enumerate(jobs)]  # noqa: SLF001 - the same module's
        return Workload(name="hour", cluster=row._cluster(), apps=tuple(apps), conditions=style.conditions)  # noqa: SLF001


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table2Drawn:
    """Jobs of one phase by a law of Table 2 of the YARN-ME paper.

    Attributes:
        law: How parameters are drawn.
        jobs: How many.
        nodes: How many.
    """

    law: Law
    jobs: int
    nodes: int

    def workload(self, seed: int, style: Style) -> Workload:
        """Return the workload of a seed."""
        found = Table2(law=self.law).draw(self.jobs, self.nodes, np.random.default_rng(seed))
        return dataclasses.replace(found, conditions=style.conditions)


def with_run_times(conditions: Conditions, run_times: RunTimes, misjudged: float = 1.0) -> Conditions:
    """Return the conditions with the run times that a row lets policies know, unless a column lets them know all."""
    if conditions.run_times is RunTimes.EXACT:
        return conditions
    return dataclasses.replace(conditions, run_times=run_times, misjudged=misjudged)


def _reading_blocks(container: work.Container) -> work.Container:
    """Return a map that reads its input from a disk rather than from an object store, in the same time."""
    return dataclasses.replace(container, segments=tuple(map(_reading_block, container.segments)))


@functools.cache
def _reading_block(segment: work.Segment) -> work.Segment:
    reading = work.segment(segment.name, read_mb=segment.copy_mb, write_mb=segment.write_mb)
    return dataclasses.replace(reading, cpu_ms=max(0, segment.work_ms - reading.work_ms))
