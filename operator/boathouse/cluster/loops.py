"""Loops that run until cancelled: a round that fails is logged, counted and retried.

Repeated failures that the API server did not cause end the loop, because a broken invariant must not persist.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import logging
import time
from typing import TYPE_CHECKING

from boathouse.cluster import errors, retries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

FAILURES: collections.Counter[str] = collections.Counter()
"""Failed rounds of this process's loops by name; each loop has an entry from its start."""

_BACKOFF = retries.Backoff(base_s=0.1, cap_s=30.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Number of failures within a number of seconds that ends a loop."""

    failures: int = 10
    within_s: float = 600.0


class Loop:
    """Repeats work that concerns no single object.

    Args:
        name: The loop's name in logs and metrics.
        round_: Runs one round; a plain function or a coroutine function.
        every_s: Delay before each round.
        first_s: Delay before the first round; None: `every_s`.
        limit: Failures that end the loop. Errors of the API server do not count.
        sleep: Sleeps for a number of seconds.
        monotonic: The clock.
    """

    def __init__(
        self,
        name: str,
        round_: Callable[[], Awaitable[object] | None],
        *,
        every_s: float = 0.0,
        first_s: float | None = None,
        limit: Limit = Limit(),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._round = round_
        self._every_s = every_s
        self._first_s = every_s if first_s is None else first_s
        self._limit = limit
        self._sleep = sleep
        self._monotonic = monotonic
        self._failed_s: collections.deque[float] = collections.deque(maxlen=limit.failures)
        FAILURES[name] += 0

    async def run(self) -> None:
        """Run rounds until cancelled.

        Raises:
            Exception: The error of the last round, after too many failures.
        """
        wait_s, failures = self._first_s, 0
        while True:
            if wait_s:
                await self._sleep(wait_s)
            try:
                if (work := self._round()) is not None:
                    await work
            except Exception as error:  # noqa: BLE001 - raised again when there are too many
                self._failed(error)
                failures += 1
                wait_s = max(self._every_s, _BACKOFF.delay_s(failures, retries.JITTER))
            else:
                wait_s, failures = self._every_s, 0

    def _failed(self, error: Exception) -> None:
        """Count and log a failure.

        Raises:
            Exception: The failure, if there were too many.
        """
        FAILURES[self._name] += 1
        if isinstance(error, errors.ClusterError):
            log.warning("a round of the loop %r failed and will be retried: %s", self._name, error)
            return
        log.error("a round of the loop %r failed", self._name, exc_info=error)
        self._failed_s.append(self._monotonic())
        if (
            len(self._failed_s) == self._limit.failures
            and self._failed_s[-1] - self._failed_s[0] <= self._limit.within_s
        ):
            log.error("the loop %r ends after %d failures", self._name, self._limit.failures)
            raise error
