"""How many requests may be under way at a time, for each party and in all. Pure."""

import collections
import contextlib
from collections.abc import Hashable, Iterator


class Places:
    """Places for work that is under way.

    Args:
        in_all: How many there are.
        each: How many one key may hold.
    """

    def __init__(self, *, in_all: int, each: int) -> None:
        self._in_all = in_all
        self._each = each
        self._held: collections.Counter[Hashable] = collections.Counter()

    @property
    def held(self) -> int:
        """How many are taken."""
        return self._held.total()

    @contextlib.contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """Hold a place for the time of the block; gives False if there is none."""
        if self._held[key] >= self._each or self.held >= self._in_all:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
