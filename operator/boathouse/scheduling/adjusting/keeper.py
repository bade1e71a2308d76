"""Keep suspensions: resume each task when its time is over, and give it its request back once its node has room.

What is to be done follows from the stage of a pod, so a new leader continues where the former one ended. The task
continues first, by its CPU limit, which needs no room. Its request grows after that.
"""

import collections
import dataclasses
import enum
import math
from collections.abc import Container, Iterable, Iterator, Mapping

from boathouse.scheduling.adjusting import by_hand, resizing
from boathouse.scheduling.pods import rows, suspension
from boathouse.scheduling.pods.requests import INFEASIBLE
from boathouse.scheduling.pods.stages import CpuSize, Stage
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model

LAPSES_S = 10.0
"""A task that does not see its CPU shrink within this time of its acknowledgement continues by itself."""
DEFERRED_S = 2.0
"""How long a node may defer a growth before the request is taken back, so that it keeps no room from others."""
DEFERRED_RETRY_S = 30.0
SUBMITTED_S = 10.0
"""How long the job of a task without a record may take to be submitted after the task was seen."""
UNKNOWN_SIZE = CpuSize(100, 1000)
"""CPU of a task that is resumed although nothing is known of what it had: its record is gone, and so is its class."""
_LEAST_NAP_S = 0.05
_BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)


class Action(enum.Enum):
    """A write that a suspension needs."""

    CONTINUE = "continue"
    """Raise the limit: the task continues."""
    GROW = "grow"
    """Request the original CPU again."""
    SHRINK_BACK = "shrink back"
    """Take a request back that the node has deferred."""
    RECORD = "record"
    """Write a record where another writer removed it."""


@dataclasses.dataclass(slots=True)
class _Case:
    """What is remembered of a suspension.

    Attributes:
        row: The task.
        uid: UID of its pod.
        stage: The stage that was seen last.
        since_s: Since when.
        record: What was recorded last.
        reason: Why it is to be resumed; empty if it is not.
        failures: Refused writes in a row.
        retry_s: When to write again.
    """

    row: rows.PodRow
    uid: str | None
    stage: Stage
    since_s: float
    record: suspension.SuspensionRecord | None = None
    reason: str = ""
    failures: int = 0
    retry_s: float = -math.inf


class Keeper(Part):
    """Says which writes the suspensions need now.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._cases: dict[model.TaskId, _Case] = {}

    def resume(self, row: rows.PodRow, reason: str) -> None:
        """Resume a suspended task before its time is over."""
        self._case(row).reason = reason

    def original(self, row: rows.PodRow) -> CpuSize | None:
        """Return the CPU that a task had whose record was removed; None while its job may still be submitted."""
        case, entry = self._case(row), self._jobs.owner_of(row)
        if case.record is not None:
            return CpuSize(case.record.cpu_request_milli, case.record.cpu_limit_milli)
        of_class = None if entry is None else resizing.size_of(row, entry)
        return UNKNOWN_SIZE if of_class is None and self._clock() >= case.since_s + SUBMITTED_S else of_class

    def leave(self, row: rows.PodRow) -> None:
        """Do nothing of a task that asked for the CPU of a suspended one."""
        self._case(row).retry_s = math.inf

    def refused(self, row: rows.PodRow) -> int:
        """Note that the API server refused a write of a suspension: it is repeated later. Return how often in a row."""
        case = self._case(row)
        case.retry_s = self._clock() + _BACKOFF_S[min(case.failures, len(_BACKOFF_S) - 1)]
        case.failures += 1
        return case.failures

    def due(self, busy: Container[model.TaskId]) -> Iterator[tuple[rows.PodRow, Action]]:
        """Yield the writes that are due, of tasks of which none is in flight."""
        rows_now = {row.id: row for row in self._pods.adjusted()}
        for task in self._cases.keys() - rows_now.keys():
            del self._cases[task]
        debts = self._debts([row for row in rows_now.values() if row.id not in busy])
        for row in rows_now.values():
            case = self._case(row)
            action = None if row.id in busy else self._action(case, debts)
            if action is Action.GROW:
                debts[_node(row)] -= _debt_milli(row)  # from now on it counts
            if action is not None:
                yield row, action

    def next_s(self) -> float:
        """Return when a write may be due though nothing happened; infinity for never."""
        earliest_s = min((self._due_s(case) for case in self._cases.values()), default=math.inf)
        return max(earliest_s, self._clock() + _LEAST_NAP_S)  # what is due already is in flight

    def reason(self, row: rows.PodRow) -> str:
        """Return why a suspended task is resumed now; empty if it is not."""
        pod, case = row.facts, self._case(row)
        if pod is None or pod.suspension is None or pod.stage not in {Stage.SHRINKING, Stage.SUSPENDED}:
            return ""
        reasons = (
            (INFEASIBLE, pod.resize_problem == INFEASIBLE),
            ("SwitchedOff", not self._options.switches.suspend),
            (case.reason, bool(case.reason)),
            ("Withdrawn", pod.suspension.by == by_hand.USER and self._is_withdrawn(row)),
            ("Lapsed", self._clock() >= _lapses_s(pod.stage, pod.suspension)),
            ("TimeOver", self._clock() >= pod.suspension.until_s),
            ("ProfileChanged", pod.suspension.by not in {by_hand.USER, self._state.profile.name}),  # nobody advises it
        )
        return next((reason for reason, holds in reasons if holds), "")

    def _is_withdrawn(self, row: rows.PodRow) -> bool:
        entry = self._jobs.owner_of(row)
        return entry is not None and entry.suspend_until_s is None

    def _case(self, row: rows.PodRow) -> _Case:
        case, now_s = self._cases.get(row.id), self._clock()
        stage = Stage.NONE if row.facts is None else row.facts.stage
        if case is None or case.uid != row.uid:
            case = self._cases[row.id] = _Case(row, row.uid, stage, now_s)
        if row.facts is not None and row.facts.suspension is not None:
            case.record = row.facts.suspension
        if case.stage is not stage:
            if stage is Stage.SUSPENDED and row.facts is not None and row.facts.suspension is not None:
                self._counters.suspension_step("actuated", now_s - row.facts.suspension.since_s)
            case.stage, case.since_s, case.failures = stage, now_s, 0
        return case

    @staticmethod
    def _debts(waiting: Iterable[rows.PodRow]) -> collections.Counter[model.NodeName]:
        """Return the CPU that nodes owe to tasks whose request does not grow yet."""
        debts: collections.Counter[model.NodeName] = collections.Counter()
        for row in waiting:
            debts[_node(row)] += _debt_milli(row)
        return debts

    def _action(self, case: _Case, debts: Mapping[model.NodeName, int]) -> Action | None:
        pod, now_s = case.row.facts, self._clock()
        if pod is None or now_s < case.retry_s:
            return None
        if case.stage is Stage.ORPHAN:
            return None if self.original(case.row) is None else Action.RECORD
        if self.reason(case.row):
            is_whole = case.failures % 2 and self._has_room(
                case.row, debts
            )  # where a LimitRange rejects the limit alone
            return Action.GROW if is_whole else Action.CONTINUE
        if case.stage is Stage.CONTINUING and self._has_room(case.row, debts):
            return Action.GROW
        if case.stage is Stage.GROWING and pod.resize_problem == "Deferred" and now_s >= case.since_s + DEFERRED_S:
            case.retry_s = now_s + DEFERRED_RETRY_S
            return Action.SHRINK_BACK
        return None

    def _due_s(self, case: _Case) -> float:
        pod = case.row.facts
        if pod is not None and case.stage is Stage.ORPHAN:
            return max(case.retry_s, case.since_s + SUBMITTED_S)
        if pod is None or pod.suspension is None:
            return math.inf
        if case.stage is Stage.GROWING:
            return max(self._clock() + DEFERRED_S / 4, case.since_s + DEFERRED_S)  # the condition may come late
        if case.stage is Stage.CONTINUING:
            return case.retry_s if case.retry_s > self._clock() else math.inf  # when room comes free
        until_s = min(pod.suspension.until_s, _lapses_s(case.stage, pod.suspension))
        return case.retry_s if self.reason(case.row) else until_s

    def _has_room(self, row: rows.PodRow, debts: Mapping[model.NodeName, int]) -> bool:
        """Return whether a node has the request of a task, while those of others that are owed theirs do not grow."""
        free = self._ledger.free(_node(row))
        return free is not None and free[model.CPU] + debts[_node(row)] - _debt_milli(row) >= 0


def _lapses_s(stage: Stage, record: suspension.SuspensionRecord) -> float:
    """Return when a task continues by itself because its CPU has not shrunk; infinity once it has."""
    return record.since_s + LAPSES_S if stage is Stage.SHRINKING else math.inf


def _node(row: rows.PodRow) -> model.NodeName:
    return model.NodeName("" if row.facts is None else row.facts.node_name)


def _debt_milli(row: rows.PodRow) -> int:
    """Return the CPU that the ledger charges for a task beyond what its pod holds."""
    return 0 if row.owed is None or row.facts is None else max(0, row.owed.cpu_milli - row.facts.resources.cpu_milli)
