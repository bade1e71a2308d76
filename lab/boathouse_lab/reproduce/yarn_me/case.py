"""One simulation of the study, as a value that a process can be handed, and what is measured in it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from boathouse_policies import model, profiles, yarn_me
from boathouse_policies.framework import Observer
from boathouse_sim import simulation
from boathouse_sim.simulation import Heartbeats, Instant
from boathouse_sim.workload import Errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import Profile
    from boathouse_sim.base_world import Shell
    from boathouse_sim.workload import Workload

YARN = "yarn"
UNRESERVED = "yarn-no-reservations"
ELASTIC = "yarn-me"
MEGANODE = simulation.MEGANODE
BINS = 120
"""Points of a timeline."""
MB = 1 << 20


EXACT = Errors()


class Recipe(Protocol):
    """Makes a workload; equal recipes and seeds make equal workloads. Frozen, so that equal cases are run once."""

    def draw(self, seed: int) -> Workload:
        """Return the workload of a seed."""
        ...

    @property
    def tasks_about(self) -> float:
        """Roughly how many tasks it has: the dearest simulations begin first."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation.

    Attributes:
        recipe: What is run.
        seed: Of the workload and of the errors.
        profile: `yarn`, `yarn-no-reservations`, `yarn-me` or `meganode`.
        errors: How the truth strays from the estimates.
        heartbeat_s: Period of YARN's heartbeats; None starts tasks when they fit.
        disk_bytes_per_s: Of a node's disk, for the budget of elastic tasks; None for no budget.
        disk_share: Part of it that elastic tasks may take.
        watched: Measure phases and timelines too.
    """

    recipe: Recipe
    seed: int
    profile: str
    errors: Errors = EXACT
    heartbeat_s: float | None = None
    disk_bytes_per_s: float | None = None
    disk_share: float = 0.5
    watched: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is measured.

    Attributes:
        mean_job_time_s: Over jobs, each of its own submission and end.
        makespan_s: From the first submission to the last end.
        memory_utilisation: As `results.Outcome`.
        elastic_share: Tasks with less than their ideal memory, of all.
        watched: Phases and timelines, where the case asks for them.
    """

    mean_job_time_s: float
    makespan_s: float
    memory_utilisation: float
    elastic_share: float
    watched: Watched | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A phase of a job, from the first request for its tasks to the end of the last."""

    job: str
    kind: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What an observer saw.

    Attributes:
        spans: Phases, in the order of their jobs.
        time_s: Starts of equal stretches of time, shape [BINS].
        memory: Part of the cluster's memory that is given out, mean over each stretch, shape [BINS].
        elastic: Elastic tasks that run, mean over each stretch, shape [BINS].
    """

    spans: tuple[Span, ...]
    time_s: tuple[float, ...]
    memory: tuple[float, ...]
    elastic: tuple[float, ...]

    def run_times_s(self) -> dict[str, float]:
        """Run time of each application: its jobs' names are equal but for the last letter; from first to last."""
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            found.setdefault(span.job[:-1], []).append(span)
        return {name: max(s.end_s for s in spans) - min(s.start_s for s in spans) for name, spans in found.items()}


def simulate(case: Case) -> Seen:
    """Run it."""
    workload = case.recipe.draw(case.seed)
    watch = Watch() if case.watched else None
    driver = _shell(case, workload, watch)
    while driver.advance():
        pass
    found = driver.world.finished()
    return Seen(
        mean_job_time_s=found.mean_job_time_s,
        makespan_s=found.makespan_s,
        memory_utilisation=found.memory_utilisation or 0.0,
        elastic_share=found.elastic_tasks / found.tasks,
        watched=watch.seen(workload) if watch is not None else None,
    )


def dearest(case: Case) -> float:
    """Return the rough cost, to begin the dearest first."""
    return case.recipe.tasks_about * (5.0 if case.profile == ELASTIC else 1.0) * (2.0 if case.heartbeat_s else 1.0)


def _shell(case: Case, workload: Workload, watch: Watch | None) -> Shell:
    if case.profile == MEGANODE:
        workload = simulation.pooled(workload)
    profile = _profile(case, watch)
    if case.heartbeat_s is None:
        return Instant(workload, profile, errors=case.errors, seed=case.seed)
    period_ms = round(case.heartbeat_s * 1000)
    timing = dataclasses.replace(workload.timing, node_heartbeat_ms=period_ms, am_heartbeat_ms=period_ms)
    return Heartbeats(dataclasses.replace(workload, timing=timing), profile, errors=case.errors, seed=case.seed)


def _profile(case: Case, watch: Watch | None) -> Profile:
    if case.profile == ELASTIC:
        config = yarn_me.Config(disk_bytes_per_s=case.disk_bytes_per_s, disk_share=case.disk_share)
        profile = yarn_me.build(config=config)
    else:
        profile = profiles.build("srjf" if case.profile == MEGANODE else case.profile)
    return profile if watch is None else dataclasses.replace(profile, observers=(*profile.observers, watch))


class Watch(Observer):
    """An observer that notes phases and what is given out. Classes are named JOB/STEP/KIND by the simulator."""

    def __init__(self) -> None:
        self._ideal: dict[model.ClassId, int] = {}
        self._requested_s: dict[str, float] = {}  # by class
        self._left: dict[model.ClassId, int] = {}
        self._next: dict[model.ClassId, model.ClassId] = {}
        self._ended_s: dict[str, float] = {}
        self._given: dict[model.TaskId, tuple[float, int, bool]] = {}
        self._held: list[tuple[float, float, int, bool]] = []  # start, end, MB, whether elastic

    @override
    def observe(self, event: model.Event) -> None:
        """Note it."""
        match event:
            case model.Submitted():
                self._submitted(event)
            case model.Placed():
                self._placed(event)
            case model.Finished():
                start_s, given, elastic = self._given.pop(event.task)
                self._held.append((start_s, event.now_s, given, elastic))
                self._ended_s[event.task_class] = event.now_s
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        for one, following in zip(event.classes, [*event.classes[1:], None], strict=True):
            self._ideal[one.id] = one.resources.memory_bytes
            self._left[one.id] = event.tasks[one.id]
            if following is not None:
                self._next[one.id] = following.id
        if event.classes:
            self._requested_s[event.classes[0].id] = event.now_s

    def _placed(self, event: model.Placed) -> None:
        one, given = event.task_class, event.resources.memory_bytes
        self._given[event.task] = (event.now_s, given // MB, given < self._ideal.get(one, 0))
        if one not in self._left:
            return  # an application master, which no phase has
        self._left[one] -= 1
        if not self._left[one] and one in self._next:
            self._requested_s[self._next[one]] = event.now_s

    def seen(self, workload: Workload) -> Watched:
        """Return what was recorded."""
        spans = [
            Span(job=one.split("/")[0], kind=one.split("/")[2], start_s=start_s, end_s=self._ended_s[one])
            for one, start_s in self._requested_s.items()
        ]
        end_s = max(span.end_s for span in spans)
        cluster = workload.cluster
        whole_mb = cluster.nodes * cluster.node_mem_mb
        memory = _binned([(a, b, mb / whole_mb) for a, b, mb, _ in self._held], end_s)
        elastic = _binned([(a, b, 1.0) for a, b, _, less in self._held if less], end_s)
        return Watched(
            spans=tuple(sorted(spans, key=lambda span: (span.job, span.kind))),
            time_s=tuple(end_s / BINS * i for i in range(BINS)),
            memory=memory,
            elastic=elastic,
        )


def _binned(held: Sequence[tuple[float, float, float]], end_s: float) -> tuple[float, ...]:
    """Return mean over each stretch of the sum of what is held: (from, to, how much)."""
    width = end_s / BINS
    sums = [0.0] * BINS
    for start_s, stop_s, amount in held:
        first, last = int(start_s / width), min(BINS - 1, int(stop_s / width))
        for i in range(min(first, BINS - 1), last + 1):
            sums[i] += amount * max(0.0, min(stop_s, (i + 1) * width) - max(start_s, i * width)) / width
    return tuple(sums)
