"""Limit the shapes of pods that a namespace may have pending, and their constraints.

A shape is the requests and constraints that pods of one owner share, a task class. Each shape is compared with the
nodes whenever nodes change, and each set of constraints is evaluated for every node. Without limits, a namespace with
thousands of shapes, or with constraints of a megabyte, would delay the pods of all others. A shape beyond the limits
is pending until others of its namespace were placed or deleted. New constraints are evaluated a few at a time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse import fair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boathouse_policies import model

TOO_COMPLEX = "TooComplex"

RECOUNT_S = 1.0
"""Interval of counting a namespace's pending classes while it is at its limits."""
FORGET_S = 60.0
PRICE_S = 2.5e-6
"""Measured time to evaluate a set of constraints for one node, and each of its constraints."""
PRICE_OF_EACH_S = 1.0e-6
_MORE_FOR_OTHERS = 9
LOAD = 0.05
"""Share of the scheduler's time for evaluating a namespace's new constraints."""
BURST_S = 0.25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a namespace's pending shapes.

    Attributes:
        shapes: Number of shapes.
        constraints: Total constraints of the shapes; equal sets of constraints count once.
    """

    shapes: int = 500
    constraints: int = 2000


def count(constraints: model.Constraints, namespace: str = "") -> int:
    """Return the number of constraints in a set.

    Ten values of an expression count as one, each other entry as one. A term that may select pods of other namespaces
    counts as ten, because each start and end of such a pod is counted for it.

    Args:
        constraints: The set.
        namespace: That of the pods.
    """
    terms = constraints.affinity or ()
    expressions = [one for term in terms for one in (*term.expressions, *term.fields)]
    terms_of_pods = (*constraints.pod_affinity, *constraints.pod_anti_affinity)
    sets = [term.pods for term in terms_of_pods]
    selectors = [one for pods in sets for one in (pods.selector, pods.namespace_selector)]
    selectors += [spread.selector for spread in constraints.spread]
    expressions += [one for selector in selectors if selector is not None for one in selector.expressions]
    of_nodes = (constraints.node_selector, constraints.tolerations, constraints.host_ports, constraints.claims, terms)
    wide = [pods for pods in sets if pods.namespace_selector is not None or set(pods.namespaces) - {namespace}]
    return (
        sum(map(len, (*of_nodes, terms_of_pods, constraints.spread)))
        + sum(1 + len(one.values) // 10 for one in expressions)
        + _MORE_FOR_OTHERS * len(wide)
    )


@dataclasses.dataclass(slots=True)
class _Used:
    """Admitted shapes of a namespace.

    Attributes:
        namespace: The namespace.
        at_s: Time of the last count of the pending classes.
        shapes: The classes.
        constraints: Number of constraints of each different set.
        total: Total constraints.
    """

    namespace: str
    at_s: float
    shapes: set[model.ClassId] = dataclasses.field(default_factory=set)
    constraints: dict[model.Constraints, int] = dataclasses.field(default_factory=dict)
    total: int = 0

    def add(self, task_class: model.ClassId, constraints: model.Constraints) -> None:
        self.shapes.add(task_class)
        if constraints not in self.constraints:
            self.constraints[constraints] = count(constraints, self.namespace)
            self.total += self.constraints[constraints]


class Variety:
    """Admits task classes within the limits of their namespaces.

    Args:
        limits: Limits of each namespace.
        waiting: Returns the classes of a namespace's pending tasks.
        nodes: Returns the number of nodes.
        clock: Returns the scheduler's time in seconds.
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
        self._time = fair.Buckets(rate_per_s=LOAD, burst=BURST_S, clock=clock)
        self._swept_s = clock()

    def refusal(self, namespace: str, task_class: model.TaskClass) -> str | None:
        """Admit a class, or return why it is not considered now."""
        used, constraints = self._used.get(namespace), task_class.constraints
        if used is not None and task_class.id in used.shapes:
            return None
        if used is None or self._exceeded(namespace, used, constraints) is not None:
            used = self._recount(namespace)
        if (why := self._exceeded(namespace, used, constraints)) is not None:
            return why
        if constraints not in used.constraints and not self._has_time_for(namespace, constraints):
            return "new constraints of a namespace are evaluated at a limited rate: this pod is considered shortly"
        used.add(task_class.id, constraints)
        return None

    def sweep(self) -> None:
        """Drop classes that are no longer pending, once a minute."""
        if self._clock() < self._swept_s + FORGET_S:
            return
        self._swept_s = self._clock()
        for namespace in list(self._used):
            if not self._recount(namespace).shapes:
                del self._used[namespace]

    def _exceeded(self, namespace: str, used: _Used, constraints: model.Constraints) -> str | None:
        limits, what = self._limits, None
        more = 0 if constraints in used.constraints else count(constraints, namespace)
        if len(used.shapes) >= limits.shapes:
            what = f"{limits.shapes} shapes (requests and constraints; tenantLimits.maxShapes)"
        elif used.total + more > limits.constraints:
            what = f"{limits.constraints} constraints (tenantLimits.maxConstraints)"
        if what is None:
            return None
        return (
            f"at most {what} of pending pods in namespace {namespace} are considered at a time: this pod is considered "
            "when others were placed or deleted; give pods the same requests and constraints if possible"
        )

    def _recount(self, namespace: str) -> _Used:
        now_s, known = self._clock(), self._used.get(namespace)
        if known is not None and now_s < known.at_s + RECOUNT_S:
            return known
        used = self._used[namespace] = _Used(namespace, now_s)
        if known is not None:
            for task_class in self._waiting(namespace):
                if task_class.id in known.shapes:
                    used.add(task_class.id, task_class.constraints)
        return used

    def _has_time_for(self, namespace: str, constraints: model.Constraints) -> bool:
        number = count(constraints, namespace)
        return not number or self._time.take(namespace, self._nodes() * (PRICE_S + PRICE_OF_EACH_S * number))
