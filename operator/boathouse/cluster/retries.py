"""Backoff with jitter, and a helper that tries a call again where that is safe."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
from typing import TYPE_CHECKING, Protocol, TypeVar

from boathouse.cluster import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

log = logging.getLogger(__name__)


class Jitter(Protocol):
    """Where the randomness comes from: ``random.Random`` is one."""

    def uniform(self, a: float, b: float, /) -> float:
        """Return a number between the two."""


JITTER: Jitter = random.Random()  # noqa: S311 - spreads load, guards nothing
"""The process's own randomness for delays."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Growing delays: ``base_s``, times ``factor`` each time, at most ``cap_s``, each times a random 0.5 to 1."""

    base_s: float = 0.2
    factor: float = 2.0
    cap_s: float = 10.0
    attempts: int = 6

    def delay_s(self, failures: int, jitter: Jitter, *, at_least_s: float | None = None) -> float:
        """Return how long to wait after the ``failures``-th failure in a row (from 1).

        Args:
            failures: How many there were.
            jitter: Where the randomness comes from.
            at_least_s: What the server asked for (Retry-After); the delay is this and up to a tenth more.
        """
        wanted_s = min(self.cap_s, self.base_s * self.factor ** min(failures - 1, 30)) * jitter.uniform(0.5, 1.0)
        return max(wanted_s, (at_least_s or 0.0) * jitter.uniform(1.0, 1.1))


def is_worth_retrying(error: errors.ClusterError, *, idempotent: bool) -> bool:
    """Say whether the same request may succeed, and do no harm, when it is sent again.

    Args:
        error: What the request ended with.
        idempotent: Whether a request that was done already may be done again. Without it only what was surely not done
            is worth it: 429, 401, and a connection that was refused.
    """
    match error:
        case errors.TooManyRequests() | errors.Unauthorized():  # the token's file is read again
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
    jitter: Jitter = JITTER,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Call until it succeeds, fails for good, or ``backoff.attempts`` are used up; Retry-After is honoured.

    Args:
        call: Makes the request; called anew for each attempt.
        idempotent: See `is_worth_retrying`.
        conflicts: Also try again after 409; only for a call that reads the object anew each time.
        backoff: How long to wait, and how often to try.
        jitter: Where the randomness comes from; the process's own by default.
        sleep: How to wait.

    Raises:
        errors.ClusterError: The last error.
    """
    failures = 0
    while True:
        try:
            return await call()
        except errors.ClusterError as error:
            failures += 1
            again = is_worth_retrying(error, idempotent=idempotent) or (conflicts and type(error) is errors.Conflict)
            if not again or failures >= backoff.attempts:
                raise
            await sleep(backoff.delay_s(failures, jitter, at_least_s=retry_after_s(error)))


async def until_done(
    call: Callable[[], Awaitable[T]],
    *,
    what: str,
    backoff: Backoff = Backoff(base_s=0.5),
    jitter: Jitter = JITTER,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Call until it succeeds, whatever the API server answers: for what a process cannot go on without.

    Args:
        call: Makes requests that may be repeated.
        what: What it does, for the log.
        backoff: How long to wait.
        jitter: Where the randomness comes from.
        sleep: How to wait.
    """
    failures = 0
    while True:
        try:
            return await call()
        except errors.ClusterError as error:
            failures += 1
            delay_s = backoff.delay_s(failures, jitter, at_least_s=retry_after_s(error))
            log.warning("cannot %s: %s; the next attempt follows in %.1f s", what, error, delay_s)
            await sleep(delay_s)


def retry_after_s(error: errors.ClusterError) -> float | None:
    """Return how long the server asked us to wait, if it did."""
    return error.retry_after_s if isinstance(error, errors.ApiError) else None
