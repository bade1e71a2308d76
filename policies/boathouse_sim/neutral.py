"""Workloads as JSON: the format `neutral-cluster-workload/1`."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boathouse_policies import model
from boathouse_sim.conditions import Conditions, RunTimes
from boathouse_sim.topology import Machine
from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Timing, Workload, WorkloadError

FORMAT = "neutral-cluster-workload/1"

_WORKLOAD = ("format", "name", "cluster", "timing", "queues", "run_times", "jobs")
_ELASTIC = ("mem_granularity_mb", "min_mem_fraction")
_CLUSTER = ("nodes", "node_mem_mb", "node_cores", "racks", *_ELASTIC, "machines")
_MACHINE = ("name", "cores", "mem_mb", "rack", "site")
_QUEUE = ("name", "weight", "limits")
_LIMITS = {"cpu_milli": "cpu", "memory_bytes": "memory", "pods": "pods"}
_TIMING = {  # and the least of each
    "node_heartbeat_ms": 1,
    "am_heartbeat_ms": 1,
    "am_container_mb": 0,
    "am_container_cores": 0,
    "allocs_per_node_heartbeat": 1,
}
_JOB = ("id", "namespace", "queue", "program", "submit_ms", "after", "phases")
_PHASE = (
    *("kind", "tasks", "duration_ms", "durations_ms", "mem_ideal_mb", "cores", "penalty"),
    *("when_ended", "input_bytes", "counters"),
)
_PENALTY = ("model", "factor")

# Fields that are accepted and not read: comments, and options of other simulators that read the same files.
_WORKLOAD_IGNORED = ("about", "units")
_TIMING_IGNORED = ("reservations",)
_MOST_CORES = 1_000_000


def read_neutral(path: Path) -> Workload:
    """Read a workload; raise WorkloadError where it is not of this format, or something in it cannot be."""
    try:
        decoded = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path.name}: not JSON: {error}") from None
    return decode(decoded, path.name)


def decode(decoded: Any, where: str) -> Workload:
    """Return the workload in a decoded file, or raise WorkloadError; `where` is the file's name, for messages."""
    root = _Place(decoded, where)
    if root.text("format", "") != FORMAT:
        raise WorkloadError(f'{where}: "format" must be "{FORMAT}"')
    root.refuse_unknown(_WORKLOAD, ignored=_WORKLOAD_IGNORED)
    jobs = tuple(_job(place) for place in root.items("jobs"))
    if not jobs:
        raise WorkloadError(f"{where}: holds no jobs")
    workload = Workload(
        name=root.text("name", where.rpartition(".")[0] or where),
        cluster=_cluster(root.at("cluster")),
        jobs=jobs,
        timing=_timing(root),
        queues=tuple(map(_queue, root.items("queues"))) if "queues" in root.value else (),
        conditions=_conditions(root),
    )
    workload.check()
    return workload


def encode(workload: Workload, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload of plain jobs on machines, without masters and probes, in this format, with comments."""
    run_times = workload.conditions.run_times if workload.conditions is not None else RunTimes.EXACT
    machines = [
        {"name": one.name, "cores": one.cores, "mem_mb": one.mem_mb, **_given(rack=one.rack, site=one.site)}
        for one in workload.cluster.machines
    ]
    return {
        "format": FORMAT,
        "name": workload.name,
        "about": dict(about),
        "run_times": str(run_times),
        "cluster": {"machines": machines},
        "queues": [_encoded_queue(queue) for queue in workload.queues],
        "jobs": [_encoded_job(job) for job in workload.jobs],
    }


def _encoded_queue(queue: model.Queue) -> dict[str, Any]:
    limits = dict(queue.limits)
    found = {field: limits[resource] for field, resource in _LIMITS.items() if resource in limits}
    return {"name": queue.name, "weight": queue.weight, **_given(limits=found)}


def _encoded_job(job: JobSpec) -> dict[str, Any]:
    named = _given(namespace=job.namespace, queue=job.queue, program=job.program, after=job.after)
    when = {} if job.after is not None else {"submit_ms": job.submit_ms}
    return {"id": job.id, **when, **named, "phases": [_encoded_phase(phase) for phase in job.phases]}


def _encoded_phase(phase: Phase) -> dict[str, Any]:
    penalty = phase.penalty
    return {
        "kind": phase.kind,
        "tasks": phase.tasks,
        "duration_ms": phase.duration_ms,
        "mem_ideal_mb": phase.mem_ideal_mb,
        "cores": phase.cores,
        **_given(
            durations_ms=list(phase.durations_ms),
            penalty={} if penalty == Penalty() else {"model": str(penalty.model), "factor": penalty.factor},
            when_ended=phase.when_ended,
            input_bytes=phase.input_bytes,
            counters=dict(phase.counters),
        ),
    }


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _conditions(root: "_Place") -> Conditions | None:
    name = root.text("run_times", RunTimes.EXACT)
    if name not in tuple(RunTimes):
        raise WorkloadError(f"{root.where}: run_times: {name!r} is not known; choose one of: {', '.join(RunTimes)}")
    return None if name == RunTimes.EXACT else Conditions(run_times=RunTimes(name))


def _queue(place: "_Place") -> model.Queue:
    place.refuse_unknown(_QUEUE)
    limits, weight = {}, place.number("weight", 1.0)
    if not weight > 0:
        raise WorkloadError(f"{place.where}.weight: must be above 0, not {weight}")
    if "limits" in place.value:
        given = place.at("limits")
        given.refuse_unknown(tuple(_LIMITS))
        limits = {_LIMITS[field]: given.whole(field) for field in given.value}
    return model.Queue.of(model.QueueName(str(place.required("name"))), weight=weight, limits=limits)


def _cluster(place: "_Place") -> Cluster:
    place.refuse_unknown(_CLUSTER)
    fraction = place.number("min_mem_fraction", 0.1)
    if not 0 < fraction <= 1:
        raise WorkloadError(f"{place.where}.min_mem_fraction: must be above 0 and at most 1, not {fraction}")
    if "machines" in place.value:
        return _of_machines(place, fraction)
    return Cluster(
        nodes=place.whole("nodes", least=1),
        node_mem_mb=place.whole("node_mem_mb", least=1),
        node_cores=place.whole("node_cores", least=1),
        racks=place.whole("racks", 1, least=1),
        mem_granularity_mb=place.whole("mem_granularity_mb", 100, least=1),
        min_mem_fraction=fraction,
    )


def _of_machines(place: "_Place", fraction: float) -> Cluster:
    if both := sorted(place.value.keys() - {*_ELASTIC, "machines"}):
        raise WorkloadError(f'{place.where}: "machines" excludes "{both[0]}": omit one of them')
    machines = [_machine(machine) for machine in place.items("machines")]
    if not machines:
        raise WorkloadError(f"{place.where}: machines: holds no machines")
    if len({machine.name for machine in machines}) < len(machines):
        raise WorkloadError(f"{place.where}: machines: names are not unique")
    step_mb = place.whole("mem_granularity_mb", 100, least=1)
    return dataclasses.replace(Cluster.of(machines), mem_granularity_mb=step_mb, min_mem_fraction=fraction)


def _machine(place: "_Place") -> Machine:
    place.refuse_unknown(_MACHINE)
    return Machine(
        name=str(place.required("name")),
        cores=place.cores("cores"),
        mem_mb=place.whole("mem_mb", least=1),
        rack=place.text("rack", ""),
        site=place.text("site", ""),
    )


def _timing(root: "_Place") -> Timing:
    if "timing" not in root.value:
        return Timing()
    place, plain = root.at("timing"), Timing()
    place.refuse_unknown(tuple(_TIMING), ignored=_TIMING_IGNORED)
    return Timing(**{name: place.whole(name, getattr(plain, name), least=least) for name, least in _TIMING.items()})


def _job(place: "_Place") -> JobSpec:
    place.refuse_unknown(_JOB)
    after = place.value.get("after")
    if after is None and place.value.get("submit_ms") is None:
        raise WorkloadError(f'{place.where}: needs "submit_ms", or "after" with the id of another job')
    phases = tuple(_phase(phase) for phase in place.items("phases"))
    if not phases:
        raise WorkloadError(f"{place.where}: holds no phases")
    return JobSpec(
        id=str(place.required("id")),
        submit_ms=place.whole("submit_ms") if after is None else None,
        after=None if after is None else str(after),
        phases=phases,
        namespace=place.text("namespace", ""),
        queue=place.text("queue", "default"),
        program=place.text("program", ""),
    )


def _phase(place: "_Place") -> Phase:
    place.refuse_unknown(_PHASE)
    tasks = place.whole("tasks", least=1)
    return Phase(
        kind=place.text("kind", "task"),
        tasks=tasks,
        duration_ms=place.whole("duration_ms"),
        mem_ideal_mb=place.whole("mem_ideal_mb", least=1),
        cores=place.cores("cores", 1),
        penalty=_penalty(place.at("penalty")) if place.value.get("penalty") is not None else Penalty(),
        when_ended=place.flag("when_ended"),
        input_bytes=place.whole("input_bytes") if "input_bytes" in place.value else None,
        counters=tuple(_numbers(place.at("counters"))) if "counters" in place.value else (),
        durations_ms=_durations(place, tasks) if "durations_ms" in place.value else (),
    )


def _numbers(place: "_Place") -> Iterator[tuple[str, float]]:
    return ((name, place.number(name)) for name in sorted(place.value))


def _durations(place: "_Place", tasks: int) -> tuple[int, ...]:
    found = place.required("durations_ms")
    if not isinstance(found, list) or len(found) != tasks:
        raise WorkloadError(f"{place.where}: durations_ms: must be a list of {tasks} run times, one for each task")
    if any(not isinstance(duration, int) or isinstance(duration, bool) or duration < 0 for duration in found):
        raise WorkloadError(f"{place.where}: durations_ms: must be whole numbers of at least 0")
    return tuple(found)


def _penalty(place: "_Place") -> Penalty:
    place.refuse_unknown(_PENALTY)
    name, factor = place.text("model", ""), place.number("factor", 1.0)
    if name not in tuple(PenaltyModel):
        raise WorkloadError(f"{place.where}.model: {name!r} is not known; choose one of: {', '.join(PenaltyModel)}")
    if factor < 1:
        raise WorkloadError(f"{place.where}.factor: must be at least 1, not {factor}")
    return Penalty(model=PenaltyModel(name), factor=factor)


class _Place:
    """An object in the file, and where it is."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise WorkloadError(f"{where}: must be an object")
        self.value, self.where = value, where

    def refuse_unknown(self, fields: Sequence[str], *, ignored: Sequence[str] = ()) -> None:
        unknown = sorted(self.value.keys() - {*fields, *ignored})
        if unknown:
            raise WorkloadError(f'{self.where}: unknown field "{unknown[0]}": choose from {", ".join(fields)}')

    def required(self, key: str) -> Any:
        if self.value.get(key) is None:
            raise WorkloadError(f'{self.where}: "{key}" is missing')
        return self.value[key]

    def at(self, key: str) -> "_Place":
        return _Place(self.required(key), f"{self.where}: {key}")

    def items(self, key: str) -> "list[_Place]":
        found = self.required(key)
        if not isinstance(found, list):
            raise WorkloadError(f"{self.where}: {key}: must be a list")
        return [_Place(value, f"{self.where}: {key}[{i}]") for i, value in enumerate(found)]

    def text(self, key: str, default: str) -> str:
        found = self.value.get(key, default)
        if not isinstance(found, str):
            raise WorkloadError(f"{self.where}: {key}: must be text")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        found = self.value.get(key, default) if default is not None else self.required(key)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise WorkloadError(f"{self.where}: {key}: must be a number, not {found!r}")
        return found

    def flag(self, key: str) -> bool:
        found = self.value.get(key, False)
        if not isinstance(found, bool):
            raise WorkloadError(f"{self.where}: {key}: must be true or false, not {found!r}")
        return found

    def cores(self, key: str, default: int | None = None) -> float:
        found = self.number(key, default)
        if not 0 <= found <= _MOST_CORES:
            raise WorkloadError(f"{self.where}: {key}: must be between 0 and {_MOST_CORES:,}, not {found!r}")
        return int(found) if found == int(found) else round(found, 3)

    def whole(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        found = self.number(key, default)
        if found != int(found) or found < least:
            raise WorkloadError(f"{self.where}: {key}: must be a whole number of at least {least}, not {found!r}")
        return int(found)
