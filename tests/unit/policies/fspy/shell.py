"""A shell in miniature that lives in virtual time: it runs jobs to their end and tells the policy what happens."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from typing import TYPE_CHECKING, Any

from boathouse_policies import fspy, model
from boathouse_sim import probing
from tests.unit.policies import builders as make

if TYPE_CHECKING:
    from boathouse_policies.fspy.prediction import Features


class Stated:
    """Run times known beforehand."""

    def __init__(self, task_s: float) -> None:
        self._task_s = task_s

    def duration_s(self, resources: model.Resources) -> float:  # noqa: ARG002 - the protocol's
        return self._task_s

    def input_bytes(self) -> int:
        return 64 << 20

    def spilled_bytes(self, resources: model.Resources) -> None:  # noqa: ARG002 - the protocol's
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    tasks: int
    task_s: float
    size: model.Resources = dataclasses.field(default_factory=lambda: make.amount(1000, 1))
    kind: model.Stage = model.Stage.MAP
    stated_s: float | None = None

    def task_class(self, job: model.Job, place: int) -> model.TaskClass:
        estimates = model.UNKNOWN if self.stated_s is None else Stated(self.stated_s)
        return make.task_class(job, self.size, f"{place}-{self.kind}", stage=self.kind, estimates=estimates)


def maps(tasks: int, task_s: float = 1.0, *, stated: bool = True, **fields: Any) -> Stage:
    return Stage(tasks=tasks, task_s=task_s, stated_s=task_s if stated else None, **fields)


def reduces(tasks: int, task_s: float = 1.0, **fields: Any) -> Stage:
    return maps(tasks, task_s, kind=model.Stage.REDUCE, **fields)


class Shell:
    """Runs what `submit` was told of. `ends` says when each job ended."""

    def __init__(self, nodes: list[model.Node], config: fspy.Config | None = None) -> None:
        self.profile = fspy.build(config or fspy.Config())
        self.order: fspy.SizeBased = self.profile.order
        self.world = make.World(nodes, profile=self.profile)
        self.ends: dict[str, float] = {}
        self.placed: list[tuple[float, str]] = []
        self._events: list[tuple[float, int, Any]] = []
        self._number = itertools.count()
        self._jobs: dict[str, tuple[model.Job, list[Stage], list[model.TaskClass]]] = {}
        self._running: dict[str, int] = {}

    def submit(self, name: str, at_s: float, *stages: Stage, features: Features | None = None, **fields: Any) -> None:
        """Jobs come in time; with features, a probing job comes with it that reads a hundredth."""
        owner = make.job(name, submitted_s=at_s, **fields)
        self._at(at_s, lambda: self._come(owner, list(stages)))
        if features is not None:
            probe = make.job(f"{name}-probe", submitted_s=at_s, probe_of=owner.id)
            one = Stage(tasks=1, task_s=2.0, kind=model.Stage.PROBE)
            self._at(at_s, lambda: self._come(probe, [one], probing.counters_of(features, 0.01)))

    def _at(self, at_s: float, what: Any) -> None:
        heapq.heappush(self._events, (at_s, next(self._number), what))

    def run(self, until_s: float = float("inf")) -> dict[str, float]:
        while self._events and self._events[0][0] <= until_s:
            now_s = self.world.now_s = self._events[0][0]
            while self._events and self._events[0][0] == now_s:
                heapq.heappop(self._events)[2]()
            while self.world.room.tick(now_s):
                self._cycle()
            if self.world.room.next_wake_s() < float("inf") and len(self.world.room):
                self._at(self.world.room.next_wake_s(), lambda: None)
        return self.ends

    def _tell(self, event: model.Event) -> None:
        self.order.observe(event)

    def _come(self, job: model.Job, stages: list[Stage], counters: dict[str, float] | None = None) -> None:
        classes = [stage.task_class(job, i) for i, stage in enumerate(stages)]
        self._jobs[job.id] = (job, stages, classes)
        counts = {one.id: stage.tasks for one, stage in zip(classes, stages, strict=True)}
        self._tell(model.Submitted(now_s=self.world.now_s, job=job, classes=tuple(classes), tasks=counts))
        self._start(job, 0, counters or {})

    def _start(self, job: model.Job, place: int, counters: dict[str, float]) -> None:
        _, stages, classes = self._jobs[job.id]
        self._running[job.id] = stages[place].tasks
        self.world.room.submit(job, [classes[place]], make.tasks(classes[place], stages[place].tasks))
        self._counters = {**getattr(self, "_counters", {}), job.id: counters}

    def _cycle(self) -> None:
        plan = self.world.cycle()
        now_s = self.world.now_s
        for one in make.placements(plan):
            self.placed.append((now_s, one.job.id))
            self._tell(
                model.Placed(
                    now_s=now_s,
                    task=one.task.id,
                    task_class=one.task_class.id,
                    job=one.job.id,
                    node=one.node,
                    resources=one.resources,
                    distance=one.distance,
                )
            )
            _, stages, classes = self._jobs[one.job.id]
            place = classes.index(one.task_class)
            self._at(now_s + stages[place].task_s, lambda d=one, p=place: self._finish(d, p))

    def _finish(self, placed: model.Placement, place: int) -> None:
        job, stages, _ = self._jobs[placed.job.id]
        self.world.end(placed.task.id)
        self._tell(
            model.Finished(
                now_s=self.world.now_s,
                task=placed.task.id,
                task_class=placed.task_class.id,
                job=job.id,
                node=placed.node,
                duration_s=stages[place].task_s,
                counters=self._counters[job.id],
            )
        )
        self._running[job.id] -= 1
        if self._running[job.id]:
            return
        if place + 1 < len(stages):
            self._start(job, place + 1, {})
            return
        self.world.room.withdraw(job.id)
        self.ends[job.id] = self.world.now_s
        self._tell(model.Ended(now_s=self.world.now_s, job=job.id, succeeded=True))
