"""Builders: what a test does not name does not matter to it."""

from __future__ import annotations

from boathouse_policies import framework, model, profiles

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
    return model.Node(name=model.NodeName(name), allocatable=allocatable or amount(4000, 8), **fields)


def nodes(count: int, allocatable: model.Resources | None = None, **fields) -> list[model.Node]:
    return [node(f"n{i}", allocatable, **fields) for i in range(count)]


def job(name: str = "job", queue: str = "default", submitted_s: float = 0.0, **fields) -> model.Job:
    return model.Job(id=model.JobId(name), queue=model.QueueName(queue), submitted_s=submitted_s, **fields)


def task_class(of: model.Job, size: model.Resources | None = None, name: str = "map", **fields) -> model.TaskClass:
    return model.TaskClass(id=model.ClassId(f"{of.id}/{name}"), job=of.id, resources=size or amount(1000, 1), **fields)


def task(of: model.TaskClass, index: int = 0, **fields) -> model.Task:
    return model.Task(id=model.TaskId(f"ns/{of.id}-{index}"), task_class=of.id, index=index, **fields)


def tasks(of: model.TaskClass, count: int, **fields) -> list[model.Task]:
    return [task(of, i, **fields) for i in range(count)]


def pod(name: str, on: str | None = "n0", size: model.Resources | None = None, **fields) -> framework.Account:
    where = None if on is None else model.NodeName(on)
    return framework.Account(id=model.TaskId(f"ns/{name}"), node=where, resources=size or amount(1000, 1), **fields)


_OF_JOB = ("queue", "submitted_s", "namespace", "priority", "priority_class", "weight")


class World:
    """A shell in miniature: a ledger, a scheduling queue and a clock that stands still until told."""

    def __init__(
        self,
        nodes: list[model.Node] | None = None,
        queues: list[model.Queue] | None = None,
        profile: framework.Profile | None = None,
    ) -> None:
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        for one in nodes or []:
            self.ledger.set_node(one)
        self.room = framework.SchedulingQueue(self.axis, queues or [model.Queue.of(model.QueueName("default"))])
        self.profile = profile or profiles.build("fair")
        self.now_s = 0.0

    def submit(
        self,
        name: str = "job",
        count: int = 1,
        size: model.Resources | None = None,
        locations: tuple[str, ...] = (),
        **fields,
    ) -> model.TaskClass:
        """A job of one class; `fields` beyond those of the job go to the class."""
        of_job = {key: fields.pop(key) for key in _OF_JOB if key in fields}
        owner = job(name, **of_job)
        one = task_class(owner, size, **fields)
        where = tuple(model.NodeName(location) for location in locations)
        self.room.submit(owner, [one], tasks(one, count, locations=where), placed=self.ledger)
        return one

    def view(self, **options) -> framework.ClusterView:
        return self.ledger.snapshot(self.now_s, **options)

    def plan(self, **options) -> framework.Plan:
        """What a cycle would decide now."""
        return framework.run_cycle(self.room, self.profile, self.view(**options))

    def cycle(self, **options) -> framework.Plan:
        """Run a cycle and assume what it placed."""
        plan = self.plan(**options)
        for decision in placements(plan):
            self.ledger.assume(decision)
        self.room.apply(plan, self.now_s)
        return plan

    def end(self, task_id: str) -> None:
        """A pod ends."""
        freed = self.ledger.gone(model.TaskId(task_id))
        if freed is not None:
            self.room.capacity_freed(freed, self.ledger.free(freed.node))


def placements(plan: framework.Plan) -> list[model.Placement]:
    return [one for one in plan.decisions if isinstance(one, model.Create | model.Bind)]


def where(plan: framework.Plan) -> list[tuple[str, str]]:
    """(task's index in its class' name, node) of each placement: `("job/map-0", "n1")`."""
    return [(one.task.id.removeprefix("ns/"), one.node) for one in placements(plan)]
