"""F, the load of a cluster (Koala, IV.C).

The paper: "the ratio F of the number of running tasks and the number of available slots". With slots taken or not,
that never exceeds 1, and GSP grows above 1.5. Two readings:

* WAITING: (running + runnable waiting tasks) / all slots, above 1.5 when half a wave of tasks waits.
* FREE: running / free slots, above 1.5 when 60 % of the slots are busy, below 0.25 when 20 % are.

Deviation: nodes that were taken and are not up yet count with their slots, free ones; else a cluster that boots slower
than it is offered nodes takes them again for the same tasks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boathouse_policies.koala.config import Reading

if TYPE_CHECKING:
    from boathouse_policies.koala.cluster import Cluster


def load(cluster: Cluster, reading: Reading, *, less: int = 0) -> float:
    """F.

    Args:
        cluster: Its state.
        reading: What F is.
        less: As it would be with so many nodes fewer.

    Returns:
        At least 0; infinite where tasks find no slot at all.
    """
    slots = cluster.slots + (cluster.pending - less) * cluster.node_slots
    if reading is Reading.WAITING:
        tasks, of = cluster.running + cluster.waiting, slots
    else:
        tasks, of = cluster.running, slots - cluster.running
    if not tasks:
        return 0.0
    return tasks / of if of > 0 else math.inf
