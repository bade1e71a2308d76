"""Places for API writes, which namespaces share in turn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from boathouse import fair


class Places:
    """Limits the writes in flight.

    Args:
        most: Their maximum.
    """

    def __init__(self, most: int) -> None:
        self._waiting: fair.FairQueue[asyncio.Future[None]] = fair.FairQueue(most)

    @contextlib.asynccontextmanager
    async def take(self, namespace: str) -> AsyncIterator[None]:
        """Hold a place, once a namespace has its turn."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(namespace, granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self._return(namespace)
            raise
        try:
            yield
        finally:
            self._return(namespace)

    def _return(self, namespace: str) -> None:
        self._waiting.done(namespace)
        self._grant()

    def _grant(self) -> None:
        while (taken := self._waiting.take()) is not None:
            namespace, granted = taken
            if granted.cancelled():
                self._waiting.done(namespace)
            else:
                granted.set_result(None)
