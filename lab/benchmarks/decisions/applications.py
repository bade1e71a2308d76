"""Random applications: MapReduce jobs, Spark applications, plain jobs and pods that exist already."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.yarn_me import penalty

from .clusters import DEDICATED, NAMESPACES, ZONE, amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .drawing import Draw

_PROGRAMS = ("", "sort", "grep", "join")
_PORTS = ((model.HostPort(port=80),), (model.HostPort(port=80, host_ip="10.0.0.1"),), (model.HostPort(port=81),))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A class of tasks and what becomes of them.

    Attributes:
        task_class: The class.
        tasks: Its tasks.
        seconds: How long one runs alone with its ideal size.
        after: The part of which `share` must have ended before these tasks are submitted; None for at once.
        share: See `after`.
        awaits_driver: Whether its tasks are expected, without a pod, until the first part runs.
        counters: What a task reports at its end.
    """

    task_class: model.TaskClass
    tasks: tuple[model.Task, ...]
    seconds: float
    after: int | None = None
    share: float = 1.0
    awaits_driver: bool = False
    counters: tuple[tuple[str, float], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A job that comes at a time, its parts in order."""

    at_s: float
    job: model.Job
    parts: tuple[Part, ...]


def several(
    random: Draw, theme: str, nodes: Sequence[model.Node], queues: Sequence[model.Queue]
) -> tuple[Application, ...]:
    """Applications that ask for a few times what the nodes have."""
    scale = max(1.0, len(nodes) / 6)
    count = random.between(4, 9)
    return tuple(_application(random, theme, i, nodes, queues, scale) for i in range(count))


def _application(
    random: Draw, theme: str, i: int, nodes: Sequence[model.Node], queues: Sequence[model.Queue], scale: float
) -> Application:
    builder = _Builder(random, theme, nodes, scale)
    job = _job(random, theme, i, queues)
    kinds = {
        "plain": (builder.plain,),
        "namespaces": (builder.plain, builder.plain, builder.map_reduce),
        "queues": (builder.plain, builder.map_reduce, builder.spark),
        "spark": (builder.spark, builder.spark, builder.map_reduce),
        "located": (builder.map_reduce, builder.map_reduce, builder.plain),
        "mixed": (builder.plain, builder.map_reduce, builder.spark, builder.pods),
    }
    return Application(at_s=job.submitted_s, job=job, parts=tuple(random.pick(kinds[theme])(job)))


def _job(random: Draw, theme: str, i: int, queues: Sequence[model.Queue]) -> model.Job:
    tenants = theme in ("namespaces", "mixed") or (theme == "queues" and random.chance(0.3))
    lost = theme in ("queues", "mixed") and random.chance(0.06)
    return model.Job(
        id=model.JobId(f"j{i:02}"),
        queue=model.QueueName("late") if lost else random.pick(queues).name,
        submitted_s=random.time(0, 45) if random.chance(0.7) else 0.0,
        name=f"ns/job-{i}",
        namespace=model.NamespaceName(random.pick(NAMESPACES) if tenants else ""),
        priority=random.pick([0, 0, 0, 5]) if theme in ("queues", "mixed") else 0,
        priority_class=random.pick(["", "", "high", "low"]) if theme == "queues" else "",
        weight=random.pick([1.0, 1.0, 2.0]),
        kind=random.pick(_PROGRAMS),
    )


class _Builder:
    """Draws the parts of a job."""

    def __init__(self, random: Draw, theme: str, nodes: Sequence[model.Node], scale: float) -> None:
        self._random, self._theme, self._nodes, self._scale = random, theme, nodes, scale
        self._mixed = theme == "mixed"

    def _count(self, least: int, most: int) -> int:
        return round(self._random.between(least, most) * self._scale)

    def _size(self, *, gpu: bool = False) -> model.Resources:
        cpu = self._random.pick([250, 500, 1000, 1000, 2000, 3000])
        gib = self._random.pick([0.25, 0.5, 1, 1, 2, 3, 6])
        disk = self._random.pick([0, 0, 5]) if self._mixed else 0
        huge = self._random.chance(0.03)
        return amount(cpu * 40 if huge else cpu, gib, disk, int(gpu and self._random.chance(0.3)))

    def _constraints(self) -> model.Constraints:
        random = self._random
        if not self._mixed or random.chance(0.5):
            return model.UNCONSTRAINED
        tolerations = (model.Toleration(key=DEDICATED.key, operator=model.TolerationOperator.EXISTS),)
        zones = model.Expression(key=ZONE, operator=model.Operator.IN, values=("a",))
        named = model.Expression(key="metadata.name", operator=model.Operator.NOT_IN, values=("n00",))
        return random.pick(
            [
                model.Constraints(node_selector=((ZONE, "b"),)),
                model.Constraints(affinity=(model.AffinityTerm(expressions=(zones,)),)),
                model.Constraints(affinity=(model.AffinityTerm(expressions=(self._expression(),), fields=(named,)),)),
                model.Constraints(affinity=(model.AffinityTerm(), model.AffinityTerm(expressions=(zones,)))),
                model.Constraints(tolerations=tolerations),
                model.Constraints(tolerations=(self._toleration(),)),
                model.Constraints(host_ports=random.pick(_PORTS)),
                model.Constraints(node_name=model.NodeName("n00")),
            ]
        )

    def _expression(self) -> model.Expression:
        """Return a requirement on a node's size, by any operator."""
        operator = self._random.pick(tuple(model.Operator))
        values = {model.Operator.EXISTS: (), model.Operator.DOES_NOT_EXIST: ()}.get(operator, ("4000",))
        return model.Expression(key="size", operator=operator, values=values)

    def _toleration(self) -> model.Toleration:
        operator, key = self._random.pick(tuple(model.TolerationOperator)), self._random.pick([DEDICATED.key, "level"])
        effect = self._random.pick([None, model.TaintEffect.NO_EXECUTE])
        return model.Toleration(key=key, operator=operator, value=self._random.pick(["batch", "2"]), effect=effect)

    def _part(
        self,
        job: model.Job,
        name: str,
        stage: model.Stage,
        count: int,
        *,
        size: model.Resources | None = None,
        step: int = 0,
        gang_min: int = 0,
        located: bool = False,
        **fields: object,
    ) -> Part:
        size = size or self._size()
        seconds = self._random.time(2, 30)
        one = model.TaskClass(
            id=model.ClassId(f"{job.id}/{step}/{name}"),
            job=job.id,
            resources=size,
            stage=stage,
            step=step,
            constraints=self._constraints(),
            gang_min=gang_min,
            estimates=self._estimates(stage, size, seconds),
        )
        tasks = tuple(
            model.Task(
                id=model.TaskId(f"ns/{one.id}-{i}"),
                task_class=one.id,
                index=i,
                locations=self._locations() if located else (),
            )
            for i in range(count)
        )
        return Part(
            task_class=one,
            tasks=tasks,
            seconds=seconds,
            counters=self._counters(stage, seconds),
            **fields,  # type: ignore[arg-type]
        )

    def _locations(self) -> tuple[model.NodeName, ...]:
        return tuple(node.name for node in self._random.some(self._nodes, self._random.between(0, 3)))

    def _estimates(self, stage: model.Stage, size: model.Resources, seconds: float) -> model.Estimates:
        if stage not in (model.Stage.MAP, model.Stage.REDUCE) or self._random.chance(0.3):
            return self._random.pick([model.UNKNOWN, model.Fixed(seconds=seconds), model.Fixed(read_bytes=64 << 20)])
        ideal, slower = size.memory_bytes, self._random.pick([1.1, 1.5, 3.0])
        run_time: penalty.RunTime
        if stage is model.Stage.MAP:
            run_time = penalty.Mapper(ideal_s=seconds, ideal_bytes=ideal, undersized_s=seconds * slower)
        else:
            moved = ideal * penalty.BUFFER_SHARE
            run_time = penalty.Reducer(
                ideal_s=seconds, input_bytes=moved, disk_bytes_per_s=moved / (seconds * (slower - 1))
            )
        step = self._random.pick([64 << 20, 256 << 20])
        return penalty.Elastic(run_time, ideal_bytes=ideal, step_bytes=step, least_share=0.1)

    def _counters(self, stage: model.Stage, seconds: float) -> tuple[tuple[str, float], ...]:
        if stage not in (model.Stage.MAP, model.Stage.REDUCE):
            return ()
        share = self._random.factor(0.1, 0.9)
        moved = (1 - share) * seconds * 100e6
        return (
            ("cpu_s", share * seconds),
            ("read_bytes", moved * 0.7),
            ("written_bytes", moved * 0.3),
            ("spilled_bytes", self._random.pick([0.0, moved * 0.1])),
        )

    # Kinds of jobs

    def plain(self, job: model.Job) -> list[Part]:
        """Return one to three classes at once."""
        random, kinds = self._random, (model.Stage.OTHER, model.Stage.MAP, model.Stage.UBER)
        gang = self._theme in ("located", "mixed") and random.chance(0.15)
        return [
            self._part(
                job,
                f"c{i}",
                random.pick(kinds),
                self._count(1, 16),
                size=self._size(gpu=self._mixed),
                gang_min=random.between(2, 3) if gang else 0,
                located=gang,
            )
            for i in range(random.between(1, 3))
        ]

    def map_reduce(self, job: model.Job) -> list[Part]:
        """Map with input in blocks, then reducers; some with a setup and a commit, some in two steps."""
        random, parts = self._random, []
        if random.chance(0.3):
            parts.append(self._part(job, "setup", model.Stage.SETUP, 1, size=amount(100, 0.25)))
        for step in range(1, random.pick([2, 2, 2, 3])):
            before = len(parts) - 1 if parts else None
            located = self._theme in ("located", "mixed") or random.chance(0.3)
            maps = self._count(2, 18)
            parts.append(self._part(job, "map", model.Stage.MAP, maps, step=step, located=located, after=before))
            if random.chance(0.7):
                share = random.pick([0.05, 0.5, 1.0])
                last = len(parts) - 1
                count = self._count(1, 5)
                parts.append(self._part(job, "reduce", model.Stage.REDUCE, count, step=step, after=last, share=share))
        if random.chance(0.2):
            parts.append(self._part(job, "commit", model.Stage.COMMIT, 1, after=len(parts) - 1, step=9))
        return parts

    def spark(self, job: model.Job) -> list[Part]:
        """Return a driver and executors: together as a gang, expected until the driver runs, or one after the other."""
        random, executors = self._random, max(1, self._count(1, 7))
        gpu = int(self._mixed and random.chance(0.15))
        size = amount(random.pick([1000, 2000, 3000]), random.pick([1, 2, 4, 7]), gpu=gpu)
        gang = random.between(1, executors) if random.chance(0.5) else 0
        driver = self._part(job, "driver", model.Stage.DRIVER, 1, size=amount(500, 0.5), gang_min=int(gang > 0))
        expected = random.chance(0.5)
        executor = self._part(
            job,
            "executor",
            model.Stage.EXECUTOR,
            executors,
            size=size,
            gang_min=gang,
            awaits_driver=expected,
            after=None if gang or expected else 0,
            share=0.0,
        )
        more = [self._part(job, "other", model.Stage.EXECUTOR, 2, gang_min=2)] if gang and random.chance(0.2) else []
        return [driver, executor, *more] if not gang or random.chance(0.8) else [executor, driver, *more]

    def pods(self, job: model.Job) -> list[Part]:
        """Pods that exist already, which are bound."""
        part = self._part(job, "pod", model.Stage.OTHER, self._count(1, 8), size=self._size(gpu=True))
        tasks = tuple(dataclasses.replace(task, pod_uid=model.PodUid(f"uid-{task.id}")) for task in part.tasks)
        return [dataclasses.replace(part, tasks=tasks)]
