"""Reconcile suspensions: resume each task when its time is over, and give it its request back once its node has room.

What is to be done follows from the stage of a pod, so a new leader continues where the former one ended. The task
continues first, by its CPU limit, which needs no room. Its request grows after that.
"""

import collections
import enum
import math
from collections.abc import Container, Iterator, Mapping

from boathouse.scheduling import resizing
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.requests import INFEASIBLE
from boathouse.scheduling.state import Part
from boathouse.suspension import stages
from boathouse.suspension.stages import USER, CpuSize, Reason, Stage, SuspensionRecord
from boathouse_policies import model

UNKNOWN_SIZE = CpuSize(100, 1000)
"""CPU of a task that is resumed although nothing is known of what it had: its record is gone, and so is its class."""
_MIN_SLEEP_S = 0.05


class Action(enum.Enum):
    """A write that a suspension needs."""

    CONTINUE = "continue"  # raise the limit: the task continues
    GROW = "grow"  # request the original CPU again
    SHRINK_BACK = "shrink back"  # take a request back that the node has deferred
    RECORD = "record"  # write a record where another writer removed it


class SuspensionReconciler(Part):
    """Determines which writes the suspensions need now."""

    def original(self, row: rows.PodRow) -> CpuSize | None:
        """Return the CPU that a task had whose record was removed; None while its job may still be submitted."""
        suspension, entry = row.suspension, self._jobs.owner_of(row)
        if suspension is None:
            return None
        if suspension.record is not None:
            return suspension.record.size
        of_class = None if entry is None else resizing.size_of(row, entry)
        is_known = self._clock() >= suspension.since_s + stages.SUBMITTED_S
        return UNKNOWN_SIZE if of_class is None and is_known else of_class

    def refused(self, row: rows.PodRow) -> int:
        """Note that the API server refused a write of a suspension. Return how often in a row."""
        return 0 if row.suspension is None else row.suspension.refused(self._clock())

    def due(self, busy: Container[model.TaskId]) -> Iterator[tuple[rows.PodRow, Action]]:
        """Yield the writes that are due, of tasks of which none is in flight."""
        open_ones = [row for row in self._pods.suspensions() if row.id not in busy]
        ungrown = collections.Counter[model.NodeName]()  # CPU that is charged for tasks whose request does not grow yet
        for row in open_ones:
            ungrown[_node(row)] += ungrown_milli(row)
        for row in open_ones:
            self._observe_actuation(row)
            action = self._action(row, ungrown)
            if action is Action.GROW:
                ungrown[_node(row)] -= ungrown_milli(row)  # from now on it counts
            if action is not None:
                yield row, action

    def next_s(self) -> float:
        """Return when a write may be due though nothing happened; infinity for never."""
        due_s = min(map(self._due_s, self._pods.suspensions()), default=math.inf)
        return max(due_s, self._clock() + _MIN_SLEEP_S)  # what is due already is in flight

    def reason(self, row: rows.PodRow) -> Reason | None:
        """Return why a suspended task is resumed now; None if it is not."""
        pod, suspension = row.facts, row.suspension
        if pod is None or pod.suspension is None or suspension is None or not suspension.stage.is_shrunk:
            return None
        record, now_s, owner = pod.suspension, self._clock(), self._jobs.owner_of(row)
        reasons = (
            (Reason.INFEASIBLE, pod.resize_problem == INFEASIBLE),
            (Reason.SWITCHED_OFF, not self._options.switches.suspend),
            (suspension.ends, suspension.ends is not None),
            (Reason.WITHDRAWN, record.by == USER and owner is not None and owner.suspend_until_s is None),
            (Reason.LAPSED, now_s >= _lapses_s(suspension.stage, record)),
            (Reason.TIME_OVER, now_s >= record.until_s),
            (Reason.PROFILE_CHANGED, record.by not in {USER, self._state.profile.name}),  # nobody advises it
        )
        return next((reason for reason, holds in reasons if holds), None)

    def _observe_actuation(self, row: rows.PodRow) -> None:
        """Observe once how long the CPU of a suspension took to be free."""
        pod, suspension = row.facts, row.suspension
        if pod is None or pod.suspension is None or suspension is None or suspension.is_actuated:
            return
        if suspension.stage is Stage.SUSPENDED:
            suspension.is_actuated = True
            self._counters.suspension_s["actuated",].observe(self._clock() - pod.suspension.since_s)

    def _action(self, row: rows.PodRow, ungrown: Mapping[model.NodeName, int]) -> Action | None:
        pod, suspension, now_s = row.facts, row.suspension, self._clock()
        if pod is None or suspension is None or now_s < suspension.retry_s:
            return None
        stage = suspension.stage
        if stage is Stage.ORPHAN:
            return None if self.original(row) is None else Action.RECORD
        if self.reason(row) is not None:
            # where a LimitRange rejects the limit alone
            is_whole = suspension.failures % 2 and self._has_room(row, ungrown)
            return Action.GROW if is_whole else Action.CONTINUE
        if stage is Stage.CONTINUING and self._has_room(row, ungrown):
            return Action.GROW
        is_deferred = stage is Stage.GROWING and pod.resize_problem == "Deferred"
        if is_deferred and now_s >= suspension.since_s + stages.DEFERRED_S:
            suspension.retry_s = now_s + stages.DEFERRED_RETRY_S
            return Action.SHRINK_BACK
        return None

    def _due_s(self, row: rows.PodRow) -> float:
        pod, suspension, now_s = row.facts, row.suspension, self._clock()
        if pod is None or suspension is None:
            return math.inf
        stage, since_s, retry_s = suspension.stage, suspension.since_s, suspension.retry_s
        if stage is Stage.ORPHAN:
            return max(retry_s, since_s + stages.SUBMITTED_S)
        if pod.suspension is None or not stage.is_open:
            return math.inf
        if stage is Stage.GROWING:  # the condition may come late
            return max(now_s + stages.DEFERRED_S / 4, since_s + stages.DEFERRED_S)
        if stage is Stage.CONTINUING:
            return retry_s if retry_s > now_s else math.inf  # when room comes free
        return retry_s if self.reason(row) else min(pod.suspension.until_s, _lapses_s(stage, pod.suspension))

    def _has_room(self, row: rows.PodRow, ungrown: Mapping[model.NodeName, int]) -> bool:
        """Return whether a node has the request of a task, while the requests of others do not grow."""
        free = self._ledger.free(_node(row))
        return free is not None and free[model.CPU] + ungrown[_node(row)] - ungrown_milli(row) >= 0


def _lapses_s(stage: Stage, record: SuspensionRecord) -> float:
    """Return when a task continues by itself because its CPU has not shrunk; infinity once it has."""
    return record.since_s + stages.LAPSES_S if stage is Stage.SHRINKING else math.inf


def _node(row: rows.PodRow) -> model.NodeName:
    return model.NodeName("" if row.facts is None else row.facts.node_name)


def ungrown_milli(row: rows.PodRow) -> int:
    """Return the CPU that the ledger charges for a task beyond what its pod holds."""
    charged = None if row.suspension is None else row.suspension.charged
    return 0 if charged is None or row.facts is None else max(0, charged.cpu_milli - row.facts.resources.cpu_milli)
