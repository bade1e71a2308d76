"""Who knows what becomes of a job that is submitted: an application itself, or the course of a job of plain phases.

A phase starts when the one before was placed whole, or has ended.
"""

import abc
import collections
from collections.abc import Callable, Mapping, Sequence

from typing_extensions import override

from boathouse_policies import model
from boathouse_sim.base_world import MB, tasks_of
from boathouse_sim.live.course import Course, LiveRun, Pod
from boathouse_sim.live.world import LiveWorld
from boathouse_sim.work import App, Container, JobSpec, Phase, Segment
from boathouse_sim.world import STAGES


class Phased(Course):
    """The course of a `JobSpec`: its tasks compute for their duration. Its probe, if it has one, is not run."""

    def __init__(self, world: LiveWorld, run: LiveRun, spec: JobSpec) -> None:
        self._world, self._run, self._spec = world, run, spec
        phases = [*spec.phases, *([spec.master] if spec.master is not None else [])]
        self._containers = [_container(phase) for phase in phases]
        stages = [STAGES.get(phase.kind, model.Stage.OTHER) for phase in phases]
        self._classes = [
            world.task_class(run, phase.kind, stage, container, phase.tasks, step=i, known=spec.stated)
            for i, (phase, stage, container) in enumerate(zip(phases, stages, self._containers, strict=True))
        ]
        self._by_class = {task_class.id: i for i, task_class in enumerate(self._classes)}
        self._phase = -1
        self._over: set[model.TaskId] = set()
        self._unplaced: set[model.TaskId] = set()
        self._master: Pod | None = None
        self._placed: collections.Counter[model.ClassId] = collections.Counter()

    @override
    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        tasks = [phase.tasks for phase in self._spec.phases]
        last = [] if self._spec.master is None else [(self._classes[-1], 1)]
        return [*last, *zip(self._classes, tasks, strict=False)]

    @override
    def left(self) -> Mapping[model.ClassId, int]:
        return {task_class.id: count - self._placed[task_class.id] for task_class, count in self.classes()}

    @override
    def renew(self, renewed: Callable[[model.TaskClass], model.TaskClass]) -> None:
        self._classes = [renewed(task_class) for task_class in self._classes]
        if self._phase >= 0:
            self._wait()

    @override
    def container(self, task_class: model.TaskClass) -> Container:
        return self._containers[self._by_class[task_class.id]]

    @override
    def begin(self) -> None:
        if self._spec.master is None:
            self._next()
        else:
            self._world.wait(self._run, self._offer(len(self._spec.phases), 1))

    @override
    def placed(self, pod: Pod) -> None:
        self._unplaced.discard(pod.id)
        self._placed[pod.task_class.id] += 1
        phase = self._by_class[pod.task_class.id]
        more = phase == self._phase and phase + 1 < len(self._spec.phases)
        if more and not self._unplaced and not self._spec.phases[phase + 1].when_ended:
            self._next()

    @override
    def started(self, pod: Pod) -> None:
        i = self._by_class[pod.task_class.id]
        if i < len(self._spec.phases):
            phase = self._spec.phases[i]
            if phase.durations_ms and phase.duration_ms:
                pod.luck *= phase.task_ms(pod.task.index) / phase.duration_ms
            self._world.perform(pod, self._ended)
            return
        self._master = pod
        assert self._spec.master is not None
        self._world.clock.after(self._spec.master.duration_ms, self._up, pod)

    @override
    def lost(self, pod: Pod) -> None:
        self._placed[pod.task_class.id] -= 1
        if pod is self._master:
            self._master = None
        self._wait()

    def _up(self, master: Pod) -> None:
        if master is self._master and self._phase < 0:
            self._next()

    def _ended(self, pod: Pod) -> None:
        self._over.add(pod.id)
        self._world.finish(pod)
        begun, coming = self._spec.phases[: self._phase + 1], self._spec.phases[self._phase + 1 :]
        if len(self._over) < sum(phase.tasks for phase in begun):
            return
        if coming and coming[0].when_ended:
            self._next()
        elif not coming:
            if self._master is not None:
                self._world.finish(self._master)
            self._world.end_job(self._run)

    def _next(self) -> None:
        self._phase += 1
        self._unplaced = {task.id for task in self._offer(self._phase, self._spec.phases[self._phase].tasks)[1]}
        self._wait()

    def _wait(self) -> None:
        offers = [self._offer(i, phase.tasks) for i, phase in enumerate(self._spec.phases[: self._phase + 1])]
        if self._spec.master is not None:
            offers.insert(0, self._offer(len(self._spec.phases), 1))
        self._world.wait(self._run, *(offer for offer in offers if offer[1]))

    def _offer(self, phase: int, count: int) -> tuple[model.TaskClass, list[model.Task]]:
        task_class = self._classes[phase]
        return task_class, [task for task in tasks_of(task_class, range(count)) if task.id not in self._over]


def _container(phase: Phase) -> Container:
    read_mb = (phase.input_bytes or 0) / MB  # its time is in the duration
    work = Segment(name=phase.kind, cpu_ms=phase.duration_ms, cores=float(phase.cores), read_mb=read_mb)
    return Container(mem_mb=phase.mem_ideal_mb, cores=phase.cores, segments=(work,), penalty=phase.penalty)


class Application(App):
    """An application of a workload with a course of its own."""

    __slots__ = ()

    @abc.abstractmethod
    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        """Create its course in a world."""


def course_of(world: LiveWorld, run: LiveRun) -> Course:
    """Return the course of a job that was submitted; raise TypeError if it is no job of phases and no application."""
    spec = run.spec
    if isinstance(spec, JobSpec):
        return Phased(world, run, spec)
    if isinstance(spec, Application):
        return spec.course(world, run)
    raise TypeError(f"job {spec.id}: a {type(spec).__name__} is not an `Application`: it has no course")
