"""One simulation of the study."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from boathouse_lab.koala import Hadoop
from boathouse_lab.koala.course import HadoopCourse
from boathouse_lab.reproduce.koala import setting
from boathouse_policies import koala, model
from boathouse_policies.framework import Observer
from boathouse_sim.conditions import Conditions, Outage, Outages
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_lab.koala import JobRecord, SizeRecord
    from boathouse_policies.model import FloatVector


class Even:
    """Everything is shared evenly and nothing is lost: the disks are flash."""

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:  # noqa: ARG002  the protocol's
        """Load over capacity, once above 1."""
        slow: FloatVector = np.maximum(load / capacity, 1.0)
        return slow


STATIC = koala.Config(policy=koala.Policy.STATIC)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is simulated.

    Attributes:
        clusters: That run.
        nodes: That there are.
        config: Of the policy.
        seed: Of all that is drawn.
        outages: Nodes that fail.
        every_s: Between two measurements of all nodes; 0 for none.
    """

    clusters: tuple[Hadoop, ...]
    nodes: int
    config: koala.Config = STATIC
    seed: int = 0
    outages: tuple[Outage, ...] = ()
    every_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a node used at a time, on average over those of the cluster, as shares."""

    at_s: float
    cpu: float
    disk: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of a cluster.

    Attributes:
        first: Nodes that it was made with.
        submitted_s: When it came.
        ready_s: When it took jobs.
        jobs: Those that it ran.
        sizes: How large it was.
        stored_mb: What transient nodes sent to core nodes.
        nodes: All that it ever had.
    """

    first: int
    submitted_s: float
    ready_s: float
    jobs: tuple[JobRecord, ...]
    sizes: tuple[SizeRecord, ...]
    stored_mb: float
    nodes: frozenset[str]

    @property
    def mean_s(self) -> float:
        """Mean response time."""
        return sum(one.time_s for one in self.jobs) / len(self.jobs)

    @property
    def makespan_s(self) -> float:
        """From the first submission to the last end."""
        return (max(one.ended_ms for one in self.jobs) - min(one.submitted_ms for one in self.jobs)) / 1000

    @property
    def extra_node_s(self) -> float:
        """Seconds of nodes beyond the first ones, until the last job's end."""
        end_ms = max(one.ended_ms for one in self.jobs)
        until = [*(one.at_ms for one in self.sizes[1:]), end_ms]
        return sum(
            max(0, one.core + one.transient - self.first) * max(0, min(to_ms, end_ms) - one.at_ms) / 1000
            for one, to_ms in zip(self.sizes, until, strict=True)
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a simulation gave."""

    clusters: Mapping[str, Ran]
    used: tuple[Used, ...] = ()

    @property
    def only(self) -> Ran:
        """Of the one cluster."""
        (ran,) = self.clusters.values()
        return ran


class Meter(Observer):
    """An observer that averages what nodes use."""

    def __init__(self, every_s: float, nodes: int) -> None:
        self.measure_every_s = every_s
        self._nodes = nodes
        self._sums: dict[float, list[float]] = {}

    @override
    def observe(self, event: model.Event) -> None:
        """Add up."""
        if isinstance(event, model.Measured):
            sums = self._sums.setdefault(event.now_s, [0.0, 0.0])
            sums[0] += event.usage["cpu_cores"] / setting.CORES
            sums[1] += event.usage["disk_bytes_per_s"] / (setting.DISKS.write_mb_per_s * 1e6)

    def used(self) -> tuple[Used, ...]:
        """Return the use over time."""
        return tuple(
            Used(at_s=at_s, cpu=cpu / self._nodes, disk=disk / self._nodes) for at_s, (cpu, disk) in self._sums.items()
        )


def simulate(case: Case) -> Seen:
    """Run it."""
    meter = Meter(case.every_s, case.nodes)
    profile = koala.build(case.config)
    profile = dataclasses.replace(profile, observers=(*profile.observers, meter))
    workload = Workload(
        name=setting.PAPER,
        cluster=Cluster.of(setting.machines(case.nodes), (setting.link(),)),
        apps=case.clusters,
        conditions=Conditions(contention=Even(), outages=Outages(given=case.outages)),
    )
    driver = Live(workload, profile, seed=case.seed)
    while driver.advance():
        pass
    driver.world.finished()
    found = {}
    for run in driver.world.runs.values():
        course = run.course
        assert isinstance(course, HadoopCourse)
        spec = run.spec
        assert isinstance(spec, Hadoop)
        found[spec.id] = Ran(
            first=spec.tasks,
            submitted_s=run.submitted_ms / 1000,
            ready_s=course.ready_ms / 1000,
            jobs=tuple(course.records),
            sizes=tuple(course.sizes),
            stored_mb=course.work.stored_mb,
            nodes=frozenset(course.nodes),
        )
    return Seen(clusters=found, used=meter.used())


def cost(case: Case) -> float:
    """Return the rough cost, in tasks."""
    return float(sum(job.maps + 4 * job.reduces for one in case.clusters for job in one.jobs))
