"""How many different shapes of pods a namespace may have considered at a time, and how many constraints they may have.

A shape is what tasks of a class have in common: requests and constraints. Each shape is compared with the nodes on its
own in every cycle, and each set of constraints is evaluated for every node. So a namespace with thousands of shapes, or
with constraints of a megabyte, would delay the pods of all others. Beyond its limits a shape waits until others of its
namespace were placed or deleted. New constraints are evaluated a few at a time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from boathouse import buckets
from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Shape: TypeAlias = tuple[model.Resources, model.Constraints]
TOO_COMPLEX = "TooComplex"

LOOK_AGAIN_S = 1.0
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
        constraints: Constraints of all of them together.
    """

    shapes: int = 500
    constraints: int = 2000


def shape_of(task_class: model.TaskClass) -> Shape:
    """Return the shape of a class."""
    return task_class.resources, task_class.constraints


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
        shapes: How many constraints each shape has.
        constraints: The different sets of constraints among them.
        total: All constraints together.
        at_s: When this was last counted from what waits.
    """

    at_s: float
    shapes: dict[Shape, int] = dataclasses.field(default_factory=dict)
    constraints: set[model.Constraints] = dataclasses.field(default_factory=set)
    total: int = 0

    def add(self, shape: Shape, constraints: int) -> None:
        self.shapes[shape] = constraints
        self.constraints.add(shape[1])
        self.total += constraints


class Variety:
    """Admits shapes.

    Args:
        limits: For each namespace.
        waiting: Returns the shapes of a namespace's tasks that wait now.
        nodes: Returns the number of nodes.
        clock: The scheduler's seconds.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        waiting: Callable[[str], Mapping[Shape, int]],
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

    def refusal(self, namespace: str, shape: Shape) -> str | None:
        """Return why a shape is not considered now; None when it is, from here on."""
        used = self._used.get(namespace)
        if used is not None and shape in used.shapes:
            return None
        more = count(shape[1])
        if used is None or self._exceeded(namespace, used, more) is not None:
            used = self._recount(namespace)
        if (why := self._exceeded(namespace, used, more)) is not None:
            return why
        if more and shape[1] not in used.constraints and not self._time.take(namespace, self._price_s(more)):
            return (
                "constraints that are new in this namespace are evaluated a few at a time: this pod is considered soon"
            )
        used.add(shape, more)
        return None

    def sweep(self) -> None:
        """Forget what does not wait any more, once a minute."""
        if self._clock() < self._swept_s + FORGET_S:
            return
        self._swept_s = self._clock()
        for namespace in list(self._used):
            if not self._recount(namespace).shapes:
                del self._used[namespace]

    def _exceeded(self, namespace: str, used: _Used, more: int) -> str | None:
        limits, what = self._limits, None
        if len(used.shapes) >= limits.shapes:
            what = f"{limits.shapes} different shapes (requests and constraints) of pods (tenantLimits.maxShapes)"
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
        if known is not None and now_s < known.at_s + LOOK_AGAIN_S:
            return known
        used = self._used[namespace] = _Used(now_s)
        if known is not None:
            for shape, constraints in self._waiting(namespace).items():
                if shape in known.shapes:
                    used.add(shape, constraints)
        return used

    def _price_s(self, constraints: int) -> float:
        return self._nodes() * (PRICE_S + PRICE_OF_EACH_S * constraints)
