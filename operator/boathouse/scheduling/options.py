"""How the scheduler behaves."""

import dataclasses

from boathouse.resources import names
from boathouse.scheduling.tenants import variety


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the scheduler behaves.

    Attributes:
        scheduler_name: The `spec.schedulerName` that we answer to.
        namespaces: Where we act; empty for everywhere. All pods everywhere are counted.
        pending_ahead: How many pods of a class that waits for nodes are made before there is one.
        pending_ahead_delay_s: How long a class must have waited until then.
        workers: How many writes are on their way at once.
        coalesce_s: The least time between two cycles, so that events that come together are decided together.
        idle_s: The longest time between two looks.
        conditions_per_s: How many conditions of a namespace's pods are written in a second.
        shape_limits: How many shapes of pods, and constraints, a namespace may have considered at a time.
        pod_labels: The labels that kinds read of pods, beside those of all pods.
        pod_containers: The containers of tasks that kinds read the statuses of.
        stall_s: After so long without coming round, the process is unhealthy.
    """

    scheduler_name: str = names.SCHEDULER_NAME
    namespaces: frozenset[str] = frozenset()
    pending_ahead: int = 5
    pending_ahead_delay_s: float = 1.0
    workers: int = 32
    coalesce_s: float = 0.01
    idle_s: float = 5.0
    pod_labels: frozenset[str] = frozenset()
    pod_containers: frozenset[str] = frozenset({names.CONTAINER})
    stall_s: float = 60.0
    conditions_per_s: float = 50.0
    shape_limits: variety.Limits = variety.Limits()  # noqa: RUF009 - frozen
