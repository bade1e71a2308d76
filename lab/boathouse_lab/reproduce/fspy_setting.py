"""The cluster and the workloads of FSPY's evaluation (IV.A, IV.C): segments of a Facebook trace, replayed as SWIM does.

What SWIM's replay script does to a trace is kept: sizes times (machines here / machines there); at least 64 MB of
input and 1 KB of shuffled and of written data; a reduce for each so many bytes, at least one, and a fifth of the
machines where that is more than one a machine.
What the paper does not state are fields of `Setting`.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import fspy_rcp, fspy_workload
from boathouse_policies.fspy import Config
from boathouse_policies.fspy.prediction import Predictor
from boathouse_sim import probing, swim
from boathouse_sim.workload import Cluster, JobSpec, Phase, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.fspy_workload import Observed, Program
    from boathouse_sim.swim import SwimJob

TRACE = Path(__file__).resolve().parent.parent / "traces" / "FB-2009_samples_24_times_1hr_0.tsv"
NODES, NODE_MB, NODE_CORES = 8, 8192, 8
BLOCK = fspy_workload.BLOCK_BYTES
LEAST_DATA = 1024
MACHINES = 600
"""Of the cluster that was traced, as SWIM's replay script takes it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was assumed; see the page for why.

    Attributes:
        data: Every byte count of the trace times this.
        gaps: Every time between submissions times this.
        noise: Coefficient of variation of run times and of what probes measure.
        function_s_per_mb: Time of the map and of the reduce function.
        record_bytes: Of an intermediate record.
        reduce_bytes: Shuffled and written bytes for each reduce.
        task_mb: Memory of a map's and of a reduce's container.
        master_mb: Memory of a master's container, in which uber and probing jobs run too.
        master_start_s: From a master's container to its first request for a task.
        masters: Whether normal jobs have a master's container.
        history: Jobs that the models learnt from before.
        told: Whether policies are told exact sizes instead of predicting them.
        probing_share: The probing queue's part of the cluster.
        rerun: Coefficient of variation of a job's run time from one run to another: between Fair and FSPY.
    """

    data: float = 1.0
    gaps: float = 1.0
    noise: float = 0.1
    function_s_per_mb: float = 0.02
    record_bytes: float = 100
    reduce_bytes: int = BLOCK
    task_mb: int = 1024
    master_mb: int = 2048
    master_start_s: float = 4.0
    masters: bool = True
    history: int = 200
    told: bool = False
    probing_share: float = 0.1
    rerun: float = 0.0

    @property
    def program(self) -> Program:
        """What SWIM's jobs do to a byte."""
        return fspy_workload.Program(
            name="",
            map_s_per_mb=self.function_s_per_mb,
            record_bytes=self.record_bytes,
            map_selectivity=1.0,
            combine=1.0,
            reduce_s_per_mb=self.function_s_per_mb,
            reduce_selectivity=1.0,
        )


@functools.cache
def trace() -> Sequence[SwimJob]:
    """Return the trace's jobs."""
    return tuple(swim.read_swim(TRACE))


@functools.cache
def segments() -> Sequence[range]:
    """Return places of the jobs of the 37 segments."""
    return tuple(fspy_rcp.segments(len(trace())))


def replay(job: SwimJob, setting: Setting, rng: np.random.Generator) -> Observed:
    """Return what a job of the trace is here, and what it takes."""
    scaled = [one * setting.data for one in (job.map_input_bytes, job.shuffle_bytes, job.reduce_output_bytes)]
    read, shuffled, written = (
        max(least, one) for least, one in zip((BLOCK, LEAST_DATA, LEAST_DATA), scaled, strict=True)
    )
    reduces, machines = max(1, round((shuffled + written) / setting.reduce_bytes)), round(MACHINES * setting.data)
    if reduces > machines:
        reduces = max(1, machines // 5)
    program = fspy_workload.with_ratios(read, shuffled, written, setting.program)
    return fspy_workload.replayed(program, read, reduces, noise=setting.noise, rng=rng)


def is_uber(job: Observed) -> bool:
    """Return whether Hadoop's rule holds: input of one block and one reduce."""
    return job.probed.map_input_bytes <= BLOCK and job.probed.reduces <= 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment ready to run.

    Attributes:
        workload: For the simulator.
        jobs: As they are, in order.
        load: ΣS / (ΣI·CR) of eq. 11.
        ideal_s: Response time of each job alone on the cluster, shape [J].
    """

    workload: Workload
    jobs: tuple[Observed, ...]
    load: float
    ideal_s: tuple[float, ...]


def segment(number: int, seed: int, setting: Setting, *, run: int = 0) -> Segment:
    """Return one of the segments.

    Args:
        number: 0 to 36.
        seed: Of the noise.
        setting: What was assumed.
        run: With `Setting.rerun`: which run of the same jobs.
    """
    chosen = [trace()[i] for i in segments()[number]]
    rng = np.random.default_rng([seed, number])
    jobs = tuple(replay(one, setting, rng) for one in chosen)
    first_s = chosen[0].submit_s
    specs = tuple(
        _spec(i, job, (one.submit_s - first_s) * setting.gaps, setting, rng)
        for i, (job, one) in enumerate(zip(jobs, chosen, strict=True))
    )
    if setting.rerun:
        specs = tuple(_again(one, setting.rerun, np.random.default_rng([seed, number, run])) for one in specs)
    span_s = (chosen[-1].submit_s - first_s) * setting.gaps
    cluster = Cluster(nodes=NODES, node_mem_mb=NODE_MB, node_cores=NODE_CORES)
    return Segment(
        workload=Workload(name=f"segment {number}", cluster=cluster, jobs=specs),
        jobs=jobs,
        load=fspy_rcp.load([size_mb_s(one) for one in specs], [span_s], NODES * NODE_MB),
        ideal_s=tuple(ideal_s(one, setting) for one in specs),
    )


def _spec(place: int, job: Observed, at_s: float, setting: Setting, rng: np.random.Generator) -> JobSpec:
    master_ms = round(setting.master_start_s * 1000)
    master = Phase(kind="driver", tasks=1, duration_ms=master_ms, mem_ideal_mb=setting.master_mb)
    name, submit_ms = str(place), round(at_s * 1000)
    if is_uber(job):
        run_ms = master_ms + round((job.times.map_s + job.times.reduce_s) * 1000)
        one = Phase(kind="uber", tasks=1, duration_ms=run_ms, mem_ideal_mb=setting.master_mb)
        return JobSpec(id=name, phases=(one,), submit_ms=submit_ms, stated=setting.told)
    maps, reduces = job.probed.maps, job.probed.reduces
    phases = (
        Phase(
            kind="map",
            tasks=maps,
            duration_ms=round(job.times.map_s / maps * 1000),
            mem_ideal_mb=setting.task_mb,
            input_bytes=round(job.probed.map_input_bytes / maps),
        ),
        Phase(
            kind="reduce",
            tasks=reduces,
            duration_ms=round(job.times.reduce_s / reduces * 1000),
            mem_ideal_mb=setting.task_mb,
            when_ended=True,
        ),
    )
    return JobSpec(
        id=name,
        phases=phases,
        submit_ms=submit_ms,
        master=master if setting.masters else None,
        probe=probing.probe(job.probed, job.times, container=master, split_bytes=BLOCK, rng=rng),
        stated=setting.told,
    )


def _again(spec: JobSpec, variation: float, rng: np.random.Generator) -> JobSpec:
    factors = fspy_workload.blur(variation, rng, len(spec.phases)).tolist()
    phases = tuple(
        dataclasses.replace(one, duration_ms=round(one.duration_ms * factor))
        for one, factor in zip(spec.phases, factors, strict=True)
    )
    return dataclasses.replace(spec, phases=phases)


def size_mb_s(spec: JobSpec) -> float:
    """Compute eq. 5 in memory: the master's container does not count."""
    return sum(one.tasks * one.mem_ideal_mb * one.duration_ms / 1000 for one in spec.phases)


def ideal_s(spec: JobSpec, setting: Setting) -> float:
    """Return response time of a job alone on the cluster."""
    total = 0.0 if spec.master is None else spec.master.duration_ms / 1000
    for one in spec.phases:
        total += -(-one.tasks // _slots(one, spec, setting)) * one.duration_ms / 1000
    return total


def _slots(phase: Phase, spec: JobSpec, setting: Setting) -> int:
    """Return containers of a phase that run at once, beside the job's own master."""
    node = min(NODE_MB // phase.mem_ideal_mb, int(NODE_CORES // phase.cores))
    if spec.master is None:
        return NODES * node
    beside = min((NODE_MB - setting.master_mb) // phase.mem_ideal_mb, int((NODE_CORES - 1) // phase.cores))
    return (NODES - 1) * node + beside


def learnt(number: int, seed: int, setting: Setting) -> Predictor:
    """Return models that have seen jobs of the rest of the trace.

    Args:
        number: The segment that they have not seen.
        seed: Of the noise, and of which jobs.
        setting: What was assumed.
    """
    rng = np.random.default_rng([seed, number, 1])
    others = [i for i in range(len(trace())) if i not in segments()[number]]
    predictor, left = Predictor(Config()), setting.history
    for place in rng.permutation(len(others)).tolist():
        if not left:
            break
        job = replay(trace()[others[place]], setting, rng)
        if is_uber(job):
            predictor.learn_uber("", setting.master_start_s + job.times.map_s + job.times.reduce_s)
        else:
            predictor.learn(job.probed, job.times)
            left -= 1
    return predictor
