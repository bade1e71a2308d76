"""A pod table over a ledger of two nodes, with short names for what tests do to it, and the table's invariants."""

from typing import Any

from boathouse.resources import names
from boathouse.scheduling.pods import facts, ownership, rows, table
from boathouse.scheduling.pods.states import ASSUMED, WITH_OPERATION, PodState, after
from boathouse.scheduling.volumes import book, rules
from boathouse.suspension import stages as suspension_record
from boathouse_policies import framework, model
from tests.builders import manifests

JOB = model.Job(id=model.JobId("job"), queue=model.QueueName("default"), submitted_s=0.0)
SIZE = model.Resources(cpu_milli=1000, memory_bytes=1 << 30)
CLASS = model.TaskClass(id=model.ClassId("job/map"), job=JOB.id, resources=SIZE)
NODES = tuple(
    model.Node(name=model.NodeName(name), allocatable=model.Resources(cpu_milli=64000, memory_bytes=1 << 40))
    for name in ("n0", "n1")
)


def task_id(number: int) -> model.TaskId:
    return model.TaskId(f"demo/p{number}")


def record_of(request_milli: int, limit_milli: int) -> suspension_record.SuspensionRecord:
    """Return the record of a suspended task that had this CPU."""
    return suspension_record.SuspensionRecord(
        cpu_request_milli=request_milli,
        cpu_limit_milli=limit_milli,
        since_s=1000.0,
        until_s=1030.0,
        reason="WaitingForMaps",
        by="policy",
        order="1-1",
    )


def shown(
    number: int = 0,
    node: str = "",
    *,
    uid: str = "uid-0",
    revision: int = 10,
    is_task: bool = True,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> facts.PodFacts:
    """Return a version of a pod, of a task of the job unless it is said to be somebody else's."""
    meta: dict[str, Any] = {"uid": uid, "revision": revision, "annotations": annotations or {}}
    build = manifests.task_pod_view if is_task else manifests.pod_view
    more = {"job": "job"} if is_task else {}
    return manifests.TRANSFORM_POD(build(f"p{number}", meta=meta, node=node, **more, **spec))


class PodWorld:
    """A pod table over a ledger of two nodes."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.ledger = framework.Ledger(model.Axis())
        self.table = table.PodTable(
            self.ledger,
            book.VolumeBook(rules.Storage()),
            lambda: self.now_s,
            scheduler_name=names.SCHEDULER_NAME,
            queue_of=ownership.default_queue,
        )
        for node in NODES:
            self.table.set_node(node)

    def submit(self, *numbers: int) -> list[model.TaskId]:
        return self.table.submit(JOB.id, [model.Task(id=task_id(number), task_class=CLASS.id) for number in numbers])

    def decide(self, number: int = 0, node: str = "n0") -> rows.Operation | None:
        """Place a pod as it is now; None if that is not possible."""
        row = self.table.get(task_id(number))
        if row is None:
            return None
        task = model.Task(id=row.id, task_class=CLASS.id, pod_uid=row.pending_uid)
        kind = model.Create if row.pending_uid is None else model.Bind
        found = self.table.decide(
            row, kind(task=task, task_class=CLASS, job=JOB, node=model.NodeName(node), resources=SIZE)
        )
        return found if isinstance(found, rows.Operation) else None

    def placement(self, number: int = 0, node: str = "n0") -> model.Create:
        task = model.Task(id=task_id(number), task_class=CLASS.id)
        return model.Create(task=task, task_class=CLASS, job=JOB, node=model.NodeName(node), resources=SIZE)

    def free_milli(self, node: str = "n0") -> int:
        free = self.ledger.free(model.NodeName(node))
        assert free is not None
        return free[model.CPU]

    def decide_ahead(self, number: int = 0) -> rows.Operation | None:
        return self.table.decide_ahead(model.Task(id=task_id(number), task_class=CLASS.id), CLASS)

    def row(self, number: int = 0) -> rows.PodRow:
        row = self.table.get(task_id(number))
        assert row is not None
        return row

    def state(self, number: int = 0) -> str | None:
        row = self.table.get(task_id(number))
        return None if row is None or row.state is None else row.state.value

    def counted(self, number: int = 0) -> framework.State | None:
        return self.ledger.state(task_id(number))

    def check(self) -> None:
        """Check the invariants of the table and of the ledger."""
        known = self.table._rows
        for row in known.values():
            _check_row(row, self.ledger.account(row.id), self.ledger.state(row.id))
        assert sum(row.id in self.ledger for row in known.values()) == len(self.ledger)
        uids = [row.uid for row in known.values() if row.uid is not None]
        assert len(uids) == len(set(uids))
        for state, listed in self.table._by_state.items():
            assert listed == {row.id: row for row in known.values() if row.state is state}
        for index, has_ended in ((self.table._by_job, False), (self.table._ended, True)):
            listed = {row.id: (job, row) for job, of_job in index.items() for row in of_job.values()}
            assert listed == {
                row.id: (row.job, row) for row in known.values() if row.task is not None and row.has_ended is has_ended
            }
        displaced = {(job, task) for job, tasks in self.table._displaced.items() for task in tasks}
        assert displaced == {(row.successor[0], row.id) for row in known.values() if row.successor is not None}


def _check_row(row: rows.PodRow, account: framework.Account | None, counted: framework.State | None) -> None:
    is_ahead = row.operation is not None and row.operation.placement is None
    assert (row.state in ASSUMED and not is_ahead) == (counted is framework.State.ASSUMED), row
    assert row.is_on_node == (counted is framework.State.CONFIRMED), row
    assert (row.operation is not None) == (row.state in WITH_OPERATION), row
    assert row.task is not None or row.state not in {PodState.PLANNED, PodState.GONE}, row
    assert not row.is_submitted or row.has_ended or row.facts is None or row.facts.task_of == row.job, row
    if row.is_on_node:
        assert account is not None
        assert row.facts is not None
        assert row.state is after(None, row.facts.trigger)[0]
        assert (account.node, account.uid) == (row.facts.node_name, row.uid)
