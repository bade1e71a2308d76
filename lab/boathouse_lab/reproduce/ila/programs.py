"""The applications of Table 3: what a map of each does. The paper tells their kind alone; all numbers are assumptions.

A map of an I/O-bound program is alone limited by what one virtual machine gets of the disk (`Assumed.alone_mb_per_s`);
so it takes a several hosts' worth of them to fill a disk, as it must for the paper's slowdowns to come about.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from boathouse_sim import topology, work
from boathouse_sim.live import MapReduce
from boathouse_sim.topology import DISK_MB_PER_S

if TYPE_CHECKING:
    from boathouse_sim.work import Container, Segment

BLOCK_MB = 128.0
"""5.1."""

MAP_MB, REDUCE_MB = 512, 3000
"""Memory that makes slots of a virtual machine of 2 cores and 4 GB: two maps of a core each, one reducer of none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the paper does not state.

    Attributes:
        alone_mb_per_s: What one I/O-bound task reads or writes alone on its host.
        cpu_map_s: CPU time of a map of a CPU-bound program.
        replicas: Of each input block: HDFS's default.
        jitter: Coefficient of variation of tasks' run times.
        seek: What each further stream costs a disk, as a share of its capacity: of the truth.
        cpu_power: How steeply CPU slows down beyond 80 % of the cores: of the truth.
        ceiling: The most that sharing slows CPU and disk down by: of the truth.
    """

    alone_mb_per_s: float = 20.0
    cpu_map_s: float = 20.0
    replicas: int = 3
    jitter: float = 0.05
    seek: float = 0.3
    cpu_power: float = 2.5
    ceiling: float = 20.0


PAPER = Assumed()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An application.

    Attributes:
        name: As in Table 3.
        io_bound: Its type there.
        cpu_s: CPU time of a map; of a CPU-bound one, in units of `Assumed.cpu_map_s`.
        read_mb: What a map reads: a block; of a CPU-bound one less than 1 % of it; 0 for no input.
        write_mb: What a map writes.
        maps_per_reduce: Maps for each reducer, rounded up; 0 for none: only programs that shuffle much have some here.
        shuffle_mb: Output of a map that goes to reducers.
        output: What a reducer writes, as a share of what it copies.
        reduce_cpu_s: CPU time of a reducer.
    """

    name: str
    io_bound: bool
    cpu_s: float
    read_mb: float = 0.0
    write_mb: float = 0.0
    maps_per_reduce: int = 0
    shuffle_mb: float = 0.0
    output: float = 0.0
    reduce_cpu_s: float = 1.0

    def job(self, size: int, *, at_ms: int, name: str, assumed: Assumed, queue: str = "default") -> MapReduce:
        """Make a job of this many maps; its id ends with its type, which `kind_of` reads."""
        reduces = math.ceil(size / self.maps_per_reduce) if self.maps_per_reduce else 0
        return MapReduce(
            id=f"{name}-{self.name}({size})",
            maps=size,
            map=work.Container(mem_mb=MAP_MB, cores=1, segments=(self._map(assumed),)),
            reduces=reduces,
            reduce=self._reduce(size / reduces * self.shuffle_mb, assumed) if reduces else None,
            replicas=assumed.replicas if self.read_mb else 0,
            submit_ms=at_ms,
            program=self.name,
            queue=queue,
        )

    def _map(self, assumed: Assumed) -> Segment:
        cpu_s = self.cpu_s if self.io_bound else self.cpu_s * assumed.cpu_map_s
        rate = assumed.alone_mb_per_s if self.io_bound else DISK_MB_PER_S
        return work.segment("map", cpu_s=cpu_s, read_mb=self.read_mb, write_mb=self.write_mb, disk_mb_per_s=rate)

    def _reduce(self, copy_mb: float, assumed: Assumed) -> Container:
        rate = assumed.alone_mb_per_s if self.io_bound else DISK_MB_PER_S
        return work.Container(
            mem_mb=REDUCE_MB,
            cores=0,
            segments=(
                work.segment("shuffle", copy_mb=copy_mb),
                work.segment("reduce", cpu_s=self.reduce_cpu_s, write_mb=copy_mb * self.output, disk_mb_per_s=rate),
            ),
        )


TERASORT = Program(
    name="TeraSort",
    io_bound=True,
    cpu_s=1.0,
    read_mb=BLOCK_MB,
    write_mb=BLOCK_MB,
    maps_per_reduce=4,
    shuffle_mb=BLOCK_MB,
    output=1.0,
)
TERAGEN = Program(name="TeraGen", io_bound=True, cpu_s=1.0, write_mb=BLOCK_MB)
GREP = Program(name="Grep", io_bound=True, cpu_s=0.8, read_mb=BLOCK_MB)
RWRITE = Program(name="RWrite", io_bound=True, cpu_s=1.0, write_mb=1.5 * BLOCK_MB)
WCOUNT = Program(
    name="WCount",
    io_bound=True,
    cpu_s=1.5,
    read_mb=BLOCK_MB,
    write_mb=16.0,
    maps_per_reduce=25,
    shuffle_mb=16.0,
    output=0.2,
)
PIEST = Program(name="PiEst", io_bound=False, cpu_s=1.0, read_mb=1.0)
BAYES = Program(name="Bayes", io_bound=False, cpu_s=1.2, read_mb=1.0)
KMEAN = Program(name="Kmean", io_bound=False, cpu_s=1.2, read_mb=1.0)
CANOPY = Program(name="Canopy", io_bound=False, cpu_s=1.0, read_mb=1.0)
MATRIX = Program(name="Matrix", io_bound=False, cpu_s=1.0)

ALL = (TERASORT, TERAGEN, GREP, RWRITE, WCOUNT, PIEST, BAYES, KMEAN, CANOPY, MATRIX)


def modified(
    program: Program, size: int, *, at_ms: int, name: str, assumed: Assumed, queue: str = "default"
) -> MapReduce:
    """Return MGrep or MPiEst of Figure 10: with idle loops, until twelve on a host do not disturb each other."""
    one = (
        work.Segment(name="map", cpu_ms=14_000, read_ms=53_000, read_mb=program.read_mb, cores=0.1)
        if program.io_bound
        else work.Segment(name="map", cpu_ms=30_000, read_ms=10, read_mb=program.read_mb, cores=0.5)
    )
    return MapReduce(
        id=f"{name}-M{program.name}({size})",
        maps=size,
        map=work.Container(mem_mb=MAP_MB, cores=1, segments=(one,)),
        replicas=assumed.replicas,
        submit_ms=at_ms,
        program=f"M{program.name}",
        queue=queue,
    )


def kind_of(job: str) -> str:
    """Return the type of a job by its id: `TeraSort(2)`."""
    return job.split("-", 1)[1]


def machines(hosts: int = 12) -> tuple[list[topology.Machine], list[topology.Host]]:
    """Return the paper's 2 racks: each host has 10 usable cores, a disk and 6 virtual machines of 2 cores."""
    return topology.virtual(hosts, machines_per_host=6, cores=2, mem_mb=4096, host_cores=10.0, racks=2)
