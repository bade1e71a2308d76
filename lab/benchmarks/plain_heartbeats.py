"""Straightforward simulator of YARN's heartbeats: plain objects, a sorted list of jobs, loops.

It follows the protocol of `boathouse_sim.simulation` and makes the same decisions as four profiles: `fifo`, `fair`,
`yarn` and `yarn-no-reservations`. At a node's heartbeat the jobs with pending containers are sorted by their key, and
the first whose container fits gets it. With reservations (`yarn`), the first whose container does not fit reserves the
node. It knows equal nodes, one queue, and jobs of fixed run times; it has no ledger, verdicts or other profiles.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from typing import TYPE_CHECKING

from boathouse_sim import base_world

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_sim.workload import Phase, Workload

PROFILES = ("fifo", "fair", "yarn-no-reservations", "yarn")
END, ARRIVAL, MASTER, NODE = range(4)


@dataclasses.dataclass(slots=True)
class Container:
    """An allocated container."""

    job: Job
    node: Node
    duration_ms: int
    cores: float
    mem_mb: int


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """A node; it is reserved for at most one job."""

    phase_ms: int
    cores: float
    mem_mb: int
    awake: bool = True
    launching: int = 0
    ended: list[Container] = dataclasses.field(default_factory=list)
    reserved_for: Job | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Job:
    """A job and its master. What is pending is the master's container first, then the tasks of a phase."""

    place: int
    arrival_ms: int
    phases: Sequence[Phase]
    cores: float
    mem_mb: int
    duration_ms: int = 0
    phase: int = -1
    pending: int = 1
    held_cores: float = 0
    held_mb: int = 0
    held: int = 0
    ended_ms: int = 0
    master: Container | None = None
    is_up: bool = False
    is_awake: bool = False
    is_closing: bool = False
    allocated: list[Container] = dataclasses.field(default_factory=list)
    acquired: list[Container] = dataclasses.field(default_factory=list)
    released: int = 0
    counted: int = 0
    out: int = 0


class PlainHeartbeats:
    """One simulation.

    Args:
        workload: Its `timing` holds the periods.
        profile: One of `PROFILES`.
    """

    def __init__(self, workload: Workload, profile: str) -> None:
        cluster, self.timing = workload.cluster, workload.timing
        self.key = {"fifo": self.by_arrival, "fair": self.by_share}.get(profile, self.by_memory)
        self.reserves = profile == "yarn"
        self.inverse = (
            1 / (cluster.node_cores * cluster.nodes),
            1 / (cluster.node_mem_mb * cluster.nodes),
            1 / (base_world.NO_LIMIT * cluster.nodes),
        )
        self.now_ms = 0
        self.events: list[tuple[int, int, int, Callable[..., None], object]] = []
        self.sequence = itertools.count()
        self.jobs: list[Job] = []
        self.waiting: list[Job] = []
        self.coming = 0
        period_ms = self.timing.node_heartbeat_ms
        self.nodes = [
            Node(round(i * period_ms / cluster.nodes) % period_ms, cluster.node_cores, cluster.node_mem_mb)
            for i in range(cluster.nodes)
        ]
        for place, spec in enumerate(workload.jobs):
            if spec.submit_ms is None or any(phase.when_ended for phase in spec.phases):
                raise ValueError(f"job {spec.id} waits for the end of another, or of a phase: unknown here")
            timing = self.timing
            job = Job(place, spec.submit_ms, spec.phases, timing.am_container_cores, timing.am_container_mb)
            self.jobs.append(job)
            self.at(job.arrival_ms, ARRIVAL, self.arrive, job)
        for node in self.nodes:
            self.at(node.phase_ms, NODE, self.node_heartbeat, node)

    def run(self) -> None:
        """Run the simulation to its end."""
        while self.events:
            self.now_ms, _, _, happen, what = heapq.heappop(self.events)
            happen(what)

    def at(self, time_ms: int, priority: int, happen: Callable[..., None], what: object) -> None:
        """Add an event."""
        heapq.heappush(self.events, (time_ms, priority, next(self.sequence), happen, what))

    # Orders of jobs

    def by_arrival(self, job: Job) -> tuple[int, int]:
        """First come, first served."""
        return job.arrival_ms, job.place

    def by_memory(self, job: Job) -> tuple[int, int, int]:
        """Return the least memory held first."""
        return job.held_mb, job.arrival_ms, job.place

    def by_share(self, job: Job) -> tuple[float, int, int]:
        """Return the least dominant share first; the number of containers is a resource too."""
        cores, memory, containers = self.inverse
        share = max(job.held_cores * cores, job.held_mb * memory, job.held * containers)
        return share, job.arrival_ms, job.place

    # Nodes

    def node_heartbeat(self, node: Node) -> None:
        """Report what ended, then take containers."""
        node.awake = False
        for container in node.ended:
            self.free(container)
            container.job.released += 1
            self.wake_master(container.job)
        node.ended.clear()
        if self.offer(node) and (self.waiting or self.coming):
            self.wake(node)

    def offer(self, node: Node) -> bool:
        """Allocate containers on the node; return whether its next heartbeat could change anything."""
        if not self.waiting:
            return node.launching > 0
        was_reserved = node.reserved_for is not None
        taken: list[Container] = []
        while len(taken) < self.timing.allocs_per_node_heartbeat and (job := self.next(node)) is not None:
            taken.append(self.take(job, node))
        for container in taken:
            self.allocated(container)
        return bool(taken) or (node.launching > 0 and not was_reserved)

    def next(self, node: Node) -> Job | None:
        """Return the job that gets a container on the node."""
        if node.reserved_for is not None:
            return node.reserved_for if self.fits(node.reserved_for, node) else None
        for job in sorted(self.waiting, key=self.key):
            if self.fits(job, node):
                return job
            if self.reserves:
                node.reserved_for = job
                return None
        return None

    def fits(self, job: Job, node: Node) -> bool:
        """Return whether the node has room for a container of the job."""
        return job.cores <= node.cores and job.mem_mb <= node.mem_mb

    def take(self, job: Job, node: Node) -> Container:
        """Take the room of a container."""
        node.cores -= job.cores
        node.mem_mb -= job.mem_mb
        node.reserved_for = None
        node.launching += 1
        job.held_cores += job.cores
        job.held_mb += job.mem_mb
        job.held += 1
        job.pending -= 1
        if not job.pending:
            self.waiting.remove(job)
            for one in self.nodes if self.reserves else ():
                if one.reserved_for is job:
                    one.reserved_for = None
        return Container(job, node, job.duration_ms, job.cores, job.mem_mb)

    def allocated(self, container: Container) -> None:
        """Tell the job's master; after the last task of a phase the next phase is pending."""
        job = container.job
        if job.master is None:
            job.master = container
            self.coming += 1
            return
        job.out += 1
        job.allocated.append(container)
        self.wake_master(job)
        if not job.pending and job.phase + 1 < len(job.phases):
            self.submit_next_phase(job)

    def free(self, container: Container) -> None:
        """Give the room of a container back."""
        job, node = container.job, container.node
        node.cores += container.cores
        node.mem_mb += container.mem_mb
        job.held_cores -= container.cores
        job.held_mb -= container.mem_mb
        job.held -= 1

    def end(self, container: Container) -> None:
        """End a task, which its node reports at the next heartbeat."""
        container.node.ended.append(container)
        self.wake(container.node)

    def wake(self, node: Node) -> None:
        """Let the node have its next heartbeat."""
        if not node.awake:
            node.awake = True
            self.at(self.next_ms(self.timing.node_heartbeat_ms, node.phase_ms), NODE, self.node_heartbeat, node)

    def wake_all(self) -> None:
        """Let all nodes have their next heartbeats."""
        for node in self.nodes:
            self.wake(node)

    # Jobs and their masters

    def arrive(self, job: Job) -> None:
        """Add a job, whose master is then pending."""
        self.waiting.append(job)
        self.wake_master(job)
        self.wake_all()

    def submit_next_phase(self, job: Job) -> None:
        """Submit the tasks of the next phase."""
        job.phase += 1
        phase = job.phases[job.phase]
        job.cores, job.mem_mb, job.duration_ms, job.pending = (
            phase.cores,
            phase.mem_ideal_mb,
            phase.duration_ms,
            phase.tasks,
        )
        self.waiting.append(job)

    def master_heartbeat(self, job: Job) -> None:
        """Come up, or launch what was acquired and acquire what was allocated, or end."""
        job.is_awake = False
        if job.is_closing:
            job.ended_ms = self.now_ms
            return
        if job.master is None:
            self.wake_master(job)
            return
        if not job.is_up:
            self.come_up(job, job.master)
        for container in job.acquired:
            container.node.launching -= 1
            self.at(self.now_ms + container.duration_ms, END, self.end, container)
            self.wake(container.node)
        job.out -= job.counted
        job.acquired, job.allocated = job.allocated, []
        job.counted, job.released = job.released, 0
        if not job.pending and not job.out and not job.acquired:
            self.free(job.master)
            self.wake(job.master.node)
            job.is_closing = True
            self.wake_master(job)
        elif job.acquired or job.counted:
            self.wake_master(job)

    def come_up(self, job: Job, master: Container) -> None:
        """Launch the master, and submit the job's first phase."""
        job.is_up = True
        self.coming -= 1
        master.node.launching -= 1
        self.submit_next_phase(job)
        self.wake_all()

    def wake_master(self, job: Job) -> None:
        """Let the job's master have its next heartbeat."""
        if not job.is_awake:
            job.is_awake = True
            period_ms = self.timing.am_heartbeat_ms
            self.at(self.next_ms(period_ms, job.arrival_ms % period_ms), MASTER, self.master_heartbeat, job)

    def next_ms(self, period_ms: int, phase_ms: int) -> int:
        """Return the next time after now at a phase of a period."""
        at_ms = self.now_ms // period_ms * period_ms + phase_ms
        return at_ms if at_ms > self.now_ms else at_ms + period_ms
