"""Act on running tasks: suspend, resume and resize them, or start a second attempt, as policies decide.

A running task gets CPU in both directions, and memory upwards only, since a container may use what it has. Where a
resize is not possible is learned from answers, and forgotten when it may have changed.

It is the scheduler's fourth part. What is decided of the size of clusters is passed on. Decisions are repeated in each
cycle until the policy learns what came of them, so each is idempotent: one that is in flight, or done, is taken
silently.
"""

import dataclasses
import math
from collections.abc import Callable, Coroutine
from typing import Any

from boathouse import fair
from boathouse.cluster import wire
from boathouse.resources import quantity
from boathouse.scheduling import jobs, outcomes
from boathouse.scheduling.pods import facts, requests, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part, WorkingPart
from boathouse.suspension import stages, suspending
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_task import contract

log = logs.get(__name__)

MOST_SUSPENDING = 64  # suspensions in flight: further ones are refused, and decided again
MOST_OF_NAMESPACE = 16  # those of one namespace: a task that never acknowledges takes a place for several seconds
NO_CLUSTER = "NoCluster"
_WRITES = 16


class Resizing(Part):
    """Carries resizes of running tasks out, and remembers the nodes and namespaces that refused one."""

    def __init__(self, state: ClusterState, places: fair.Places) -> None:
        super().__init__(state)
        self._places = places
        self._unable: dict[model.NodeName, model.Node | None] = {}
        self._refused_until_s: dict[str, float] = {}

    def suspension_problem(self, row: rows.PodRow) -> stages.Reason | None:
        """Return why a running task cannot be suspended where it is now; None if it can be."""
        if refusal := self.node_problem(row):
            return refusal
        if self._refused_until_s.get(row.namespace, 0.0) > self._clock():
            return stages.Reason.LIMIT_RANGE
        self._refused_until_s.pop(row.namespace, None)
        return stages.Reason.QUOTA if self._quotas.counts(row.namespace, "limits.cpu") else None

    def node_problem(self, row: rows.PodRow) -> stages.Reason | None:
        """Return why a node cannot resize a running task now; None if it can."""
        if (pod := row.facts) is None or not pod.can_resize:
            return stages.Reason.NOT_YET
        node = model.NodeName(pod.node_name)
        if node in self._unable and self._unable[node] == self._pods.nodes.get(node):
            return stages.Reason.INFEASIBLE
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
        if (pod := row.facts) is None or row.state is not PodState.CONFIRMED or pod.stage is not stages.Stage.NONE:
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


def _requirements(pod: facts.PodFacts, size: model.Resources) -> dict[str, wire.Quantities]:
    """Return what the container of a task gets of a size of its pod. Limits are only raised."""
    cpu_milli = pod.cpu_request_milli + size.cpu_milli - pod.resources.cpu_milli
    wanted = {"cpu": quantity.format_milli(cpu_milli)}
    limits = {"cpu": quantity.format_milli(max(pod.cpu_limit_milli, cpu_milli + 1))} if pod.cpu_limit_milli else {}
    if size.memory_bytes > pod.resources.memory_bytes:
        wanted["memory"] = memory = quantity.format_bytes(size.memory_bytes)
        if pod.memory_limit and requests.size_bytes(pod.memory_limit) < size.memory_bytes:
            limits["memory"] = memory
    return {"requests": wanted, "limits": limits} if limits else {"requests": wanted}


class Adjuster(WorkingPart):
    """Carries out what is decided of running tasks."""

    def __init__(self, state: ClusterState, *, finished: Callable[[rows.PodRow, outcomes.Outcome], None]) -> None:
        super().__init__(state)
        self._finished = finished
        # takes a decision about the size of a cluster, or returns why not; set by the kind of clusters
        self.scaler: Callable[[model.Scale], str] = lambda _: NO_CLUSTER
        self._places = fair.Places(_WRITES)
        self._reconciler = suspending.SuspensionReconciler(state)
        self._by_hand = suspending.ByHand(state)
        self._suspending = suspending.Suspending(state, self._places)
        self._resizing = Resizing(state, self._places)
        self._in_flight: set[model.TaskId] = set()

    def next_s(self) -> float:
        """Return when `keep` is due without an event; infinity for never."""
        return min(self._reconciler.next_s(), self._by_hand.next_s())

    def take(self, decision: model.Decision) -> None:
        """Begin what was decided; a refusal is reported to the policies."""
        refusal: str | None
        match decision:
            case model.Suspend():
                refusal = self._suspend(decision)
            case model.Resume():
                refusal = self._resume(decision)
            case model.Resize():
                refusal = self._resize(decision)
            case model.Speculate():
                refusal = self._speculate(decision)
            case model.Scale():
                refusal = self.scaler(decision) if self._options.switches.scale else "SwitchedOff"
            case _:
                refusal = "NotSupported"
        if refusal:
            self._state.report_refused(decision, refusal)

    def reconcile_suspensions(self) -> None:
        """Begin the writes that suspensions need now."""
        for row, action in self._reconciler.due(self._in_flight) if self._group is not None else ():
            is_lost = action is suspending.Action.RECORD
            self._begin(row, self._restore_record(row) if is_lost else self._reconcile(row, action))
        for row, until_s in self._by_hand.wanted() if self._group is not None else ():
            refusal = self._order(row, stages.Order(until_s=until_s, reason=stages.Reason.BY_HAND, by=stages.USER))
            if refusal not in {None, stages.Reason.IN_FLIGHT}:
                self._by_hand.refused(row, until_s, refusal)

    def _suspend(self, decision: model.Suspend) -> stages.Reason | None:
        if (row := self._pods.get(decision.task.id)) is None or row.facts is None:
            return stages.Reason.NOT_RUNNING
        if row.suspension is not None and row.suspension.has_begun:
            return None  # the policy learns of it when its pod is shown
        latest_s = self._clock() + contract.MOST_SUSPENDED_S  # then the task continues by itself: no record says more
        order = stages.Order(
            until_s=latest_s if decision.until_s is None else min(decision.until_s, latest_s),
            reason=stages.Reason.WAITING_FOR_MAPS,
            by=self._state.profile.name,
            decision=decision,
        )
        return self._order(row, order)

    def _order(self, row: rows.PodRow, order: stages.Order) -> stages.Reason | None:
        """Begin to suspend a task; return why it cannot be, or None."""
        control = self._control(row)
        refusal = stages.Reason.NOT_SUPPORTED if control is None else self._suspension_problem(row)
        if not self._options.switches.suspend:
            refusal = stages.Reason.SWITCHED_OFF
        if refusal is not None or control is None:
            self._counters.suspension("refused", refusal or stages.Reason.NOT_SUPPORTED)
            return refusal
        self._begin(row, self._run_suspension(row, self._pods.suspend(row, order), order, control))
        return None

    def _control(self, row: rows.PodRow) -> jobs.TaskControl | None:
        entry = self._jobs.owner_of(row)
        return None if entry is None or entry.factory is None else entry.factory.control

    def _suspension_problem(self, row: rows.PodRow) -> stages.Reason | None:
        if row.id in self._in_flight:
            return stages.Reason.IN_FLIGHT
        ordered = [other.namespace for other in self._pods.suspensions() if other.suspension and other.suspension.order]
        is_full = len(ordered) >= MOST_SUSPENDING or ordered.count(row.namespace) >= MOST_OF_NAMESPACE
        if self._group is None or is_full:
            return stages.Reason.TOO_MANY
        return suspending.problem(row.facts, row.state) or self._resizing.suspension_problem(row)

    async def _run_suspension(
        self, row: rows.PodRow, suspension: stages.Suspension, order: stages.Order, control: jobs.TaskControl
    ) -> None:
        try:
            outcome = await self._suspending.run(row, suspension, control)
            self._finished(row, outcome)
        finally:
            self._pods.carried_out(row)
        refusal = _refusal(outcome)
        if isinstance(outcome, outcomes.NotDone) and outcome.reason in {"PodRefused", "QuotaExceeded"}:
            refusal = stages.Reason.LIMIT_RANGE
            self._resizing.refused(row.namespace)
        reason = stages.Reason.of(refusal) if refusal else None
        self._counters.suspension("refused" if reason else "suspended", reason or order.reason)
        if refusal and order.decision is not None:
            self._state.report_refused(order.decision, refusal)
        elif reason is not None:
            self._by_hand.refused(row, order.until_s, reason)

    def _resume(self, decision: model.Resume) -> stages.Reason | None:
        if (row := self._pods.get(decision.task.id)) is None or row.facts is None:
            return stages.Reason.NOT_RUNNING
        if row.suspension is not None and row.suspension.has_begun and not _is_by_hand(row):
            row.suspension.ends = stages.Reason.ADVISED
            self.reconcile_suspensions()
        return None

    async def _reconcile(self, row: rows.PodRow, action: suspending.Action) -> None:
        """Write what a suspension needs. From now on the ledger charges the original size, until the pod has it."""
        if (pod := row.facts) is None or pod.suspension is None:
            return
        original = pod.suspension.size
        if pod.resize_problem == requests.INFEASIBLE:
            self._resizing.never(model.NodeName(pod.node_name))
        self._pods.charge_at_least(row, pod.resources.most(model.Resources(cpu_milli=original.request_milli)))
        is_whole = action is suspending.Action.GROW
        size = original if is_whole else dataclasses.replace(stages.SUSPENDED_SIZE, limit_milli=original.limit_milli)
        step, reason = "continue" if action is suspending.Action.CONTINUE else "grow", self._reconciler.reason(row)
        async with self._places.take(row.namespace):
            with self._counters.suspension_s[step,].time():
                outcome = await self._writer.resize_cpu(row, size, f"scheduler.{step}")
        if isinstance(outcome, outcomes.NotDone):
            log.warning("a suspended task could not be given its CPU", pod=row.id, error=outcome.message)
            if self._reconciler.refused(row) == 1:
                self._conditions.warn(row, "ResumeRefused", outcome.message)
        elif reason:
            self._counters.suspension("resumed", reason)
        self._finished(row, outcome)

    async def _restore_record(self, row: rows.PodRow) -> None:
        """Write the record of a task whose record was removed, with the CPU that it had; the task is resumed then."""
        pod, suspension, now_s = row.facts, row.suspension, round(self._clock(), 3)
        if pod is None or suspension is None:
            return
        size = self._reconciler.original(row)
        if size is None or size == stages.SUSPENDED_SIZE:  # it asked for the CPU of a suspended task
            suspension.retry_s = math.inf
            return
        lost = stages.SuspensionRecord(
            cpu_request_milli=size.request_milli,
            cpu_limit_milli=size.limit_milli,
            since_s=now_s,
            until_s=now_s,
            reason=stages.Reason.RECORD_LOST,
            by="operator",
            order="",
        )
        async with self._places.take(row.namespace):
            outcome = await self._writer.record(row, pod.metadata.resource_version, lost)
        if not isinstance(outcome, outcomes.Done):
            self._reconciler.refused(row)
        self._finished(row, outcome)

    def _resize(self, decision: model.Resize) -> str:
        if (row := self._pods.get(decision.task.id)) is None or row.facts is None:
            return "NotRunning"
        if not self._options.switches.resize:
            return "SwitchedOff"
        if row.id in self._in_flight or self._group is None or row.facts.resources == decision.resources:
            return ""
        refusal = self._resizing.node_problem(row) or self._resizing.problem(row, decision.resources)
        if not refusal:
            self._begin(row, self._run_resize(row, decision))
        return refusal

    async def _run_resize(self, row: rows.PodRow, decision: model.Resize) -> None:
        outcome = await self._resizing.run(row, decision.resources)
        self._finished(row, outcome)
        if refusal := _refusal(outcome):
            self._state.report_refused(decision, refusal)

    def _speculate(self, decision: model.Speculate) -> str:
        row = self._pods.get(decision.task.id)
        control = None if row is None else self._control(row)
        if not self._options.switches.speculate:
            return "SwitchedOff"
        if control is None:
            return "NotSupported"
        refusal = "" if control.speculate(decision.task.id, decision.avoids) is not None else "NoSecond"
        self._counters.speculation("refused" if refusal else "started")
        return refusal

    def _begin(self, row: rows.PodRow, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None
        self._in_flight.add(row.id)
        self._group.create_task(self._guarded(row, work))

    async def _guarded(self, row: rows.PodRow, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # one task must not keep the others from being adjusted
            log.exception("a running task could not be adjusted", pod=row.id)
            self._reconciler.refused(row)
        finally:
            self._in_flight.discard(row.id)


def _is_by_hand(row: rows.PodRow) -> bool:
    """Return whether the job's author suspended a task: then no policy resumes it."""
    if row.suspension is not None and row.suspension.order is not None:
        return row.suspension.order.by == stages.USER
    record = None if row.facts is None else row.facts.suspension
    return record is not None and record.by == stages.USER


def _refusal(outcome: outcomes.Outcome) -> str:
    if isinstance(outcome, outcomes.Done | outcomes.Fenced):
        return ""
    return outcome.reason if isinstance(outcome, outcomes.NotDone) else "Outdated"
