"""Receives posted plans: few at a time, each with a timeout, and decoded outside the event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from boathouse.fair import ALL, Buckets
from boathouse.listening.connections import Places
from boathouse.services.mrjob.splits import posted
from boathouse.services.mrjob.splits.shards import StoredPlan
from boathouse.services.progress.limits import Stream, receive
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse_task import contract

POSTS, POSTS_OF_NAMESPACE = 4, 1
"""Plans received concurrently, in total and per namespace: at most 32 MiB. They are decoded one by one."""
READ_S: Final = 3.0
READ_BYTES_A_S: Final = 512 * 1024
"""Minimum rate of a body after `READ_S`: the largest body may take 19 s."""
RATE_BYTES, BURST_BYTES = 8 * 2**20, 96 * 2**20
"""Bytes of JSON decoded per second: a third of a core, as 24 MiB take up to 1 s of CPU time."""
NAMESPACE_RATE_BYTES, NAMESPACE_BURST_BYTES = 2 * 2**20, 72 * 2**20


class PlanIntake:
    """Receives and decodes posted plans.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = Places(in_all=POSTS, per_key=POSTS_OF_NAMESPACE)
        self._budget = Buckets(rate_per_s=RATE_BYTES, burst=BURST_BYTES, clock=clock)
        self._budgets = Buckets(rate_per_s=NAMESPACE_RATE_BYTES, burst=NAMESPACE_BURST_BYTES, clock=clock)
        self._decoding = asyncio.Lock()

    def check(self, namespace: str) -> None:
        """Check that a namespace may post a plan now.

        Raises:
            Rejected: The budget of the namespace or of all namespaces is exhausted.
        """
        if self._budget.level(ALL) <= 0 or self._budgets.level(namespace) <= 0:
            raise Rejected(Reason.TOO_MANY_POSTS)

    async def read(self, namespace: str, stream: Stream, length: int | None, *, gzipped: bool) -> StoredPlan:
        """Receive and decode a plan.

        Args:
            namespace: Namespace of the job.
            stream: The body.
            length: Content-Length of the body in bytes, or None.
            gzipped: Whether the body is compressed.

        Raises:
            Rejected: Too many plans are being received, or the body is too large, too slow or not a plan.
        """
        with self._places.place(namespace) as free:
            if not free:
                raise Rejected(Reason.TOO_MANY_POSTS)
            most_bytes = contract.PLAN_POST_MAX_BYTES
            within_s = READ_S + (most_bytes if length is None else length) / READ_BYTES_A_S
            content = await receive(stream, most_bytes=most_bytes, within_s=within_s)
            return await self._decode(namespace, content, gzipped=gzipped)

    async def _decode(self, namespace: str, content: bytes, *, gzipped: bool) -> StoredPlan:
        """Decode in a thread, one plan at a time. An invalid plan is charged to the budgets like the largest plan."""
        cost = contract.PLAN_MAX_BYTES
        try:
            async with self._decoding:
                plan, cost = await asyncio.to_thread(posted.read, content, gzipped=gzipped)
        except posted.TooLargeError as error:
            raise Rejected(Reason.TOO_LARGE, str(error)) from error
        except ValueError as error:
            raise Rejected(Reason.MALFORMED, str(error)) from error
        finally:
            self._budget.charge(ALL, cost)
            self._budgets.charge(namespace, cost)
        return plan
