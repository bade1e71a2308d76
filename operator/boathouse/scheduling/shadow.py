"""Decide each cycle's state with another profile too, and keep how its decisions differ. It decides nothing real."""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable

from boathouse.telemetry import logs
from boathouse_policies import framework, model

log = logs.get(__name__)

CPU_SHARE = 0.1
MAX_ALLOWANCE_S = 1.0
"""Most CPU time that is saved up, so that a long time without shadow cycles is not followed by a burst."""
KEPT = 50
MAX_PLACES = 5

Place = tuple[model.NodeName, model.Resources]


class Budget:
    """Keep what is spent within a share of the cycles' CPU time.

    It may exceed the share by one expenditure, whose cost nobody knows before, and repays it before the next.
    """

    def __init__(self) -> None:
        self._allowance_s = 0.0
        self._last_s = 0.0

    def earn(self, cycle_cpu_s: float) -> None:
        """Count the CPU time of a real cycle."""
        self._allowance_s = min(self._allowance_s + CPU_SHARE * cycle_cpu_s, max(MAX_ALLOWANCE_S, self._last_s))

    def may_spend(self) -> bool:
        """Return whether the allowance covers as much as was spent last."""
        return self._allowance_s >= self._last_s

    def spend(self, cpu_s: float) -> None:
        """Count the CPU time of a shadow cycle."""
        self._allowance_s -= cpu_s
        self._last_s = cpu_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the decisions about a class, or about a running task, differ.

    Attributes:
        now_s: Time of the cycle.
        subject: The class or the running task.
        real: Placements of the real profile alone, at most `MAX_PLACES`; of a running task empty.
        shadow: Placements of the shadow profile alone, likewise.
        real_reason: Why the real profile left tasks of the class pending, or what it does with the running task.
        shadow_reason: The same of the shadow profile.
    """

    now_s: float
    subject: str
    real: tuple[Place, ...] = ()
    shadow: tuple[Place, ...] = ()
    real_reason: str = ""
    shadow_reason: str = ""


def compare(real: framework.Plan, shadow: framework.Plan, now_s: float) -> list[Difference]:
    """Return how two plans for one state differ. Tasks of a class are interchangeable."""
    ours, theirs = _placed(real.decisions), _placed(shadow.decisions)
    found = []
    for class_id in dict.fromkeys((*ours, *theirs)):
        only_ours, only_theirs = ours[class_id] - theirs[class_id], theirs[class_id] - ours[class_id]
        if only_ours or only_theirs:
            difference = Difference(
                now_s=now_s,
                subject=str(class_id),
                real=tuple(only_ours.elements())[:MAX_PLACES],
                shadow=tuple(only_theirs.elements())[:MAX_PLACES],
                real_reason=_left(real, class_id),
                shadow_reason=_left(shadow, class_id),
            )
            found.append(difference)
    acts, shadow_acts = _acts(real.decisions), _acts(shadow.decisions)
    for task in dict.fromkeys((*acts, *shadow_acts)):
        what, shadow_what = acts.get(task, ""), shadow_acts.get(task, "")
        if what != shadow_what:
            found.append(Difference(now_s=now_s, subject=str(task), real_reason=what, shadow_reason=shadow_what))
    return found


def _placed(decisions: Iterable[model.Decision]) -> dict[model.ClassId, collections.Counter[Place]]:
    placed: dict[model.ClassId, collections.Counter[Place]] = collections.defaultdict(collections.Counter)
    for one in decisions:
        if isinstance(one, model.Create | model.Bind):
            placed[one.task_class.id][one.node, one.resources] += 1
    return placed


def _acts(decisions: Iterable[model.Decision]) -> dict[model.TaskId, str]:
    return {one.task.id: type(one).__name__ for one in decisions if isinstance(one, model.Suspend | model.Resume)}


def _left(plan: framework.Plan, class_id: model.ClassId) -> str:
    left = plan.left.get(class_id)
    return "" if left is None else str(left.verdict.code)


class Shadow:
    """Runs shadow cycles. Call it with a state before the real plan is applied to the queue.

    Args:
        profile: A profile of its own: nothing else may share its state.
        cpu_s: Returns the CPU time of this thread.
    """

    def __init__(self, profile: framework.Profile, cpu_s: Callable[[], float] = time.thread_time) -> None:
        self._profile = profile
        self._cpu_s = cpu_s
        self._budget = Budget()
        self.agreed = 0
        self.differed = 0
        self.dropped = 0
        self.error = ""
        self.differences: collections.deque[Difference] = collections.deque(maxlen=KEPT)

    def observe(
        self,
        queue: framework.SchedulingQueue,
        view: framework.ClusterView,
        real: framework.Plan,
        cycle_cpu_s: float,
    ) -> None:
        """Compare a real plan with the shadow's, if the budget allows it. A failure ends all shadow cycles."""
        self._budget.earn(cycle_cpu_s)
        if self.error:
            return
        if not self._budget.may_spend():
            self.dropped += 1
            return
        began_s = self._cpu_s()
        try:
            found = compare(real, framework.run_cycle(queue, self._profile, view), view.now_s)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"[:200]
            log.exception("the shadow profile failed and is off until the operator restarts")
            return
        self._budget.spend(self._cpu_s() - began_s)
        self.differed += bool(found)
        self.agreed += not found
        self.differences.extend(found)
