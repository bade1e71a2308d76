"""Back off where pods are refused: a namespace by the API server, a node by its kubelet.

When the API server refuses pods, their namespace backs off, and one probe at a time tests if it accepts them: a circuit
breaker, whose states are closed, open and half open.

    closed ──refused──▶ open ──delay over, and a token──▶ half open ──many accepted in a row, or no answer──▶ closed
                         ▲ ──────────────refused─────────────┘

Tasks in backoff are not scheduled. If a refusal concerns the namespace (a quota), all its jobs back off. If it may
concern only pods of a class (they are invalid, or their priority class does not exist), that class backs off, and the
whole namespace after several of its jobs were refused in a row. A name conflict concerns only its task, unless several
follow in a row.

Every backoff ends: a delay is finite, and a backoff whose probes get no answer of the API server for `UNANSWERED_S`,
because none of them fits on a node, ends too.

A kubelet checks the scheduler's decision. If another scheduler was faster, or the node has less capacity, the pod
fails at once with a reason such as OutOfcpu. Its owner creates another, and its node is excluded for some time.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from typing_extensions import override

from boathouse import fair
from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import outcomes
from boathouse.scheduling.pods import indexes, rows
from boathouse_policies import framework, model

EXCLUDED_S = 30.0
_REASONS = {"NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "UnsupportedPod", "InvalidNodeInfo"}
_REASONS |= {"AdmissionError", "NodeShutdown", "Terminated", "Taint", "PodOSNotSupported", "Preempting"}


def rejection(pod: wire.Pod) -> str | None:
    """Return the reason if a kubelet rejected the pod, or None if its container failed."""
    reason = pod.status.reason
    if pod.status.phase != "Failed" or not (reason.startswith("OutOf") or reason in _REASONS):
        return None
    ran = any(status.state.terminated or status.state.running for status in pod.status.container_statuses)
    return None if ran else names.pod_reason(reason, reason)


class Exclusions(framework.Filter):
    """Nodes that recently rejected a pod of a class, as a filter of the cycle."""

    reason = "node(s) rejected a pod of this class less than 30 s ago"

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_s: dict[model.ClassId, dict[model.NodeName, float]] = {}

    def exclude(self, task_class: model.ClassId, node: model.NodeName) -> None:
        """Exclude a class from a node for some time."""
        self._until_s.setdefault(task_class, {})[node] = self._clock() + EXCLUDED_S

    def expire(self) -> bool:
        """Drop expired exclusions; return whether any expired, so that pending tasks are considered again."""
        before, now_s = len(self), self._clock()
        for task_class, nodes in list(self._until_s.items()):
            for node in [node for node, until_s in nodes.items() if until_s <= now_s]:
                indexes.discard(self._until_s, task_class, node)
        return len(self) < before

    def __len__(self) -> int:
        return sum(map(len, self._until_s.values()))

    def next_s(self) -> float:
        """Return when the next exclusion ends; infinity without exclusions."""
        return min((until for nodes in self._until_s.values() for until in nodes.values()), default=math.inf)

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        return pending.task_class.id in self._until_s

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        excluded = self._until_s[pending.task_class.id]
        return np.array([node.name not in excluded for node in state.view.nodes], np.bool_)[where]


PROBES_PER_S = 2.0  # probes of all namespaces per second, which in the long run also limit refused creates
NAMESPACE_DISTANCE_S = 1.0  # minimum time between two probes of a namespace
LEAST_S = 1.0
TAKEN_IN_A_ROW = 32  # consecutive successful probes after which a backoff ends
UNANSWERED_S = 60.0  # without an answer to a probe, a backoff ends: the refusal says nothing about the present
IN_A_ROW = 3  # refused jobs after which a namespace backs off, and name conflicts after which a class does
QUOTA = "QuotaExceeded"
OVERLOAD = "TooManyRequests"
NAME_TAKEN = "NameTaken"
REASONS = (QUOTA, OVERLOAD, NAME_TAKEN, "PodRefused", "PodInvalid")
_ALL = "all namespaces"


class Verb(enum.StrEnum):
    """Kind of the refused write."""

    CREATE = "create"
    BIND = "bind"


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a backoff."""

    verb: Verb
    namespace: str
    task_class: model.ClassId | None = None  # the class; None for all jobs of the namespace


def _scopes(operation: rows.Operation) -> tuple[Scope, Scope]:
    """Return the scopes of a class: its namespace, and the class."""
    verb = Verb.CREATE if operation.task.pod_uid is None else Verb.BIND
    namespace = operation.row.namespace
    return Scope(verb, namespace), Scope(verb, namespace, operation.task_class.id)


@dataclasses.dataclass(slots=True, kw_only=True)
class Backoff:
    """A backoff of a scope."""

    scope: Scope
    reason: str  # one of `REASONS`
    message: str
    refused_s: float
    until_s: float  # time of the next probe
    is_probing: bool = False
    probe: model.TaskId | None = None
    probed_s: float = 0.0  # time since when it is the probe
    answered_s: float = 0.0  # time since when no probe was answered
    taken: int = 0  # number of consecutive successful probes
    # time and task of the last probe by class; the least recently tried class is next
    tried: dict[model.ClassId, tuple[float, model.TaskId]] = dataclasses.field(default_factory=dict)

    @property
    def ends_s(self) -> float:
        """Return when it is due for a probe, or ends without an answer."""
        return self.answered_s + UNANSWERED_S if self.is_probing else self.until_s


class Refusals:
    """All backoffs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._backoffs: dict[Scope, Backoff] = {}
        self._in_a_row: dict[Scope | model.ClassId, set[str]] = {}  # refused jobs of a namespace, or names of a class
        self._granted_s: dict[str, float] = {}
        self._tokens = fair.Buckets(rate_per_s=PROBES_PER_S, burst=PROBES_PER_S, clock=clock)
        self._changed: set[Scope] = set()

    def refused(self, operation: rows.Operation, why: outcomes.NotDone) -> bool:
        """Record a refusal; return whether other tasks back off as well, and not only this one."""
        task, task_class, now_s = operation.row.id, operation.task_class, self._clock()
        if why.reason not in REASONS or (why.reason == NAME_TAKEN and not self._are_many(task_class.id, task)):
            return False
        wide, scope = _scopes(operation)
        if not why.is_of_class and (self._are_many(wide, task_class.job) or why.reason in {QUOTA, OVERLOAD}):
            scope = wide
        if (of_namespace := self._backoffs.get(wide)) is not None and of_namespace.probe == task:
            of_namespace.probe, of_namespace.answered_s = None, now_s  # another class is next
        if (former := self._backoffs.get(scope)) is None:
            self._changed.add(scope)
        self._backoffs[scope] = backoff = Backoff(
            scope=scope,
            reason=why.reason,
            message=why.message,
            refused_s=now_s,
            until_s=now_s + max(LEAST_S, why.at_least_s),
            tried={} if former is None else former.tried,
        )
        backoff.tried[task_class.id] = (now_s, task)
        return True

    def succeeded(self, operation: rows.Operation) -> None:
        """Record that a pod was created or bound."""
        self._in_a_row.pop(_scopes(operation)[0], None)
        self._in_a_row.pop(operation.task_class.id, None)
        for scope in _scopes(operation) if self._backoffs else ():
            if (backoff := self._backoffs.get(scope)) is not None and backoff.is_probing:
                backoff.probe, backoff.answered_s, backoff.taken = None, self._clock(), backoff.taken + 1
                backoff.tried.pop(operation.task_class.id, None)  # what is accepted goes on
                if backoff.taken >= TAKEN_IN_A_ROW:
                    self.lift(scope)

    def relieved(self, namespace: str) -> None:
        """Make the next probe due soon after a pod of the namespace ended, which may free quota."""
        backoff = self._backoffs.get(Scope(Verb.CREATE, namespace))
        if backoff is not None and backoff.reason == QUOTA:
            backoff.until_s = min(backoff.until_s, max(self._clock(), backoff.refused_s + NAMESPACE_DISTANCE_S))

    def lift(self, scope: Scope) -> None:
        """Remove the backoff of a scope."""
        if self._backoffs.pop(scope, None) is not None:
            self._changed.add(scope)

    def _are_many(self, key: Scope | model.ClassId, last: str) -> bool:
        """Count one more refused job or name in a row; return whether these are many."""
        if len(refused := self._in_a_row.setdefault(key, set())) < IN_A_ROW:
            refused.add(last)
        return len(refused) >= IN_A_ROW

    def forget(self, namespace: str, job: model.JobId, classes: Sequence[model.ClassId]) -> None:
        """Drop the backoffs of a deleted job."""
        for key in [key for key in self._in_a_row if isinstance(key, str) and key.startswith(f"{job}/")]:
            del self._in_a_row[key]
        for wide in (Scope(verb, namespace) for verb in Verb):
            for task_class in classes:
                self._backoffs.pop(Scope(wide.verb, namespace, task_class), None)
                if wide in self._backoffs:
                    self._backoffs[wide].tried.pop(task_class, None)
            if wide in self._in_a_row:
                self._in_a_row[wide].discard(job)
                if not self._in_a_row[wide]:
                    del self._in_a_row[wide]

    def __len__(self) -> int:
        return len(self._backoffs)

    def __contains__(self, scope: Scope) -> bool:
        return scope in self._backoffs

    def of(self, namespace: str, task_class: model.ClassId, verb: Verb) -> Backoff | None:
        """Return the backoff of a class, or None."""
        if not self._backoffs:
            return None
        return self._backoffs.get(Scope(verb, namespace)) or self._backoffs.get(Scope(verb, namespace, task_class))

    def backoffs(self) -> Iterable[Backoff]:
        """Return all backoffs."""
        return self._backoffs.values()

    def probing(self) -> list[Backoff]:
        """Return the backoffs that are being probed."""
        return [backoff for backoff in self._backoffs.values() if backoff.is_probing and self._decides(backoff.scope)]

    def _decides(self, scope: Scope) -> bool:
        """Return whether a backoff is not covered by one of the whole namespace, which ends before it."""
        return scope.task_class is None or Scope(scope.verb, scope.namespace) not in self._backoffs

    def changed(self) -> set[Scope]:
        """Return the scopes whose backoff began or ended since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def next_s(self) -> float:
        """Return when `due` may return or end a backoff; infinity for never."""
        deciding = (backoff for backoff in self._backoffs.values() if self._decides(backoff.scope))
        due_s = min((backoff.ends_s for backoff in deciding), default=math.inf)
        return max(due_s, self._clock() + self._tokens.wait_s(_ALL)) if due_s <= self._clock() else due_s

    def due(self) -> list[Backoff]:
        """Return the backoffs due for a probe, the least recently probed namespace first; lift those that need none."""
        now_s, due = self._clock(), []
        for backoff in list(self._backoffs.values()):
            if backoff.ends_s > now_s:
                continue
            if backoff.reason == OVERLOAD or backoff.is_probing:  # needs no probe, or got no answer
                self.lift(backoff.scope)
            elif self._decides(backoff.scope):
                due.append(backoff)
        return sorted(due, key=lambda backoff: (self._granted_s.get(backoff.scope.namespace, 0.0), backoff.until_s))

    @property
    def may_grant(self) -> bool:
        """Whether a token for a probe is available."""
        return self._tokens.wait_s(_ALL) <= 0.0

    def grant(self, backoff: Backoff) -> bool:
        """Begin to probe a due backoff, if the budgets of its namespace and of all namespaces allow it."""
        namespace, now_s = backoff.scope.namespace, self._clock()
        soonest_s = self._granted_s.get(namespace, -math.inf) + NAMESPACE_DISTANCE_S
        if now_s < soonest_s:
            backoff.until_s = soonest_s
            return False
        if not self._tokens.take(_ALL):
            return False
        self._granted_s = {name: at_s for name, at_s in self._granted_s.items() if now_s - at_s < _REMEMBERED_S}
        self._granted_s[namespace] = now_s
        backoff.is_probing, backoff.answered_s = True, now_s
        return True


_REMEMBERED_S = 600.0
