"""Decide what real cycles decide with another profile too, and keep how its decisions differ. It decides nothing real.

    cycle: plan --> freeze the state --> apply the plan, begin the writes
    10 ms later:                         run the other profile on the frozen state, compare

A cycle that the budget does not allow is dropped before anything is copied.
"""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable

from typing_extensions import override

from boathouse.telemetry import logs
from boathouse_policies import framework, model

log = logs.get(__name__)

CPU_SHARE = 0.1
MAX_ALLOWANCE_S = 1.0  # saved up at most, so that a long time without shadow cycles is not followed by a burst
MAX_OVERDRAFT_S = 10.0  # beyond the allowance, the shadow ends: learning alone costs more than the share
KEPT = 50
MAX_PLACES = 5

Place = tuple[model.NodeName, model.Resources]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the decisions about a class, or about a running task, differ."""

    now_s: float
    subject: str  # the job's name and the class, or the running task
    real: tuple[Place, ...] = ()  # placements of the real profile alone, at most `MAX_PLACES`; of a running task empty
    shadow: tuple[Place, ...] = ()
    real_reason: str = ""  # why the real profile left tasks of the class pending, or what it does with the running task
    shadow_reason: str = ""


def compare(real: framework.Plan, shadow: framework.Plan, now_s: float) -> list[Difference]:
    """Return how two plans for one state differ. Tasks of a class are interchangeable."""
    ours, theirs = _placed(real.decisions), _placed(shadow.decisions)
    titles = {
        decision.task_class.id: f"{decision.job.name or decision.job.id} {decision.task_class.id.rpartition('/')[2]}"
        for decision in (*real.decisions, *shadow.decisions)
        if isinstance(decision, _PLACEMENTS)
    }
    differences = []
    for class_id in dict.fromkeys((*ours, *theirs)):
        only_ours, only_theirs = ours[class_id] - theirs[class_id], theirs[class_id] - ours[class_id]
        if only_ours or only_theirs:
            differences.append(
                Difference(
                    now_s=now_s,
                    subject=titles[class_id],
                    real=tuple(only_ours.elements())[:MAX_PLACES],
                    shadow=tuple(only_theirs.elements())[:MAX_PLACES],
                    real_reason=_left(real, class_id),
                    shadow_reason=_left(shadow, class_id),
                )
            )
    acts, shadow_acts = _acts(real.decisions), _acts(shadow.decisions)
    for task in dict.fromkeys((*acts, *shadow_acts)):
        what, shadow_what = acts.get(task, ""), shadow_acts.get(task, "")
        if what != shadow_what:
            differences.append(Difference(now_s=now_s, subject=str(task), real_reason=what, shadow_reason=shadow_what))
    return differences


def _placed(decisions: Iterable[model.Decision]) -> dict[model.ClassId, collections.Counter[Place]]:
    placed: dict[model.ClassId, collections.Counter[Place]] = collections.defaultdict(collections.Counter)
    for decision in decisions:
        if isinstance(decision, _PLACEMENTS):
            placed[decision.task_class.id][decision.node, decision.resources] += 1
    return placed


def _acts(decisions: Iterable[model.Decision]) -> dict[model.TaskId, str]:
    return {
        decision.task.id: type(decision).__name__
        for decision in decisions
        if isinstance(decision, model.Suspend | model.Resume)
    }


def _left(plan: framework.Plan, class_id: model.ClassId) -> str:
    left = plan.left.get(class_id)
    return "" if left is None else str(left.verdict.code)


_PLACEMENTS = (model.Create, model.Bind)


@dataclasses.dataclass(frozen=True, slots=True)
class _Frozen:
    queue: framework.SchedulingQueue
    view: framework.ClusterView
    real: framework.Plan
    filters: tuple[framework.Filter, ...]


class Shadow(framework.Observer):
    """Runs shadow cycles, and learns for them from all that the real profile's observers learn from.

    A failure ends it until the process ends; the real profile does not notice. Its CPU time is a share of the cycles'.
    It may exceed that by one shadow cycle, whose cost nobody knows before, and repays it before the next. Nothing else
    may share the state of its profile.
    """

    def __init__(
        self, profile: framework.Profile, since_s: float = 0.0, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self.name, self.since_s = profile.name, since_s
        self._profile, self._cpu_s = profile, cpu_s
        self._allowance_s, self._last_s = 0.0, 0.0  # what may be spent, and what the last shadow cycle took
        self._frozen: _Frozen | None = None
        self._frozen_cpu_s = 0.0
        self._reserved: list[tuple[model.NodeName, model.ClassId]] = []
        self.agreed, self.differed = 0, 0
        self.dropped = 0  # cycles without a comparison, by the budget, a later cycle, or pods that decide
        self.error = ""  # why the shadow has ended; empty while it has not
        self.differences: collections.deque[Difference] = collections.deque(maxlen=KEPT)

    @override
    def observe(self, event: model.Event) -> None:
        if self.error:
            return
        began_s = self._cpu_s()
        try:
            for observer in self._profile.observers:
                observer.observe(event)
        except Exception as error:  # noqa: BLE001 - it must not affect the real profile
            self._end(error)
        self._allowance_s -= self._cpu_s() - began_s
        if self._allowance_s < -(MAX_OVERDRAFT_S + self._last_s):
            self._end(TooExpensive("learning alone costs more CPU time than a shadow may use"))

    def freeze(
        self,
        queue: framework.SchedulingQueue,
        view: framework.ClusterView,
        real: framework.Plan,
        filters: tuple[framework.Filter, ...],
        cycle_cpu_s: float,
    ) -> None:
        """Keep the state of a real cycle for `run`, if the budget allows it. Call it before the plan is applied."""
        self._allowance_s = min(self._allowance_s + CPU_SHARE * cycle_cpu_s, max(MAX_ALLOWANCE_S, self._last_s))
        if self.error:
            return
        self.dropped += self._frozen is not None
        self._frozen = None
        if self._allowance_s < self._last_s:
            self.dropped += 1
            return
        began_s = self._cpu_s()
        try:
            copied = queue.frozen()
            if self._depends_on_pods(copied, view):
                self.dropped += 1
                self._allowance_s -= self._cpu_s() - began_s
                return
            view.detach()
            view = dataclasses.replace(view, long_running=dict(view.long_running))
            self._frozen = _Frozen(copied, view, real, filters)
        except Exception as error:  # noqa: BLE001 - it must not affect the real cycle
            self._end(error)
        self._frozen_cpu_s = self._cpu_s() - began_s

    @staticmethod
    def _depends_on_pods(queue: framework.SchedulingQueue, view: framework.ClusterView) -> bool:
        """Return whether other pods decide about a pending class: their counts are the ledger's own, which go on."""
        classes = queue.sorted_classes().queued if view.tallies.is_needed else ()
        return any(queued.rules(view.tallies).decide for queued in classes)

    def run(self) -> None:
        """Run the cycle of the kept state, if there is one, and compare its plan with the real one."""
        kept, self._frozen = self._frozen, None
        if kept is None or self.error:
            return
        if kept.view.axis.width != len(kept.view.layout.allocatable):  # pods of a new resource have come since
            self.dropped += 1
            return
        began_s = self._cpu_s()
        try:
            differences = self._compare(kept)
        except Exception as error:  # noqa: BLE001 - it must not affect the real profile
            self._end(error)
            return
        finally:
            self._last_s = self._cpu_s() - began_s + self._frozen_cpu_s
            self._allowance_s -= self._last_s
        self.differed += bool(differences)
        self.agreed += not differences
        self.differences.extend(differences)

    def _compare(self, kept: _Frozen) -> list[Difference]:
        queue, now_s = kept.queue, kept.view.now_s
        for node, owner in self._reserved:
            if queue.get(owner) is not None and node in kept.view.layout.index:
                queue.reserved.reserve(node, owner, now_s)
        profile = dataclasses.replace(self._profile, filters=(*self._profile.filters, *kept.filters))
        plan = framework.run_cycle(queue, profile, kept.view)
        differences = compare(kept.real, plan, now_s)
        queue.apply(plan, now_s)
        self._reserved = list(queue.reserved.items())
        return differences

    def _end(self, error: Exception) -> None:
        self.error = f"{type(error).__name__}: {error}"[:200]
        self._frozen, self._reserved = None, []
        log.error("the shadow profile is off until the operator restarts", profile=self.name, exc_info=error)


class TooExpensive(Exception):  # noqa: N818 - what it is
    """Learning costs more CPU time than a shadow may use."""
