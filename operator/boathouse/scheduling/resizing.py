"""Resize one running task: CPU in both directions, memory upwards only, since a container may use what it has.

Where that is not possible is learned from answers, and forgotten when it may have changed.
"""

import msgspec

from boathouse import fair
from boathouse.cluster import wire
from boathouse.resources import names, quantity
from boathouse.scheduling import jobs, outcomes
from boathouse.scheduling.pods import facts, rows
from boathouse.scheduling.pods import requests as pods_requests
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.suspension import stages
from boathouse.suspension.stages import Reason, Stage
from boathouse_policies import model

LEAST_LIMIT_MILLI = 1000
"""CPU limit of a task whose owner does not submit it any more, so that only its class is known, if it requests less."""


def size_of(row: rows.PodRow, entry: jobs.Entry) -> stages.CpuSize | None:
    """Return the CPU of a task's container by its class; None if its job does not list that any more."""
    if row.task is not None and row.is_submitted:
        task_class = entry.class_of(row.task.task_class)
    else:  # its owner does not submit it any more
        stage = None if row.facts is None else row.facts.metadata.labels.get(names.LABEL_TASK_TYPE)
        task_class = next((candidate for candidate in entry.classes if candidate.stage == stage), None)
    if entry.factory is None or task_class is None:
        return None
    if not row.is_submitted:
        request_milli = task_class.resources.cpu_milli
        return stages.CpuSize(request_milli, max(request_milli + 1, LEAST_LIMIT_MILLI))  # it stays Burstable
    manifest = entry.factory.build(row.id, entry.of_manifest(task_class.id, task_class.resources), None)
    return pods_requests.cpu_size(pods_requests.task_container(msgspec.convert(manifest, wire.PodView)))


def _requirements(pod: facts.PodFacts, size: model.Resources) -> dict[str, wire.Quantities]:
    """Return what the container of a task gets of a size of its pod. Limits are only raised."""
    cpu_milli = pod.cpu_request_milli + size.cpu_milli - pod.resources.cpu_milli
    requests = {"cpu": quantity.format_milli(cpu_milli)}
    limits = {"cpu": quantity.format_milli(max(pod.cpu_limit_milli, cpu_milli + 1))} if pod.cpu_limit_milli else {}
    if size.memory_bytes > pod.resources.memory_bytes:
        requests["memory"] = memory = quantity.format_bytes(size.memory_bytes)
        if pod.memory_limit and pods_requests.size_bytes(pod.memory_limit) < size.memory_bytes:
            limits["memory"] = memory
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


class Resizing(Part):
    """Carries resizes of running tasks out, and remembers the nodes and namespaces that refused one."""

    def __init__(self, state: ClusterState, places: fair.Places) -> None:
        super().__init__(state)
        self._places = places
        self._unable: dict[model.NodeName, model.Node | None] = {}
        self._refused_until_s: dict[str, float] = {}

    def suspension_problem(self, row: rows.PodRow) -> Reason | None:
        """Return why a running task cannot be suspended where it is now; None if it can be."""
        if refusal := self.node_problem(row):
            return refusal
        if self._refused_until_s.get(row.namespace, 0.0) > self._clock():
            return Reason.LIMIT_RANGE
        self._refused_until_s.pop(row.namespace, None)
        return Reason.QUOTA if self._quotas.counts(row.namespace, "limits.cpu") else None

    def node_problem(self, row: rows.PodRow) -> Reason | None:
        """Return why a node cannot resize a running task now; None if it can."""
        if (pod := row.facts) is None or not pod.can_resize:
            return Reason.NOT_YET
        node = model.NodeName(pod.node_name)
        if node in self._unable and self._unable[node] == self._pods.nodes.get(node):
            return Reason.INFEASIBLE
        self._unable.pop(node, None)
        return None

    def never(self, node: model.NodeName) -> None:
        """Note that a node can resize no running pod, until the node changes."""
        self._unable[node] = self._pods.nodes.get(node)

    def refused(self, namespace: str) -> None:
        """Note that the API server refused to shrink a task of a namespace."""
        self._refused_until_s[namespace] = self._clock() + stages.LIMIT_RANGE_S

    def problem(self, row: rows.PodRow, size: model.Resources) -> str:
        """Return why a running task cannot have a size; empty if it can."""
        if (pod := row.facts) is None or row.state is not PodState.CONFIRMED or pod.stage is not Stage.NONE:
            return "NotRunning"
        if pod.task_of is None:
            return "NotSupported"
        if size.memory_bytes < pod.resources.memory_bytes:
            return "MemoryOfRunningTask"
        if (free := self._ledger.free(model.NodeName(pod.node_name))) is None:
            return "NoRoom"
        axis = self._state.axis
        more = [wanted - held for wanted, held in zip(axis.amounts(size), axis.amounts(pod.resources), strict=False)]
        if any(left < amount for left, amount in zip(free, more, strict=False) if amount > 0):
            return "NoRoom"
        return self._queue.kept_room.refusal(model.NodeName(pod.node_name), free, more)

    async def run(self, row: rows.PodRow, size: model.Resources) -> outcomes.Outcome:
        """Resize a task; the ledger counts the larger size until a watch shows the new one."""
        if row.facts is None:
            return outcomes.Vanished()
        wanted = _requirements(row.facts, size)
        self._pods.assume_resize(row, size)
        async with self._places.take(row.namespace):
            outcome = await self._writer.resize_running(row, wanted, "scheduler.resize")
        if not isinstance(outcome, outcomes.Done) and (freed := self._pods.forget_resize(row)) is not None:
            self._room_freed(freed)
        return outcome
