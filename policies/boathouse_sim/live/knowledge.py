"""What policies are told of run times, and what is written down of them: the truth, which no policy sees.

They are told the workload's own, nothing, or what the operator learns as tasks end.

Learned is as in a cluster (`operator/boathouse/services/mrjob/policy_events.py`): from maps and reducers that
succeeded, by program, without their waits; a job's classes have new estimates as soon as these change.
"""

import dataclasses
import zlib
from typing import NamedTuple

import numpy as np

from boathouse_policies import model, run_times
from boathouse_sim.base_world import MB
from boathouse_sim.conditions import Conditions, RunTimes
from boathouse_sim.live import sizes
from boathouse_sim.live.course import LiveRun, Pod
from boathouse_sim.live.rates import Activity
from boathouse_sim.topology import Cluster
from boathouse_sim.work import Container, Reading
from boathouse_sim.world import estimates


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One attempt of one task, as it was: the truth, for claims about tasks."""

    job: str
    kind: str  # map, reduce, driver, executor, or task for one inside an executor
    index: int
    node: str
    distance: int | None  # of its input; None where it has none in blocks
    placed_ms: int
    started_ms: int
    ended_ms: int
    alone_ms: float  # how long it would have run alone, with its ideal size and its input at hand
    calm_ms: float
    """The same with the size, distance and luck that it had: `ended - started` over this is what neighbours cost."""
    suspended_ms: int = 0
    memory_mb: int
    cpu_milli: int
    lost: bool = False  # with its node, or preempted


def of_pod(pod: Pod, reading: Reading, *, now_ms: int, lost: bool) -> TaskRecord:
    """Record a task that had a pod of its own."""
    segments = pod.container.segments
    calm = [sizes.work_ms(s) * sum(sizes.stretches(s, pod, pod.distance, reading, pod.luck)) for s in segments]
    return TaskRecord(
        job=pod.run.spec.id,
        kind=pod.task_class.id.rsplit("/", 1)[1],
        index=pod.task.index,
        node=pod.node,
        distance=None if pod.distance is None else int(pod.distance),
        placed_ms=pod.placed_ms,
        started_ms=pod.started_ms,
        ended_ms=now_ms,
        alone_ms=float(pod.container.work_ms),
        calm_ms=sum(calm),
        suspended_ms=pod.suspended_ms,
        memory_mb=pod.resources.memory_bytes // MB,
        cpu_milli=pod.asked.cpu_milli,
        lost=lost,
    )


def of_inner(executor: TaskRecord, activity: Activity, index: int, began_ms: int) -> TaskRecord:
    """Record a task inside an executor, by what the record of that is at its end."""
    return dataclasses.replace(
        executor,
        kind="task",
        index=index,
        distance=None if activity.distance is None else int(activity.distance),
        placed_ms=began_ms,
        started_ms=began_ms,
        alone_ms=activity.work_ms,
        calm_ms=activity.work_ms * sum(activity.stretch),
        suspended_ms=0,
    )


class _Known(NamedTuple):
    """A class as the learner knows it."""

    stage: run_times.Stage
    input_bytes: float  # what a task is known to read before it runs; 0 for a reducer


class Knowledge:
    """See the module's docstring. The seed is of what is drawn for programs that are misjudged."""

    def __init__(self, conditions: Conditions, cluster: Cluster, seed: int) -> None:
        self._run_times, self._misjudged = conditions.run_times, conditions.misjudged
        self._cluster, self._seed = cluster, seed
        self._learner = run_times.Learner()
        self._classes: dict[model.ClassId, _Known] = {}
        self._runs: dict[str, dict[model.JobId, LiveRun]] = {}

    def estimates(self, run: LiveRun, task_class: model.TaskClass, container: Container, tasks: int) -> model.Estimates:
        """Return the first estimates of a class."""
        if self._run_times is RunTimes.EXACT:
            return estimates(container.phase(str(task_class.stage), tasks), self._cluster)
        if self._run_times is RunTimes.NOTHING:
            return model.UNKNOWN
        ideal = container.mem_mb * MB
        program = f"{run.job.namespace}/{run.spec.program or run.job.id}"
        stage = run_times.Stage(
            job=run.job.id,
            program=program,
            step=task_class.step,
            stage=task_class.stage,
            ideal_bytes=ideal,
            least_bytes=int(self._cluster.min_mem_fraction * ideal),
            slowdown=container.penalty.factor,
        )
        input_bytes = 0.0 if stage.stage is model.Stage.REDUCE else container.input_mb * MB
        self._classes[task_class.id] = _Known(stage, input_bytes)
        self._runs.setdefault(program, {})[run.job.id] = run
        return self._learner.estimates(stage, input_bytes)

    def renewed(self, task_class: model.TaskClass) -> model.TaskClass:
        """Return the class with the estimates of now: the same object if they have not changed."""
        known = self._classes.get(task_class.id)
        if known is None:
            return task_class
        found = self._learner.estimates(*known)
        return task_class if found is task_class.estimates else dataclasses.replace(task_class, estimates=found)

    def learn(self, pod: Pod, worked_ms: int) -> list[LiveRun]:
        """Learn from a task that succeeded, and ran so long without its waits; return the jobs with new estimates."""
        known = self._classes.get(pod.task_class.id)
        if known is None:
            return []
        program = known.stage.program
        spilled, longer_s = sizes.spilled_mb(pod) * MB, sizes.spill_ms(pod) / 1000
        used = run_times.MemoryUse(
            memory_bytes=pod.resources.memory_bytes,
            spilled_bytes=spilled,
            spill_bytes_per_s=2 * spilled / longer_s if longer_s else 0.0,  # it is written, and read again
        )
        self._learner.learn(
            known.stage,
            seconds=max(1, worked_ms) / 1000 * self._factor(program),
            input_bytes=pod.container.input_mb * MB,
            less=pod.resources.memory_bytes < known.stage.ideal_bytes,
            used=used,
        )
        return [
            run
            for run in self._runs.get(program, {}).values()
            if any(self.renewed(task_class) is not task_class for task_class, _ in run.course.classes())
        ]

    def forget(self, run: LiveRun) -> None:
        """Forget a job that ended; what its program taught stays."""
        for task_class, _ in run.course.classes():
            known = self._classes.pop(task_class.id, None)
            if known is not None:
                self._runs[known.stage.program].pop(run.job.id, None)
        self._learner.forget(run.job.id)

    def _factor(self, program: str) -> float:
        """Return what the program's run times are misjudged by: equal for equal seeds, whatever policy runs."""
        if self._misjudged == 1.0:
            return 1.0
        random = np.random.default_rng([self._seed, zlib.crc32(program.encode())])
        return float(self._misjudged ** random.uniform(-1.0, 1.0))
