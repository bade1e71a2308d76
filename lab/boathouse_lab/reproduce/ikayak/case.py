"""One simulation of the study, and what is measured in it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from boathouse_lab.reproduce.ikayak import variants
from boathouse_sim import simulation
from boathouse_sim.live import Live, MapReduce, Spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.ikayak.setting import Setting
    from boathouse_lab.reproduce.ikayak.variants import Variant
    from boathouse_sim.live.knowledge import TaskRecord
    from boathouse_sim.results import Outcome
    from boathouse_sim.workload import Workload

MACHINES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"T110": (0, 3), "T420": (3, 5), "T320": (5, 6), "T620": (6, 8), "Desktop": (8, 15)}
)
"""Kinds of machine: from which place of the testbed to before which (4.2)."""

DESKTOP: Final = "Desktop"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation.

    Attributes:
        setting: The load.
        variant: The scheduler.
        seed: Of all that is drawn.
    """

    setting: Setting
    variant: Variant
    seed: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was measured.

    Attributes:
        spark_s: Mean completion time of each Spark program's applications, from submission.
        mapreduce_s: The same of MapReduce programs' jobs.
        reservation_s: By Spark program, the mean time from an executor's request to its node.
        cpu: CPUs busy, as a share of all, until the last submission; by kind of machine, and of all under "".
        held: CPUs held, as a share of all, over the whole time.
        makespan_s: Until all is over.
        local_maps: By MapReduce program, the share of maps whose block is on their node.
        local_tasks: The same of Spark's tasks that read blocks.
        local: The same of both together.
        maps_per_minute: On desktops, over the map phases of all jobs.
        map_s: Mean run time of maps.
        reduce_s: Mean time from a reducer's start to its end, on desktops.
        shrunk: Share of maps that got less than they asked for.
        suspended_s: Mean time for which a suspended reducer stood still.
        suspensions: How often one was suspended.
    """

    spark_s: Mapping[str, float]
    mapreduce_s: Mapping[str, float]
    reservation_s: Mapping[str, float]
    cpu: Mapping[str, float]
    held: float
    makespan_s: float
    local_maps: Mapping[str, float]
    local_tasks: float
    local: float
    maps_per_minute: float
    map_s: float
    reduce_s: float
    shrunk: float
    suspended_s: float
    suspensions: int


def simulate(case: Case) -> Seen:
    """Run a case."""
    workload = case.setting.workload(case.seed)
    if case.variant.base == simulation.YARN_CLIENT:
        workload = simulation.with_drivers_outside(workload)
    driver = Live(workload, variants.build(case.variant, case.seed), seed=case.seed)
    while driver.advance():
        pass
    return measure(workload, driver.world.finished(), driver.world.records)


def cost(case: Case) -> float:
    """Return about how long a case takes, for the order in which they are begun."""
    return case.setting.pairs * case.setting.size


def measure(workload: Workload, outcome: Outcome, records: Sequence[TaskRecord]) -> Seen:
    """Measure a simulation."""
    program = {one.id: one.program for one in workload.apps}
    ran = [one for one in records if not one.lost]
    maps, reducers = ([one for one in ran if one.kind == kind] for kind in ("map", "reduce"))
    inner = [one for one in ran if one.kind == "task" and one.distance is not None]
    times = dict(zip(program, outcome.job_times_s, strict=True))
    suspended = [one.suspended_ms / 1000 for one in reducers if one.suspended_ms]
    return Seen(
        spark_s=_by_program(workload, Spark, times),
        mapreduce_s=_by_program(workload, MapReduce, times),
        reservation_s=_means((program[one.job], wait_s) for one, wait_s in reservations(workload, ran)),
        cpu=_busy(workload, ran),
        held=outcome.cpu_utilisation,
        makespan_s=outcome.makespan_s,
        local_maps=_means((program[one.job], float(one.distance == 0)) for one in maps),
        local_tasks=_mean([float(one.distance == 0) for one in inner]),
        local=_mean([float(one.distance == 0) for one in (*maps, *inner)]),
        maps_per_minute=_throughput(maps),
        map_s=_mean([_ran_s(one) for one in maps]),
        reduce_s=_mean([_ran_s(one) for one in reducers if kind_of(one.node) == DESKTOP]),
        shrunk=_shrunk(maps, workload),
        suspended_s=_mean(suspended),
        suspensions=outcome.suspensions,
    )


def kind_of(node: str) -> str:
    """Return the kind of a machine by its name."""
    place = int(node[1:])
    return next(kind for kind, (first, end) in MACHINES.items() if first <= place < end)


def reservations(workload: Workload, ran: Iterable[TaskRecord]) -> list[tuple[TaskRecord, float]]:
    """Return each executor, and how long it waited for its node since its application asked.

    An application asks when it is submitted, or once its driver is up.
    """
    ran = list(ran)
    apps = {one.id: one for one in workload.apps if isinstance(one, Spark)}
    asked_ms = {name: one.submit_ms or 0 for name, one in apps.items()}
    for one in ran:
        if one.kind == "driver":
            asked_ms[one.job] = one.started_ms + apps[one.job].startup_ms
    return [(one, (one.placed_ms - asked_ms[one.job]) / 1000) for one in ran if one.kind == "executor"]


def _by_program(workload: Workload, kind: type, times: Mapping[str, float]) -> dict[str, float]:
    return _means((one.program, times[one.id]) for one in workload.apps if isinstance(one, kind))


def _means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    groups: dict[str, list[float]] = defaultdict(list)
    for name, value in values:
        groups[name].append(value)
    return {name: _mean(groups[name]) for name in sorted(groups)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ran_s(one: TaskRecord) -> float:
    return (one.ended_ms - one.started_ms) / 1000


def _throughput(maps: Sequence[TaskRecord]) -> float:
    """Return maps of desktops per minute, over the time from each job's first placement to its last map's end."""
    spans: dict[str, tuple[int, int]] = {}
    for one in maps:
        first, last = spans.get(one.job, (one.placed_ms, one.ended_ms))
        spans[one.job] = min(first, one.placed_ms), max(last, one.ended_ms)
    whole_ms = sum(last - first for first, last in spans.values())
    return 60_000 * sum(kind_of(one.node) == DESKTOP for one in maps) / max(1, whole_ms)


def _shrunk(maps: Sequence[TaskRecord], workload: Workload) -> float:
    asked = {app.id: app.map for app in workload.apps if isinstance(app, MapReduce)}
    least = {name: (_CRUMBS * 1000 * one.cores, _CRUMBS * one.mem_mb) for name, one in asked.items()}
    return _mean([float(one.cpu_milli < least[one.job][0] or one.memory_mb < least[one.job][1]) for one in maps])


_CRUMBS = 0.95  # what is closer to the whole is not called shrunk


def _busy(workload: Workload, ran: Sequence[TaskRecord]) -> dict[str, float]:
    """Return CPUs that compute, as a share, until the last submission: a task's computing is spread over its run."""
    until_ms = max(1, *(one.submit_ms or 0 for one in workload.apps))
    works = _work(workload)
    cores: dict[str, float] = defaultdict(float)
    for one in ran:
        core_ms = works(one)
        if core_ms and one.started_ms < until_ms:
            within = min(until_ms, one.ended_ms) - one.started_ms
            cores[kind_of(one.node)] += core_ms * within / max(1, one.ended_ms - one.started_ms)
    sizes = {kind: sum(one.cores for one in workload.cluster.machines[a:b]) for kind, (a, b) in MACHINES.items()}
    shares = {kind: cores[kind] / size / until_ms for kind, size in sizes.items()}
    return {"": sum(cores.values()) / sum(sizes.values()) / until_ms, **shares}


def _work(workload: Workload) -> Callable[[TaskRecord], float]:
    """Return a function for the CPU time of an attempt of its kind, in milliseconds of a core."""
    apps = {one.id: one for one in workload.apps}

    def core_ms(one: TaskRecord) -> float:
        app = apps[one.job]
        if isinstance(app, MapReduce):
            container = dict(app.containers())[one.kind]
            return float(sum(segment.cpu_ms for segment in container.segments))
        if isinstance(app, Spark) and one.kind == "task":
            nearest = min(app.stages, key=lambda stage: abs(stage.work.work_ms - one.alone_ms))
            return float(nearest.work.cpu_ms)
        return 0.0

    return core_ms


def spark_s(seen: Seen) -> float:
    """Return the mean over Spark programs."""
    return float(np.mean(list(seen.spark_s.values())))


def mapreduce_s(seen: Seen) -> float:
    """Return mean over MapReduce programs."""
    return float(np.mean(list(seen.mapreduce_s.values())))


def reservation_s(seen: Seen) -> float:
    """Return mean over Spark programs."""
    return float(np.mean(list(seen.reservation_s.values())))


def local_maps(seen: Seen) -> float:
    """Return mean over MapReduce programs."""
    return float(np.mean(list(seen.local_maps.values())))


def cpu(seen: Seen) -> float:
    """Return the CPU of all machines."""
    return seen.cpu[""]
