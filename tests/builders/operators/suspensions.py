"""Running tasks on a desk that policies and users suspend, resume and resize."""

import datetime as dt
from typing import Any

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.suspension import stages as suspension_record
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators import desks

TASK, OTHER = "demo/t", "demo/u"
SINCE_S, UNTIL_S = 1000.0, 1060.0
WHOLE, CONTINUED, SHRUNK = ("1", "2"), ("1m", "2"), ("1m", "10m")
"""CPU request and limit of a task: before a suspension, when it continues, and while it is suspended."""


def record(**fields: Any) -> suspension_record.SuspensionRecord:
    """Return the record of a suspended task that had a core."""
    given = {
        "cpu_request_milli": 1000,
        "cpu_limit_milli": 2000,
        "since_s": SINCE_S,
        "until_s": UNTIL_S,
        "reason": "WaitingForMaps",
        "by": "fair",
        "order": "1-1",
    }
    return suspension_record.SuspensionRecord(**given | fields)


class Control:
    """Takes orders for tasks; `desk` answers them."""

    def __init__(self, desk: desks.Desk) -> None:
        self._desk = desk
        self.orders: list[tuple[str, float]] = []
        self.second: model.TaskId | None = None
        self.avoided: tuple[model.NodeName, ...] = ()

    async def suspend(self, task, order) -> str:
        self.orders.append((order.id, order.for_s))
        return await self._desk._request("suspend", task)

    def speculate(self, _task, avoids) -> model.TaskId | None:
        self.avoided = avoids
        return self.second


class Factory(desks.Factory):
    """Builds the pods of tasks that take orders."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def build(self, task, resources, node, _expected=None) -> dict[str, Any]:
        manifest = super().build(task, resources, node)
        cpu = f"{resources.cpu_milli}m"
        sizes = {"requests": {"cpu": cpu}, "limits": {"cpu": f"{2 * resources.cpu_milli}m"}}
        return manifest | {"spec": {"containers": [{"name": names.CONTAINER, "resources": sizes}]}}


class TaskDesk(desks.Desk):
    """A desk with a node of two cores and a little, on which tasks run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.now_s = SINCE_S
        self.control = Control(self)
        self.revision = 0
        self.node("n1", allocatable={"cpu": "2010m", "memory": "8Gi", "pods": "110"})

    def submit_tasks(self, *tasks: str, suspend_until_s: float | None = None) -> None:
        """Submit tasks of a core to the job `j`."""
        job = model.Job(id=model.JobId("j"), queue=desks.QUEUE, submitted_s=0)
        size = model.Resources(cpu_milli=1000, memory_bytes=1 << 30)
        task_class = model.TaskClass(id=model.ClassId("j/reduce"), job=job.id, resources=size, stage=model.Stage.REDUCE)
        todo = [model.Task(id=model.TaskId(task), task_class=task_class.id) for task in tasks or (TASK,)]
        self.scheduler.submit(job, [task_class], todo, Factory(self.control), suspend_until_s)

    def task(
        self,
        size: tuple[str, str] = WHOLE,
        task: str = TASK,
        *,
        actual: str | None = "",
        record: suspension_record.SuspensionRecord | None = None,
        resize: str = "",
        memory: str = "1Gi",
        is_deleted: bool = False,
        **fields: Any,
    ) -> wire.PodView:
        """Return the next version of a task's pod.

        Args:
            size: CPU request and limit of its container.
            task: The task.
            actual: The CPU request that its node gives it; empty for the same, None for a kubelet that does not say.
            record: The record of its suspension.
            resize: The problem that its node has with a resize.
            memory: Memory request of its container.
            is_deleted: Whether its deletion has begun.
            fields: Further keywords of `desks.task_pod`.
        """
        self.revision += 1
        request, limit = size
        given = None if actual is None else {"cpu": actual or request, "memory": memory}
        return desks.task_pod(
            task,
            revision=self.revision,
            containers=(manifests.container(cpu=request, memory=memory, limits={"cpu": limit} if limit else {}),),
            statuses=(manifests.container_status(actuated=given, allocated=given, is_running=True),),
            conditions=(wire.Condition(type="PodResizePending", status="True", reason=resize),) if resize else (),
            meta={
                "annotations": {} if record is None else {names.ANNOTATION_SUSPENSION: record.text()},
                "labels": {names.LABEL_JOB_UID: "j", names.LABEL_TASK_TYPE: "reduce"},
                "deletion_timestamp": dt.datetime(2026, 1, 1, tzinfo=dt.UTC) if is_deleted else None,
            },
            **{"node": "n1", "phase": "Running"} | fields,
        )

    def show_task(self, *args: Any, **fields: Any) -> wire.PodView:
        """Show the next version of a task's pod, with the arguments of `task`."""
        pod = self.task(*args, **fields)
        self.show(pod)
        return pod

    def take(self, kind: type, task: str = TASK, *, cpu_milli: int = 1, memory: int = 1 << 30, **more: Any) -> None:
        """Carry a decision out."""
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=memory)
        of = model.Task(id=model.TaskId(task), task_class=model.ClassId("j/reduce"))
        self.scheduler.adjuster.take(kind(task=of, node=model.NodeName("n1"), resources=size, reason="a test", **more))

    def suspend(self, task: str = TASK, *, until_s: float | None = UNTIL_S) -> None:
        """Decide to suspend a task."""
        self.take(model.Suspend, task, until_s=until_s)

    @property
    def refusals(self) -> list[str]:
        """The reasons of decisions that were refused."""
        return [event.reason for event in self.observer.refused]

    def charged(self, task: str = TASK) -> int:
        """Return the CPU that the ledger charges for a task."""
        return self.scheduler.state.ledger._entries[model.TaskId(task)].size.cpu_milli

    def suspensions(self, result: str, reason: str) -> float:
        """Return the counter of suspensions."""
        return self.metric("boathouse_suspensions_total", result=result, reason=reason)
