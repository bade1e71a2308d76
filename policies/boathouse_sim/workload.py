"""What is simulated: a cluster, jobs, and the simulator's own truth of how long a task runs with how much memory.

Times are whole milliseconds and memory whole MB, as in the format `neutral-cluster-workload/1`: equal inputs give equal
bytes, for nothing is rounded on the way.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model
    from boathouse_sim.conditions import Conditions
    from boathouse_sim.live.course import App
    from boathouse_sim.topology import Host, Machine


class WorkloadError(ValueError):
    """A workload cannot be read or simulated; the message names the place and what to do."""


class PenaltyModel(enum.StrEnum):
    """How a task's run time grows with less than its ideal memory."""

    STEP = "step"
    SAWTOOTH = "sawtooth"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """The truth of a task's run time.

    Attributes:
        model: `step` for maps, `sawtooth` for reducers.
        factor: What a task is slower by when nearly all of its input is spilled; 1 for no penalty.
    """

    model: PenaltyModel = PenaltyModel.STEP
    factor: float = 1.0

    def run_time_ms(self, duration_ms: int, given_mb: int, ideal_mb: int) -> int:
        """Run time of a task.

        Args:
            duration_ms: With its ideal memory.
            given_mb: What it was given, above 0.
            ideal_mb: Its ideal memory.
        """
        if given_mb >= ideal_mb:
            return duration_ms
        if self.model is PenaltyModel.STEP:
            return int(duration_ms * self.factor)
        percent = max(1, 100 * given_mb // ideal_mb)
        spilled_share = (math.ceil(100 / percent) - 1) * percent / 100
        return int(duration_ms * (1 + (self.factor - 1) * spilled_share))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks of a job. A phase may start once every task of the one before has been placed, or has ended.

    Attributes:
        kind: A stage of the model: `map`, `reduce`, `executor`, `uber`, `probe`, or a name of the workload's own.
        tasks: How many.
        duration_ms: Of one task with its ideal memory.
        mem_ideal_mb: Memory that one task wants.
        cores: Cores of one task.
        penalty: What less memory costs.
        input_bytes: What one task reads; None where the workload does not say.
        counters: What each task reports at its end.
        when_ended: Whether it waits for the end of the phase before, rather than for its last task to be placed.
    """

    kind: str
    tasks: int
    duration_ms: int
    mem_ideal_mb: int
    cores: int = 1
    penalty: Penalty = Penalty()
    input_bytes: int | None = None
    counters: tuple[tuple[str, float], ...] = ()
    when_ended: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job: it is submitted at a time, or when another job has ended (then `submit_ms` is None).

    Attributes:
        id: Unique in the workload.
        phases: In the order in which they run.
        submit_ms: When it comes.
        after: The job whose end it waits for.
        program: What runs: jobs of one program treat their input alike. Empty for nothing in common with others.
        master: A container that is placed first, asks for the job's tasks after its `duration_ms`, and is held until
            the job ends; None for none. The heartbeat protocol has masters of its own (`Timing`).
        probe: The one task of the job's probing job, for a policy that asks for one; None where nothing can be probed.
        stated: Whether a policy that predicts run times itself is told them all the same.
        queue: Where it waits.
        namespace: Whose share of the queue it is charged to; empty where a workload has one tenant.
    """

    id: str
    phases: tuple[Phase, ...]
    submit_ms: int | None = 0
    after: str | None = None
    program: str = ""
    master: Phase | None = None
    probe: Phase | None = None
    stated: bool = True
    queue: str = "default"
    namespace: str = ""

    @property
    def containers(self) -> tuple[Phase, ...]:
        """All that it may ask for."""
        return (*self.phases, *(one for one in (self.master, self.probe) if one is not None))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal nodes, dealt to the racks in turn; or machines, each with its own shape and place (`Cluster.of`).

    Attributes:
        nodes: Their number.
        node_mem_mb: Memory of each; of the largest where there are machines.
        node_cores: The same of cores.
        racks: Their number.
        mem_granularity_mb: Steps of elastic sizes.
        min_mem_fraction: The least part of its ideal memory that a task is given.
        machines: The nodes one by one; empty for equal ones.
        hosts: Physical hosts of virtual machines, by `Machine.server`. A machine that names none is its own.
    """

    nodes: int
    node_mem_mb: int = 10_000
    node_cores: int = 16
    racks: int = 1
    mem_granularity_mb: int = 100
    min_mem_fraction: float = 0.1
    machines: tuple[Machine, ...] = ()
    hosts: tuple[Host, ...] = ()

    @classmethod
    def of(cls, machines: Sequence[Machine], hosts: Sequence[Host] = ()) -> Cluster:
        """A cluster of these machines."""
        return cls(
            nodes=len(machines),
            node_mem_mb=max(one.mem_mb for one in machines),
            node_cores=max(one.cores for one in machines),
            racks=len({one.rack for one in machines}),
            machines=tuple(machines),
            hosts=tuple(hosts),
        )

    @property
    def total_mem_mb(self) -> int:
        """Memory of all nodes."""
        return sum(one.mem_mb for one in self.machines) if self.machines else self.nodes * self.node_mem_mb

    @property
    def total_cores(self) -> int:
        """Cores of all nodes."""
        return sum(one.cores for one in self.machines) if self.machines else self.nodes * self.node_cores

    def holds(self, mem_mb: int, cores: int) -> bool:
        """Whether some node, empty, holds a task of this size."""
        if not self.machines:
            return mem_mb <= self.node_mem_mb and cores <= self.node_cores
        return any(mem_mb <= one.mem_mb and cores <= one.cores for one in self.machines)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Periods of the heartbeat protocol; see `boathouse_sim.heartbeat`."""

    node_heartbeat_ms: int = 1000
    am_heartbeat_ms: int = 1000
    am_container_mb: int = 0
    am_container_cores: int = 0
    allocs_per_node_heartbeat: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All that a simulation starts from.

    Attributes:
        name: For reports.
        cluster: The nodes.
        jobs: In the order in which ties are broken.
        timing: Used by the heartbeat protocol alone.
        assumptions: What the trace does not say and was taken from named defaults.
        apps: Applications with a course of their own (`boathouse_sim.live`): MapReduce jobs, Spark applications.
        conditions: What holds beside fixed run times; None for nothing.
        queues: Where jobs wait; one, `default`, where none is named.
    """

    name: str
    cluster: Cluster
    jobs: tuple[JobSpec, ...] = ()
    timing: Timing = Timing()
    assumptions: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    apps: tuple[App, ...] = ()
    conditions: Conditions | None = None
    queues: tuple[model.Queue, ...] = ()

    @property
    def live(self) -> bool:
        """Whether run times depend on what happens, so that it takes `boathouse_sim.live` to simulate it."""
        return bool(self.apps) or self.conditions is not None

    @property
    def tasks(self) -> int:
        """Tasks of all jobs."""
        return sum(phase.tasks for job in self.jobs for phase in job.phases) + sum(one.tasks for one in self.apps)

    def on(self, nodes: int) -> Workload:
        """The same jobs on another number of nodes.

        Raises:
            WorkloadError: There would be no node.
        """
        if nodes < 1:
            raise WorkloadError(f"a cluster has at least 1 node, not {nodes}")
        if self.cluster.machines:
            raise WorkloadError(f"{self.name} names its machines one by one: change them in the workload")
        return dataclasses.replace(self, cluster=dataclasses.replace(self.cluster, nodes=nodes))

    def check(self) -> None:
        """Refuse what would never end.

        Raises:
            WorkloadError: A task is larger than a node, or a job waits for one that never ends before it.
        """
        specs: tuple[JobSpec | App, ...] = (*self.jobs, *self.apps)
        if not specs:
            raise WorkloadError(f"{self.name}: holds no jobs")
        if len({one.id for one in specs}) < len(specs):
            raise WorkloadError(f"{self.name}: job ids are not unique")
        for job in self.jobs:
            for phase in job.containers:
                self._check_size(f"job {job.id}, phase {phase.kind}", phase.mem_ideal_mb, phase.cores)
        for app in self.apps:
            for kind, container in app.containers():
                self._check_size(f"job {app.id}, {kind}", container.mem_mb, container.cores)
        queues = {str(queue.name) for queue in self.queues} or {"default"}
        for one in specs:
            if one.queue not in queues:
                raise WorkloadError(f"{self.name}: job {one.id}: there is no queue {one.queue!r}; name it in `queues`")
        self._check_chain(specs)

    def _check_size(self, where: str, mem_mb: int, cores: int) -> None:
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
