"""Limit the attempts of a namespace that are started again in a second."""

import dataclasses
from collections.abc import Callable, Sequence

from boathouse import buckets
from boathouse.resources import config
from boathouse.services.mrjob.attempts.settle import Attempt


class Shares:
    """Token buckets by namespace.

    Args:
        limits: How much flows in.
        clock: Seconds that only grow.

    Attributes:
        retries: Attempts after the first that are handed to the scheduler.
    """

    def __init__(self, limits: config.TenantLimits, clock: Callable[[], float]) -> None:
        rate_per_s = limits.retries_per_second
        self.retries = buckets.Buckets(rate_per_s=rate_per_s, burst=rate_per_s * buckets.BURST_S, clock=clock)

    def admit(
        self, namespace: str, waiting: Sequence[Attempt], granted: frozenset[Attempt]
    ) -> tuple[list[Attempt], frozenset[Attempt]]:
        """Return the attempts that may start now, and those among them that used a token.

        A first attempt needs none, nor does one whose pod exists, nor one that was granted before.
        """
        admitted: list[Attempt] = []
        kept: set[Attempt] = set()
        for attempt in waiting:
            bare = dataclasses.replace(attempt, pod_uid=None)
            if attempt.number > 1:
                if attempt.pod_uid is None and bare not in granted and not self.retries.take(namespace):
                    continue
                kept.add(bare)
            admitted.append(attempt)
        return admitted, frozenset(kept)
