"""Simulate a random world: the operator's loop in virtual time, without an API server.

Decisions are assumed, written, observed and started one after the other; writes fail, tasks fail, nodes go. What is
drawn for a task follows from its name, so a course depends on decisions and on nothing else.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import statistics
import zlib
from typing import TYPE_CHECKING, Any

from boathouse_policies import model

from . import adapter, worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .applications import Application, Part
    from .worlds import World

LAST_S = 400.0
_WRITE_S, _START_S, _FORGOTTEN_S, _CONTROL_S = 0.2, 1.0, 4.0, 5.0
_FAR = (1.0, 1.0, 1.2, 1.5)  # by distance
_CYCLES_AT_ONCE = 60


@dataclasses.dataclass(slots=True, eq=False)
class Pod:
    """A placed task.

    Attributes:
        placement: The decision.
        app: Its job.
        part: Its part.
        shown: Its size as the watch shows it; None as long as nothing was written.
        started_s: When it began; None before.
        end_s: When it will end, unless `ends` changes.
        ends: Number of the end that counts.
        left_s: What a suspended task has still to do; None for one that runs.
        twin: The other attempt of the same task.
        second_of: Of a second attempt, the first.
    """

    placement: model.Placement
    app: App
    part: Part
    shown: model.Resources | None = None
    started_s: float | None = None
    end_s: float = math.inf
    ends: int = 0
    left_s: float | None = None
    twin: model.TaskId | None = None
    second_of: model.TaskId | None = None

    @property
    def id(self) -> model.TaskId:
        """Of the task."""
        return self.placement.task.id


@dataclasses.dataclass(slots=True, eq=False)
class App:
    """A job under way.

    Attributes:
        spec: What it is.
        job: As it was submitted last.
        tasks: Its tasks that are not over, by name, of each part.
        over: How many tasks of each part have ended.
        open: The parts that were submitted.
        driven: Whether its driver runs.
    """

    spec: Application
    job: model.Job
    tasks: list[dict[model.TaskId, model.Task]]
    over: list[int]
    open: set[int] = dataclasses.field(default_factory=set)
    driven: bool = False

    def part_of(self, task_class: model.ClassId) -> int:
        """Return the place of the part of a class."""
        return next(i for i, one in enumerate(self.spec.parts) if one.task_class.id == task_class)


class Course:
    """One world under one profile.

    Args:
        world: What happens.
        profile: Name of the profile.
    """

    def __init__(self, world: World, profile: str) -> None:
        self.core = adapter.Core(profile, world.placement, world.nodes, world.queues)
        self._profile, self._queues = profile, world.queues
        self._strangers: dict[str, worlds.Stranger] = {}
        self.job_times_s: list[float] = []
        self.ended_s = 0.0
        self._world = world
        self._now_s = 0.0
        self._heap: list[tuple[float, int, bool, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._alive = 0  # events that are not only time passing
        self._apps: dict[model.JobId, App] = {}
        self._pods: dict[model.TaskId, Pod] = {}
        self._nodes = {node.name: node for node in world.nodes}
        self._awake = set(self._nodes)
        self._wake_s = math.inf
        self._begin()

    def run(self) -> None:
        """Play to the end: until nothing can happen any more, or it takes too long."""
        while self._heap and self._now_s <= LAST_S * self._world.pace and (self._alive or self._pods):
            self._now_s = self._heap[0][0]
            while self._heap and self._heap[0][0] == self._now_s:
                _, _, idle, happen = heapq.heappop(self._heap)
                self._alive -= not idle
                happen()
            if not self._world.offer_s:
                self._decide()

    @property
    def measures(self) -> dict[str, float]:
        """What may differ a little in another recording."""
        mean_s = statistics.fmean(self.job_times_s) if self.job_times_s else 0.0
        return {"mean_job_time_s": mean_s, "jobs": len(self.job_times_s), "makespan_s": self.ended_s}

    # Time

    def _at(self, time_s: float, happen: Callable[[], None], *, idle: bool = False) -> None:
        """Let something happen; what is idle alone does not keep the course going."""
        self._alive += not idle
        heapq.heappush(self._heap, (round(time_s, 3), next(self._numbers), idle, happen))

    def _in(self, delay_s: float, happen: Callable[[], None], *, idle: bool = False) -> None:
        self._at(self._now_s + delay_s, happen, idle=idle)

    def _every(self, period_s: float, happen: Callable[[], None]) -> None:
        if period_s == math.inf:
            return

        def again() -> None:
            happen()
            self._in(period_s, again, idle=True)

        self._in(period_s, again, idle=True)

    def _luck(self, *key: object) -> float:
        """Return a number from 0 to 1 that follows from a name."""
        return zlib.crc32(repr((self._world.seed, *key)).encode()) / 0xFFFFFFFF

    def _begin(self) -> None:
        world = self._world
        for app in world.applications:
            self._at(app.at_s, lambda app=app: self._come(app))  # type: ignore[misc]
        for at_s, what in world.happenings:
            self._at(at_s * world.pace, lambda what=what: self._happen(what))  # type: ignore[misc]
        report_s, measure_s = self.core.periods_s()
        self._every(report_s * world.pace, self._report)
        self._every(measure_s * world.pace, self._measure)
        if self.core.profile.controllers:
            self._every(_CONTROL_S * world.pace, self._control)
        for i, name in enumerate(sorted(self._nodes) if world.offer_s else ()):
            self._in(world.offer_s * i / len(self._nodes), lambda name=name: self._offer(name), idle=True)  # type: ignore[misc]

    # Cycles

    def _decide(self) -> None:
        for _ in range(_CYCLES_AT_ONCE):
            if not self.core.tick(self._now_s):
                break
            self._carry_out(self.core.cycle(self._now_s))
        wake_s = self.core.next_wake_s()
        if self._now_s < wake_s < self._wake_s or self._wake_s <= self._now_s < wake_s < math.inf:
            self._wake_s = wake_s
            self._at(wake_s + 0.001, lambda: None, idle=not self._pods and not self._alive)

    def _control(self) -> None:
        self.core.tell(model.Tick(now_s=self._now_s))
        if not self._world.offer_s:
            self.core.tick(self._now_s)
            self._carry_out(self.core.cycle(self._now_s))

    def _offer(self, name: model.NodeName) -> None:
        self._in(self._world.offer_s * self._world.pace, lambda: self._offer(name), idle=True)
        self.core.tick(self._now_s)
        if name not in self._awake or name not in self._nodes or not self.core.waits:
            return
        self._awake.discard(name)
        decisions = self.core.cycle(self._now_s, offered=[name], max_per_node=self._world.most, park=False)
        self._carry_out(decisions)
        if any(isinstance(one, model.Create | model.Bind) for one in decisions):
            self._awake.add(name)

    def _wake_all(self) -> None:
        self._awake.update(self._nodes)

    def _carry_out(self, decisions: Sequence[model.Decision]) -> None:
        for one in decisions:
            match one:
                case model.Create() | model.Bind():
                    self._place(one)
                case model.Reservation(until_s=until_s) | model.Wait(until_s=until_s):
                    if self._world.offer_s and until_s is not None and until_s > self._now_s:
                        self._at(until_s, self._wake_all)
                case model.Suspend():
                    self._tell_suspended(one)
                    self._in(0.5, lambda one=one: self._suspend(one))  # type: ignore[misc]
                case model.Resume():
                    self._tell_resumed(one.task.id)
                    self._resume(one.task.id)
                case model.Resize():
                    self._resize(one)
                case model.Speculate():
                    self._speculate(one)
                case model.Scale():
                    pass  # no job of a world has workers of its own

    # Jobs

    def _come(self, spec: Application) -> None:
        tasks = [{task.id: task for task in part.tasks} for part in spec.parts]
        app = self._apps[spec.job.id] = App(spec, spec.job, tasks, [0] * len(tasks))
        self._tell_submitted(app)
        self._open(app)

    def _tell_submitted(self, app: App) -> None:
        parts = app.spec.parts
        counts = {
            part.task_class.id: sum(task not in self.core for task in tasks)
            for part, tasks in zip(parts, app.tasks, strict=True)
        }
        classes = tuple(part.task_class for part in parts)
        self.core.tell(model.Submitted(now_s=self._now_s, job=app.job, classes=classes, tasks=counts))

    def _open(self, app: App) -> None:
        """Submit the parts whose time has come."""
        parts = app.spec.parts
        fresh = {
            i
            for i, part in enumerate(parts)
            if i not in app.open
            and (
                part.after is None
                or (part.share > 0 and self._has_ended(app, part.after, part.share))
                or (part.share == 0 and app.driven)
            )
        }
        if fresh:
            app.open |= fresh
            self._say(app)

    @staticmethod
    def _has_ended(app: App, part: int, share: float) -> bool:
        return app.over[part] >= share * len(app.spec.parts[part].tasks) or not app.tasks[part]

    def _say(self, app: App) -> None:
        """Submit all that the job still has to do."""
        parts = app.spec.parts
        tasks = [self._as_it_is(app, i, task) for i in sorted(app.open) for task in app.tasks[i].values()]
        self.core.submit(app.job, [parts[i].task_class for i in sorted(app.open)], tasks)
        self._wake_all()

    @staticmethod
    def _as_it_is(app: App, part: int, task: model.Task) -> model.Task:
        if not app.spec.parts[part].awaits_driver:
            return task
        if app.driven:
            return dataclasses.replace(task, pod_uid=model.PodUid(f"uid-{task.id}"))
        return dataclasses.replace(task, expected=True)

    def _finish(self, app: App) -> None:
        """All tasks of the job have ended."""
        self.job_times_s.append(self._now_s - app.spec.at_s)
        self.ended_s = self._now_s
        self._end(app, succeeded=True)

    def _end(self, app: App, *, succeeded: bool) -> None:
        del self._apps[app.job.id]
        self.core.withdraw(app.job.id)
        self.core.tell(model.Ended(now_s=self._now_s, job=app.job.id, succeeded=succeeded))
        self._wake_all()

    # Pods

    def _place(self, placement: model.Placement, twin: Pod | None = None) -> None:
        app = self._apps[placement.job.id]
        pod = Pod(placement, app, app.spec.parts[app.part_of(placement.task_class.id)])
        self._pods[pod.id] = pod
        self.core.assume(placement)
        if twin is not None:
            pod.twin, twin.twin, pod.second_of = twin.id, pod.id, twin.id
        self._tell_placed(pod)
        fails = self._luck("write", pod.id, round(self._now_s, 3)) < self._world.write_fails and twin is None
        self._in(_WRITE_S, lambda: self._not_written(pod) if fails else self._written(pod))

    def _tell_placed(self, pod: Pod) -> None:
        placement = pod.placement
        size, distance, second_of = placement.resources, placement.distance, pod.second_of
        self.core.tell(model.Placed(**self._about(pod), resources=size, distance=distance, second_of=second_of))

    def _is_there(self, pod: Pod) -> bool:
        return self._pods.get(pod.id) is pod

    def _written(self, pod: Pod) -> None:
        if self._is_there(pod):
            self.core.written(pod.id)
            self._show(pod, pod.placement.resources)
            self._in(_START_S, lambda: self._start(pod))

    def _not_written(self, pod: Pod) -> None:
        if self._is_there(pod):
            del self._pods[pod.id]
            self.core.forget(pod.id)
            at_least_s = 3.0 if self._luck("quota", pod.id) < 0.3 else 0.0  # noqa: PLR2004
            self._tell_failed(pod, "the write failed")
            self.core.back_off(pod.id, pod.part.task_class.id, self._now_s, at_least_s)
            self._awake.add(pod.placement.node)

    def _start(self, pod: Pod) -> None:
        if not self._is_there(pod):
            return
        pod.started_s = self._now_s
        self.core.tell(model.Started(**self._about(pod)))
        if self._luck("fails", pod.id) < self._world.task_fails:
            self._in(self._seconds(pod) / 2, lambda: self._fail(pod, "exit code 1"))
        else:
            self._end_in(pod, self._seconds(pod))
        if pod.part.task_class.stage is model.Stage.DRIVER and not pod.app.driven:
            pod.app.driven = True
            if any(part.awaits_driver for part in pod.app.spec.parts):
                self._in(1.0, lambda: self._say(pod.app) if pod.app.job.id in self._apps else None)
            self._open(pod.app)

    def _about(self, pod: Pod) -> dict[str, Any]:
        placement = pod.placement
        return {
            "now_s": self._now_s,
            "task": pod.id,
            "task_class": placement.task_class.id,
            "job": placement.job.id,
            "node": placement.node,
        }

    def _seconds(self, pod: Pod) -> float:
        """Return how long it runs: by luck, size, distance and neighbours."""
        one, got = pod.part.task_class, pod.placement.resources
        alone_s, given_s = one.estimates.duration_s(one.resources), one.estimates.duration_s(got)
        spills = given_s / alone_s if alone_s and given_s else 1.0
        slower = one.resources.cpu_milli / got.cpu_milli if got.cpu_milli else 1.0
        far = _FAR[pod.placement.distance] if any(task.locations for task in pod.part.tasks) else 1.0
        around = sum(other.placement.node == pod.placement.node for other in self._pods.values()) - 1
        luck = 0.7 + 0.6 * self._luck("seconds", pod.id)
        return round(pod.part.seconds * self._world.pace * luck * spills * slower * far * (1 + 0.04 * around), 1)

    def _end_in(self, pod: Pod, seconds: float) -> None:
        pod.ends += 1
        number, pod.end_s = pod.ends, round(self._now_s + seconds, 3)
        self._at(pod.end_s, lambda: self._ended(pod) if number == pod.ends else None)

    def _ended(self, pod: Pod) -> None:
        if not self._is_there(pod) or pod.started_s is None:
            return
        app, part = pod.app, pod.app.part_of(pod.part.task_class.id)
        self._leave(pod)
        twin = self._pods.get(pod.twin) if pod.twin is not None else None
        if twin is not None:
            self._leave(twin)
            self._tell_failed(twin, "another attempt ended first")
        counters = dict(pod.part.counters)
        if pod.placement.distance > model.Distance.SERVER:
            counters["remote_bytes"] = counters.pop("read_bytes", 0.0)
        duration_s = self._now_s - pod.started_s
        self.core.tell(model.Finished(**self._about(pod), duration_s=duration_s, counters=counters))
        first = pod.id if pod.id in app.tasks[part] else pod.twin
        if first is not None and app.tasks[part].pop(first, None) is not None:
            app.over[part] += 1
            self._proceed(app)

    def _proceed(self, app: App) -> None:
        if app.job.id not in self._apps:
            return
        if not any(app.tasks):
            self._finish(app)
        else:
            self._open(app)

    def _leave(self, pod: Pod) -> None:
        del self._pods[pod.id]
        self.core.gone(pod.id)
        self._awake.add(pod.placement.node)

    def _tell_failed(self, pod: Pod, reason: str) -> None:
        self.core.tell(model.Failed(**self._about(pod), reason=reason))

    def _fail(self, pod: Pod, reason: str) -> None:
        """End the pod without success: its task is pending again, under its name or as another attempt."""
        if not self._is_there(pod):
            return
        self._leave(pod)
        self._tell_failed(pod, reason)
        if pod.app.job.id not in self._apps:
            return
        tasks = pod.app.tasks[pod.app.part_of(pod.part.task_class.id)]
        known = tasks.get(pod.id)
        if known is None or (pod.twin is not None and pod.twin in self._pods):
            return
        if self._luck("again", pod.id) < 0.5:  # noqa: PLR2004
            self.core.put_back(pod.id, known.task_class)
        else:
            del tasks[pod.id]
            again = dataclasses.replace(known, id=model.TaskId(f"{pod.id}-again"))
            tasks[again.id] = again
            self._say(pod.app)
        self._wake_all()

    # Sizes

    def _tell_suspended(self, decision: model.Suspend) -> None:
        pod = self._pods.get(decision.task.id)
        if pod is None or pod.started_s is None or pod.left_s is not None:
            self.core.tell(model.Refused(now_s=self._now_s, decision=decision, reason="NotRunning"))
            return
        until_s = decision.until_s
        self.core.tell(model.Suspended(**self._about(pod), resources=decision.resources, until_s=until_s))

    def _tell_resumed(self, task: model.TaskId) -> None:
        pod = self._pods.get(task)
        if pod is not None:
            self.core.tell(model.Resumed(**self._about(pod), resources=pod.placement.resources))

    def _suspend(self, decision: model.Suspend) -> None:
        pod = self._pods.get(decision.task.id)
        if pod is None or pod.started_s is None or pod.left_s is not None or pod.end_s == math.inf:
            return
        pod.left_s = pod.end_s - self._now_s
        pod.ends += 1
        self._show(pod, decision.resources)
        self._awake.add(decision.node)
        if decision.until_s is not None:
            self._at(max(decision.until_s, self._now_s), lambda: self._time_is_up(decision.task.id))

    def _time_is_up(self, task: model.TaskId) -> None:
        self._tell_resumed(task)
        self._resume(task)

    def _resume(self, task: model.TaskId) -> None:
        pod = self._pods.get(task)
        if pod is None or pod.left_s is None:
            return
        self._show(pod, pod.placement.resources)
        left_s, pod.left_s = pod.left_s, None
        self._end_in(pod, left_s)

    def _show(self, pod: Pod, resources: model.Resources) -> None:
        pod.shown = resources
        self.core.observe(adapter.account(pod.placement, model.PodUid(f"uid-{pod.id}"), resources))

    def _resize(self, decision: model.Resize) -> None:
        pod = self._pods.get(decision.task.id)
        if pod is None:
            return
        self.core.resizing(pod.id, decision.resources)
        fails = self._luck("resize", pod.id, self._now_s) < 0.2  # noqa: PLR2004
        self._in(0.5, lambda: self._resized(pod, None if fails else decision.resources))

    def _resized(self, pod: Pod, resources: model.Resources | None) -> None:
        if not self._is_there(pod):
            return
        if resources is None:
            self.core.not_resized(pod.id)
        else:
            self._show(pod, resources)

    def _speculate(self, decision: model.Speculate) -> None:
        first = self._pods.get(decision.task.id)
        if first is None or first.twin is not None or decision.attempt in self._pods:
            return
        task = dataclasses.replace(first.placement.task, id=decision.attempt, pod_uid=None)
        create = model.Create(
            task=task,
            task_class=first.placement.task_class,
            job=first.placement.job,
            node=decision.node,
            resources=decision.resources,
        )
        self._place(create, first)

    # What happens from outside

    def _happen(self, what: worlds.Happening) -> None:
        match what:
            case worlds.NodeSet(node):
                self._nodes[node.name] = node
                self.core.set_node(node)
                self.core.tell(model.NodeChanged(now_s=self._now_s, name=node.name, node=node))
            case worlds.NodeGone(name):
                self._node_gone(name)
            case worlds.QueuesSet(queues):
                self._queues = queues
                self.core.set_queues(queues)
            case worlds.Withdrawn(job):
                self._withdraw(job)
            case worlds.Restated(job):
                self._restate(job)
            case worlds.MadeAhead(job, count):
                self._make_ahead(job, count)
            case worlds.Scaled(job, more):
                self._scale(job, more)
            case worlds.Stranger() | worlds.StrangerGone():
                self._happen_elsewhere(what)
            case worlds.Restarted():
                self._restart()
        self._wake_all()

    def _happen_elsewhere(self, what: worlds.Stranger | worlds.StrangerGone) -> None:
        """Add or end a pod of another scheduler."""
        if isinstance(what, worlds.Stranger):
            self._strangers[what.name] = what
            self.core.observe(adapter.stranger(what.name, what.node, what.resources))
        else:
            del self._strangers[what.name]
            self.core.gone(model.TaskId(f"kube-system/{what.name}"))

    def _node_gone(self, name: model.NodeName) -> None:
        if self._nodes.pop(name, None) is None:
            return
        for task in self.core.remove_node(name):
            pod = self._pods.pop(task)
            self._tell_failed(pod, "its node is gone")
            part = pod.app.part_of(pod.part.task_class.id)
            known = pod.app.tasks[part].get(task)
            alive = pod.app.job.id in self._apps
            if alive and known is not None and not self.core.update(self._as_it_is(pod.app, part, known)):
                self._say(pod.app)
        for pod in [pod for pod in self._pods.values() if pod.placement.node == name]:
            self._in(_FORGOTTEN_S, lambda pod=pod: self._forgotten(pod))  # type: ignore[misc]
        self.core.tell(model.NodeChanged(now_s=self._now_s, name=name, node=None))

    def _forgotten(self, pod: Pod) -> None:
        if pod.placement.node not in self._nodes:
            self._fail(pod, "its node is gone")

    def _withdraw(self, job: model.JobId) -> None:
        app = self._apps.get(job)
        if app is None:
            return
        for pod in [pod for pod in self._pods.values() if pod.app is app]:
            self._leave(pod)
            self._tell_failed(pod, "its job was deleted")
        self._end(app, succeeded=False)

    def _restate(self, job: model.Job) -> None:
        app = self._apps.get(job.id)
        if app is not None:
            app.job = job
            self._tell_submitted(app)
            self._say(app)

    def _make_ahead(self, job: model.JobId, count: int) -> None:
        app = self._apps.get(job)
        if app is None:
            return
        part = min(app.open)
        pending = [task for task in app.tasks[part].values() if task.id not in self.core]
        elsewhere = self._luck("ahead", job) < 0.3  # noqa: PLR2004
        for task in pending[:count]:
            made = dataclasses.replace(task, pod_uid=model.PodUid(f"uid-{task.id}"))
            if elsewhere:
                made = dataclasses.replace(made, locations=tuple(self._nodes)[:1])
            app.tasks[part][task.id] = made
            if not self.core.update(self._as_it_is(app, part, made)):
                self._say(app)

    def _scale(self, job: model.JobId, more: int) -> None:
        app = self._apps.get(job)
        if app is None:
            return
        part, one = max(app.open), app.spec.parts[max(app.open)].task_class
        tasks = app.tasks[part]
        for i in range(max(0, more)):
            task = model.Task(id=model.TaskId(f"ns/{one.id}-more-{i}"), task_class=one.id, index=1000 + i)
            tasks[task.id] = task
        pending = [name for name in tasks if name not in self.core]
        for name in pending[more:] if more < 0 else ():
            del tasks[name]
        self._say(app)
        self._proceed(app)

    def _restart(self) -> None:
        """Begin with an empty core: observers load what they saved, then pods and jobs are seen again."""
        saved = self.core.saved()
        self.core = adapter.Core(self._profile, self._world.placement, self._nodes.values(), self._queues)
        self.core.load(saved)
        self._wake_s = math.inf
        self._pods = {name: pod for name, pod in self._pods.items() if pod.shown is not None}
        for app in self._apps.values():
            self._tell_submitted(app)
        for stranger in self._strangers.values():
            self.core.observe(adapter.stranger(stranger.name, stranger.node, stranger.resources))
        for pod in self._pods.values():
            assert pod.shown is not None
            self._show(pod, pod.shown)
            self._tell_placed(pod)
            if pod.started_s is not None:
                self.core.tell(model.Started(**self._about(pod)))
        for app in self._apps.values():
            self._say(app)

    # What observers are told now and then

    def _report(self) -> None:
        for pod in [pod for pod in self._pods.values() if pod.started_s is not None and pod.end_s < math.inf]:
            self.core.tell(self._progress(pod))

    def _progress(self, pod: Pod) -> model.Progress:
        assert pod.started_s is not None
        length_s = pod.end_s - pod.started_s
        ran_s = length_s - pod.left_s if pod.left_s is not None else self._now_s - pod.started_s
        fraction = min(0.99, max(0.0, ran_s / length_s)) if length_s else 0.0
        stage, resources = pod.part.task_class.stage, pod.placement.resources
        phase = str(stage)
        if stage is model.Stage.REDUCE:
            phase = "shuffle" if fraction < 0.6 else "reduce"  # noqa: PLR2004
        counters = {"input_bytes": float(resources.memory_bytes), "cpu_milli": float(resources.cpu_milli)}
        return model.Progress(**self._about(pod), fraction=fraction, phase=phase, counters=counters)

    def _measure(self) -> None:
        for name in sorted(self._nodes):
            here = [pod for pod in self._pods.values() if pod.placement.node == name and pod.started_s is not None]
            usage = {
                "cpu_cores": math.fsum(pod.placement.resources.cpu_milli for pod in here) / 1250,
                "disk_bytes_per_s": math.fsum(_disk(pod) for pod in here),
                "network_bytes_per_s": 0.0,
            }
            self.core.tell(model.Measured(now_s=self._now_s, name=name, usage=usage))


def _disk(pod: Pod) -> float:
    counters = dict(pod.part.counters)
    moved = counters.get("read_bytes", 0.0) + counters.get("written_bytes", 0.0)
    return moved / max(1.0, pod.part.seconds)
