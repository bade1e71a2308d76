"""Authenticate the pod of a projected service account token by TokenReview, within a budget."""

import asyncio
import collections
import hashlib
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from boathouse.buckets import ALL, Buckets
from boathouse.cluster import errors, written
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason

CACHE_S: Final = 900.0
"""How long an accepted token is cached. The watch of pods shows whether the pod still exists."""
BAD_CACHE_S: Final = 60.0
CACHE_SIZE: Final = 20_000
"""Maximum entries in each of two caches, for accepted and denied tokens, so that the latter cannot evict the former."""
NAMESPACE_RATE, NAMESPACE_BURST = 25.0, 250.0
"""Reviews per second of tokens that claim a namespace: 10,000 tasks, each once in 15 minutes, need 11."""
RATE, BURST = 100.0, 500.0
"""Reviews per second in total."""
IN_FLIGHT, IN_FLIGHT_OF_NAMESPACE = 16, 12
TIMEOUT_S: Final = 5.0
RESULTS: Final = ("accepted", "denied", "error")
"""Results of reviews, for the metric."""
_ACCOUNT: Final = "system:serviceaccount:"

Verdict = Caller | Reason


class Reviewer(Protocol):
    """Sends a TokenReview to the API server; `ApiClient` implements it."""

    async def token_review(self, token: str, audience: str) -> written.TokenReviewStatus:
        """Return the status of a token's review."""
        ...


class Authenticator:
    """Reviews tokens, and caches the results by a token's hash.

    Args:
        reviewer: Sends reviews.
        audience: Required audience of tokens.
        reviewed: Called with the result of each review, one of `RESULTS`.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        audience: str,
        *,
        reviewed: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reviewer = reviewer
        self._audience = audience
        self._reviewed = reviewed
        self._good: _Memory[Caller] = _Memory(CACHE_S, clock)
        self._bad: _Memory[Reason] = _Memory(BAD_CACHE_S, clock)
        self._in_flight: dict[bytes, asyncio.Task[Verdict]] = {}
        self._reviewing: collections.Counter[str] = collections.Counter()
        self._budget = Buckets(rate_per_s=RATE, burst=BURST, clock=clock)
        self._budgets = Buckets(rate_per_s=NAMESPACE_RATE, burst=NAMESPACE_BURST, clock=clock)

    async def caller(self, token: str, claimed: Caller) -> Verdict:
        """Return the pod of a token, or why the token is refused.

        Args:
            token: The token.
            claimed: The live pod that the token names; the verified pod must be the same.
        """
        digest = hashlib.sha256(token.encode()).digest()
        verdict = self._good.get(digest) or self._bad.get(digest)
        if verdict is None:
            review = self._in_flight.get(digest) or self._start(digest, token, claimed)
            verdict = review if isinstance(review, Reason) else await asyncio.shield(review)
        if isinstance(verdict, Caller) and verdict != claimed:
            return Reason.INVALID_TOKEN
        return verdict

    def _start(self, digest: bytes, token: str, claimed: Caller) -> asyncio.Task[Verdict] | Reason:
        """Begin a review within the budgets: first the namespace's, which then cannot exhaust the common one."""
        namespace = claimed.namespace
        at_once = len(self._in_flight) < IN_FLIGHT and self._reviewing[namespace] < IN_FLIGHT_OF_NAMESPACE
        if not (at_once and self._budgets.take(namespace) and self._budget.take(ALL)):
            return Reason.TOO_MANY_REVIEWS
        self._reviewing[namespace] += 1
        review = self._in_flight[digest] = asyncio.create_task(self._review(digest, token))
        review.add_done_callback(lambda _: self._reviewed_one_of(namespace))
        return review

    def _reviewed_one_of(self, namespace: str) -> None:
        self._reviewing[namespace] -= 1
        if not self._reviewing[namespace]:
            del self._reviewing[namespace]

    async def _review(self, digest: bytes, token: str) -> Verdict:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                caller = _caller(await self._reviewer.token_review(token, self._audience))
        except (errors.ClusterError, TimeoutError):
            self._reviewed("error")
            return Reason.REVIEW_FAILED
        finally:
            self._in_flight.pop(digest, None)
        if caller is None:
            self._reviewed("denied")
            self._bad.put(digest, Reason.INVALID_TOKEN)
            return Reason.INVALID_TOKEN
        self._reviewed("accepted")
        self._good.put(digest, caller)
        return caller


T = TypeVar("T")


class _Memory(Generic[T]):
    """Cache by a token's hash, with a time to live; a full cache evicts its oldest entry."""

    def __init__(self, keep_s: float, clock: Callable[[], float]) -> None:
        self._keep_s = keep_s
        self._clock = clock
        self._values: collections.OrderedDict[bytes, tuple[float, T]] = collections.OrderedDict()

    def get(self, digest: bytes) -> T | None:
        """Return the value, or None if it has expired."""
        until_s, value = self._values.get(digest, (0.0, None))
        return value if self._clock() < until_s else None

    def put(self, digest: bytes, value: T) -> None:
        """Store a value."""
        self._values[digest] = (self._clock() + self._keep_s, value)
        self._values.move_to_end(digest)
        while len(self._values) > CACHE_SIZE:
            self._values.popitem(last=False)


def _caller(review: written.TokenReviewStatus) -> Caller | None:
    user = review.user
    if not review.authenticated or not user.pod_name or not user.pod_uid or not user.username.startswith(_ACCOUNT):
        return None
    namespace = user.username.removeprefix(_ACCOUNT).partition(":")[0]
    return Caller(namespace=namespace, pod_name=user.pod_name, pod_uid=user.pod_uid)
