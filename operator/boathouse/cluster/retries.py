"""Retries: backoff with jitter, calls that are repeated if that is safe, and loops of rounds that run until cancelled.

A round of a loop that fails is logged, counted and retried. Repeated failures that the API server did not cause end the
loop, because a broken invariant must not persist.
"""

import asyncio
import collections
import dataclasses
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from boathouse.cluster import errors

T = TypeVar("T")
log = logging.getLogger(__name__)
Jitter: TypeAlias = random.Random
JITTER = random.Random()  # noqa: S311 - spreads load, guards nothing


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential delays: `base_s`, multiplied by `factor` each time, at most `cap_s`, times a random 0.5 to 1."""

    base_s: float = 0.2
    factor: float = 2.0
    cap_s: float = 10.0
    attempts: int = 6

    def delay_s(self, failures: int, jitter: Jitter, *, at_least_s: float | None = None) -> float:
        """Return the delay after a number of failures in a row, from 1; at least `at_least_s`, a Retry-After."""
        wanted_s = min(self.cap_s, self.base_s * self.factor ** min(failures - 1, 30)) * jitter.uniform(0.5, 1.0)
        return max(wanted_s, (at_least_s or 0.0) * jitter.uniform(1.0, 1.1))


def is_worth_retrying(error: errors.ClusterError, *, idempotent: bool) -> bool:
    """Return whether a retry of the request may succeed and is safe.

    Unless it is `idempotent`, it is retried only if it was certainly not done: after 429, 401, and a refused
    connection.
    """
    match error:
        case errors.TooManyRequests() | errors.Unauthorized():  # the retry reads the token's file again
            return True
        case errors.ConnectionLost():
            return idempotent or not error.maybe_done
        case errors.ServerError():
            return idempotent
        case _:
            return False


async def retrying(
    call: Callable[[], Awaitable[T]],
    *,
    idempotent: bool,
    conflicts: bool = False,
    backoff: Backoff = Backoff(),
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Call until success, a permanent error, or the last attempt; after `conflicts` the call reads the object again."""
    failures = 0
    while True:
        try:
            return await call()
        except errors.ClusterError as error:
            failures += 1
            again = is_worth_retrying(error, idempotent=idempotent) or (conflicts and type(error) is errors.Conflict)
            if not again or failures >= backoff.attempts:
                raise
            await sleep(backoff.delay_s(failures, JITTER, at_least_s=error.retry_after_s))


_UNTIL_DONE = Backoff(base_s=0.5)


async def until_done(call: Callable[[], Awaitable[T]], *, what: str) -> T:
    """Call until success, whatever the error; the log says that the process cannot `what`, a verb phrase."""
    failures = 0
    while True:
        try:
            return await call()
        except errors.ClusterError as error:
            failures += 1
            delay_s = _UNTIL_DONE.delay_s(failures, JITTER, at_least_s=error.retry_after_s)
            log.warning("cannot %s: %s; retrying in %.1f s", what, error, delay_s)
            await asyncio.sleep(delay_s)


FAILURES: collections.Counter[str] = collections.Counter()
"""Failed rounds of this process's loops by name; each loop has an entry from its start."""
MOST_FAILURES, WITHIN_S = 10, 600.0
"""A loop ends after this number of failures within this time. Errors of the API server do not count."""
_LOOP_BACKOFF = Backoff(base_s=0.1, cap_s=30.0)
Round: TypeAlias = Callable[[], Awaitable[object] | None]


class Loop:
    """Repeats work that concerns no single object, under a name in logs and metrics.

    `every_s` is the delay before each round, and `first_s` that before the first, if it is another.
    """

    def __init__(self, name: str, round_: Round, *, every_s: float = 0.0, first_s: float | None = None) -> None:
        self._name, self._round, self._every_s = name, round_, every_s
        self._first_s = every_s if first_s is None else first_s
        self._failed_s: collections.deque[float] = collections.deque(maxlen=MOST_FAILURES)
        FAILURES[name] += 0

    async def run(self) -> None:
        """Run rounds until cancelled; raises the error of the last one after too many failures."""
        wait_s, failures = self._first_s, 0
        while True:
            if wait_s:
                await asyncio.sleep(wait_s)
            try:
                if (work := self._round()) is not None:
                    await work
            except Exception as error:  # noqa: BLE001 - raised again when there are too many
                self._failed(error)
                failures += 1
                wait_s = max(self._every_s, _LOOP_BACKOFF.delay_s(failures, JITTER))
            else:
                wait_s, failures = self._every_s, 0

    def _failed(self, error: Exception) -> None:
        """Count and log a failure; raise it if there were too many."""
        FAILURES[self._name] += 1
        if isinstance(error, errors.ClusterError):
            log.warning("a round of the loop %r failed and will be retried: %s", self._name, error)
            return
        log.error("a round of the loop %r failed", self._name, exc_info=error)
        self._failed_s.append(asyncio.get_running_loop().time())
        if len(self._failed_s) == MOST_FAILURES and self._failed_s[-1] - self._failed_s[0] <= WITHIN_S:
            log.error("the loop %r ends after %d failures", self._name, MOST_FAILURES)
            raise error
