"""What one namespace may make the operator do in a second: statuses that it writes, attempts that it starts again."""

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
        statuses: Statuses that are written.
        retries: Attempts after the first that are handed to the scheduler.
    """

    def __init__(self, limits: config.TenantLimits, clock: Callable[[], float]) -> None:
        self.statuses = Statuses(limits.status_writes_per_second, clock)
        self.retries = _buckets(limits.retries_per_second, clock)

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


class Statuses:
    """The share of statuses. Jobs that find it used up take turns: each is told when to ask again.

    Half of what a namespace may write at once is for what is urgent: a phase must not wait for others' figures.

    Args:
        rate_per_s: How much flows in.
        clock: Seconds that only grow.
    """

    def __init__(self, rate_per_s: float, clock: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._buckets = _buckets(rate_per_s, clock)
        self._waiting: dict[str, set[str]] = {}

    @property
    def refused(self) -> int:
        """How often a status had to wait."""
        return self._buckets.refused

    def take(self, key: str, *, is_urgent: bool) -> float:
        """Take what one status of a job costs; returns 0, or in how many seconds it is the job's turn."""
        namespace = key.partition("/")[0]
        leave = 0.0 if is_urgent else self._rate_per_s * buckets.BURST_S / 2
        if self._buckets.take(namespace, leave=leave):
            self.forget(key)
            return 0.0
        waiting = self._waiting.setdefault(namespace, set())
        waiting.add(key)
        return self._buckets.wait_s(namespace, leave=leave) + (len(waiting) - 1) / self._rate_per_s

    def forget(self, key: str) -> None:
        """A job waits no more."""
        namespace = key.partition("/")[0]
        waiting = self._waiting.get(namespace, set())
        waiting.discard(key)
        if not waiting:
            self._waiting.pop(namespace, None)


def _buckets(rate_per_s: float, clock: Callable[[], float]) -> buckets.Buckets:
    return buckets.Buckets(rate_per_s=rate_per_s, burst=rate_per_s * buckets.BURST_S, clock=clock)
