"""The reasons for which the progress endpoint refuses a request, and limits of rates and concurrent requests."""

import asyncio
import collections
import contextlib
import enum
import math
import time
from collections.abc import Callable, Iterator
from typing import Final, Generic, Self, TypeVar

from aiohttp import StreamReader, web

from boathouse.listening.connections import Places

K = TypeVar("K")
V = TypeVar("V")
CACHE_SIZE: Final = 20_000
"""Maximum entries in each cache: those of accepted and of denied tokens are apart, so the latter cannot evict the
former."""
REPORT_DISTANCE_S: Final = 2.0
"""Minimum time between reports of a pod. Tasks report every 5 s."""
ACKNOWLEDGEMENT_DISTANCE_S: Final = 0.5
"""Minimum time between acknowledgements of a pod. A task repeats one after 0.5 s or more."""
ACKNOWLEDGEMENT_READ_S, REPORT_READ_S = 1.0, 5.0
REPORTERS_S: Final = 60.0
"""Pods that reported within this time count as reporting."""
REPORTS_A_S: Final = 100.0
"""Maximum reports per second, which use a tenth of a core. With more pods, each is asked to report less often."""
REPORTS, REPORTS_OF_NAMESPACE = 256, 192
"""Concurrently received reports, in total and per namespace. One takes milliseconds unless its sender is malicious."""
POLLS, POLLS_OF_NAMESPACE, POLLS_OF_POD = 1024, 768, 2
"""Concurrent polls in total, per namespace and per pod. Few reduces poll, since most start when the maps are done."""
_TOO_MANY_PLANS: Final = "the plans of the namespace's unfinished jobs have reached their limit: retry"
_NO_POD: Final = "the token is not a pod's, has expired, or has another audience: send the projected token"


class Reason(enum.StrEnum):
    """Reason why a request or a connection was refused, a value of the metric's label `reason`, with its response.

    That is an HTTP status, a message, and Retry-After in seconds. A refused connection is closed without one.
    """

    status: int
    text: str
    retry_after_s: int

    def __new__(cls, reason: str, status: int = 0, text: str = "", retry_after_s: int = 0) -> Self:
        """Return the reason with its response."""
        made = str.__new__(cls, reason)
        made._value_, made.status, made.text, made.retry_after_s = reason, status, text, retry_after_s
        return made

    NO_TOKEN = "NoToken", 401, "send the projected token: Authorization: Bearer TOKEN"
    INVALID_TOKEN = "InvalidToken", 401, _NO_POD
    ANOTHER_POD = "AnotherPod", 403, "a token is valid for its own pod only"
    UNKNOWN_POD = "UnknownPod", 404, "the job has no such running pod, or this replica has not observed it yet", 2
    NOT_SETUP = "NotSetup", 403, "only the setup task may post the plan and request an output's owner"
    NO_PLAN_WANTED = "NoPlanWanted", 409, "the job has its plan, or was deleted"
    NO_LEAVE = "NoLeave", 409, "only the client of the job's current attempt may submit"
    MALFORMED = "Malformed", 400, "the request is malformed"
    TOO_LARGE = "TooLarge", 413, "the body is too large"
    TOO_SLOW = "TooSlow", 408, "the body did not arrive in time"
    TOO_OFTEN = "TooOften", 429, "report every 5 s", 5
    OUT_OF_ORDER = "OutOfOrder", 409, "a later report of this object has arrived"
    TOO_MANY_POSTS = "TooManyPosts", 503, "too many plans are being posted: retry", 2
    TOO_MANY_PLANS = "TooManyPlans", 503, _TOO_MANY_PLANS, 15
    TOO_MANY_POLLS = "TooManyPolls", 503, "too many polls are open: retry", 45
    TOO_MANY_REVIEWS = "TooManyReviews", 503, "too many tokens are being reviewed: retry", 5
    REVIEW_FAILED = "ReviewFailed", 503, "the API server cannot review tokens: retry", 2
    UNKNOWN_PATH = "UnknownPath", 404, "the path does not exist"
    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"
    TOO_LARGE_HEAD = "TooLargeHead"


class Rejected(Exception):  # noqa: N818 - a response, not an error of the operator
    """Raised by a handler that refuses its request, with what is wrong beside the reason's message."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail

    def response(self) -> web.Response:
        """Return the HTTP response."""
        reason = self.reason
        headers = {"Retry-After": str(reason.retry_after_s)} if reason.retry_after_s else None
        text = f"{reason.text}: {self.detail}" if self.detail else reason.text
        return web.Response(status=reason.status, text=text, headers=headers)


class Cache(Generic[K, V]):
    """Values that expire after `keep_s`. A full cache evicts its oldest value."""

    def __init__(self, keep_s: float, clock: Callable[[], float]) -> None:
        self._keep_s, self._clock = keep_s, clock
        self._values: collections.OrderedDict[K, tuple[float, V]] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return the value; None if it has expired."""
        until_s, value = self._values.get(key, (-math.inf, None))
        return value if self._clock() < until_s else None

    def put(self, key: K, value: V) -> None:
        """Store a value, and drop those that have expired: the oldest are first."""
        now_s = self._clock()
        self._values[key] = (now_s + self._keep_s, value)
        self._values.move_to_end(key)
        while len(self._values) > CACHE_SIZE or next(iter(self._values.values()))[0] <= now_s:
            self._values.popitem(last=False)


class Limits:
    """Limits of reports, acknowledgements and polls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reported: Cache[str, float] = Cache(REPORTERS_S, clock)
        self._acknowledged: Cache[str, float] = Cache(REPORTERS_S, clock)
        self._bodies = Places(in_all=REPORTS, per_key=REPORTS_OF_NAMESPACE)
        self._polls = Places(in_all=POLLS, per_key=POLLS_OF_NAMESPACE)
        self._polls_of_pod = Places(in_all=POLLS, per_key=POLLS_OF_POD)

    @property
    def report_distance_s(self) -> float:
        """Seconds until a pod that has just reported should report again."""
        return min(REPORTERS_S, len(self._reported) / REPORTS_A_S)

    def check_report(self, pod_uid: str) -> None:
        """Raise `Rejected` if a pod has reported within `REPORT_DISTANCE_S`."""
        self._check(self._reported.get(pod_uid), REPORT_DISTANCE_S)

    def _check(self, last_s: float | None, distance_s: float) -> None:
        if last_s is not None and self._clock() - last_s < distance_s:
            raise Rejected(Reason.TOO_OFTEN)

    async def receive_report(self, stream: StreamReader, namespace: str, pod_uid: str, *, most_bytes: int) -> bytes:
        """Return the body of a report, and store its time; raises `Rejected` as `receive` does, or beyond the limit."""
        self._reported.put(pod_uid, self._clock())
        with self._bodies.place(namespace) as free:
            if not free:
                raise Rejected(Reason.TOO_OFTEN)
            return await receive(stream, most_bytes=most_bytes, within_s=REPORT_READ_S)

    def check_acknowledgement(self, pod_uid: str) -> None:
        """Raise `Rejected` if a pod has acknowledged an order within `ACKNOWLEDGEMENT_DISTANCE_S`."""
        self._check(self._acknowledged.get(pod_uid), ACKNOWLEDGEMENT_DISTANCE_S)

    async def receive_acknowledgement(self, stream: StreamReader, pod_uid: str, *, most_bytes: int) -> bytes:
        """Return the body of an acknowledgement, and store its time; raises `Rejected` as `receive` does."""
        self._acknowledged.put(pod_uid, self._clock())
        return await receive(stream, most_bytes=most_bytes, within_s=ACKNOWLEDGEMENT_READ_S)

    @contextlib.contextmanager
    def poll(self, namespace: str, pod_uid: str) -> Iterator[None]:
        """Count a poll during the block; raises `Rejected` if the namespace, the pod or all pods have too many."""
        with self._polls.place(namespace) as free, self._polls_of_pod.place(pod_uid) as free_of_pod:
            if not (free and free_of_pod):
                raise Rejected(Reason.TOO_MANY_POLLS)
            yield


async def receive(stream: StreamReader, *, most_bytes: int, within_s: float) -> bytes:
    """Return the body of a request; raises `Rejected` if it is too large or too slow, or its sender is gone."""
    content = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for piece in stream.iter_any():
                content += piece
                if len(content) > most_bytes:
                    raise Rejected(Reason.TOO_LARGE, f"more than {most_bytes} bytes")
    except (TimeoutError, ConnectionError) as error:
        raise Rejected(Reason.TOO_SLOW) from error
    return bytes(content)
