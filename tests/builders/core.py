"""What the scheduling core works on, and shells in miniature that run its cycles.

What a test does not name does not matter to it: every field has a default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, model, profiles

if TYPE_CHECKING:
    from collections.abc import Iterable

GIB = 1 << 30


def amount(cpu: int = 0, gib: float = 0, disk_gib: float = 0, **extended: int) -> model.Resources:
    """CPUs in millicores, memory and disk in GiB; extended resources by name, `gpu=1`."""
    return model.Resources.of(
        cpu_milli=cpu,
        memory_bytes=int(gib * GIB),
        ephemeral_storage_bytes=int(disk_gib * GIB),
        extended={f"example.com/{name}": count for name, count in extended.items()},
    )


def node(name: str = "n0", allocatable: model.Resources | None = None, **fields) -> model.Node:
    """A node of 4 cores and 8 GiB."""
    return model.Node(name=model.NodeName(name), allocatable=allocatable or amount(4000, 8), **fields)


def nodes(count: int, allocatable: model.Resources | None = None, **fields) -> list[model.Node]:
    """Nodes `n0`, `n1`, ..."""
    return [node(f"n{i}", allocatable, **fields) for i in range(count)]


def queue(name: str = "default", weight: float = 1.0, **limits: int) -> model.Queue:
    """A queue with limits by resource, `cpu=2000`."""
    return model.Queue.of(model.QueueName(name), weight=weight, limits=limits)


def job(name: str = "job", queue: str = "default", submitted_s: float = 0.0, **fields) -> model.Job:
    """A job without classes."""
    return model.Job(id=model.JobId(name), queue=model.QueueName(queue), submitted_s=submitted_s, **fields)


def task_class(of: model.Job, size: model.Resources | None = None, name: str = "map", **fields) -> model.TaskClass:
    """A class of tasks of a core and 1 GiB, with the id `job/map`."""
    return model.TaskClass(id=model.ClassId(f"{of.id}/{name}"), job=of.id, resources=size or amount(1000, 1), **fields)


def task(of: model.TaskClass, index: int = 0, locations: Iterable[str] = (), **fields) -> model.Task:
    """A task with the id `ns/job/map-0`, and its input on the named nodes."""
    where = tuple(map(model.NodeName, locations))
    return model.Task(id=model.TaskId(f"ns/{of.id}-{index}"), task_class=of.id, index=index, locations=where, **fields)


def tasks(of: model.TaskClass, count: int, **fields) -> list[model.Task]:
    """Tasks 0, 1, ... of a class."""
    return [task(of, i, **fields) for i in range(count)]


def account(name: str, on: str | None = "n0", size: model.Resources | None = None, **fields) -> framework.Account:
    """What the ledger keeps of a pod of a core and 1 GiB, which is bound to a node or pending."""
    bound_to = None if on is None else model.NodeName(on)
    return framework.Account(id=model.TaskId(f"ns/{name}"), node=bound_to, resources=size or amount(1000, 1), **fields)


def create(of: model.TaskClass | None = None, on: str = "n0", index: int = 0, **fields) -> model.Create:
    """The placement of a task that has no pod yet."""
    owner = job(of.job if of else "job")
    of = of or task_class(owner)
    plain = {"task": task(of, index), "task_class": of, "job": owner, "resources": of.resources}
    return model.Create(node=model.NodeName(on), **(plain | fields))


def submitted(
    of: model.Job, *classes: model.TaskClass, now_s: float = 0.0, count: int = 1, **fields
) -> model.Submitted:
    """The event of a job with so many tasks of each class."""
    fields = {"tasks": dict.fromkeys([job_class.id for job_class in classes], count)} | fields
    return model.Submitted(now_s=now_s, job=of, classes=classes, **fields)


_FIELDS = {
    model.Placed: {"resources": amount(1000, 1), "distance": model.Distance.ANYWHERE},
    model.Finished: {"duration_s": 10.0, "counters": {}},
    model.Failed: {"reason": "PodLost"},
    model.Progress: {"fraction": 0.0, "phase": "map", "counters": {}},
    model.Suspended: {"until_s": None},
}


def task_event(kind: type, of: model.Task, on: str = "n0", now_s: float = 0.0, **fields) -> model.Event:
    """An event of a task on a node: `task_event(model.Started, task)`."""
    owner = model.JobId(of.task_class.partition("/")[0])
    fields = _FIELDS.get(kind, {}) | fields
    return kind(now_s=now_s, task=of.id, task_class=of.task_class, job=owner, node=model.NodeName(on), **fields)


def placements(plan: framework.Plan) -> list[model.Placement]:
    """The decisions of a plan that place tasks."""
    return [decision for decision in plan.decisions if isinstance(decision, model.Create | model.Bind)]


def where(plan: framework.Plan) -> list[tuple[str, str]]:
    """(task's index in its class' name, node) of each placement: `("job/map-0", "n1")`."""
    return [(placement.task.id.removeprefix("ns/"), placement.node) for placement in placements(plan)]


def task_ids(plan: framework.Plan) -> list[str]:
    """The id of each placed task, in order: `"ns/job/map-0"`."""
    return [placement.task.id for placement in placements(plan)]


def nodes_of(plan: framework.Plan) -> list[str]:
    """The node of each placement, in order."""
    return [placement.node for placement in placements(plan)]


def classes_of(plan: framework.Plan) -> list[str]:
    """The class of each placement, in order: `"job/map"`."""
    return [placement.task_class.id for placement in placements(plan)]


def sizes_of(plan: framework.Plan) -> list[tuple[str, int, float]]:
    """(node, millicores, GiB) of each placement."""
    return [
        (placement.node, placement.resources.cpu_milli, placement.resources.memory_bytes / GIB)
        for placement in placements(plan)
    ]


def layout(nodes: Iterable[model.Node]) -> framework.Layout:
    """The columns of some nodes."""
    return Shell(nodes).view().layout


_OF_JOB = ("queue", "submitted_s", "namespace", "priority", "priority_class", "weight", "kind")


class Shell:
    """A shell in miniature: a ledger, a scheduling queue and a clock that stands still until a test advances it."""

    def __init__(
        self,
        nodes: Iterable[model.Node] = (),
        queues: list[model.Queue] | None = None,
        profile: framework.Profile | str = "fair",
    ) -> None:
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        for cluster_node in nodes:
            self.ledger.set_node(cluster_node)
        self.queue = framework.SchedulingQueue(self.axis, queues or [queue()])
        self.profile = profiles.build(profile) if isinstance(profile, str) else profile
        self.now_s = 0.0

    def submit(
        self,
        name: str = "job",
        count: int = 1,
        size: model.Resources | None = None,
        locations: Iterable[str] = (),
        **fields,
    ) -> model.TaskClass:
        """Submit a job of one class, whose name is `class_name`; `fields` beyond those of the job go to the class."""
        of_job = {key: fields.pop(key) for key in _OF_JOB if key in fields}
        owner = job(name, **of_job)
        only = task_class(owner, size, fields.pop("class_name", "map"), **fields)
        self.submit_job(owner, [only], tasks(only, count, locations=locations))
        return only

    def submit_job(self, of: model.Job, classes: list[model.TaskClass], pending: list[model.Task]) -> None:
        """Submit a job with these tasks; those that the ledger has are placed."""
        self.queue.submit(of, classes, pending, placed=self.ledger)

    def view(self, **options) -> framework.ClusterView:
        return self.ledger.snapshot(self.now_s, **options)

    def plan(self, **options) -> framework.Plan:
        """What a cycle would decide now."""
        return framework.run_cycle(self.queue, self.profile, self.view(**options))

    def advance(self, now_s: float) -> bool:
        """Set the clock; whether a cycle is due."""
        self.now_s = now_s
        return self.queue.tick(now_s)

    def cycle(self, now_s: float | None = None, **options) -> framework.Plan:
        """Run a cycle, at a time if one is given, and assume what it placed."""
        if now_s is not None:
            self.advance(now_s)
        plan = self.plan(**options)
        for placement in placements(plan):
            self.ledger.assume(placement)
        self.queue.apply(plan, self.now_s)
        return plan

    def end(self, task_id: str) -> None:
        """Remove a pod that ended."""
        self.free(self.ledger.gone(model.TaskId(task_id)))

    def free(self, freed: framework.Freed | None) -> None:
        """Wake the classes that fit what came free."""
        if freed is not None:
            self.queue.capacity_freed(freed, self.ledger.free(freed.node))


class ReportingShell(Shell):
    """A shell that reports what happens to the profile's observers. Whatever it places starts at once."""

    def report(self, *events: model.Event) -> None:
        """Send events to all observers."""
        for event in events:
            for observer in self.profile.observers:
                observer.observe(event)

    def report_task(self, kind: type, of: model.Task, on: str = "n0", **fields) -> None:
        """Send an event of a task that happens now."""
        self.report(task_event(kind, of, on, **({"now_s": self.now_s} | fields)))

    def observer(self, kind: type):
        """The profile's observer of a kind."""
        return next(observer for observer in self.profile.observers if isinstance(observer, kind))

    def submit_job(self, of: model.Job, classes: list[model.TaskClass], pending: list[model.Task]) -> None:
        counts = {job_class.id: sum(task.task_class == job_class.id for task in pending) for job_class in classes}
        self.report(submitted(of, *classes, now_s=self.now_s, tasks=counts))
        super().submit_job(of, classes, pending)

    def cycle(self, now_s: float | None = None, **options) -> framework.Plan:
        plan = super().cycle(now_s, **options)
        for placed in placements(plan):
            size = {"resources": placed.resources, "distance": placed.distance}
            self.report_task(model.Placed, placed.task, placed.node, **size)
            self.report_task(model.Started, placed.task, placed.node)
        return plan

    def finish(self, placed: model.Placement, seconds: float = 10.0, **counters: float) -> None:
        """Report that a task succeeded, and remove its pod."""
        self.report_task(model.Finished, placed.task, placed.node, duration_s=seconds, counters=counters)
        self.end(placed.task.id)
