"""The testbed's load: the MSD mix of WordCount, Grep and TeraSort, 1:1 with K-means, PageRank and Index (Tables 2, 3).

The paper states the machines, the containers, the number of jobs, blocks and replicas. Job sizes, arrivals and what a
task does are ours: `ASSUMED` names them, and `Setting` varies those that a claim depends on.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from boathouse_sim import topology, work
from boathouse_sim.conditions import Conditions, Saturation
from boathouse_sim.live import DynamicAllocation, MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, Penalty, PenaltyModel, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_sim.work import App

BLOCK_MB: Final = 256.0
REPLICAS: Final = 3
PAIRS: Final = 87
"""MapReduce jobs of MSD (4.3), each with a Spark application: 1:1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A MapReduce program: what one block and one reducer take.

    Attributes:
        mem_mb: Of maps and reducers; both ask for 1 core (Table 2).
        map_cpu_s: Computing one block.
        output: Part of the input that maps put out.
        reduce_cpu_s: Computing 1 GB of map output.
        maps_per_reduce: Blocks for each reducer.
    """

    mem_mb: int
    map_cpu_s: float
    output: float
    reduce_cpu_s: float
    maps_per_reduce: int


WORDCOUNT, GREP, TERASORT = "wordcount", "grep", "terasort"
KMEANS, PAGERANK, INDEX = "k-means", "pagerank", "index"

PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        WORDCOUNT: Program(mem_mb=1024, map_cpu_s=40.0, output=0.2, reduce_cpu_s=1600.0, maps_per_reduce=2),
        GREP: Program(mem_mb=2048, map_cpu_s=15.0, output=0.05, reduce_cpu_s=4800.0, maps_per_reduce=3),
        TERASORT: Program(mem_mb=2048, map_cpu_s=10.0, output=1.0, reduce_cpu_s=400.0, maps_per_reduce=1),
    }
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A Spark program: its executors (Table 3) and its stages.

    Attributes:
        cores: Of an executor.
        mem_mb: The same of memory.
        read_cpu_s: Computing a block in the first stage.
        rounds: Stages after it, of as many tasks.
        round_cpu_s: Computing one of their tasks.
        round_copy_mb: What such a task copies from others.
        write_mb: What a task of the last stage writes.
    """

    cores: int
    mem_mb: int
    read_cpu_s: float
    rounds: int
    round_cpu_s: float
    round_copy_mb: float = 0.0
    write_mb: float = 0.0


APPLICATIONS: Mapping[str, Application] = MappingProxyType(
    {
        KMEANS: Application(cores=4, mem_mb=4096, read_cpu_s=3.0, rounds=3, round_cpu_s=2.0),
        PAGERANK: Application(cores=2, mem_mb=8192, read_cpu_s=2.0, rounds=2, round_cpu_s=1.5, round_copy_mb=64.0),
        INDEX: Application(
            cores=4, mem_mb=6144, read_cpu_s=5.0, rounds=1, round_cpu_s=3.0, round_copy_mb=64.0, write_mb=128.0
        ),
    }
)

SIZES: Final = ((0.4, 4, 16), (0.4, 16, 80), (0.2, 80, 240))
"""Classes of MapReduce jobs: share, least and most blocks (log-uniform between)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One load on the testbed.

    Attributes:
        pairs: MapReduce jobs, and as many Spark applications.
        gap_s: Mean time between two pairs' arrivals, exponential.
        size: Factor of all MapReduce job sizes.
        program: All MapReduce jobs of one program; empty for each in turn.
        executors: Mean number of a Spark application's; between two thirds and four thirds of it.
        slow_start: Share of maps after whose end reducers are asked for.
        reducing: Factor of the number of reducers, which share the same work.
        reduce_work: Factor of what reducers compute.
        rack: How much longer a remote block takes to read.
        penalty: What a map without all of its memory is longer by.
        jitter: Coefficient of variation of run times.
        dynamic: Whether Spark allocates executors dynamically.
        wait_s: Spark's delay scheduling inside its applications (spark.locality.wait).
        suspend_s: From the decision to suspend a reducer until its CPU is free.
        calm: Whether tasks on a machine do not slow each other down.
    """

    pairs: int = 24
    gap_s: float = 41.0
    size: float = 1.0
    program: str = ""
    executors: int = 6
    slow_start: float = 0.05
    reducing: float = 1.0
    reduce_work: float = 1.0
    rack: float = 3.0
    penalty: float = 1.05
    jitter: float = 0.2
    dynamic: bool = False
    wait_s: float = 0.0
    suspend_s: float = 0.5
    calm: bool = False

    def workload(self, seed: int) -> Workload:
        """Return the load of a seed."""
        random = np.random.default_rng([seed, _SALT])
        apps: list[App] = []
        at_s = 0.0
        for i in range(self.pairs):
            apps.append(self._mapreduce(i, round(at_s * 1000), random))
            at_s += float(random.exponential(self.gap_s / 2))
            apps.append(self._spark(i, round(at_s * 1000), random))
            at_s += float(random.exponential(self.gap_s / 2))
        conditions = Conditions(
            contention=None if self.calm else Saturation(),
            reading=work.Reading(rack=self.rack, anywhere=max(self.rack, work.ILA_READING.anywhere)),
            jitter=self.jitter,
            suspend_ms=round(self.suspend_s * 1000),
            records=True,
        )
        cluster = Cluster.of(testbed())
        return Workload(name="ikayak-msd", cluster=cluster, apps=tuple(apps), conditions=conditions)

    def _mapreduce(self, i: int, submit_ms: int, random: np.random.Generator) -> MapReduce:
        name = self.program or tuple(PROGRAMS)[i % len(PROGRAMS)]
        program = PROGRAMS[name]
        _, least, most = SIZES[int(random.choice(len(SIZES), p=[share for share, _, _ in SIZES]))]
        maps = max(1, round(self.size * least * (most / least) ** float(random.uniform())))
        reduces = max(1, round(self.reducing * maps / program.maps_per_reduce))
        return mapreduce(f"m{i:03}", name, maps, reduces, submit_ms=submit_ms, setting=self)

    def _spark(self, i: int, submit_ms: int, random: np.random.Generator) -> Spark:
        name = tuple(APPLICATIONS)[i % len(APPLICATIONS)]
        executors = int(random.integers(round(self.executors * 2 / 3), round(self.executors * 4 / 3) + 1))
        return spark(f"s{i:03}", name, executors, submit_ms=submit_ms, setting=self)


_SALT = 0x1CAFE
_FIRST = 2  # executors that dynamic allocation asks for before it knows of tasks


def mapreduce(name: str, program: str, maps: int, reduces: int, *, submit_ms: int, setting: Setting) -> MapReduce:
    """Make a MapReduce job of a program."""
    one = PROGRAMS[program]
    out_mb = one.output * BLOCK_MB
    each_mb = out_mb * maps / max(1, reduces)
    penalty = Penalty(model=PenaltyModel.STEP, factor=setting.penalty)
    maps_do = work.segment("map", cpu_s=one.map_cpu_s, read_mb=BLOCK_MB, write_mb=out_mb)
    reduces_do = (
        work.segment("shuffle", copy_mb=each_mb),
        work.segment("sort", read_mb=each_mb, write_mb=each_mb),
        work.segment("reduce", cpu_s=setting.reduce_work * one.reduce_cpu_s * each_mb / 1024, write_mb=each_mb),
    )
    return MapReduce(
        id=name,
        maps=maps,
        map=work.Container(mem_mb=one.mem_mb, cores=1, segments=(maps_do,), penalty=penalty),
        reduces=reduces,
        reduce=work.Container(mem_mb=one.mem_mb, cores=1, segments=reduces_do),
        slow_start=setting.slow_start,
        replicas=REPLICAS,
        submit_ms=submit_ms,
        program=program,
    )


def spark(name: str, program: str, executors: int, *, submit_ms: int, setting: Setting) -> Spark:
    """Make an application of a program: a block and a task of each round for each of its slots."""
    one = APPLICATIONS[program]
    tasks = executors * one.cores
    read = SparkStage(tasks=tasks, work=work.segment("task", cpu_s=one.read_cpu_s, read_mb=BLOCK_MB), replicas=REPLICAS)
    rounds = tuple(
        SparkStage(
            tasks=tasks,
            work=work.segment(
                "task",
                cpu_s=one.round_cpu_s,
                copy_mb=one.round_copy_mb,
                write_mb=one.write_mb if i == one.rounds - 1 else 0.0,
            ),
        )
        for i in range(one.rounds)
    )
    return Spark(
        id=name,
        executors=min(executors, _FIRST) if setting.dynamic else executors,
        executor=work.Container(mem_mb=one.mem_mb, cores=one.cores),
        driver=work.Container(mem_mb=1024, cores=1),
        stages=(read, *rounds),
        dynamic=DynamicAllocation(least=1, most=executors, idle_s=60.0) if setting.dynamic else None,
        locality_wait_s=setting.wait_s,
        submit_ms=submit_ms,
        program=program,
    )


def testbed() -> list[topology.Machine]:
    """Return the paper's workers (Table 2): ten desktops of 8 cores, five servers of 24 or 12, 1 GbE."""
    shapes = [(3, 8, 16), (2, 24, 32), (1, 12, 24), (2, 24, 32), (7, 8, 16)]
    sizes = [(cores, gib) for count, cores, gib in shapes for _ in range(count)]
    return [topology.Machine(name=f"w{i:02}", cores=cores, mem_mb=gib * 1024) for i, (cores, gib) in enumerate(sizes)]
