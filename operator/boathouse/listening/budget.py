"""Limit concurrent requests, per key and in total. Pure."""

import collections
import contextlib
from collections.abc import Hashable, Iterator


class Places:
    """Counts requests in progress.

    Args:
        in_all: Maximum in total.
        per_key: Maximum per key.
    """

    def __init__(self, *, in_all: int, per_key: int) -> None:
        self._in_all = in_all
        self._per_key = per_key
        self._held: collections.Counter[Hashable] = collections.Counter()

    @property
    def held(self) -> int:
        """Number of requests in progress."""
        return self._held.total()

    @contextlib.contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """Count a request during the block; yields False if the maximum is reached."""
        if self._held[key] >= self._per_key or self.held >= self._in_all:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
