"""DAS-4 and the workloads of V, with what the paper does not state as named assumptions."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Final

import numpy as np

from boathouse_lab.koala import Disks, Hadoop, HadoopJob, Program
from boathouse_sim import topology, work
from boathouse_sim.topology import Host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.topology import Machine

PAPER: Final = "koala"
WORDCOUNT, SORT = "wordcount", "sort"

CORES, MEM_MB = 8, 24_576
"""Of a node (Table I)."""
NETWORK_MB_PER_S = 1250.0
"""10 Gb/s."""
DISKS: Final = Disks(read_mb_per_s=250.0, write_mb_per_s=225.0, copy_mb_per_s=100.0)
"""VI.B: two disks of 1 Gb/s and 900 Mb/s each; how fast a reducer copies is ours."""
LINK: Final = "link"

MAPS: Final = {0: (800, 128.0), 1: (400, 128.0), 2: (320, 128.0)} | {
    kind: (maps, 64.0) for kind, maps in {3: 640, 4: 320, 5: 160, 6: 80, 7: 40, 8: 16}.items()
}
"""Table II: maps and MB of a block, by job type."""

CORE, POOL = 20, 20
"""VI.C."""
LARGE_MAPS = 160
"""V.B: above it reducers may also follow the rule of thumb."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is assumed.

    Attributes:
        work: What all tasks compute, times this.
        sort_share: Of the stream's jobs.
        small: A job type is drawn with a weight of its maps to the power of minus this; 0 draws all alike.
        thumb_share: Of large jobs, those whose reducers are 90 or 180 % of the reduce slots.
        boot_s: Until a node takes tasks.
        map_slots: Of a node; the paper has 6 to 8.
        own_links: Whether each node has its 10 Gb/s for itself; the paper assumes one for all transient nodes.
        pipelined: Whether sending and writing output overlap; the paper adds them up.
        jitter: Of what tasks compute.
        jobs: Of the stream.
    """

    work: float = 1.0
    sort_share: float = 0.5
    small: float = 0.0
    thumb_share: float = 0.5
    boot_s: float = 30.0
    map_slots: int = 6
    own_links: bool = False
    pipelined: bool = False
    jitter: float = 0.1
    jobs: int = 50

    def program(self, name: str) -> Program:
        """Make a program of ours: 3 MB/s of Wordcount, 25 MB/s of sorting, 100 MB/s of merging, on a core."""
        if name == WORDCOUNT:
            # "Less than 20 KB": the combiner leaves next to nothing.
            return Program(
                name=name, map_s_per_mb=self.work / 3, map_output=1e-6, reduce_s_per_mb=0.01 * self.work, output=1.0
            )
        return Program(
            name=name, map_s_per_mb=0.04 * self.work, map_output=1.0, reduce_s_per_mb=0.01 * self.work, output=1.0
        )

    def cluster(self, jobs: Sequence[HadoopJob], **fields: object) -> Hadoop:
        """Make a cluster of whole nodes."""
        plain = Hadoop(
            id="c",
            jobs=tuple(jobs),
            core=CORE,
            node=work.Container(mem_mb=MEM_MB, cores=CORES),
            disks=DISKS,
            map_slots=self.map_slots,
            boot_ms=round(self.boot_s * 1000),
            link="" if self.own_links else LINK,
            pipelined=self.pipelined,
            jitter=self.jitter,
        )
        return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]  # its own fields, by name

    def alone(self, program: str, kind: int, *, core: int, transient: int = 0) -> Hadoop:
        """Make a cluster with one job: VI.A and VI.B."""
        maps, block_mb = MAPS[kind]
        reduces = 1 if program == WORDCOUNT else 144
        job = HadoopJob(id=program, program=self.program(program), maps=maps, block_mb=block_mb, reduces=reduces)
        return self.cluster([job], core=core, transient=transient)

    def stream(self, seed: int) -> tuple[HadoopJob, ...]:
        """Make the stream of VI.C: jobs of 1 to 40 GB with exponential gaps of 30 s."""
        return _stream(self, seed)


@functools.lru_cache(maxsize=512)
def _stream(of: Setting, seed: int) -> tuple[HadoopJob, ...]:
    random, at_s = np.random.default_rng([seed, 7]), 0.0
    kinds = [kind for kind in MAPS if MAPS[kind][1] == 64.0]  # noqa: PLR2004  Table II
    weights = np.array([float(MAPS[kind][0]) for kind in kinds]) ** -of.small
    found = []
    for index in range(of.jobs):
        maps, block_mb = MAPS[int(random.choice(kinds, p=weights / weights.sum()))]
        program = SORT if random.random() < of.sort_share else WORDCOUNT
        reduces = max(1, round(maps * random.uniform(0.05, 0.25)))
        by_thumb, of_slots = random.random() < of.thumb_share, float(random.choice([0.9, 1.8]))
        if maps > LARGE_MAPS and by_thumb:
            reduces = round(of_slots * 2 * CORE)
        at_s += random.exponential(30.0)
        found.append(
            HadoopJob(
                id=f"j{index:02}",
                program=of.program(program),
                maps=maps,
                block_mb=block_mb,
                reduces=reduces,
                submit_ms=round(at_s * 1000),
            )
        )
    return tuple(found)


def machines(count: int) -> list[Machine]:
    """Return nodes of DAS-4."""
    return topology.machines(
        count,
        cores=CORES,
        mem_mb=MEM_MB,
        disk_mb_per_s=DISKS.write_mb_per_s,
        network_mb_per_s=NETWORK_MB_PER_S,
    )


def link() -> Host:
    """Return the link that transient nodes share."""
    return Host(name=LINK, cores=1.0, network_mb_per_s=NETWORK_MB_PER_S)
