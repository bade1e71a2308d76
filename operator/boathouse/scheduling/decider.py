"""Decide the next writes, and why other tasks are pending. Synchronous, without I/O."""

import dataclasses
import math
import time
from collections.abc import Container, Iterator, Sequence
from typing import TypeAlias

from boathouse.scheduling import jobs, limits, reservations
from boathouse.scheduling.pods import rows, table
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.telemetry import logs
from boathouse_policies import framework, model

log = logs.get(__name__)

CONDITIONS_EVERY_S = 0.5
ADVISED_EVERY_S = 1.0  # maximum time between two cycles while a controller of the profile has something to watch
Advice: TypeAlias = model.Resize | model.Suspend | model.Resume | model.Scale | model.Speculate


class PendingPods(Part):
    """Decides which pods to create without a node, so that autoscalers and users see the unmet requests.

    A class qualifies when it has been pending for lack of nodes for some time and none of its tasks was placed. In a
    busy cluster, where tasks are placed one after another, this avoids the second write that binds such a pod.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._since_s: dict[model.ClassId, float] = {}  # ascending
        self._due: dict[model.ClassId, None] = {}
        self._lacking = {model.Code.UNSCHEDULABLE}
        if self._options.autoscaling.enabled:  # a larger node may come
            self._lacking.add(model.Code.NEVER_FITS)
        self._queue.on_removed.append(self._forget)

    def next_s(self) -> float:
        """Return when a class may qualify; infinity if none may."""
        return next(iter(self._since_s.values()), math.inf) + self._options.pending_ahead_delay_s

    def decide(self, plan: framework.Plan | None) -> Iterator[rows.Operation]:
        """Yield the operations that create pods without a node now, after a cycle or None without one."""
        if not self._options.pending_ahead:
            return
        self._note(plan, self._clock())
        for queued in filter(None, map(self._queue.get, list(self._due))):
            for task in queued.pool.pending()[: self._options.pending_ahead]:
                row = self._pods.get(task.id)
                if row is None or task.expected or self._jobs.backoff_of(row) is not None:
                    continue  # the API server would refuse these pods too
                if (operation := self._pods.decide_ahead(task, queued.task_class)) is not None:
                    yield operation

    def _note(self, plan: framework.Plan | None, now_s: float) -> None:
        """Note the classes that lack nodes, and which of them have for so long that they qualify."""
        placed = set[model.ClassId]() if plan is None else placed_classes(plan)
        left = {} if plan is None else plan.left
        for class_id in placed | left.keys():
            lacks_nodes = class_id in left and left[class_id].verdict.code in self._lacking
            if not lacks_nodes or class_id in placed:
                self._forget(class_id)
            if lacks_nodes and class_id not in self._due and self._creates(class_id):
                self._since_s.setdefault(class_id, now_s)
        for class_id, since_s in list(self._since_s.items()):
            if since_s > now_s - self._options.pending_ahead_delay_s:
                break
            del self._since_s[class_id]
            self._due[class_id] = None

    def _creates(self, class_id: model.ClassId) -> bool:
        """Return whether the pods of a class are created by this process, one by one: a gang shows itself whole."""
        queued = self._queue.get(class_id)
        entry = None if queued is None else self._jobs.entry(queued.job.id)
        return entry is not None and entry.factory is not None and entry.gang is None

    def _forget(self, class_id: model.ClassId) -> None:
        self._since_s.pop(class_id, None)
        self._due.pop(class_id, None)


def placed_classes(plan: framework.Plan) -> set[model.ClassId]:
    """Return the classes of which a plan places tasks."""
    return {decision.task_class.id for decision in plan.decisions if isinstance(decision, model.Create | model.Bind)}


class Decider(Part):
    """Runs scheduling cycles."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._ahead = PendingPods(state)
        self._reservations = reservations.Reservations(state)
        self._conditions_due_s, self._conditions_at_s, self._cycle_s = math.inf, -math.inf, -math.inf
        self._advice: list[Advice] = []
        self._reserved: set[tuple[model.NodeName, model.ClassId]] = set()

    def take_advice(self) -> list[Advice]:
        """Return the decisions about running tasks and clusters since the last call."""
        advice, self._advice = self._advice, []
        return advice

    def next_s(self) -> float:
        """Return when `decide` is due without an event; infinity for never."""
        parts = (self._exclusions, self._ahead, self._conditions, self._jobs, self._reservations)
        if self._ledger.tallies.has_woken:
            return -math.inf
        due_s = min(self._queue.next_wake_s(), self._conditions_due_s, *(part.next_s() for part in parts))
        return due_s if self._is_idle() else min(due_s, self._cycle_s + ADVISED_EVERY_S)

    def _is_idle(self) -> bool:
        return all(controller.is_idle() for controller in self._state.profile.controllers)

    def decide(self) -> Iterator[rows.Operation]:
        """Decide once: snapshot, run the cycle, assume. Yields the writes to begin; those stay decided if it raises."""
        self._jobs.probe()
        yield from self._reservations.decide()
        self._state.sync_jobs()
        tallies = self._ledger.tallies
        self._queue.sorted_classes().declare(tallies)
        if self._jobs.reclassify(tallies.take_mentioned()):
            self._state.sync_jobs()
        self._queue.wake(tallies.take_woken())
        if self._exclusions.expire():
            self._queue.nodes_changed()
        now_s, plan = self._clock(), None
        is_advised = now_s >= self._cycle_s + ADVISED_EVERY_S and not self._is_idle()
        if self._reservations.are_restored() and (self._queue.tick(now_s) or is_advised):
            began, self._cycle_s = time.perf_counter(), now_s
            plan = self._cycle(now_s)
            yield from self._begin_all(plan.decisions)
            self._counters.cycle_s.observe(time.perf_counter() - began)
            self._conditions_due_s = min(self._conditions_due_s, max(now_s, self._conditions_at_s + CONDITIONS_EVERY_S))
        if now_s >= self._conditions_due_s:
            self._conditions_due_s, self._conditions_at_s = math.inf, now_s
            self._update_conditions()
        self._conditions.flush()
        yield from self._ahead.decide(plan)

    def _cycle(self, now_s: float) -> framework.Plan:
        """Run the cycle. If a job makes it raise, set that aside, and run it without; else the error is raised."""
        try:
            plan = self._run(now_s)
        except Exception:
            if not (culprits := self._culprits(now_s)):
                self._jobs.changed.update(entry.job.id for entry in self._jobs.entries())  # half of it may be applied
                raise
            for entry, error in culprits:
                self._state.set_job_aside(entry, error)
            plan = self._run(now_s)
        self._report_reserved()
        return plan

    def _run(self, now_s: float) -> framework.Plan:
        began_s, shadow, view = time.thread_time(), self._state.shadow, self._ledger.snapshot(now_s)
        plan = framework.run_cycle(self._queue, self._profile_now(), view)
        fresh = self._diagnoses.update(plan, placed_classes(plan))
        if shadow is not None:
            shadow.freeze(self._queue, view, plan, self._filters_now(), time.thread_time() - began_s)
        self._queue.apply(plan, now_s)
        self._counters.unschedulable(fresh)
        return plan

    def _culprits(self, now_s: float) -> list[tuple[jobs.Entry, Exception]]:
        """Return the jobs for which a cycle of their own raises, with the error; none if one without any job does."""
        view = self._ledger.snapshot(now_s)
        if self._error_of(None, view) is not None:
            return []
        entries = (entry for entry in self._jobs.entries() if entry.job.id not in self._jobs.aside)
        return [(entry, error) for entry in entries if (error := self._error_of(entry, view)) is not None]

    def _error_of(self, entry: jobs.Entry | None, view: framework.ClusterView) -> Exception | None:
        """Return the error that a cycle with only this job raises, or without any; None if it raises none."""
        try:
            queue = framework.SchedulingQueue(self._state.axis, self._queue.queues.values())
            if entry is not None:
                queue.submit(entry.job, entry.classes, (row.task for row in self._jobs.rows(entry) if row.task))
            plan = framework.run_cycle(queue, self._profile_now(), view)
            plan.diagnoses()
            queue.apply(plan, view.now_s)
        except Exception as error:  # noqa: BLE001 - the question is which job makes it raise
            return error
        return None

    def _report_reserved(self) -> None:
        """Publish an event for each node that was newly reserved when the last cycle began, once for each owner."""
        reservations_now = self._state.profile.reserve.reservations()
        reserved = {(reserved.node, reserved.task_class): reserved.wait_s for reserved in reservations_now}
        for node, task_class in reserved.keys() - self._reserved:
            for entry, _ in self._jobs.all_gangs():
                if entry.factory is not None and entry.class_of(task_class) is not None:
                    note = f"{node} is reserved for its pods; predicted wait {reserved[node, task_class]:.0f} s"
                    self._conditions.note_job(entry.job, entry.factory.resource, "Reserved", note)
        self._reserved = set(reserved)

    def _profile_now(self) -> framework.Profile:
        profile, more = self._state.profile, self._filters_now()
        return dataclasses.replace(profile, filters=(*profile.filters, *more)) if more else profile

    def _filters_now(self) -> tuple[framework.Filter, ...]:
        candidates: tuple[tuple[framework.Filter, object], ...] = (
            (self._exclusions, len(self._exclusions)),
            (self._volumes, self._volumes.is_needed),
            (self._pods.nominations, len(self._pods.nominations)),
        )
        return tuple(candidate for candidate, is_needed in candidates if is_needed)

    def _begin_all(self, decisions: Sequence[model.Decision]) -> Iterator[rows.Operation]:
        """Yield the operations of decisions; with that of a driver, reserve room for the executors that it expects."""
        expected: dict[model.JobId, list[model.Reservation]] = {}
        for decision in decisions if self._jobs.gangs else ():
            if not isinstance(decision, model.Reservation) or decision.task is None:
                continue
            if decision.task_class.is_short:
                self._reservations.reserve(decision)
            else:
                expected.setdefault(decision.job.id, []).append(decision)
        for decision in decisions:
            operation = self._begin(decision) if self._may_begin(decision, expected) else None
            if operation is None:
                continue
            for reservation in expected.pop(operation.task_class.job, ()):
                self._reservations.reserve(reservation)
            yield operation
        self._jobs.changed.update(expected)  # their drivers cannot start after all

    def _may_begin(self, decision: model.Decision, gangs: Container[model.JobId]) -> bool:
        if not isinstance(decision, model.Create | model.Bind) or decision.job.id not in gangs:
            return True
        if self._reservations.may_begin(decision.job.id):
            return True
        self._state.report_refused(decision, limits.QUOTA_EXCEEDED)
        return False

    def _begin(self, decision: model.Decision) -> rows.Operation | None:
        """Return the operation of a decision. If this raises, set its job aside."""
        if isinstance(decision, model.Create | model.Bind):
            try:
                return self._place(decision)
            except Exception as error:
                if (entry := self._jobs.entry(decision.job.id)) is None:
                    raise
                self._state.set_job_aside(entry, error)
        elif not isinstance(decision, model.Reservation | model.Wait):  # the scheduling queue stores these
            self._advice.append(decision)
        return None

    def _place(self, placement: model.Placement) -> rows.Operation | None:
        row = self._pods.get(placement.task.id)
        operation = table.OUTDATED if row is None else self._pods.decide(row, placement)
        if isinstance(operation, rows.Operation):
            if (slowdown := dict(placement.figures).get("slowdown")) is not None:
                self._counters.placement_slowdown.observe(slowdown)
            return operation
        if row is not None and row.state is not PodState.CREATING:  # otherwise its response is awaited
            self._jobs.mark_changed(row)
        self._state.report_refused(placement, operation)
        return None

    def _update_conditions(self) -> None:
        for row in self._pods.waiting():
            if row.state is PodState.PENDING and (why := self._diagnoses.of_pod(row)) is not None:
                self._conditions.set_pending(row, why)
