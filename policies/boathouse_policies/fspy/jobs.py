"""Sizes of jobs and their average parallelism bounds (FSPY, II.C, II.D and III.A; eqs 3, 4, 5 and 9), from events.

Where sizes come from (III.A, III.C), the first that applies:

1. Run times that somebody states for every class (`TaskClass.estimates`): no prediction is needed.
2. Uber jobs: the historic mean, of the program or of all.
3. Spark applications: the mean memory-seconds of the program's executors, whatever the input (ours).
4. A probe's features, or those of the program, through the models: only for jobs of maps and reduces, each of one step.
5. None: the job stays in the fair sub-queue.

Setup, commit and probe tasks count for no size, and a driver is a job's master.

Amounts are pairs: CPU in millicores, memory in bytes. Sizes are such pairs times seconds.

Deviations:
* Eq. 3 gives S/minE, without the master's container, which Algorithm 3 then takes off: a job that is small beside its
  master would never shrink. As in eq. 9 the bound of a normal job counts its master: min(CR, R_am + S/minE).
* Eq. 4 divides tuples: the ceiling is the largest over both resources.
* Eqs 4 and 5 know one map and one reduce phase; here they are sums over phases, for jobs of several steps.
* Containers count for at least 1 MiB, for a job of no memory would have size 0 and go before all others.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from boathouse_policies import model
from boathouse_policies.fspy.prediction import Features, Prediction, Predictor, Source, TotalTimes, scaled

Amount: TypeAlias = tuple[float, float]  # CPU in millicores and memory in bytes

NOTHING: Amount = (0.0, 0.0)
LEAST_MEMORY_BYTES = float(1 << 20)
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks of a job."""

    container: Amount  # R: what one task holds
    tasks: int
    task_s: float | None = None  # e: the mean run time of a task; None where it is not known yet

    @property
    def total_s(self) -> float:
        """SE = N·e; a ValueError where the run time of a task is not known."""
        if self.task_s is None:
            raise ValueError("the run time of a phase is not known: check is_sized first")
        return self.tasks * self.task_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a job is made of, as far as FSPY looks."""

    phases: tuple[Phase, ...]  # in the order in which they run
    master: Amount = NOTHING  # R_am: the container of the application master; nothing where there is none
    uber: bool = False  # whether all runs in one container, the master's

    @property
    def is_sized(self) -> bool:
        """Whether the run time of every phase is known."""
        return bool(self.phases) and all(phase.task_s is not None for phase in self.phases)


def container(resources: model.Resources) -> Amount:
    """Return the amounts of a container."""
    return float(resources.cpu_milli), max(float(resources.memory_bytes), LEAST_MEMORY_BYTES)


def size(shape: Shape) -> Amount:
    """Compute eq. 5: the sum over the phases of R·SE."""
    cpu, memory = (sum(phase.container[row] * phase.total_s for phase in shape.phases) for row in (0, 1))
    return cpu, memory


def least_time_s(shape: Shape, cluster: Amount) -> float:
    """Compute eq. 4, minE: the run time with the whole cluster; infinite where the cluster lacks a resource."""
    return sum(phase.task_s * _waves(phase, cluster) for phase in shape.phases if phase.task_s is not None)


def parallelism(shape: Shape, cluster: Amount) -> Amount:
    """Return the bound of average parallelism: eq. 3 for a known size, eq. 9 before, the container for an uber job."""
    bound = shape.master
    if shape.uber:
        bound = shape.phases[0].container
    elif shape.phases and not shape.is_sized:
        bound = _plus(shape.master, shape.phases[0].container, shape.phases[0].tasks)
    elif 0 < (time_s := least_time_s(shape, cluster)) < math.inf:  # else nothing to do, or nowhere to do it
        bound = _plus(shape.master, size(shape), 1 / time_s)
    return min(cluster[0], bound[0]), min(cluster[1], bound[1])


def _waves(phase: Phase, cluster: Amount) -> float:
    if not phase.tasks:
        return 0.0
    return max(
        math.ceil(amount * phase.tasks / have - _ROUNDING) if have > 0 else math.inf
        for amount, have in zip(phase.container, cluster, strict=True)
        if amount > 0
    )


def _plus(a: Amount, b: Amount, times: float) -> Amount:
    return a[0] + b[0] * times, a[1] + b[1] * times


_ASIDE = (model.Stage.SETUP, model.Stage.COMMIT, model.Stage.CLEANUP, model.Stage.PROBE, model.Stage.DRIVER)


@dataclasses.dataclass(slots=True)
class ClassRecord:
    """A class: how many tasks it has in all, how many were placed and succeeded, and how long those ran."""

    task_class: model.TaskClass
    total: int = 0
    placed: int = 0
    succeeded: int = 0
    run_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Restored:
    """What a dump holds of a job."""

    used: float = 0.0  # what it used up of its virtual size
    totals: Mapping[str, int] = dataclasses.field(default_factory=dict)  # the tasks of its classes, by id
    features: Features | None = None  # its features, if they were known
    is_probed: bool = False  # whether they are its own probe's

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "Restored":
        """Read a dump; raise ValueError where a number is negative or not finite, or there are too few."""
        used, features = float(dumped.get("used", 0.0)), dumped.get("features")
        totals = {str(class_id): int(total) for class_id, total in dumped.get("totals", {}).items()}
        if not all(0 <= number < math.inf for number in (used, *totals.values(), *map(float, features or ()))):
            raise ValueError("a number is negative or not finite")
        if features is None:
            return cls(used, totals)
        maps, reduces, *amounts = features
        found = Features(int(maps), int(reduces), *map(float, amounts))
        return cls(used, totals, found, is_probed=bool(dumped.get("probed", False)))


@dataclasses.dataclass(slots=True, eq=False)
class JobRecord:
    """A job that is not over."""

    job: model.Job
    held_s: float  # when a task of it was last seen to start or end; its submission before
    restored: Restored  # what a dump from before a restart holds of it
    features: Features | None  # restored, probed or recalled ones
    is_probed: bool = False  # whether they are its own probe's
    source: Source | None = None  # what its run times are from; None while they are not known
    classes: dict[model.ClassId, ClassRecord] = dataclasses.field(default_factory=dict)  # by id, in order

    def dump(self) -> dict[str, Any]:
        """Return what events will not say again, as JSON values."""
        totals = {class_id: record.total for class_id, record in self.classes.items()}
        dumped = {"totals": totals, "features": self.features and list(self.features)}
        return {**dumped, "probed": True} if self.is_probed else dumped

    def describe(self, event: model.Submitted) -> None:
        """Take over what the shell says of the job."""
        self.job = event.job
        for task_class in event.classes:
            total = self.restored.totals.get(task_class.id, 0)
            record = self.classes.setdefault(task_class.id, ClassRecord(task_class, total))
            record.task_class = task_class
            record.total = max(record.total, record.placed + event.tasks.get(task_class.id, 0))

    def of(self, stage: model.Stage) -> list[ClassRecord]:
        """Return the classes of a stage."""
        return [record for record in self.classes.values() if record.task_class.stage is stage]

    def tasks(self, stage: model.Stage) -> int:
        """Return the number of tasks of a stage."""
        return sum(record.total for record in self.of(stage))

    @property
    def is_probe(self) -> bool:
        """Whether it is a probing job."""
        return self.job.probe_of is not None

    @property
    def is_uber(self) -> bool:
        """Whether all of it runs in one container."""
        return bool(self.of(model.Stage.UBER))

    @property
    def is_app(self) -> bool:
        """Whether it is a Spark application: all that works are executors."""
        executors = self.of(model.Stage.EXECUTOR)
        return bool(executors) and len(executors) == len(self._work())

    @property
    def is_map_reduce(self) -> bool:
        """Whether the models speak of such jobs: maps, perhaps reduces, each of one step, nothing else that works."""
        maps, reduces = self.of(model.Stage.MAP), self.of(model.Stage.REDUCE)
        steps = [{record.task_class.step for record in records} for records in (maps, reduces)]
        return bool(maps) and len(maps) + len(reduces) == len(self._work()) and max(map(len, steps)) <= 1

    @property
    def has_not_begun(self) -> bool:
        """Whether none of the tasks that work was placed; False for executors and others that start together."""
        is_begun = any(record.placed or record.task_class.gang_min for record in self._work())
        return not is_begun and not self.of(model.Stage.EXECUTOR)

    def _work(self) -> list[ClassRecord]:
        return [record for record in self.classes.values() if record.task_class.stage not in _ASIDE]

    def shape(self, predictor: Predictor, *, use_estimates: bool) -> Shape:
        """Return what the job is made of, with run times where they are known: stated ones, too, if they count."""
        masters = [container(record.task_class.resources) for record in self.of(model.Stage.DRIVER)]
        times, work = self._task_times(predictor, use_estimates), [(one.task_class, one.total) for one in self._work()]
        phases = (Phase(container=container(of.resources), tasks=tasks, task_s=times.get(of.id)) for of, tasks in work)
        return Shape(phases=tuple(phases), master=masters[0] if masters else NOTHING, uber=self.is_uber)

    def work_left(self, shape: Shape) -> float:
        """Return the byte-seconds of the tasks that have not succeeded, of a shape with known run times."""
        return sum(
            max(0, record.total - record.succeeded) * phase.container[1] * (phase.task_s or 0.0)
            for record, phase in zip(self._work(), shape.phases, strict=True)
        )

    def prediction(self, shape: Shape) -> Prediction | None:
        """Return the predicted size of the job, which has this shape; None while it is not known."""
        if self.source is None or not shape.is_sized:
            return None
        seconds: dict[model.Stage, float] = {}
        for record, phase in zip(self._work(), shape.phases, strict=True):
            stage = record.task_class.stage
            seconds[stage] = seconds.get(stage, 0.0) + phase.total_s
        return Prediction(seconds=seconds, byte_seconds=size(shape)[1], source=self.source)

    def _task_times(self, predictor: Predictor, use_estimates: bool) -> Mapping[model.ClassId, float | None]:
        work = [record.task_class for record in self._work()]
        self.source = None
        stated = {task_class.id: task_class.estimates.duration_s(task_class.resources) for task_class in work}
        if use_estimates and work and None not in stated.values():
            self.source = Source.STATED
            return stated
        if self.is_uber or self.is_app:
            self.source = Source.HISTORY
            uber_s = predictor.uber_s(self.job.kind)
            return dict.fromkeys(stated, uber_s) if self.is_uber else self._executor_times(predictor)
        if not self.is_map_reduce:
            return {}
        if self.features is None:
            self.features = self._recalled(predictor)
        times = None if self.features is None else predictor.predict(self.features, self.job.kind)
        if times is None:
            return {}
        self.source = Source.PROBE if self.is_probed else Source.PROGRAM
        totals_s = {model.Stage.MAP: times.map_s, model.Stage.REDUCE: times.reduce_s}
        means_s = {stage: total_s / max(1, self.tasks(stage)) for stage, total_s in totals_s.items()}
        return {task_class.id: means_s[task_class.stage] for task_class in work}

    def _executor_times(self, predictor: Predictor) -> Mapping[model.ClassId, float | None]:
        """Return equal run times of all executors that add up to the program's memory-seconds."""
        byte_seconds, executors = predictor.apps.mean(self.job.kind), self.of(model.Stage.EXECUTOR)
        memory_bytes = sum(record.total * container(record.task_class.resources)[1] for record in executors)
        executor_s = None if byte_seconds is None else byte_seconds / max(memory_bytes, LEAST_MEMORY_BYTES)
        return {record.task_class.id: executor_s for record in executors}

    def _recalled(self, predictor: Predictor) -> Features | None:
        sizes = [(record.total, record.task_class.estimates.input_bytes()) for record in self.of(model.Stage.MAP)]
        input_bytes = sum(count * size for count, size in sizes if size is not None)
        if any(size is None for _, size in sizes):
            return None
        maps, reduces = self.tasks(model.Stage.MAP), self.tasks(model.Stage.REDUCE)
        return predictor.recall(self.job.kind, input_bytes=input_bytes, maps=maps, reduces=reduces)

    def probed(self, counters: Mapping[str, float], predictor: Predictor) -> bool:
        """Take over what a probe found: eq. 8. False where its counters tell nothing."""
        found = scaled(counters, maps=self.tasks(model.Stage.MAP), reduces=self.tasks(model.Stage.REDUCE))
        if found is None or not self.is_map_reduce:
            return False
        self.features, self.is_probed = found, True
        predictor.remember(self.job.kind, found)
        return True

    def train(self, predictor: Predictor) -> None:
        """Teach the models the parameters and actual times of the job, which succeeded."""
        for record in self.of(model.Stage.UBER):
            if record.succeeded:
                predictor.learn_uber(self.job.kind, record.run_s / record.succeeded)
        run = [record for record in self._work() if record.succeeded]
        if self.is_app and self.job.kind and run:
            byte_seconds = sum(record.run_s * container(record.task_class.resources)[1] for record in run)
            predictor.apps.add(self.job.kind, 1, byte_seconds)
        all_known = self.is_map_reduce and all(record.succeeded >= record.total for record in self._work())
        if self.features is not None and all_known:
            map_s, reduce_s = (
                sum(record.run_s for record in self.of(stage)) for stage in (model.Stage.MAP, model.Stage.REDUCE)
            )
            predictor.learn(self.features, TotalTimes(map_s=map_s, reduce_s=reduce_s), self.job.kind)
