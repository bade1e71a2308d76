"""A Spark application: a driver and executors that hold their room while stages of tasks run inside the executors.

* Executors are asked for once the driver runs; or together with it, where `min_executors` must start with it (a gang).
* The first stage waits for `registered` of the executors (spark.scheduler.minRegisteredResourcesRatio), or half a
  minute (maxRegisteredResourcesWaitingTime). A stage starts when the one before has ended.
* An executor that is lost is asked for again, and its tasks run elsewhere; what it shuffled is kept by the node's
  shuffle service.
* Its tasks, delay scheduling and dynamic allocation are described in docs/simulator.md.
"""

import dataclasses
import math
from collections.abc import Sequence

from typing_extensions import override

from boathouse_policies import model
from boathouse_sim.base_world import tasks_of
from boathouse_sim.live import sizes
from boathouse_sim.live.application import Application
from boathouse_sim.live.course import Course, LiveRun, Pod
from boathouse_sim.live.minimum import Minimum
from boathouse_sim.live.rates import Activity
from boathouse_sim.live.world import LiveWorld
from boathouse_sim.work import Container, Segment

REGISTERED_WAIT_MS = 30_000  # spark.scheduler.maxRegisteredResourcesWaitingTime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SparkStage:
    """Equal tasks that run inside executors."""

    tasks: int
    work: Segment  # what one does
    replicas: int = 0  # of each block that a task reads; 0 for input that is not in blocks (shuffled, or cached)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DynamicAllocation:
    """spark.dynamicAllocation: between these bounds, as many executors as there are tasks to run."""

    least: int = 0  # minExecutors
    most: int = 100  # maxExecutors
    idle_s: float = 60.0  # executorIdleTimeout


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spark(Application):
    """An application."""

    executors: int  # how many it asks for; with dynamic allocation at first
    executor: Container  # its segments are not used
    stages: tuple[SparkStage, ...]  # in order
    driver: Container | None = None  # None for one outside of the cluster (client mode)
    min_executors: int = 0  # that start together with the driver, or not at all; 0 for no gang
    request_ms: int = 0
    """From the driver's start until it requests its executors, for whose minimum room is reserved until then; 0 for
    executors that come with the driver. Only with a driver and `min_executors`."""
    task_cores: int = 1  # spark.task.cpus
    startup_ms: int = 3000  # from a container's start until it takes tasks
    registered: float = 0.8  # share of the executors that the first stage waits for
    dynamic: DynamicAllocation | None = None  # None for a fixed number
    locality_wait_s: float = 0.0  # spark.locality.wait; 0 for no delay scheduling inside the application

    def __post_init__(self) -> None:
        if not self.stages or min(stage.tasks for stage in self.stages) < 1:
            raise ValueError(f"application {self.id}: each stage has at least one task, and there is at least one")
        if self.most < 1 or self.slots < 1:
            raise ValueError(f"application {self.id}: give it executors with at least {self.task_cores} cores")
        if self.min_executors > self.executors:
            raise ValueError(f"application {self.id}: it asks for {self.executors} executors, fewer than its minimum")

    @property
    def most(self) -> int:
        """Executors that it may have at once."""
        return self.executors if self.dynamic is None else max(self.executors, self.dynamic.most)

    @property
    def slots(self) -> int:
        """Tasks that run in an executor at once."""
        return int(self.executor.cores // self.task_cores)

    @property
    @override
    def tasks(self) -> int:
        return self.executors + (self.driver is not None)

    @override
    def containers(self) -> Sequence[tuple[str, Container]]:
        return [*([("driver", self.driver)] if self.driver is not None else []), ("executor", self.executor)]

    @override
    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        return SparkCourse(self, world, run)


@dataclasses.dataclass(slots=True, eq=False)
class _Executor:
    pod: Pod
    busy: dict[int, Activity] = dataclasses.field(default_factory=dict)  # its tasks, by index
    idle_since: int = 0  # counts its changes: an idle timeout of an earlier one is stale


class SparkCourse(Course):
    """See the module's docstring."""

    def __init__(self, spec: Spark, world: LiveWorld, run: LiveRun) -> None:
        self._spec, self._world, self._run = spec, world, run
        gang = spec.min_executors
        self._driver: model.TaskClass | None = None
        if spec.driver is not None:
            self._driver = world.task_class(
                run, "driver", model.Stage.DRIVER, spec.driver, 1, gang_min=int(gang > 0), known=False
            )
        self._executor = world.task_class(
            run, "executor", model.Stage.EXECUTOR, spec.executor, spec.executors, gang_min=gang, known=False
        )
        self._minimum: Minimum | None = None
        if spec.request_ms and gang and self._driver is not None:
            self._minimum = Minimum(world, run, self._driver, self._executor, gang)
        self._up: dict[model.TaskId, _Executor] = {}
        self._driver_pod: Pod | None = None
        self._running: dict[model.TaskId, Pod] = {}
        self._wanted, self._stage = spec.executors, -1
        self._released: set[int] = set()
        self._stage_files = [world.file(run, stage.tasks, stage.replicas) for stage in spec.stages]
        self._waiting: dict[int, None] = {}
        self._left = self._patient_until_ms = 0
        self._may_begin = self._over = self._has_started = False

    @override
    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        return [*([] if self._driver is None else [(self._driver, 1)]), (self._executor, self._spec.executors)]

    @override
    def container(self, task_class: model.TaskClass) -> Container:
        driver = self._spec.driver
        return self._spec.executor if driver is None or task_class.id == self._executor.id else driver

    @override
    def begin(self) -> None:
        if self._driver is None:
            self._arm()
        self._offer()

    def _offer(self) -> None:
        """Submit the pending tasks: the driver, and the executors once it runs (or with it, in a gang)."""
        offers: list[tuple[model.TaskClass, Sequence[model.Task]]] = []
        if self._driver is not None:
            offers.append((self._driver, tasks_of(self._driver, [0])))
        if self._minimum is not None:
            offers.append(self._offer_of_minimum(self._minimum))
        elif self._driver is None or self._spec.min_executors or self._driver_pod is not None:
            offers.append((self._executor, self._wanted_tasks()))
        self._world.wait(self._run, *(offer for offer in offers if offer[1]))

    def _wanted_tasks(self) -> list[model.Task]:
        indexes = [i for i in range(self._spec.most) if i not in self._released]
        return tasks_of(self._executor, indexes[: self._wanted])

    # A minimum that the driver requests later than it starts

    @property
    def _executors_running(self) -> list[model.TaskId]:
        return [task for task, pod in self._running.items() if pod.task_class.id == self._executor.id]

    @property
    def _driver_is_placed(self) -> bool:
        return self._driver is not None and tasks_of(self._driver, [0])[0].id in self._running

    def _offer_of_minimum(self, minimum: Minimum) -> tuple[model.TaskClass, Sequence[model.Task]]:
        """Return what of the executors is pending: expected ones with the driver, what it is short of, or all."""
        if not self._driver_is_placed:
            return self._executor, minimum.expected(self._executors_running)
        if minimum.short:
            return minimum.short_class(), minimum.short
        if minimum.requested:
            minimum.requested = self._wanted_tasks()  # more or fewer than at first, with dynamic allocation
        return self._executor, minimum.requested

    @override
    def reserve(self, decision: model.Reservation) -> None:
        if self._minimum is not None and self._driver_is_placed:
            self._minimum.reserve(decision)
            self._offer()

    @override
    def node_lost(self, node: model.NodeName) -> None:
        if self._minimum is not None and self._minimum.node_lost(node):
            self._settle()

    def _request(self, driver: Pod) -> None:
        if self._minimum is not None and self._running.get(driver.id) is driver:
            self._minimum.requested = self._wanted_tasks()
            self._settle()

    def _settle(self) -> None:
        if self._minimum is not None and self._driver_is_placed:
            for seat in self._minimum.settle(self._executors_running):
                self._world.place(seat)
        self._offer()

    # Containers

    @override
    def placed(self, pod: Pod) -> None:
        self._running[pod.id] = pod
        minimum = self._minimum
        if minimum is not None and any(task.id == pod.id for task in minimum.short):
            minimum.short = [task for task in minimum.short if task.id != pod.id]
            self._offer()
        if self._spec.min_executors and not self._has_started:
            self._has_started = True
            self._world.tally.gang_waits_ms.append(self._world.clock.now_ms - self._run.submitted_ms)

    @override
    def started(self, pod: Pod) -> None:
        self._world.clock.after(self._spec.startup_ms, self._is_up, pod)
        if self._minimum is not None and pod.task_class.id != self._executor.id:
            self._world.clock.after(self._spec.request_ms, self._request, pod)

    def _is_up(self, pod: Pod) -> None:
        if self._running.get(pod.id) is not pod:
            return  # lost before
        if pod.task_class.id == self._executor.id:
            self._up[pod.id] = _Executor(pod)
        else:
            self._driver_pod = pod
            self._arm()
            if not self._spec.min_executors:
                self._offer()
        self._begin_stages()
        self._assign()
        if (executor := self._up.get(pod.id)) is not None:
            self._watch_idle(executor)

    def _arm(self) -> None:
        self._world.clock.after(REGISTERED_WAIT_MS, self._waited)

    def _waited(self) -> None:
        self._may_begin = True
        self._begin_stages()

    @override
    def lost(self, pod: Pod) -> None:
        self._running.pop(pod.id, None)
        gone = self._up.pop(pod.id, None)
        if gone is not None:
            self._waiting = dict.fromkeys([*gone.busy, *self._waiting])
        if pod is self._driver_pod:
            self._driver_pod = None
        if self._minimum is not None and not self._driver_is_placed:
            self._minimum.release()
        if not self._over:
            self._settle()
            self._assign()

    # Stages

    def _begin_stages(self) -> None:
        if self._stage >= 0 or not self._up or (self._driver is not None and self._driver_pod is None):
            return
        if self._may_begin or len(self._up) >= math.ceil(self._spec.registered * self._spec.executors):
            self._next_stage()

    def _next_stage(self) -> None:
        self._stage += 1
        if self._stage == len(self._spec.stages):
            self._end()
            return
        self._left = self._spec.stages[self._stage].tasks
        self._waiting = dict.fromkeys(range(self._left))
        self._be_patient()
        self._want_more()
        self._assign()

    def _assign(self) -> None:
        """Give waiting tasks to free slots, executors in order of their names, round after round."""
        free = self._stage >= 0 and (self._driver is None or self._driver_pod is not None)
        while free and self._waiting:
            free = False
            for executor in [self._up[name] for name in sorted(self._up)]:
                index = self._closest(executor.pod.node) if len(executor.busy) < self._spec.slots else None
                if index is not None:
                    self._run_on(executor, index)
                    free = True

    def _closest(self, node: model.NodeName) -> int | None:
        """Return the next task for a slot on a node; None if none is pending, or delay scheduling skips the node."""
        files = self._stage_files[self._stage]
        first = next(iter(self._waiting), None)
        if first is None or not files[first]:
            return first
        local = next((i for i in self._waiting if node in files[i]), None)
        if local is not None:
            self._be_patient()
            return local
        return first if self._world.clock.now_ms >= self._patient_until_ms else None

    def _be_patient(self) -> None:
        """Delay tasks (delay scheduling): none goes to a node without its block for a while."""
        wait_ms = round(self._spec.locality_wait_s * 1000)
        until_ms = self._world.clock.now_ms + wait_ms
        if wait_ms and until_ms > self._patient_until_ms:
            self._patient_until_ms = until_ms
            self._world.clock.after(wait_ms, self._waited_for_blocks, self._stage)

    def _waited_for_blocks(self, stage: int) -> None:
        if stage == self._stage and not self._over:
            self._assign()

    def _run_on(self, executor: _Executor, index: int) -> None:
        stage, world = self._spec.stages[self._stage], self._world
        del self._waiting[index]
        began_ms, pod = world.clock.now_ms, executor.pod
        name, locations = f"{self._executor.id}/{self._stage}/{index}", self._stage_files[self._stage][index]
        distance = world.distance(pod.node, locations)
        if distance is not None:
            world.tally.at(distance)

        def ended() -> None:
            world.record_inner(pod, executor.busy.pop(index), index, began_ms)
            self._task_over(executor)

        luck = sizes.variation(world.seed, name, 0, world.conditions.jitter, world.errors.duration)
        source = world.source(pod.node, locations, name)
        executor.idle_since += 1
        executor.busy[index] = world.do(pod, stage.work, ended, distance=distance, source=source, luck=luck)

    def _task_over(self, executor: _Executor) -> None:
        self._left -= 1
        if self._left:
            self._assign()
        else:
            self._next_stage()
        if not self._over and not executor.busy:
            self._watch_idle(executor)

    def _end(self) -> None:
        self._over = True
        if self._minimum is not None:
            self._minimum.release()
        for pod in sorted(self._running.values(), key=lambda pod: pod.id):
            self._world.finish(pod)
        self._running.clear()
        self._up.clear()
        self._world.end_job(self._run)

    # Dynamic allocation

    def _want_more(self) -> None:
        dynamic = self._spec.dynamic
        if dynamic is None:
            return
        busy = sum(len(executor.busy) for executor in self._up.values())
        needed = math.ceil((len(self._waiting) + busy) / self._spec.slots)
        wanted = min(dynamic.most, max(dynamic.least, needed))
        if wanted > len(self._running):
            self._released -= set(sorted(self._released)[: wanted - len(self._running)])
        if wanted > self._wanted or self._released:
            self._wanted = max(self._wanted, wanted)
            self._offer()

    def _watch_idle(self, executor: _Executor) -> None:
        dynamic = self._spec.dynamic
        if dynamic is None or executor.busy:
            return
        executor.idle_since += 1
        idle_ms = round(dynamic.idle_s * 1000)
        self._world.clock.after(idle_ms, self._idle, executor, executor.idle_since, dynamic.least)

    def _idle(self, executor: _Executor, since: int, least: int) -> None:
        task = executor.pod.id
        if self._up.get(task) is not executor or executor.idle_since != since or len(self._up) <= least:
            return
        del self._up[task], self._running[task]
        self._released.add(executor.pod.task.index)
        self._wanted -= 1
        self._world.finish(executor.pod)
        self._offer()
