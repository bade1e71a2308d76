"""What a cluster's master reports: the counters of its `Progress` events (Koala, IV.B, the MR-Runner's monitoring).

In the paper the MR-Runner counts jobs and tasks of its cluster. Here the master's pod reports, and these are the names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from boathouse_policies.koala.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies import model


class Counter(enum.StrEnum):
    """Each is a number; see `cluster.Cluster` for what they count."""

    RUNNING = "running_tasks"
    WAITING = "runnable_tasks"
    SLOTS = "slots"
    NODE_SLOTS = "node_slots"
    CORE = "core_nodes"
    TRANSIENT = "transient_nodes"
    FIRST_CORE = "first_core_nodes"
    PENDING = "pending_nodes"
    LEAVING = "leaving_nodes"
    ENDED = "workload_ended"


def written(cluster: Cluster) -> Mapping[str, float]:
    """A state as counters, for the shell that reports it."""
    return {one.value: float(getattr(cluster, one.name.lower())) for one in Counter}


def read(job: model.JobId, counters: Mapping[str, float]) -> Cluster | None:
    """The state of a cluster; None where some counter is missing, as in reports of other programs."""
    if any(one.value not in counters for one in Counter):
        return None
    fields = {one.name.lower(): int(counters[one.value]) for one in Counter if one is not Counter.ENDED}
    return Cluster(name=job, ended=bool(counters[Counter.ENDED.value]), **fields)
