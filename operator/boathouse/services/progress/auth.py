"""Authenticate the pod of a projected service account token by TokenReview, within a budget.

Anybody can forge such a token. The claims only decide whether to send a TokenReview: a token that names no live pod of
the job is refused without one, and the verified result must name the same pod.
"""

import asyncio
import base64
import binascii
import collections
import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Callable
from typing import Final

import msgspec

from boathouse.cluster import client, errors, written
from boathouse.fair import ALL, Buckets
from boathouse.services.progress.limits import Cache, Reason

MAX_TOKEN_CHARS: Final = 8190
"""A projected token has about 1,200 characters; the HTTP parser takes no longer header."""
_PARTS: Final = 3
_SKEW_S: Final = 60.0
CACHE_S: Final = 900.0
"""How long an accepted token is cached. The watch of pods shows whether the pod still exists."""
BAD_CACHE_S: Final = 60.0
NAMESPACE_RATE, NAMESPACE_BURST = 25.0, 250.0
"""Reviews per second of tokens that claim a namespace: 10,000 tasks, each once in 15 minutes, need 11."""
RATE, BURST = 100.0, 500.0
"""Reviews per second in total."""
IN_FLIGHT, IN_FLIGHT_OF_NAMESPACE = 16, 12
"""Concurrent reviews, in total and per namespace. Further ones wait: the tasks of a job start together."""
PENDING, PENDING_OF_NAMESPACE = 500, 250
"""Reviews that wait or are in flight, in total and per namespace. Each has a connection and a token of some KiB."""
WAIT_S = TIMEOUT_S = 5.0
RESULTS: Final = ("accepted", "denied", "error")
_ACCOUNT: Final = "system:serviceaccount:"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The pod that a token belongs to."""

    namespace: str
    pod_name: str
    pod_uid: str


class _Pod(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Kubernetes(msgspec.Struct, frozen=True):
    namespace: str
    pod: _Pod


class _Payload(msgspec.Struct, frozen=True):
    iss: str
    exp: float
    aud: str | list[str]
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")


_decoder = msgspec.json.Decoder(_Payload)


def read_claims(token: str, audience: str, now_s: float) -> Caller | None:
    """Return the pod that a token claims; None for one that is malformed, expired, or for another audience."""
    parts = token.split(".", _PARTS)
    if len(token) > MAX_TOKEN_CHARS or len(parts) != _PARTS or not token.isascii():
        return None
    try:
        payload = _decoder.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    audiences = [payload.aud] if isinstance(payload.aud, str) else payload.aud
    if audience not in audiences or payload.exp < now_s - _SKEW_S:
        return None
    said = payload.kubernetes
    return Caller(namespace=said.namespace, pod_name=said.pod.name, pod_uid=said.pod.uid)


Verdict = Caller | Reason


class Authenticator:
    """Reviews tokens, and caches the results by a token's hash; each is passed to `reviewed`."""

    def __init__(
        self,
        api: client.ApiClient,
        audience: str,
        *,
        reviewed: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._audience, self._reviewed = api, audience, reviewed
        self._good: Cache[bytes, Caller] = Cache(CACHE_S, clock)
        self._bad: Cache[bytes, Reason] = Cache(BAD_CACHE_S, clock)
        self._pending: dict[bytes, asyncio.Task[Verdict]] = {}
        self._of_namespace: collections.Counter[str] = collections.Counter()
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._places_of_namespace: dict[str, asyncio.Semaphore] = {}
        self._budget = Buckets(rate_per_s=RATE, burst=BURST, clock=clock)
        self._budgets = Buckets(rate_per_s=NAMESPACE_RATE, burst=NAMESPACE_BURST, clock=clock)

    async def caller(self, token: str, claimed: Caller) -> Verdict:
        """Return the pod of a token, which must be the live pod that it claims, or why the token is refused."""
        digest = hashlib.sha256(token.encode()).digest()
        verdict = self._good.get(digest) or self._bad.get(digest)
        if verdict is None:
            review = self._pending.get(digest) or self._start(digest, token, claimed.namespace)
            verdict = review if isinstance(review, Reason) else await asyncio.shield(review)
        return Reason.INVALID_TOKEN if isinstance(verdict, Caller) and verdict != claimed else verdict

    def _start(self, digest: bytes, token: str, namespace: str) -> asyncio.Task[Verdict] | Reason:
        """Begin a review within the budgets: first the namespace's, which then cannot exhaust the common one."""
        may_wait = len(self._pending) < PENDING and self._of_namespace[namespace] < PENDING_OF_NAMESPACE
        if not (may_wait and self._budgets.take(namespace) and self._budget.take(ALL)):
            return Reason.TOO_MANY_REVIEWS
        self._of_namespace[namespace] += 1
        places = self._places_of_namespace.setdefault(namespace, asyncio.Semaphore(IN_FLIGHT_OF_NAMESPACE))
        review = self._pending[digest] = asyncio.create_task(self._verdict(digest, token, places))
        review.add_done_callback(lambda _: self._ended(digest, namespace))
        return review

    def _ended(self, digest: bytes, namespace: str) -> None:
        del self._pending[digest]
        self._of_namespace[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace], self._places_of_namespace[namespace]

    async def _verdict(self, digest: bytes, token: str, places_of_namespace: asyncio.Semaphore) -> Verdict:
        """Review a token once there is a place for it: first its namespace's, so that others do not wait behind it."""
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(WAIT_S):
                    await held.enter_async_context(places_of_namespace)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                return Reason.TOO_MANY_REVIEWS
            return await self._review(digest, token)

    async def _review(self, digest: bytes, token: str) -> Verdict:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                caller = _caller(await self._api.token_review(token, self._audience))
        except (errors.ClusterError, TimeoutError):
            self._reviewed("error")
            return Reason.REVIEW_FAILED
        if caller is None:
            self._reviewed("denied")
            self._bad.put(digest, Reason.INVALID_TOKEN)
            return Reason.INVALID_TOKEN
        self._reviewed("accepted")
        self._good.put(digest, caller)
        return caller


def _caller(review: written.TokenReviewStatus) -> Caller | None:
    user = review.user
    if not review.authenticated or not user.pod_name or not user.pod_uid or not user.username.startswith(_ACCOUNT):
        return None
    namespace = user.username.removeprefix(_ACCOUNT).partition(":")[0]
    return Caller(namespace=namespace, pod_name=user.pod_name, pod_uid=user.pod_uid)
