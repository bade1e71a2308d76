"""Decisions: what is written next, and why the rest is pending. Synchronous, without I/O."""

import dataclasses
import math
import time
from collections.abc import Callable

from boathouse.scheduling import cycle, pending_pods, pod_conditions
from boathouse.scheduling.intake import OUTDATED
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.telemetry import logs
from boathouse_policies import framework, model

log = logs.get(__name__)

CONDITIONS_EVERY_S = 0.5


class Decider(Part):
    """Runs scheduling cycles.

    Args:
        state: The state of the scheduler.
        count_nominations: Counts the pods that other schedulers are about to place.
    """

    def __init__(self, state: ClusterState, count_nominations: Callable[[], None]) -> None:
        super().__init__(state)
        self._count_nominations = count_nominations
        self._ahead = pending_pods.PendingPods(state)
        self._conditions_due_s = math.inf
        self._conditions_at_s = -math.inf

    def next_s(self) -> float:
        """Return when `decide` may have something to do though nothing happened; infinity for never."""
        others = (self._exclusions, self._ahead, self._conditions, self._jobs)
        return min(self._queue.next_wake_s(), self._conditions_due_s, *(other.next_s() for other in others))

    def decide(self) -> list[rows.Operation]:
        """Decide once: snapshot, run the cycle, assume. Returns the writes to begin."""
        self._state.sync_jobs()
        self._count_nominations()
        if self._exclusions.expire():
            self._queue.nodes_changed()
        now_s, result, operations = self._clock(), None, []
        if self._queue.tick(now_s):
            began = time.perf_counter()
            result = self._cycle(now_s)
            operations = [one for decision in result.decisions if (one := self._begin(decision)) is not None]
            self._counters.cycle_s.observe(time.perf_counter() - began)
            self._conditions_due_s = min(self._conditions_due_s, max(now_s, self._conditions_at_s + CONDITIONS_EVERY_S))
        if now_s >= self._conditions_due_s:
            self._conditions_due_s, self._conditions_at_s = math.inf, now_s
            self._update_conditions()
        self._conditions.flush()
        operations += self._ahead.decide(result)
        return operations

    def _cycle(self, now_s: float) -> cycle.CycleResult:
        """Run the cycle; when it raises, set the jobs aside because of which it does, and run it without them."""
        try:
            result = self._run(now_s)
        except Exception:
            todo = (
                (entry, [row.task for row in self._jobs.rows(entry) if row.task is not None])
                for entry in self._jobs.entries()
                if not entry.is_aside
            )
            queues, view = list(self._queue.queues.values()), self._ledger.snapshot(now_s)
            found = cycle.culprits(todo, queues, self._profile_now(), self._state.axis, view)
            if not found:
                raise
            for entry, error in found:
                self._state.set_job_aside(entry, error)
            result = self._run(now_s)
        self._counters.unschedulable(self._diagnoses.update(result))
        return result

    def _run(self, now_s: float) -> cycle.CycleResult:
        view = self._ledger.snapshot(now_s)
        return cycle.run(self._queue, self._profile_now(), view, self._diagnoses.wants)

    def _profile_now(self) -> framework.Profile:
        profile, volumes = self._state.profile, self._volumes
        more: tuple[framework.Filter, ...] = (self._exclusions,) if len(self._exclusions) else ()
        if volumes.is_needed:
            more += (volumes,)
        return dataclasses.replace(profile, filters=(*profile.filters, *more)) if more else profile

    def _begin(self, decision: model.Decision) -> rows.Operation | None:
        """Return the operation of a decision; when that raises, set its job aside."""
        if isinstance(decision, model.Create | model.Bind):
            try:
                return self._place(decision)
            except Exception as error:
                entry = self._jobs.entry(decision.job.id)
                if entry is None:
                    raise
                self._state.set_job_aside(entry, error)
        elif not isinstance(decision, model.Reservation | model.Wait):  # the scheduling queue remembers these
            log.error("the profile advises what this release cannot carry out", decision=str(decision))
            self._state.report_refused(decision, "NotSupported")
        return None

    def _place(self, placement: model.Placement) -> rows.Operation | None:
        row = self._pods.get(placement.task.id)
        operation = OUTDATED if row is None else self._pods.decide(row, placement)
        if isinstance(operation, rows.Operation):
            return operation
        if row is not None and row.state is not PodState.CREATING:  # else its answer is awaited
            self._jobs.mark_changed(row)
        self._state.report_refused(placement, operation)
        return None

    def _update_conditions(self) -> None:
        """Set the conditions that say why pods are pending."""
        for row in self._pods.waiting():
            if row.state is not PodState.PENDING or row.facts is None or row.task is None:
                continue
            why, hold = self._diagnoses.of_class(row.task.task_class), self._jobs.hold_of(row)
            if hold is not None:
                why = pod_conditions.PendingReason(reason=hold.reason, message=hold.message)
            if why is not None:
                self._conditions.set_pending(row, why)
