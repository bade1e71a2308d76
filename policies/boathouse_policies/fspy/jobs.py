"""What FSPY knows of a job from events: its make-up, its run times so far, and how it came by a size.

Where sizes come from (III.A, III.C), the first that applies:

1. Run times that somebody states for every class (`TaskClass.estimates`): no prediction is needed.
2. Uber jobs: the historic mean, of the program or of all.
3. A probe's features, or those of the program, through the models: only for jobs of maps and reduces, each of one step.
4. None: the job stays in the fair sub-queue.

Setup, commit and probe tasks count for no size, and a driver is a job's master.
"""

from __future__ import annotations

import dataclasses
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from boathouse_policies.fspy import features as _features
from boathouse_policies.fspy import shape as shapes
from boathouse_policies.fspy.prediction import TotalTimes
from boathouse_policies.fspy.shape import Phase, Shape
from boathouse_policies.model import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies import model
    from boathouse_policies.fspy.features import Features
    from boathouse_policies.fspy.prediction import Predictor

_ASIDE = (Stage.SETUP, Stage.COMMIT, Stage.CLEANUP, Stage.PROBE, Stage.DRIVER)


@dataclasses.dataclass(slots=True, kw_only=True)
class ClassRecord:
    """A class: how many tasks it has in all, how many were placed and succeeded, and how long those ran."""

    task_class: model.TaskClass
    total: int = 0
    placed: int = 0
    succeeded: int = 0
    run_s: float = 0.0

    @property
    def stage(self) -> Stage:
        """Its kind of work."""
        return self.task_class.stage

    def phase(self, task_s: float | None) -> Phase:
        """The class as a phase."""
        asked = self.task_class.resources
        container = shapes.container(asked.cpu_milli, asked.memory_bytes)
        return Phase(container=container, tasks=self.total, task_s=task_s)


def checked(dumped: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dump of a job's record and of what it used, with every value of its type.

    Raises:
        ValueError: A number is negative or not finite, or there are too few.
    """
    used, features = float(dumped.get("used", 0.0)), dumped.get("features")
    totals = {str(one): int(total) for one, total in dumped.get("totals", {}).items()}
    numbers = [used, *totals.values(), *map(float, features or ())]
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError("a number is negative or not finite")
    if features is not None:
        _features.load(features)
    return {"used": used, "totals": totals, "features": features}


class JobRecord:
    """A job that is not over.

    Attributes:
        job: The job.
        classes: By id, in order.
        features: Probed or recalled ones.
        held_s: When a task of it was last seen to start or end; its submission before.
    """

    __slots__ = ("_totals", "classes", "features", "held_s", "job")

    def __init__(self, job: model.Job, now_s: float, restored: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.job = job
        self.classes: dict[model.ClassId, ClassRecord] = {}
        self.held_s = now_s
        self._totals: Mapping[str, int] = restored.get("totals", {})
        found = restored.get("features")
        self.features: Features | None = None if found is None else _features.load(found)

    def dump(self) -> dict[str, Any]:
        """What events will not say again, as JSON values."""
        totals = {one.task_class.id: one.total for one in self.classes.values()}
        return {"totals": totals, "features": None if self.features is None else _features.dump(self.features)}

    def describe(self, event: model.Submitted) -> None:
        """Take over what the shell says of the job."""
        self.job = event.job
        for one in event.classes:
            known = self.classes.get(one.id)
            if known is None:
                known = self.classes[one.id] = ClassRecord(task_class=one, total=self._totals.get(one.id, 0))
            known.task_class = one
            known.total = max(known.total, known.placed + event.tasks.get(one.id, 0))

    def tasks(self, stage: Stage) -> int:
        """Tasks of a stage."""
        return sum(one.total for one in self.of(stage))

    def of(self, stage: Stage) -> list[ClassRecord]:
        """Classes of a stage."""
        return [one for one in self.classes.values() if one.stage is stage]

    @property
    def is_probe(self) -> bool:
        """Whether it is a probing job."""
        return self.job.probe_of is not None

    @property
    def is_uber(self) -> bool:
        """Whether all of it runs in one container."""
        return bool(self.of(Stage.UBER))

    @property
    def is_map_reduce(self) -> bool:
        """Whether the models speak of such jobs: maps, perhaps reduces, each of one step, nothing else that works."""
        maps, reduces = self.of(Stage.MAP), self.of(Stage.REDUCE)
        steps = [{one.task_class.step for one in stage} for stage in (maps, reduces)]
        return bool(maps) and len(maps) + len(reduces) == len(self._work()) and all(len(one) <= 1 for one in steps)

    def _work(self) -> list[ClassRecord]:
        return [one for one in self.classes.values() if one.stage not in _ASIDE]

    # Sizes

    def shape(self, predictor: Predictor, *, use_estimates: bool) -> Shape:
        """What the job is made of, with run times where they are known.

        Args:
            predictor: The models.
            use_estimates: Whether stated run times count.
        """
        masters = [one.task_class.resources for one in self.of(Stage.DRIVER)]
        master = shapes.container(masters[0].cpu_milli, masters[0].memory_bytes) if masters else shapes.NOTHING
        times = self._task_times(predictor, use_estimates)
        phases = tuple(one.phase(times.get(one.task_class.id)) for one in self._work())
        return Shape(phases=phases, master=master, uber=self.is_uber)

    def _task_times(self, predictor: Predictor, use_estimates: bool) -> Mapping[model.ClassId, float | None]:
        work = self._work()
        stated = {one.task_class.id: one.task_class.estimates.duration_s(one.task_class.resources) for one in work}
        if use_estimates and work and all(time is not None for time in stated.values()):
            return stated
        if self.is_uber:
            mean_s = predictor.uber_s(self.job.kind)
            return {one.task_class.id: mean_s for one in work}
        if not self.is_map_reduce:
            return {}
        if self.features is None:
            self.features = self._recalled(predictor)
        times = None if self.features is None else predictor.predict(self.features)
        if times is None:
            return {}
        means = {
            Stage.MAP: times.map_s / max(1, self.tasks(Stage.MAP)),
            Stage.REDUCE: times.reduce_s / max(1, self.tasks(Stage.REDUCE)),
        }
        return {one.task_class.id: means[one.stage] for one in work}

    def _recalled(self, predictor: Predictor) -> Features | None:
        each = [(one.total, one.task_class.estimates.input_bytes()) for one in self.of(Stage.MAP)]
        input_bytes = sum(count * size for count, size in each if size is not None)
        if any(size is None for _, size in each):
            return None
        maps, reduces = self.tasks(Stage.MAP), self.tasks(Stage.REDUCE)
        return predictor.recall(self.job.kind, input_bytes=input_bytes, maps=maps, reduces=reduces)

    # Learning

    def probed(self, counters: Mapping[str, float], predictor: Predictor) -> bool:
        """A probe ended: eq. 8. False where its counters tell nothing."""
        found = _features.scaled(counters, maps=self.tasks(Stage.MAP), reduces=self.tasks(Stage.REDUCE))
        if found is None or not self.is_map_reduce:
            return False
        self.features = found
        predictor.remember(self.job.kind, found)
        return True

    def teach(self, predictor: Predictor) -> None:
        """The job succeeded: its parameters and actual times go to the models."""
        if self.is_uber:
            for one in self.of(Stage.UBER):
                if one.succeeded:
                    predictor.learn_uber(self.job.kind, one.run_s / one.succeeded)
            return
        work = self._work()
        if self.features is None or not self.is_map_reduce or any(one.succeeded < one.total for one in work):
            return  # some run times are not known: nothing to learn from
        map_s = sum(one.run_s for one in self.of(Stage.MAP))
        reduce_s = sum(one.run_s for one in self.of(Stage.REDUCE))
        predictor.learn(self.features, TotalTimes(map_s=map_s, reduce_s=reduce_s))
