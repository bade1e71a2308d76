"""What a task does, and jobs of plain phases.

A task's work is the time it computes, reads, writes and copies when it is alone, and what it moves meanwhile.

Jobs of phases have the simulator's own truth of how long a task runs with how much memory. Times are whole milliseconds
and memory whole MB, as in the format `neutral-cluster-workload/1`: equal inputs give equal bytes, for nothing is
rounded on the way.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING

from boathouse_sim.topology import DISK_MB_PER_S, GIGABIT_MB_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.model import Distance


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
        """Run time of a task."""
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
        duration_ms: Of one task with its ideal memory; their mean, where they differ.
        mem_ideal_mb: Memory that one task wants.
        cores: Cores of one task, to the millicore.
        penalty: What less memory costs.
        input_bytes: What one task reads; None where the workload does not say.
        counters: What each task reports at its end.
        when_ended: Whether it waits for the end of the phase before, rather than for its last task to be placed.
        durations_ms: Of each task by its index, where they differ: the truth, of which policies know the mean.
    """

    kind: str
    tasks: int
    duration_ms: int
    mem_ideal_mb: int
    cores: float = 1
    penalty: Penalty = Penalty()
    input_bytes: int | None = None
    counters: tuple[tuple[str, float], ...] = ()
    when_ended: bool = False
    durations_ms: tuple[int, ...] = ()

    def task_ms(self, index: int) -> int:
        """Return how long a task runs with its ideal memory."""
        return self.durations_ms[index] if self.durations_ms else self.duration_ms


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is submitted at a time, or when another job has ended (then `submit_ms` is None).

    Attributes:
        id: Unique in the workload.
        submit_ms: When it is submitted.
        after: The job after whose end it is submitted.
        program: What runs: jobs of one program treat their input alike. Empty for nothing in common with others.
        queue: Its queue.
        namespace: Whose share of the queue it is charged to; empty where a workload has one tenant.
    """

    id: str
    submit_ms: int | None = 0
    after: str | None = None
    program: str = ""
    queue: str = "default"
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Submission):
    """A job of phases.

    Attributes:
        phases: In the order in which they run.
        master: A container that is placed first, asks for the job's tasks after its `duration_ms`, and is held until
            the job ends; None for none. The heartbeat protocol has masters of its own (`Timing`).
        probe: The one task of the job's probing job, for a policy that asks for one; None where nothing can be probed.
        stated: Whether a policy that predicts run times itself is told them all the same.
    """

    phases: tuple[Phase, ...]
    master: Phase | None = None
    probe: Phase | None = None
    stated: bool = True

    @property
    def containers(self) -> tuple[Phase, ...]:
        """All that it may ask for."""
        return (*self.phases, *(part for part in (self.master, self.probe) if part is not None))


NO_PENALTY = Penalty()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a task's run, one after the other: a map has one, a reducer copies, sorts and reduces.

    The times are those of a task that is alone on its host, on a machine of speed 1, with its ideal memory and CPU and
    its input on its own disk; they add up, as nothing overlaps.

    Attributes:
        name: As reports call it: map, shuffle, sort, reduce, task.
        cpu_ms: Computing, with `cores` busy.
        read_ms: Reading input.
        write_ms: Writing to the host's disks.
        copy_ms: Copying over the network.
        pool_ms: Writing to a shared pool (`Pool`): the disks of other nodes.
        read_mb: What is read.
        write_mb: What is written.
        copy_mb: What is copied.
        pool_mb: What goes to the pool.
        cores: CPUs busy while it computes.
        pool: Name of the pool.
    """

    name: str
    cpu_ms: int = 0
    read_ms: int = 0
    write_ms: int = 0
    copy_ms: int = 0
    pool_ms: int = 0
    read_mb: float = 0.0
    write_mb: float = 0.0
    copy_mb: float = 0.0
    pool_mb: float = 0.0
    cores: float = 1.0
    pool: str = ""

    @property
    def work_ms(self) -> int:
        """All of it, alone."""
        return self.cpu_ms + self.read_ms + self.write_ms + self.copy_ms + self.pool_ms


def segment(
    name: str,
    *,
    cpu_s: float = 0.0,
    read_mb: float = 0.0,
    write_mb: float = 0.0,
    copy_mb: float = 0.0,
    pool_mb: float = 0.0,
    cores: float = 1.0,
    pool: str = "",
    disk_mb_per_s: float = DISK_MB_PER_S,
) -> Segment:
    """Make a segment from CPU time and amounts, at the rates of an idle disk and network."""
    return Segment(
        name=name,
        cpu_ms=round(cpu_s * 1000),
        read_ms=round(read_mb / disk_mb_per_s * 1000),
        write_ms=round(write_mb / disk_mb_per_s * 1000),
        copy_ms=round(copy_mb / GIGABIT_MB_PER_S * 1000),
        pool_ms=round(pool_mb / DISK_MB_PER_S * 1000),
        read_mb=read_mb,
        write_mb=write_mb,
        copy_mb=copy_mb,
        pool_mb=pool_mb,
        cores=cores,
        pool=pool,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What a task asks for, and what it does.

    Attributes:
        mem_mb: Its ideal memory.
        cores: CPUs that it asks for, to the millicore.
        segments: In order; none for what only holds its room (a driver, an executor).
        penalty: What less memory costs: it is added to the time on disk, and may so be contended.
    """

    mem_mb: int
    cores: float = 1
    segments: tuple[Segment, ...] = ()
    penalty: Penalty = NO_PENALTY

    @property
    def work_ms(self) -> int:
        """All of it, alone."""
        return sum(segment.work_ms for segment in self.segments)

    @property
    def input_mb(self) -> float:
        """What it reads and copies."""
        return sum(segment.read_mb + segment.copy_mb for segment in self.segments)

    def phase(self, kind: str, tasks: int) -> Phase:
        """Return it as a phase of equal tasks: what estimates are made of."""
        return Phase(
            kind=kind,
            tasks=tasks,
            duration_ms=self.work_ms,
            mem_ideal_mb=self.mem_mb,
            cores=self.cores,
            penalty=self.penalty,
            input_bytes=round(self.input_mb * _MB),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How much longer reading takes when the block is elsewhere; from another host it goes over the network.

    Attributes:
        server: On another virtual machine of the same host: its disks are the same.
        rack: In the same rack.
        anywhere: In another rack.
    """

    server: float = 1.0
    rack: float = 1.2
    anywhere: float = 1.5

    def factor(self, distance: Distance) -> float:
        """Return the factor; 1 on the node itself."""
        return (1.0, self.server, self.rack, self.anywhere)[distance]


PLAIN_READING = Reading()
"""Ours: 1 GbE is about as fast as one disk, and shared."""

ILA_READING = Reading(rack=3.0, anywhere=4.0)
"""The ILA paper: rack-local tasks 3×, off-rack 4×."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A capacity that all share, wherever they run: the disks of the core nodes of a dynamic Hadoop cluster."""

    name: str
    mb_per_s: float


def counters(segments: tuple[Segment, ...], *, spilled_mb: float = 0.0, remote: bool = False) -> Mapping[str, float]:
    """Return a runtime's counters at a task's end: CPU seconds and bytes, none of which depend on its neighbours."""
    read = sum(segment.read_mb for segment in segments)
    return {
        "cpu_s": sum(segment.cpu_ms * segment.cores for segment in segments) / 1000,
        "read_bytes": 0.0 if remote else read * _MB,
        "remote_bytes": read * _MB if remote else 0.0,
        "written_bytes": sum(segment.write_mb + segment.pool_mb for segment in segments) * _MB,
        "copied_bytes": sum(segment.copy_mb for segment in segments) * _MB,
        "spilled_bytes": spilled_mb * _MB,
    }


_MB = 1 << 20
