"""A MapReduce job: maps read blocks, reducers copy map output as it appears, sort it and reduce (docs/simulator.md).

Reducers are offered once `slow_start` of the maps have ended (mapreduce.job.reduce.slowstart.completedmaps). One is
preempted after `Conditions.preempt_ms` where maps wait, none runs and reducers of the job hold room, as Hadoop's master
does: else the two could wait for each other for ever. What reducers still have to copy from a lost node is made again.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from typing_extensions import override

from boathouse_policies import model
from boathouse_sim.base_world import MB, tasks_of
from boathouse_sim.live.application import Application
from boathouse_sim.live.course import Course, LiveRun, Pod, Report
from boathouse_sim.live.rates import Gate
from boathouse_sim.live.world import LiveWorld
from boathouse_sim.work import Container


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MapReduce(Application):
    """A job. The first segment of a reducer copies, in `work_ms` where all is there; the others sort, reduce, write."""

    maps: int
    map: Container
    reduces: int = 0
    reduce: Container | None = None
    slow_start: float = 0.05  # share of the maps after whose end reducers are offered
    replicas: int = 3  # of each block of the input; 0 for input that is nowhere near

    def __post_init__(self) -> None:
        if self.maps < 1:
            raise ValueError(f"job {self.id}: a MapReduce job has at least one map, not {self.maps}")
        if self.reduces and (self.reduce is None or not self.reduce.segments):
            raise ValueError(f"job {self.id}: say in `reduce` what its {self.reduces} reducers do")
        if not 0 <= self.slow_start <= 1:
            raise ValueError(f"job {self.id}: slow_start must be between 0 and 1, not {self.slow_start}")

    @property
    @override
    def tasks(self) -> int:
        return self.maps + self.reduces

    @override
    def containers(self) -> Sequence[tuple[str, Container]]:
        return [("map", self.map), *([("reduce", self.reduce)] if self.reduce is not None and self.reduces else [])]

    @override
    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        return MapReduceCourse(self, world, run)


class MapReduceCourse(Course):
    """See the module's docstring."""

    speculative = True

    def __init__(self, spec: MapReduce, world: LiveWorld, run: LiveRun) -> None:
        self._spec, self._world, self._run = spec, world, run
        self._map = world.task_class(run, "map", model.Stage.MAP, spec.map, spec.maps)
        blocks = world.file(run, spec.maps, spec.replicas)
        tasks = tasks_of(self._map, range(spec.maps))
        self._maps = [dataclasses.replace(task, locations=block) for task, block in zip(tasks, blocks, strict=True)]
        self._reduce: model.TaskClass | None = None
        self._reduces: list[model.Task] = []
        if spec.reduces and spec.reduce is not None:
            self._reduce = world.task_class(run, "reduce", model.Stage.REDUCE, spec.reduce, spec.reduces)
            self._reduces = tasks_of(self._reduce, range(spec.reduces))
        self.gate = Gate(spec.maps)  # what map output exists
        self._output: dict[int, model.NodeName] = {}  # where the output of maps that ended is
        self._reduced: set[int] = set()
        self._running: dict[model.TaskId, Pod] = {}
        self._offered, self._checks = False, 0

    @override
    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        found = [(self._map, self._spec.maps)]
        return found if self._reduce is None else [*found, (self._reduce, self._spec.reduces)]

    @override
    def left(self) -> Mapping[model.ClassId, int]:
        running = collections.Counter(pod.task_class.id for pod in self._running.values() if not pod.is_second)
        over = {self._map.id: len(self._output)}
        if self._reduce is not None:
            over[self._reduce.id] = len(self._reduced)
        return {
            task_class.id: max(0, count - over[task_class.id] - running[task_class.id])
            for task_class, count in self.classes()
        }

    @override
    def renew(self, renewed: Callable[[model.TaskClass], model.TaskClass]) -> None:
        self._map, self._reduce = renewed(self._map), self._reduce and renewed(self._reduce)
        self._offer()

    @override
    def container(self, task_class: model.TaskClass) -> Container:
        if task_class.id == self._map.id:
            return self._spec.map
        assert self._spec.reduce is not None
        return self._spec.reduce

    @override
    def begin(self) -> None:
        self._offered = not math.ceil(self._spec.slow_start * self._spec.maps)
        self._offer()

    def _offer(self) -> None:
        second = {(self._is_map(pod), pod.task.index) for pod in self._running.values() if pod.is_second}
        maps = (task for task in self._maps if task.index not in self._output)
        offers = [(self._map, [task for task in maps if (True, task.index) not in second])]
        if self._offered and self._reduce is not None:
            reduces = (task for task in self._reduces if task.index not in self._reduced)
            offers.append((self._reduce, [task for task in reduces if (False, task.index) not in second]))
        self._world.wait(self._run, *(offer for offer in offers if offer[1]))

    @override
    def placed(self, pod: Pod) -> None:
        self._running[pod.id] = pod
        if not self._is_map(pod):
            self._check_later()

    @override
    def started(self, pod: Pod) -> None:
        is_map = self._is_map(pod)
        self._world.perform(pod, self._mapped if is_map else self._reduced_, gate=None if is_map else self.gate)

    def _is_map(self, pod: Pod) -> bool:
        return pod.task_class.id == self._map.id

    def _mapped(self, pod: Pod) -> None:
        index = pod.task.index
        del self._running[pod.id]
        self._output[index] = pod.node
        opened = self.gate.more(self._world.clock.now_ms)
        self._world.finish(pod)
        if opened:
            self._update_copies()
        if not self._offered and len(self._output) >= math.ceil(self._spec.slow_start * self._spec.maps):
            self._offered = True
            if self._reduce is not None:
                self._offer()
        self._end_if_over()
        self._check_later()

    def _reduced_(self, pod: Pod) -> None:
        del self._running[pod.id]
        self._reduced.add(pod.task.index)
        self._world.finish(pod)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if len(self._output) == self._spec.maps and len(self._reduced) == self._spec.reduces and not self._running:
            self._world.end_job(self._run)

    def _copying(self) -> list[Pod]:
        return [pod for pod in self._running.values() if not self._is_map(pod) and pod.segment == 0 and pod.activities]

    def _update_copies(self) -> None:
        rates = self._world.rates
        for pod in self._copying():
            copy = pod.activities[0]
            rates.update(copy)
            if self.gate.open:  # a reducer had nothing to copy for the time that its copy so far would not have taken
                busy_ms = (copy.work_ms - rates.left_ms(copy)) * sum(copy.stretch)
                pod.opened_ms = self._world.clock.now_ms
                pod.waited_ms = max(0, pod.opened_ms - pod.started_ms - round(busy_ms))

    # What goes wrong

    @override
    def lost(self, pod: Pod) -> None:
        self._running.pop(pod.id, None)
        self._offer()
        self._check_later()

    @override
    def superseded(self, pod: Pod) -> None:
        self._running.pop(pod.id, None)

    @override
    def node_lost(self, node: model.NodeName) -> None:
        gone = [index for index, where in self._output.items() if where == node]
        if not gone or self.past_copy >= self._spec.reduces:
            return
        self._update_copies()  # what was copied so far
        for index in gone:
            del self._output[index]
            self.gate.more(self._world.clock.now_ms, -1)
        self._update_copies()
        self._offer()

    @property
    def past_copy(self) -> int:
        """Reducers that have copied all."""
        return len(self._reduced) + sum(not self._is_map(pod) and pod.segment > 0 for pod in self._running.values())

    def _check_later(self) -> None:
        if self._stuck():
            self._checks += 1
            self._world.clock.after(self._world.conditions.preempt_ms, self._check, self._checks)

    def _stuck(self) -> bool:
        is_over = len(self._output) == self._spec.maps or not self._running
        return not is_over and not any(map(self._is_map, self._running.values()))

    def _check(self, number: int) -> None:
        """Preempt the reducer with the most left to copy if maps of its own job cannot run."""
        copying = self._copying()
        if number != self._checks or not self._stuck() or not copying:
            return
        left_ms = self._world.rates.left_ms
        self._world.lose(max(copying, key=lambda pod: (left_ms(pod.activities[0]), pod.task.index)), "gave way to maps")

    @override
    def report(self, pod: Pod) -> Report | None:
        if not pod.activities:
            return None
        active, segments = pod.activities[0], pod.container.segments
        share = 1.0 - self._world.rates.left_ms(active) / active.work_ms
        done_mb = segments[0].copy_mb * (share if pod.segment == 0 else 1.0)
        return Report(
            fraction=(pod.segment + share) / len(segments),
            phase=segments[pod.segment].name,
            counters={
                "phase_fraction": share,
                "maps_fraction": len(self._output) / self._spec.maps,
                "copied_bytes": done_mb * MB if segments[0].copy_mb else 0.0,
                "input_bytes": pod.container.input_mb * MB,
                "cpu_milli": float(pod.resources.cpu_milli),
            },
        )
