"""Hadoop's CapacityScheduler: queues with guaranteed shares, elastic up to a maximum; first come, first served within.

* The queue that holds the least of what it is guaranteed is served first (AbstractCSQueue.getUsedCapacity): the
  framework's order between queues, with guaranteed shares as weights. What a queue leaves idle others may take, up to
  their maximum; nothing is taken back by force (pre-emption between queues is off by default there, and absent here).
* Within a queue the application submitted first goes first (FifoOrderingPolicy). A node that cannot take its next task
  is kept for it (a reserved container); tasks behind it may use the others.

Sizes are compared in all resources (DominantResourceCalculator); Hadoop's default looks at memory alone. User limits
and the share for masters are left out: a simulated queue has one user, and masters are small.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED, Fifo
from boathouse_policies.baselines.yarn import LockedNodes
from boathouse_policies.framework import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework import Score


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a queue may have of the cluster.

    Attributes:
        guaranteed: yarn.scheduler.capacity.<queue>.capacity, 0..1.
        maximum: yarn.scheduler.capacity.<queue>.maximum-capacity, 0..1.
    """

    guaranteed: float
    maximum: float = 1.0


def queues(shares: Mapping[str, Share], total: model.Resources) -> tuple[model.Queue, ...]:
    """Queues as the framework knows them: guaranteed shares as weights, maxima as limits.

    Args:
        shares: By name of the queue.
        total: Of the whole cluster.

    Raises:
        ValueError: The guarantees are more than the cluster, or a maximum is below its guarantee.
    """
    if sum(share.guaranteed for share in shares.values()) > 1 + _ROUNDING:
        raise ValueError("the queues' guaranteed shares add up to more than 1: lower them")
    for name, share in shares.items():
        if not 0 < share.guaranteed <= share.maximum <= 1:
            raise ValueError(f"queue {name!r}: 0 < guaranteed ≤ maximum ≤ 1 must hold, not {share}")
    return tuple(
        model.Queue.of(
            model.QueueName(name),
            weight=share.guaranteed,
            limits={}
            if share.maximum == 1
            else {
                "cpu": int(total.cpu_milli * share.maximum),
                "memory": int(total.memory_bytes * share.maximum),
            },
        )
        for name, share in sorted(shares.items())
    )


_ROUNDING = 1e-9


def build(score: Score = LEAST_LOADED) -> Profile:
    """The profile `capacity`."""
    return Profile(name="capacity", order=Fifo(), score=score, reserve=LockedNodes(), node_driven=True)
