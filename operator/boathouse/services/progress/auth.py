"""Who is asking: the pod that a projected service account token belongs to, by TokenReview, remembered for a minute."""

import collections
import dataclasses
import hashlib
import time
from collections.abc import Callable
from typing import Protocol

from boathouse.cluster import records

CACHE_S = 60.0
CACHE_SIZE = 10_000
_ACCOUNT = "system:serviceaccount:"


class Reviewer(Protocol):
    """Asks the API server: `ApiClient` is one."""

    async def token_review(self, token: str, audience: str) -> records.TokenReviewStatus:
        """Whose token it is."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A pod that has proved who it is."""

    namespace: str
    pod_name: str
    pod_uid: str


class Authenticator:
    """Reviews tokens; a token's hash, never the token, is kept.

    Args:
        reviewer: Whom to ask.
        audience: Whom tokens must be meant for.
        clock: Seconds that only grow.
    """

    def __init__(self, reviewer: Reviewer, audience: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._reviewer = reviewer
        self._audience = audience
        self._clock = clock
        self._known: collections.OrderedDict[bytes, tuple[float, Caller | None]] = collections.OrderedDict()

    async def caller(self, token: str) -> Caller | None:
        """The pod whose token this is; None for every other token.

        Raises:
            errors.ClusterError: The API server cannot be asked now.
        """
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and self._clock() < known[0]:
            return known[1]
        caller = _caller(await self._reviewer.token_review(token, self._audience))
        self._known[digest] = (self._clock() + CACHE_S, caller)
        self._known.move_to_end(digest)
        while len(self._known) > CACHE_SIZE:
            self._known.popitem(last=False)
        return caller


def _caller(review: records.TokenReviewStatus) -> Caller | None:
    user = review.user
    if not review.authenticated or not user.pod_name or not user.pod_uid or not user.username.startswith(_ACCOUNT):
        return None
    namespace = user.username.removeprefix(_ACCOUNT).partition(":")[0]
    return Caller(namespace=namespace, pod_name=user.pod_name, pod_uid=user.pod_uid)
