"""Sizes and average parallelism bounds (FSPY, II.C, II.D and III.A; eqs 3, 4, 5 and 9).

Amounts are pairs: CPU in millicores, memory in bytes. Sizes are such pairs times seconds.

Deviations:
* Eq. 3 gives S/minE, without the master's container, which Algorithm 3 then takes off: a job that is small beside its
  master would never shrink. As in eq. 9 the bound of a normal job counts its master: min(CR, R_am + S/minE).
* Eq. 4 divides tuples: the ceiling is the largest over both resources.
* Eqs 4 and 5 know one map and one reduce phase; here they are sums over phases, for jobs of several steps.
* Containers count for at least 1 MiB, for a job of no memory would have size 0 and go before all others.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from boathouse_policies import model

Amount: TypeAlias = tuple[float, float]
"""CPU in millicores and memory in bytes."""

NOTHING: Amount = (0.0, 0.0)
LEAST_MEMORY_BYTES = float(1 << 20)
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks of a job.

    Attributes:
        container: R: what one task holds.
        tasks: N.
        task_s: e: the mean run time of a task; None where it is not known yet.
    """

    container: Amount
    tasks: int
    task_s: float | None = None

    @property
    def total_s(self) -> float:
        """SE = N·e.

        Raises:
            ValueError: The run time of a task is not known.
        """
        if self.task_s is None:
            raise ValueError("the run time of a phase is not known: check is_sized first")
        return self.tasks * self.task_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a job is made of, as far as FSPY looks.

    Attributes:
        phases: In the order in which they run.
        master: R_am: the container of the application master; nothing where there is none.
        uber: Whether all runs in one container, the master's.
    """

    phases: tuple[Phase, ...]
    master: Amount = NOTHING
    uber: bool = False

    @property
    def is_sized(self) -> bool:
        """Whether the run time of every phase is known."""
        return bool(self.phases) and all(phase.task_s is not None for phase in self.phases)


def container(resources: model.Resources) -> Amount:
    """Return the amounts of a container."""
    return float(resources.cpu_milli), max(float(resources.memory_bytes), LEAST_MEMORY_BYTES)


def size(shape: Shape) -> Amount:
    """Eq. 5: the sum over the phases of R·SE."""
    cpu = sum(phase.container[0] * phase.total_s for phase in shape.phases)
    memory = sum(phase.container[1] * phase.total_s for phase in shape.phases)
    return cpu, memory


def least_time_s(shape: Shape, cluster: Amount) -> float:
    """Eq. 4, minE: the run time with the whole cluster for itself; infinite where the cluster lacks a resource."""
    return sum(phase.task_s * _waves(phase, cluster) for phase in shape.phases if phase.task_s is not None)


def parallelism(shape: Shape, cluster: Amount) -> Amount:
    """The average parallelism bound: eq. 3 for a job of known size, eq. 9 before, the container for an uber job."""
    bound = shape.master
    if shape.uber:
        bound = shape.phases[0].container
    elif shape.phases and not shape.is_sized:
        bound = _plus(shape.master, shape.phases[0].container, shape.phases[0].tasks)
    elif 0 < (time_s := least_time_s(shape, cluster)) < math.inf:  # else nothing to do, or nowhere to do it
        bound = _plus(shape.master, size(shape), 1 / time_s)
    return min(cluster[0], bound[0]), min(cluster[1], bound[1])


def _waves(phase: Phase, cluster: Amount) -> float:
    if not phase.tasks:
        return 0.0
    return max(
        math.ceil(amount * phase.tasks / have - _ROUNDING) if have > 0 else math.inf
        for amount, have in zip(phase.container, cluster, strict=True)
        if amount > 0
    )


def _plus(a: Amount, b: Amount, times: float) -> Amount:
    return a[0] + b[0] * times, a[1] + b[1] * times
