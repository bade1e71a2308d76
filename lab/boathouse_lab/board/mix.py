"""A mix of MapReduce jobs of the FB-2009 trace and Spark applications, at a given memory load.

The trace's bytes become tasks by `boathouse_sim.swim`. Durations and bytes are scaled so that the mix uses the
given share of the nodes' memory while jobs arrive. Tasks request more memory than in the simulator's model, so that
memory is scarcer than CPU.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_sim import swim, work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_sim.workload import JobSpec, Phase

TRACE = Path(__file__).resolve().parents[1] / "traces" / "FB-2009_samples_24_times_1hr_0.tsv"
_MB = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is drawn.

    Attributes:
        jobs: MapReduce jobs.
        applications: Spark applications.
        nodes: Of the cluster.
        cores: Of a node.
        mem_mb: Of a node.
        load: Share of the nodes' memory that the mix uses.
        submit_s: In which all are submitted.
        sizes: Least and most maps of a job; as many jobs are drawn of each size, or small ones would use hardly any
            memory.
        most_reduces: Of a job.
        reduce_input_mb: Less than in the simulator's model: so reduces are not much longer than maps.
        longest_reduce: In maps: a job with longer ones lasts as long with any scheduler.
        map_mb: Memory of a map.
        reduce_mb: Memory of a reduce.
        spark_share: Share of the load that is Spark's, where there are applications.
        heap_mib: Heap of an executor.
        executors: Least and most of an application. With fewer, it would run for more than half of the time in which
            all are submitted, and much of the load would fall after it.
        programs: Of the MapReduce jobs.
    """

    jobs: int = 30
    applications: int = 10
    nodes: int = 40
    cores: int = 8
    mem_mb: int = 16 * 1024
    load: float = 0.9
    submit_s: float = 180.0
    sizes: tuple[tuple[int, int], ...] = ((2, 19), (20, 149), (150, 400))
    most_reduces: int = 300
    reduce_input_mb: int = 250
    longest_reduce: float = 3.0
    map_mb: int = 2200
    reduce_mb: int = 2600
    spark_share: float = 0.3
    heap_mib: int = 3072
    executors: tuple[int, int] = (8, 24)
    programs: int = 6

    @property
    def memory_mb_s(self) -> float:
        """Memory of the nodes times the time in which all are submitted."""
        return self.nodes * self.mem_mb * self.submit_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A MapReduce job.

    Attributes:
        spec: Its phases in the simulator's model.
        swim: Its line of the trace, scaled.
        map: What a map does.
        reduce: What a reduce does; None for none.
        program: Its command.
    """

    name: str
    submit_s: float
    spec: JobSpec
    swim: swim.SwimJob
    map: work.Container
    reduce: work.Container | None
    program: str

    @property
    def maps(self) -> int:
        """Number of maps."""
        return self.spec.phases[0].tasks

    @property
    def reduces(self) -> int:
        """Number of reduces."""
        return sum(phase.tasks for phase in self.spec.phases[1:])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A Spark application.

    Attributes:
        executors: All start together.
        memory_mib: Of an executor, overhead included.
        seconds: Executor-seconds that it takes.
    """

    name: str
    submit_s: float
    executors: int
    memory_mib: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Jobs and applications.

    Attributes:
        scale: Factor of all durations and bytes, relative to the trace.
        cpu_load: Share of the CPUs that the mix uses while jobs arrive.
    """

    jobs: tuple[Job, ...]
    applications: tuple[Application, ...]
    scale: float
    cpu_load: float


def draw(seed: int, shape: Shape) -> Mix:
    """Return the mix of a seed."""
    random_ = random.Random(seed)  # noqa: S311 - a workload
    lines, model = _drawn(random_, shape), model_of(shape)
    spark = shape.spark_share if shape.applications else 0.0
    used = sum(memory_mb_s(job) for job in _jobs(lines, model, [0.0] * shape.jobs, shape))
    scale = (1 - spark) * shape.load * shape.memory_mb_s / used if shape.jobs else 0.0
    at_s = [0.0, *sorted(random_.uniform(0, shape.submit_s) for _ in range(shape.jobs - 1))]
    jobs = _jobs(_scaled(lines, scale), _scaled_model(model, scale), at_s, shape) if shape.jobs else []
    apps = _applications(random_, (spark if shape.jobs else 1.0) * shape.load * shape.memory_mb_s, shape)
    cores_s = sum(task_s(job) for job in jobs) + sum(one.seconds for one in apps)
    cpu_load = cores_s / (shape.nodes * shape.cores * shape.submit_s)
    return Mix(jobs=tuple(jobs), applications=tuple(apps), scale=scale, cpu_load=cpu_load)


def task_s(job: Job) -> float:
    """Return the run times of all tasks, alone."""
    return sum(phase.tasks * phase.duration_ms for phase in job.spec.phases) / 1000


def memory_mb_s(job: Job) -> float:
    """Return the memory of all tasks times their run times."""
    return sum(phase.tasks * phase.mem_ideal_mb * phase.duration_ms for phase in job.spec.phases) / 1000


def alone_s(mix: Mix) -> dict[str, float]:
    """Return the time of each by name if it had enough nodes for itself, and pods took no time to start."""
    jobs = {one.name: sum(phase.duration_ms for phase in one.spec.phases) / 1000 for one in mix.jobs}
    return jobs | {one.name: one.seconds / one.executors for one in mix.applications}


def text(mix: Mix) -> str:
    """Describe a mix in one line."""
    tasks = sum(job.maps + job.reduces for job in mix.jobs)
    mean_s = statistics.fmean(task_s(job) for job in mix.jobs) * len(mix.jobs) / tasks if tasks else 0.0
    return (
        f"{len(mix.jobs)} jobs with {tasks} tasks of {mean_s:.0f} s on average, {len(mix.applications)} "
        f"applications; durations of the trace × {mix.scale:.2f}; CPU load {mix.cpu_load:.2f}"
    )


def model_of(shape: Shape) -> swim.SwimModel:
    """Return the model that turns the trace's bytes into tasks of a shape."""
    return dataclasses.replace(
        swim.SwimModel.load(),
        map_mem_mb=shape.map_mb,
        reduce_mem_mb=shape.reduce_mb,
        reduce_input_mb=shape.reduce_input_mb,
    )


@functools.cache
def trace() -> tuple[swim.SwimJob, ...]:
    """Return the jobs of the trace."""
    return tuple(swim.read_swim(TRACE))


def _drawn(random_: random.Random, shape: Shape) -> list[swim.SwimJob]:
    every = swim.workload("", trace(), model_of(shape)).jobs
    lines = {spec.id: line for spec, line in zip(every, trace(), strict=True)}
    specs = [spec for spec in every if _is_fitting(spec.phases, shape)]
    found = []
    for place, (least, most) in enumerate(shape.sizes):
        of_size = [spec.id for spec in specs if least <= spec.phases[0].tasks <= most]
        found += random_.sample(of_size, len(range(place, shape.jobs, len(shape.sizes))))
    random_.shuffle(found)
    return [lines[job_id] for job_id in found]


def _is_fitting(phases: tuple[Phase, ...], shape: Shape) -> bool:
    is_short = all(phase.duration_ms <= shape.longest_reduce * phases[0].duration_ms for phase in phases)
    return is_short and sum(phase.tasks for phase in phases[1:]) <= shape.most_reduces


def _scaled(jobs: Iterable[swim.SwimJob], scale: float) -> list[swim.SwimJob]:
    return [
        dataclasses.replace(
            job,
            map_input_bytes=round(job.map_input_bytes * scale),
            shuffle_bytes=round(job.shuffle_bytes * scale),
            reduce_output_bytes=round(job.reduce_output_bytes * scale),
        )
        for job in jobs
    ]


def _scaled_model(model: swim.SwimModel, scale: float) -> swim.SwimModel:
    """Return the model that gives scaled jobs as many tasks, which take `scale` times as long."""
    return dataclasses.replace(
        model,
        split_mb=model.split_mb * scale,  # type: ignore[arg-type]  # a whole number in files alone
        reduce_input_mb=model.reduce_input_mb * scale,  # type: ignore[arg-type]
        task_overhead_s=model.task_overhead_s * scale,
    )


def _jobs(lines: list[swim.SwimJob], model: swim.SwimModel, at_s: list[float], shape: Shape) -> list[Job]:
    return [
        job_of(spec, line, submit_s, shape)
        for spec, line, submit_s in zip(swim.workload("mix", lines, model).jobs, lines, at_s, strict=True)
    ]


def job_of(spec: JobSpec, line: swim.SwimJob, submit_s: float, shape: Shape) -> Job:
    """Return a job of the simulator's model with what its tasks do."""
    return Job(
        name=f"mr-{spec.id}",
        submit_s=submit_s,
        spec=spec,
        swim=line,
        map=_map(spec.phases[0], line),
        reduce=_reduce(spec.phases[1], line) if len(spec.phases) > 1 else None,
        program=f"program-{int(spec.id) % shape.programs}",
    )


def _map(phase: Phase, line: swim.SwimJob) -> work.Container:
    """A map reads its split over the network, computes, and writes its output to the node's disk."""
    read_mb = line.map_input_bytes / _MB / phase.tasks
    write_mb = (line.shuffle_bytes or line.reduce_output_bytes) / _MB / phase.tasks
    return _container(phase, [_rest(phase.duration_ms, "map", copy_mb=read_mb, write_mb=write_mb)])


def _reduce(phase: Phase, line: swim.SwimJob) -> work.Container:
    """A reduce copies its part of the maps' output, then merges it on the node's disk and reduces it."""
    copy = work.segment("shuffle", copy_mb=line.shuffle_bytes / _MB / phase.tasks)
    left_ms = max(1, phase.duration_ms - copy.work_ms)
    uploaded_mb, merged_mb = line.reduce_output_bytes / _MB / phase.tasks, copy.copy_mb
    return _container(phase, [copy, _rest(left_ms, "reduce", copy_mb=uploaded_mb, write_mb=merged_mb)])


def _rest(work_ms: int, name: str, *, copy_mb: float, write_mb: float) -> work.Segment:
    """Return a segment of a duration that moves bytes and computes for the rest."""
    moving = work.segment(name, copy_mb=copy_mb, write_mb=write_mb)
    most = 0.7 * work_ms / moving.work_ms if moving.work_ms else 1.0
    if most < 1:
        moving = work.segment(name, copy_mb=copy_mb * most, write_mb=write_mb * most)
    return dataclasses.replace(moving, cpu_ms=max(0, work_ms - moving.work_ms))


def _container(phase: Phase, segments: list[work.Segment]) -> work.Container:
    return work.Container(mem_mb=phase.mem_ideal_mb, segments=tuple(segments), penalty=phase.penalty)


def _applications(random_: random.Random, used_mb_s: float, shape: Shape) -> list[Application]:
    memory_mib, count = shape.heap_mib + max(384, shape.heap_mib // 10), shape.applications
    executors = [random_.randint(*shape.executors) for _ in range(count)]
    seconds = [executor_count * random_.uniform(0.5, 1.5) for executor_count in executors]
    scale = used_mb_s / memory_mib / sum(seconds) if count else 0.0
    return [
        Application(
            name=f"app-{number}",
            submit_s=random_.uniform(0, shape.submit_s),
            executors=executors[number],
            memory_mib=memory_mib,
            seconds=seconds[number] * scale,
        )
        for number in range(count)
    ]
