"""The workload of `live_mix.py`: MapReduce jobs of the FB-2009 trace and Spark applications at a given memory load.

The trace's bytes become tasks by `boathouse_sim.swim_model`. Durations and bytes are scaled so that the workload uses
the given share of the nodes' memory while jobs arrive. Tasks request more memory than in the simulator's model, so
that memory is scarcer than CPU.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fake_programs
import spark_mix

from boathouse_sim import swim, swim_model, work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_sim.workload import JobSpec, Phase

TRACE = Path(__file__).parents[2] / "data/traces/FB-2009_samples_24_times_1hr_0.tsv"
NAMESPACE = "mix"
SIZES = ((2, 19), (20, 149), (150, 400))
"""Least and most maps of a job; as many jobs are drawn of each size, or small ones would use nearly nothing."""
MOST_REDUCES = 300
REDUCE_INPUT_MB = 250
"""Input of a reduce, less than in the simulator's model: so reduces are not much longer than maps."""
LONGEST_REDUCE = 3.0
"""Run time of a reduce, in maps: a job with longer ones lasts as long with any scheduler."""
MAP_MB, REDUCE_MB = 2200, 2600
LEAST_MEMORY = 0.25
"""Least share of its memory that a task may start with."""
SPARK_SHARE = 0.3
"""Share of the load that is Spark's."""
HEAP_MIB = 3072
EXECUTORS = (8, 24)
"""Least and most executors of an application. With fewer, it would run for more than half of the time in which all are
submitted, and much of the load would fall after it."""
PROGRAMS = 6
SLOW_START_PERCENT = 20
MB = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A MapReduce job.

    Attributes:
        spec: Its phases in the simulator's model.
        swim: Its line of the trace, scaled.
        map: What a map does.
        reduce: What a reduce does; None for none.
    """

    name: str
    submit_s: float
    spec: JobSpec
    swim: swim.SwimJob
    map: work.Container
    reduce: work.Container | None

    @property
    def maps(self) -> int:
        """Number of maps."""
        return self.spec.phases[0].tasks

    @property
    def reduces(self) -> int:
        """Number of reduces."""
        return sum(phase.tasks for phase in self.spec.phases[1:])

    @property
    def program(self) -> str:
        """Its command."""
        return f"program-{int(self.spec.id) % PROGRAMS}"

    def manifest(self) -> dict[str, Any]:
        """Return the MRJob."""
        spec: dict[str, Any] = {
            "image": "none",
            "input": ["s3://b/in"],
            "output": f"s3://b/{self.name}",
            "mapper": _template(self.program, self.map),
            "slowStartCompletedMapsPercent": SLOW_START_PERCENT,
            "storage": {"s3": {"endpointURL": "http://s3", "secretRef": spark_mix.KEYS}},
        }
        if self.reduce is not None:
            spec |= {"reducer": _template(self.program, self.reduce), "numReduceTasks": self.reduces}
        return spark_mix.manifest("MRJob", self.name, NAMESPACE, spec)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A Spark application and when it is submitted."""

    submit_s: float
    application: spark_mix.Application

    @property
    def name(self) -> str:
        """Its name."""
        return self.application.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Jobs and applications.

    Attributes:
        scale: Factor of all durations and bytes, relative to the trace.
        cpu_load: Share of the CPUs that the workload uses while jobs arrive.
    """

    jobs: tuple[Job, ...]
    applications: tuple[Arrival, ...]
    scale: float
    cpu_load: float

    @property
    def everything(self) -> list[Job | Arrival]:
        """All that is submitted, by time."""
        return sorted((*self.jobs, *self.applications), key=lambda each: each.submit_s)

    @property
    def alone_s(self) -> float:
        """The mean time of them if each had enough nodes for itself, and pods took no time to start."""
        jobs = [sum(phase.duration_ms for phase in job.spec.phases) / 1000 for job in self.jobs]
        works = [each.application.work for each in self.applications]
        return statistics.fmean([*jobs, *(work.seconds / work.executors for work in works)])

    def text(self) -> str:
        """Describe it in one line."""
        tasks = sum(job.maps + job.reduces for job in self.jobs)
        seconds = sum(_task_s(job) for job in self.jobs) / tasks
        return (
            f"{len(self.jobs)} jobs with {tasks} tasks of {seconds:.0f} s on average, {len(self.applications)} "
            f"applications; durations of the trace × {self.scale:.2f}; CPU load {self.cpu_load:.2f}"
        )


def mix(seed: int, *, jobs: int, applications: int, nodes: int, node: tuple[int, int], load: float, s: float) -> Mix:
    """Return the workload of a seed.

    Args:
        seed: Of all that is drawn.
        jobs: Number of jobs.
        applications: Number of applications.
        nodes: Number of nodes.
        node: Cores and MiB of a node.
        load: Share of the nodes' memory that the workload uses.
        s: Seconds in which all are submitted.
    """
    draw = random.Random(seed)  # noqa: S311 - a workload
    drawn, model = _drawn(draw, jobs), _model()
    spark = SPARK_SHARE if applications else 0.0
    capacity = nodes * node[1] * s
    used = sum(_memory_s(job) for job in _jobs(drawn, model, [0.0] * jobs))
    scale = (1 - spark) * load * capacity / used
    at_s = [0.0, *sorted(draw.uniform(0, s) for _ in range(jobs - 1))]
    made = _jobs(_scaled(drawn, scale), _scaled_model(model, scale), at_s)
    apps = _applications(draw, applications, spark * load * capacity, s)
    cores_s = sum(_task_s(job) for job in made) + sum(each.application.work.seconds for each in apps)
    return Mix(jobs=tuple(made), applications=tuple(apps), scale=scale, cpu_load=cores_s / (nodes * node[0] * s))


def _drawn(draw: random.Random, count: int) -> list[swim.SwimJob]:
    trace = swim.read_swim(TRACE)
    every = swim_model.workload("", trace, _model()).jobs
    lines = {spec.id: line for spec, line in zip(every, trace, strict=True)}
    specs = [spec for spec in every if _is_fitting(spec.phases)]
    found = []
    for place, (least, most) in enumerate(SIZES):
        of_size = [spec.id for spec in specs if least <= spec.phases[0].tasks <= most]
        found += draw.sample(of_size, len(range(place, count, len(SIZES))))
    draw.shuffle(found)
    return [lines[each] for each in found]


def _is_fitting(phases: tuple[Phase, ...]) -> bool:
    is_short = all(phase.duration_ms <= LONGEST_REDUCE * phases[0].duration_ms for phase in phases)
    return is_short and sum(phase.tasks for phase in phases[1:]) <= MOST_REDUCES


def _model() -> swim_model.SwimModel:
    return dataclasses.replace(
        swim_model.SwimModel.load(), map_mem_mb=MAP_MB, reduce_mem_mb=REDUCE_MB, reduce_input_mb=REDUCE_INPUT_MB
    )


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


def _scaled_model(model: swim_model.SwimModel, scale: float) -> swim_model.SwimModel:
    """Return the model that gives scaled jobs as many tasks, which take `scale` times as long."""
    return dataclasses.replace(
        model,
        split_mb=model.split_mb * scale,
        reduce_input_mb=model.reduce_input_mb * scale,
        task_overhead_s=model.task_overhead_s * scale,
    )


def _jobs(lines: list[swim.SwimJob], model: swim_model.SwimModel, at_s: list[float]) -> list[Job]:
    specs = swim_model.workload("mix", lines, model).jobs
    return [
        Job(
            name=f"mr-{spec.id}",
            submit_s=submit_s,
            spec=spec,
            swim=line,
            map=_map(spec.phases[0], line),
            reduce=_reduce(spec.phases[1], line) if len(spec.phases) > 1 else None,
        )
        for spec, line, submit_s in zip(specs, lines, at_s, strict=True)
    ]


def _map(phase: Phase, line: swim.SwimJob) -> work.Container:
    """A map reads its split over the network, computes, and writes its output to the node's disk."""
    read_mb = line.map_input_bytes / MB / phase.tasks
    write_mb = (line.shuffle_bytes or line.reduce_output_bytes) / MB / phase.tasks
    return _container(phase, [_rest(phase.duration_ms, "map", copy_mb=read_mb, write_mb=write_mb)])


def _reduce(phase: Phase, line: swim.SwimJob) -> work.Container:
    """A reduce copies its part of the maps' output, then merges it on the node's disk and reduces it."""
    copy = work.segment("shuffle", copy_mb=line.shuffle_bytes / MB / phase.tasks)
    left_ms = max(1, phase.duration_ms - copy.work_ms)
    uploaded_mb, merged_mb = line.reduce_output_bytes / MB / phase.tasks, copy.copy_mb
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


def _template(program: str, container: work.Container) -> dict[str, Any]:
    percent = round(100 * (container.penalty.factor - 1))
    return {
        "command": [program],
        "resources": {"requests": {"cpu": str(container.cores), "memory": f"{container.mem_mb}Mi"}},
        "elasticMemory": {"min": f"{round(LEAST_MEMORY * container.mem_mb)}Mi", "slowdownPercent": percent},
    }


def _task_s(job: Job) -> float:
    return sum(phase.tasks * phase.duration_ms for phase in job.spec.phases) / 1000


def _memory_s(job: Job) -> float:
    return sum(phase.tasks * phase.mem_ideal_mb * phase.duration_ms for phase in job.spec.phases) / 1000


def _applications(draw: random.Random, count: int, memory_s: float, s: float) -> list[Arrival]:
    memory_mib = HEAP_MIB + max(384, HEAP_MIB // 10)
    executors = [draw.randint(*EXECUTORS) for _ in range(count)]
    seconds = [each * draw.uniform(0.5, 1.5) for each in executors]
    scale = memory_s / memory_mib / sum(seconds) if count else 0.0
    return [
        Arrival(
            submit_s=draw.uniform(0, s),
            application=spark_mix.Application(
                name=f"app-{number}",
                namespace=NAMESPACE,
                is_dynamic=False,
                minimum=executors[number],
                heap_mib=HEAP_MIB,
                work=fake_programs.Work(
                    executors=executors[number],
                    minimum=executors[number],
                    cores=1,
                    memory_mib=memory_mib,
                    seconds=seconds[number] * scale,
                ),
            ),
        )
        for number in range(count)
    ]
