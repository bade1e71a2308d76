"""Traces of SWIM, the Statistical Workload Injector for MapReduce, and their jobs as a workload.

A trace has bytes and times of submission alone, a named model adds the rest.

Policies that predict sizes are told none, and may probe; but for jobs of one map and at most one reduce, as a probe
would do all of their work.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from boathouse_policies.fspy.prediction import Features, TotalTimes
from boathouse_sim import probing
from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Workload, WorkloadError

_COLUMNS = 6


class TraceError(ValueError):
    """A trace cannot be read; the message names the file, the line and what is wrong."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SwimJob:
    """One line of a SWIM trace."""

    name: str
    submit_s: float
    map_input_bytes: int
    shuffle_bytes: int
    reduce_output_bytes: int


def read_swim(path: Path) -> list[SwimJob]:
    """Read a trace: tab-separated, no header, in order of submission; raise TraceError where it is none.

    Columns are name, submission (s), gap since the one before (s), map input, shuffle, reduce output (bytes).
    """
    jobs: list[SwimJob] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        job = _parse(line, f"{path.name}, line {number}")
        if jobs and job.submit_s < jobs[-1].submit_s:
            raise TraceError(
                f"{path.name}, line {number}: submitted before the line above it; sort by the second column"
            )
        jobs.append(job)
    if not jobs:
        raise TraceError(f"{path.name}: holds no jobs")
    return jobs


def _parse(line: str, where: str) -> SwimJob:
    fields = line.split("\t")
    if len(fields) < _COLUMNS:
        raise TraceError(f"{where}: {len(fields)} tab-separated columns, a SWIM trace has {_COLUMNS}")
    try:
        submit_s, sizes = float(fields[1]), [int(field) for field in fields[3:_COLUMNS]]
    except ValueError as error:
        raise TraceError(f"{where}: {error}") from None
    if submit_s < 0 or min(sizes) < 0:
        raise TraceError(f"{where}: times and sizes are not negative")
    read, shuffled, written = sizes
    return SwimJob(
        name=fields[0], submit_s=submit_s, map_input_bytes=read, shuffle_bytes=shuffled, reduce_output_bytes=written
    )


_BYTES_PER_MB = 1_000_000
_RECORD_BYTES = 100  # of a map's output, for what probes count
DEFAULT = Path(__file__).resolve().parent / "swim-model.json"
"""Beside this module, so that an installed package has it; `data/swim-model.json` is a link to it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SwimModel:
    """What a trace does not say.

    A job has one map for each `split_mb` of input and, if it shuffles, one reduce for each `reduce_input_mb` of that; a
    map reads at `map_mb_per_s`, a reduce reads and writes at `reduce_mb_per_s`, both after `task_overhead_s`.
    """

    nodes: int
    racks: int
    node_mem_mb: int
    node_cores: int
    split_mb: int
    map_mb_per_s: float
    map_mem_mb: int
    map_penalty_factor: float
    reduce_input_mb: int
    reduce_mb_per_s: float
    reduce_mem_mb: int
    reduce_penalty_factor: float
    task_overhead_s: float

    @classmethod
    def load(cls, path: Path | None = None) -> "SwimModel":
        """Read `swim-model.json`, or another file of the same fields; raise WorkloadError where one is none."""
        path = path or DEFAULT
        try:
            values = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise WorkloadError(f"{path.name}: not JSON: {error}") from None
        values.pop("about", None)
        wanted = {field.name for field in dataclasses.fields(cls)}
        if values.keys() != wanted:
            raise WorkloadError(f"{path.name}: missing or not known: {', '.join(sorted(values.keys() ^ wanted))}")
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise WorkloadError(f"{path.name}: {name} must be a number above 0, not {value!r}")
        return cls(**values)


def workload(name: str, jobs: Sequence[SwimJob], model: SwimModel) -> Workload:
    """Return the trace's jobs by the model."""
    return Workload(
        name=name,
        cluster=Cluster(
            nodes=model.nodes, racks=model.racks, node_mem_mb=model.node_mem_mb, node_cores=model.node_cores
        ),
        jobs=tuple(_spec(i, job, model) for i, job in enumerate(jobs)),
        assumptions=dataclasses.asdict(model),
    )


def _spec(place: int, job: SwimJob, model: SwimModel) -> JobSpec:
    phases, submit_ms = _phases(job, model), round(job.submit_s * 1000)
    probe = None if all(phase.tasks == 1 for phase in phases) else _probe(place, job, phases, model)
    return JobSpec(id=str(place), submit_ms=submit_ms, phases=phases, probe=probe, stated=probe is None)


def _probe(place: int, job: SwimJob, phases: tuple[Phase, ...], model: SwimModel) -> Phase:
    totals_s = [phase.tasks * phase.duration_ms / 1000 for phase in phases]
    written = job.shuffle_bytes or job.reduce_output_bytes  # by the maps
    reduced = job.reduce_output_bytes if job.shuffle_bytes else 0
    measured = Features(
        maps=phases[0].tasks,
        reduces=sum(phase.tasks for phase in phases[1:]),
        map_input_bytes=job.map_input_bytes,
        map_function_s=job.map_input_bytes / _BYTES_PER_MB / model.map_mb_per_s,
        map_output_bytes=written,
        map_output_records=written / _RECORD_BYTES,
        reduce_function_s=(job.shuffle_bytes + reduced) / _BYTES_PER_MB / model.reduce_mb_per_s,
        reduce_output_bytes=reduced,
        reduce_input_records=job.shuffle_bytes / _RECORD_BYTES,
    )
    container = Phase(
        kind="probe",
        tasks=1,
        duration_ms=round(model.task_overhead_s * 1000),
        mem_ideal_mb=max(phase.mem_ideal_mb for phase in phases),
    )
    return probing.probe(
        measured,
        TotalTimes(map_s=totals_s[0], reduce_s=sum(totals_s[1:])),
        container=container,
        split_bytes=model.split_mb * _BYTES_PER_MB,
        rng=np.random.default_rng(place),
    )


def _phases(job: SwimJob, model: SwimModel) -> tuple[Phase, ...]:
    input_mb = job.map_input_bytes / _BYTES_PER_MB
    maps = max(1, math.ceil(input_mb / model.split_mb))
    phases = [
        Phase(
            kind="map",
            tasks=maps,
            duration_ms=_run_ms(input_mb / maps, model.map_mb_per_s, model),
            mem_ideal_mb=model.map_mem_mb,
            penalty=Penalty(model=PenaltyModel.STEP, factor=model.map_penalty_factor),
        )
    ]
    if job.shuffle_bytes:
        shuffle_mb, output_mb = job.shuffle_bytes / _BYTES_PER_MB, job.reduce_output_bytes / _BYTES_PER_MB
        reduces = max(1, math.ceil(shuffle_mb / model.reduce_input_mb))
        phases.append(
            Phase(
                kind="reduce",
                tasks=reduces,
                duration_ms=_run_ms((shuffle_mb + output_mb) / reduces, model.reduce_mb_per_s, model),
                mem_ideal_mb=model.reduce_mem_mb,
                penalty=Penalty(model=PenaltyModel.SAWTOOTH, factor=model.reduce_penalty_factor),
            )
        )
    return tuple(phases)


def _run_ms(megabytes: float, mb_per_s: float, model: SwimModel) -> int:
    return round((model.task_overhead_s + megabytes / mb_per_s) * 1000)
