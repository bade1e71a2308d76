"""Limit the rate of a pod's reports and acknowledgements, and the concurrent requests of a namespace and a pod."""

import asyncio
import collections
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Protocol

from boathouse.listening.connections import Places
from boathouse.services.progress.rejections import Reason, Rejected

REPORT_DISTANCE_S: Final = 2.0
"""Minimum time between reports of a pod. Tasks report every 5 s."""
ACKNOWLEDGEMENT_DISTANCE_S: Final = 0.5
"""Minimum time between acknowledgements of a pod. A task repeats one after 0.5 s or more."""
ACKNOWLEDGEMENT_READ_S: Final = 1.0
REPORT_READ_S: Final = 5.0
REPORTERS_S: Final = 60.0
"""Pods that reported within this time count as reporting."""
REPORTS_A_S: Final = 100.0
"""Maximum reports per second, which use a tenth of a core. With more pods, each is asked to report less often."""
REPORTS, REPORTS_OF_NAMESPACE = 256, 192
"""Concurrently received reports, in total and per namespace. One takes milliseconds unless its sender is malicious."""
POLLS, POLLS_OF_NAMESPACE, POLLS_OF_POD = 1024, 768, 2
"""Concurrent polls in total, per namespace and per pod. Few reduces poll, since most start when the maps are done."""


class Stream(Protocol):
    """The body of a request: aiohttp's `StreamReader` implements it."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces, as they arrive."""
        ...


class _Senders:
    """The times at which pods sent their last request of one type.

    The oldest times are dropped first, so the cost of a request does not depend on the number of pods.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: collections.OrderedDict[str, float] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._sent)

    def check(self, pod_uid: str, distance_s: float) -> None:
        """Check that a pod has not sent a request for this time.

        Raises:
            Rejected: The pod has sent a request within this time.
        """
        if self._clock() - self._sent.get(pod_uid, -distance_s) < distance_s:
            raise Rejected(Reason.TOO_OFTEN)

    def note(self, pod_uid: str) -> None:
        """Store the time of a pod's request."""
        now_s = self._clock()
        self._sent[pod_uid] = now_s
        self._sent.move_to_end(pod_uid)
        while now_s - next(iter(self._sent.values())) > REPORTERS_S:
            self._sent.popitem(last=False)


class Limits:
    """Limits of reports, acknowledgements and polls.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._reported, self._acknowledged = _Senders(clock), _Senders(clock)
        self._bodies = Places(in_all=REPORTS, per_key=REPORTS_OF_NAMESPACE)
        self._polls = Places(in_all=POLLS, per_key=POLLS_OF_NAMESPACE)
        self._polls_of_pod = Places(in_all=POLLS, per_key=POLLS_OF_POD)

    @property
    def report_distance_s(self) -> float:
        """Seconds until a pod that has just reported should report again."""
        return min(REPORTERS_S, len(self._reported) / REPORTS_A_S)

    def check_report(self, pod_uid: str) -> None:
        """Check that a pod has not reported for `REPORT_DISTANCE_S`.

        Raises:
            Rejected: The pod has reported within this time.
        """
        self._reported.check(pod_uid, REPORT_DISTANCE_S)

    async def receive_report(self, stream: Stream, namespace: str, pod_uid: str, *, most_bytes: int) -> bytes:
        """Return the body of a report, and store the time of the pod's report.

        Raises:
            Rejected: The namespace sends too many concurrent reports, or this one is too large or too slow.
        """
        self._reported.note(pod_uid)
        with self._bodies.place(namespace) as free:
            if not free:
                raise Rejected(Reason.TOO_OFTEN)
            return await receive(stream, most_bytes=most_bytes, within_s=REPORT_READ_S)

    def check_acknowledgement(self, pod_uid: str) -> None:
        """Check that a pod has not acknowledged an order for `ACKNOWLEDGEMENT_DISTANCE_S`.

        Raises:
            Rejected: The pod has acknowledged an order within this time.
        """
        self._acknowledged.check(pod_uid, ACKNOWLEDGEMENT_DISTANCE_S)

    async def receive_acknowledgement(self, stream: Stream, pod_uid: str, *, most_bytes: int) -> bytes:
        """Return the body of an acknowledgement, and store its time.

        Raises:
            Rejected: It is too large or too slow.
        """
        self._acknowledged.note(pod_uid)
        return await receive(stream, most_bytes=most_bytes, within_s=ACKNOWLEDGEMENT_READ_S)

    @contextlib.contextmanager
    def poll(self, namespace: str, pod_uid: str) -> Iterator[None]:
        """Count a poll during the block.

        Raises:
            Rejected: The namespace, the pod or all pods have too many polls.
        """
        with self._polls.place(namespace) as free, self._polls_of_pod.place(pod_uid) as free_of_pod:
            if not (free and free_of_pod):
                raise Rejected(Reason.TOO_MANY_POLLS)
            yield


async def receive(stream: Stream, *, most_bytes: int, within_s: float) -> bytes:
    """Return the body of a request.

    Raises:
        Rejected: The body is too large or too slow, or its sender has disconnected, as a task that is killed does.
    """
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
