"""How many different shapes of pods a namespace may have considered at a time, and how many constraints they may have.

A shape is what pods of one owner have in common: requests and constraints, a task class. Each is compared with the
nodes on its own whenever nodes change, and each set of constraints is evaluated for every node. So a namespace with
thousands of shapes, or with constraints of a megabyte, would delay the pods of all others. Beyond its limits a shape
waits until others of its namespace were placed or deleted. New constraints are evaluated a few at a time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse import buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boathouse_policies import model

TOO_COMPLEX = "TooComplex"

RECOUNT_S = 1.0
"""How often a namespace is asked what of it waits still, while it is at its limits."""
FORGET_S = 60.0
PRICE_S = 2.5e-6
"""What evaluating one set of constraints for one node takes, and each single constraint (measured)."""
PRICE_OF_EACH_S = 1.0e-6
LOAD = 0.05
"""The part of the scheduler's time in which a namespace's new constraints are evaluated."""
BURST_S = 0.25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a namespace may have considered at a time.

    Attributes:
        shapes: Different shapes.
        constraints: Constraints of all of them together; equal sets of constraints count once.
    """

    shapes: int = 500
    constraints: int = 2000


def count(constraints: model.Constraints) -> int:
    """Return how many constraints a set has: one for every ten values of an expression, and one for all else."""
    terms = constraints.affinity or ()
    expressions = [one for term in terms for one in (*term.expressions, *term.fields)]
    parts = (constraints.node_selector, constraints.tolerations, constraints.host_ports, constraints.claims, terms)
    return sum(map(len, parts)) + sum(1 + len(one.values) // 10 for one in expressions)


@dataclasses.dataclass(slots=True)
class _Used:
    """What of a namespace is considered.

    Attributes:
        at_s: When this was last counted from what waits.
        shapes: The classes.
        constraints: How many constraints each different set among them has.
        total: All constraints together.
    """

    at_s: float
    shapes: set[model.ClassId] = dataclasses.field(default_factory=set)
    constraints: dict[model.Constraints, int] = dataclasses.field(default_factory=dict)
    total: int = 0

    def add(self, task_class: model.ClassId, constraints: model.Constraints) -> None:
        self.shapes.add(task_class)
        if constraints not in self.constraints:
            self.constraints[constraints] = count(constraints)
            self.total += self.constraints[constraints]


class Variety:
    """Admits shapes.

    Args:
        limits: For each namespace.
        waiting: Returns the classes of a namespace's tasks that wait now.
        nodes: Returns the number of nodes.
        clock: The scheduler's seconds.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        waiting: Callable[[str], Iterable[model.TaskClass]],
        nodes: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self._limits = limits
        self._waiting = waiting
        self._nodes = nodes
        self._clock = clock
        self._used: dict[str, _Used] = {}
        self._time = buckets.Buckets(rate_per_s=LOAD, burst=BURST_S, clock=clock)
        self._swept_s = clock()

    def refusal(self, namespace: str, task_class: model.TaskClass) -> str | None:
        """Return why a class is not considered now; None when it is, from here on."""
        used, constraints = self._used.get(namespace), task_class.constraints
        if used is not None and task_class.id in used.shapes:
            return None
        if used is None or self._exceeded(namespace, used, constraints) is not None:
            used = self._recount(namespace)
        if (why := self._exceeded(namespace, used, constraints)) is not None:
            return why
        if constraints not in used.constraints and not self._has_time_for(namespace, constraints):
            return "new constraints of a namespace are evaluated at a limited rate: this pod follows shortly"
        used.add(task_class.id, constraints)
        return None

    def sweep(self) -> None:
        """Forget what does not wait any more, once a minute."""
        if self._clock() < self._swept_s + FORGET_S:
            return
        self._swept_s = self._clock()
        for namespace in list(self._used):
            if not self._recount(namespace).shapes:
                del self._used[namespace]

    def _exceeded(self, namespace: str, used: _Used, constraints: model.Constraints) -> str | None:
        limits, what = self._limits, None
        more = 0 if constraints in used.constraints else count(constraints)
        if len(used.shapes) >= limits.shapes:
            what = f"{limits.shapes} shapes (requests and constraints) of pods (tenantLimits.maxShapes)"
        elif used.total + more > limits.constraints:
            what = f"{limits.constraints} constraints of different pods (tenantLimits.maxConstraints)"
        if what is None:
            return None
        return (
            f"at most {what} that wait in namespace {namespace} are considered at a time: this pod is considered when "
            "others were placed or deleted; let pods have the same requests and constraints where they can"
        )

    def _recount(self, namespace: str) -> _Used:
        now_s, known = self._clock(), self._used.get(namespace)
        if known is not None and now_s < known.at_s + RECOUNT_S:
            return known
        used = self._used[namespace] = _Used(now_s)
        if known is not None:
            for task_class in self._waiting(namespace):
                if task_class.id in known.shapes:
                    used.add(task_class.id, task_class.constraints)
        return used

    def _has_time_for(self, namespace: str, constraints: model.Constraints) -> bool:
        number = count(constraints)
        return not number or self._time.take(namespace, self._nodes() * (PRICE_S + PRICE_OF_EACH_S * number))
