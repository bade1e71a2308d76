"""What a task does: the time it computes, reads, writes and copies when it is alone, and what it moves meanwhile."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_sim.jobs import Penalty, Phase
from boathouse_sim.topology import DISK_MB_PER_S, GIGABIT_MB_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.model import Distance


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
