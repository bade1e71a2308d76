"""Workloads as JSON: the format `neutral-cluster-workload/1`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Timing, Workload, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "neutral-cluster-workload/1"

_WORKLOAD = ("format", "name", "cluster", "timing", "jobs")
_CLUSTER = ("nodes", "node_mem_mb", "node_cores", "racks", "mem_granularity_mb", "min_mem_fraction")
_TIMING = (
    "node_heartbeat_ms",
    "am_heartbeat_ms",
    "am_container_mb",
    "am_container_cores",
    "allocs_per_node_heartbeat",
)
_JOB = ("id", "namespace", "submit_ms", "after", "phases")
_PHASE = ("kind", "tasks", "duration_ms", "mem_ideal_mb", "cores", "penalty")
_PENALTY = ("model", "factor")

# Fields that are accepted and not read: comments, and options of other simulators that read the same files.
_WORKLOAD_IGNORED = ("about", "units")
_TIMING_IGNORED = ("reservations",)


def read_neutral(path: Path) -> Workload:
    """Read a workload.

    Raises:
        WorkloadError: It is not of this format, or something in it is missing or cannot be; the message says where.
        OSError: The file cannot be read.
    """
    try:
        decoded = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path.name}: not JSON: {error}") from None
    root = _Place(decoded, path.name)
    if root.text("format", "") != FORMAT:
        raise WorkloadError(f'{path.name}: "format" must be "{FORMAT}"')
    root.refuse_unknown(_WORKLOAD, ignored=_WORKLOAD_IGNORED)
    jobs = tuple(_job(place) for place in root.items("jobs"))
    if not jobs:
        raise WorkloadError(f"{path.name}: holds no jobs")
    workload = Workload(
        name=root.text("name", path.stem), cluster=_cluster(root.at("cluster")), jobs=jobs, timing=_timing(root)
    )
    workload.check()
    return workload


def _cluster(place: _Place) -> Cluster:
    place.refuse_unknown(_CLUSTER)
    fraction = place.number("min_mem_fraction", 0.1)
    if not 0 < fraction <= 1:
        raise WorkloadError(f"{place.where}.min_mem_fraction: must be above 0 and at most 1, not {fraction}")
    return Cluster(
        nodes=place.whole("nodes", least=1),
        node_mem_mb=place.whole("node_mem_mb", least=1),
        node_cores=place.whole("node_cores", least=1),
        racks=place.whole("racks", 1, least=1),
        mem_granularity_mb=place.whole("mem_granularity_mb", 100, least=1),
        min_mem_fraction=fraction,
    )


def _timing(root: _Place) -> Timing:
    if "timing" not in root.value:
        return Timing()
    place, plain = root.at("timing"), Timing()
    place.refuse_unknown(_TIMING, ignored=_TIMING_IGNORED)
    return Timing(
        node_heartbeat_ms=place.whole("node_heartbeat_ms", plain.node_heartbeat_ms, least=1),
        am_heartbeat_ms=place.whole("am_heartbeat_ms", plain.am_heartbeat_ms, least=1),
        am_container_mb=place.whole("am_container_mb", plain.am_container_mb),
        am_container_cores=place.whole("am_container_cores", plain.am_container_cores),
        allocs_per_node_heartbeat=place.whole("allocs_per_node_heartbeat", plain.allocs_per_node_heartbeat, least=1),
    )


def _job(place: _Place) -> JobSpec:
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
    )


def _phase(place: _Place) -> Phase:
    place.refuse_unknown(_PHASE)
    return Phase(
        kind=place.text("kind", "task"),
        tasks=place.whole("tasks", least=1),
        duration_ms=place.whole("duration_ms"),
        mem_ideal_mb=place.whole("mem_ideal_mb", least=1),
        cores=place.whole("cores", 1),
        penalty=_penalty(place.at("penalty")) if place.value.get("penalty") is not None else Penalty(),
    )


def _penalty(place: _Place) -> Penalty:
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
        self.value = value
        self.where = where

    def refuse_unknown(self, fields: Sequence[str], *, ignored: Sequence[str] = ()) -> None:
        unknown = sorted(self.value.keys() - {*fields, *ignored})
        if unknown:
            raise WorkloadError(f'{self.where}: unknown field "{unknown[0]}": choose from {", ".join(fields)}')

    def required(self, key: str) -> Any:
        if self.value.get(key) is None:
            raise WorkloadError(f'{self.where}: "{key}" is missing')
        return self.value[key]

    def at(self, key: str) -> _Place:
        return _Place(self.required(key), f"{self.where}: {key}")

    def items(self, key: str) -> list[_Place]:
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

    def whole(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        found = self.number(key, default)
        if found != int(found) or found < least:
            raise WorkloadError(f"{self.where}: {key}: must be a whole number of at least {least}, not {found!r}")
        return int(found)
